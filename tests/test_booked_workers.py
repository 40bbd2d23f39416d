"""Workers of a cluster that were not profiled: their books say who is late, and with what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stall_analyzer.align.align import align
from stall_analyzer.attribute.attribute import attribute
from stall_analyzer.captures.capture_format import Account, BookPhase, MarkName
from stall_analyzer.captures.capture_records import (
    BookItem,
    Environment,
    MarkRecord,
    StackSamples,
    Task,
)
from stall_analyzer.captures.stack_frames import Frame
from stall_analyzer.detectors.cluster import host_missing, straggler
from stall_analyzer.diagnose.diagnose import findings_of, signals_of
from stall_analyzer.diagnose.users_code import with_lines
from stall_analyzer.diagnose.verdict import judge
from stall_analyzer.model.books import Books, DatedItem
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.findings import Finding
from stall_analyzer.model.sampled_stacks import SampledStacks, SeenStack
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.signals import Signals
from tests.captures import START_NS, log

NS_PER_MS = 1_000_000
STEPS = 20
Spent = Mapping[str, float]  # milliseconds by account, in each step


def books(
    rows: Sequence[Spent],
    ahead_ms: float = 0.0,
    at_once: Sequence[int] = (),
    items: Sequence[BookItem] = (),
) -> Books:
    """One row per step; `at_once`: how many steps ended in a row, if it is not one."""
    lasted = np.array([round(sum(row.values()) * NS_PER_MS) for row in rows])
    ends = START_NS + round(ahead_ms * NS_PER_MS) + np.cumsum(lasted)
    accounts = dict.fromkeys(account for row in rows for account in row)
    return Books(
        begin_ns=ends - lasted,
        end_ns=ends,
        phase=(BookPhase.TRAIN,) * len(rows),
        epoch=np.zeros(len(rows), dtype=np.int64),
        steps=np.array(at_once or [1] * len(rows)),
        calls=np.array(at_once or [1] * len(rows)),
        spent_ns={a: np.array([round(r.get(a, 0) * NS_PER_MS) for r in rows]) for a in accounts},
        items=tuple(DatedItem(START_NS, int(ends[-1]), BookPhase.TRAIN, item) for item in items),
    )


def worker(
    index: int,
    kept: Books,
    workers: int = 2,
    host: str = "box",
    stacks: SampledStacks | None = None,
    **about: Any,
) -> Capture:
    begin_ns, end_ns = int(kept.begin_ns[0]), int(kept.end_ns[-1])
    addresses = tuple(f"box:{n}" for n in range(workers))
    known = {"task": Task("worker", index), "cluster": {"worker": addresses}, **about}
    begins = (MarkName.FIT_BEGIN, MarkName.EPOCH_BEGIN)
    marks = [MarkRecord(ns=begin_ns, what=what, epoch=0, step=0) for what in begins]
    end = MarkRecord(ns=end_ns, what=MarkName.EPOCH_END, epoch=0, step=int(kept.steps.sum()))
    return Capture(
        environment=Environment(host=host, **known),
        marks=(*marks, end),
        first_ns=begin_ns,
        last_ns=end_ns,
        books=kept,
        stacks=stacks,
    )


def signals_for(*captures: Capture) -> Signals:
    timeline = align([], log(*captures))
    return signals_of(timeline, attribute(timeline))


def late(spent: Spent, step_ms: float = 5.0) -> list[Spent]:
    return [{**spent, Account.STEP: step_ms, Account.COLLECTIVE: 1.0}] * STEPS


def waiting(ms: float, step_ms: float = 5.0) -> list[Spent]:
    return [{Account.STEP: step_ms, Account.COLLECTIVE: ms}] * STEPS


def test_the_worker_that_waits_least_in_collectives_is_late_and_its_books_say_why() -> None:
    slow, fast = books(late({Account.WAIT: 40.0})), books(waiting(41.0))
    signals = signals_for(worker(0, fast), worker(1, slow))
    [host] = signals.stragglers
    assert (host.host, host.reason.cause, host.times) == ("box-worker-1", "input.wait", STEPS)
    assert host.cost_ps == STEPS * 40 * PS_PER_MS
    assert signals.host.host == "box-worker-1"


def test_the_verdict_names_worker_cause_and_cost_without_a_profile() -> None:
    hook = BookItem(Account.CALLBACK, "Report.on_batch_end", "train.py:7", STEPS, 800 * NS_PER_MS)
    slow, fast = books(late({Account.CALLBACK: 40.0}), items=[hook]), books(waiting(41.0))
    signals = signals_for(worker(0, slow), worker(1, fast))
    finding = straggler.check(signals)
    assert finding is not None
    assert finding.explanation.endswith("Most of it went to Report.on_batch_end (train.py:7).")
    assert finding.title == "box-worker-0 is late: the others wait 800 ms for it"
    sentence = judge(signals, (finding,)).sentence
    assert "made the others wait 800 ms (87%) because of its host time (callback" in sentence


def test_a_slower_processor_shows_as_computing() -> None:
    slow, fast = books(late({}, step_ms=45.0)), books(waiting(41.0))
    [host] = signals_for(worker(0, fast), worker(1, slow)).stragglers
    assert (host.host, host.reason.cause) == ("box-worker-1", "compute.step")


def seen_at(file: str, line: int, account: str) -> SampledStacks:
    """In the background, if the training thread was in its step."""
    frame = Frame(f"/home/me/{file}", line, "work")

    def look(background: bool, *frames: Frame) -> SeenStack:
        samples = StackSamples(account, "", background, 0, 1, NS_PER_MS)
        return SeenStack(START_NS, START_NS + NS_PER_MS, samples, frames)

    in_step = account == Account.STEP
    return SampledStacks((look(False), look(True, frame)) if in_step else (look(False, frame),))


def finding_about_late_workers(signals: Signals) -> Finding:
    (found,) = [f for f in findings_of(signals, []) if f.id == straggler.ID]
    return with_lines(found, signals)


def test_the_finding_has_the_line_that_made_the_worker_late_and_its_whole_cost() -> None:
    slow, fast = books(late({Account.WAIT: 40.0})), books(waiting(41.0))
    generator = seen_at("data.py", 12, Account.STEP)
    signals = signals_for(worker(0, fast), worker(1, slow, stacks=generator))
    found = finding_about_late_workers(signals)
    (line,) = found.lines
    assert (line.path, line.line) == ("/home/me/data.py", 12)
    assert found.explanation.endswith("Most of it went to work (data.py:12).")
    assert found.lost_ps >= STEPS * 40 * PS_PER_MS, "though it is input and no wait for others"


def test_workers_that_take_turns_each_have_their_own_line() -> None:
    ways: list[list[Spent]] = []
    for mine in (0, 1):
        busy = {0: {Account.WAIT: 40.0}, 1: {Account.PYTHON: 30.0}}[mine]
        wait = 31.0 if mine == 0 else 41.0
        turns = [late(busy)[0] if n % 2 == mine else waiting(wait)[0] for n in range(STEPS)]
        ways.append(turns)
    always = [waiting(31.0 if n % 2 else 41.0)[0] for n in range(STEPS)]
    reads, pauses, waits = (books(rows) for rows in (*ways, always))
    signals = signals_for(
        worker(0, reads, 3, stacks=seen_at("data.py", 12, Account.STEP)),
        worker(1, pauses, 3, stacks=seen_at("train.py", 30, Account.PYTHON)),
        worker(2, waits, 3, stacks=seen_at("train.py", 99, Account.PYTHON)),
    )
    found = finding_about_late_workers(signals)
    assert [(line.bucket, line.line) for line in found.lines] == [("input", 12), ("host", 30)]


def test_a_slow_processor_has_no_line() -> None:
    """What little Python there was on the way is not what made it late."""
    slow, fast = books(late({Account.PYTHON: 4.0}, step_ms=45.0)), books(waiting(45.0))
    seen = seen_at("train.py", 30, Account.PYTHON)
    signals = signals_for(worker(0, fast), worker(1, slow, stacks=seen))
    assert finding_about_late_workers(signals).lines == ()


def test_with_four_workers_the_wait_of_the_others_is_averaged() -> None:
    punctual = [worker(n, books(waiting(41.0)), workers=4) for n in (0, 1, 3)]
    slow = worker(2, books(late({Account.PYTHON: 40.0})), workers=4)
    [host] = signals_for(punctual[0], punctual[1], slow, punctual[2]).stragglers
    assert (host.host, host.cost_ps) == ("box-worker-2", STEPS * 40 * PS_PER_MS)


def test_workers_that_do_the_same_are_all_on_time() -> None:
    kept = books(waiting(2.0, step_ms=40.0))
    assert not signals_for(worker(0, kept), worker(1, kept)).stragglers


def test_clocks_of_other_machines_are_set_by_the_ends_of_steps() -> None:
    slow = books(late({Account.WAIT: 40.0}), ahead_ms=7000)
    signals = signals_for(worker(0, books(waiting(41.0))), worker(1, slow, host="crate"))
    [host] = signals.stragglers
    assert (host.host, host.cost_ps) == ("crate-worker-1", STEPS * 40 * PS_PER_MS)
    [note] = [note.text for note in signals.timeline.notes if "clocks" in note.text]
    assert "20 common steps" in note and "7.00 s apart" in note


def test_workers_whose_steps_do_not_end_together_train_apart() -> None:
    rows = late({Account.WAIT: 40.0})
    uneven = [{**row, Account.PYTHON: 150.0 * (n % 3)} for n, row in enumerate(waiting(41.0))]
    for other in (worker(1, books(uneven), host="crate"), worker(1, books(rows, ahead_ms=7000))):
        signals = signals_for(worker(0, books(rows)), other)
        assert signals.timeline.meetings is None
        assert not signals.stragglers


def test_processes_that_are_not_a_cluster_wait_for_nobody() -> None:
    alone: dict[str, Any] = {"task": None, "cluster": None}
    slow, fast = books(late({Account.WAIT: 40.0})), books(waiting(41.0))
    signals = signals_for(worker(0, fast, **alone), worker(1, slow, host="crate", **alone))
    assert signals.timeline.meetings is None


def test_a_worker_that_was_restarted_does_not_count_twice() -> None:
    kept = books(waiting(41.0))
    assert signals_for(worker(0, kept), worker(0, kept)).timeline.meetings is None


def test_rows_of_several_steps_meet_where_both_workers_end_one() -> None:
    slow = books(late({Account.WAIT: 40.0}), at_once=[2] * STEPS)
    half = books(
        [{Account.STEP: 10.0, Account.COLLECTIVE: 82.0}] * (STEPS // 2),
        at_once=[4] * (STEPS // 2),
    )
    signals = signals_for(worker(0, half), worker(1, slow))
    assert signals.lateness.meetings == STEPS // 2
    [host] = signals.stragglers
    assert (host.host, host.reason.bucket) == ("box-worker-1", "input")
    assert host.cost_ps == STEPS * 40 * PS_PER_MS


def test_without_clocks_at_the_collectives_the_longer_calls_are_waits() -> None:
    """They all begin and end a step together, so whoever calls last is waited for."""
    slow = books([{Account.WAIT: 40.0, Account.STEP: 6.0}] * STEPS)
    fast = books([{Account.STEP: 46.0}] * STEPS)
    signals = signals_for(worker(0, fast), worker(1, slow))
    [host] = signals.stragglers
    assert (host.host, host.reason.cause) == ("box-worker-1", "input.wait")
    assert host.cost_ps == STEPS * 40 * PS_PER_MS
    waits = signals.on("box-worker-0").causes_ps["communication.collective"]
    assert waits == STEPS * 40 * PS_PER_MS


def test_what_a_worker_did_before_its_books_began_is_not_held_against_it() -> None:
    begins_late = books([{Account.PYTHON: 1.0, Account.COLLECTIVE: 1.0}, *late({})])
    waits = books([{Account.COLLECTIVE: 402.0}, *late({})])
    moved = 400 * NS_PER_MS
    begins_late = Books(
        **{**vars(begins_late), "begin_ns": begins_late.begin_ns + moved,
           "end_ns": begins_late.end_ns + moved}
    )  # fmt: skip
    signals = signals_for(worker(0, waits), worker(1, begins_late))
    assert sum(host.cost_ps for host in signals.lateness.hosts) == 0


def test_what_a_coordinators_wait_for_other_processes_was_for_is_not_known() -> None:
    """They may compute, or wait for their own input."""
    signals = coordinator()
    assert signals.causes_ps["unknown.no_evidence"] == STEPS * 40 * PS_PER_MS
    assert signals.timeline.meetings is None
    assert "Its steps ran in other processes" in judge(signals, ()).sentence
    assert straggler.check(signals) is None
    assert host_missing.check(signals) is None, "servers write nothing"


def test_a_worker_that_a_coordinator_waits_for_alone_is_late() -> None:
    """ParameterServerStrategy: the others have nothing to run until it is done."""
    alone = BookItem(Account.REMOTE, "worker 1", "", 9, 500 * NS_PER_MS)
    signals = coordinator(alone)
    found = finding_about_late_workers(signals)
    assert found.title == "worker 1 is late: the others wait 500 ms for it"
    assert (found.lost_ps, found.lines) == (500 * PS_PER_MS, ())
    assert '"grpc://box:1"' in found.change.after
    assert "worker 1 made the others wait 500 ms (61%)" in judge(signals, (found,)).sentence


def test_the_finding_says_that_the_late_worker_waits_for_its_input_and_where() -> None:
    signals = coordinator(
        BookItem(Account.REMOTE, "worker 1", "", 9, 500 * NS_PER_MS),
        *ran("worker 0", 20, step_ms=30, wait_ms=10),
        *ran("worker 1", 10, step_ms=80, wait_ms=55),
    )
    found = finding_about_late_workers(signals)
    assert found.explanation.endswith(
        "On average, its steps took 50.0 ms longer than those of the others; for 45.0 ms of that, "
        "it waited for its next batch (train.py:7)."
    )
    (line,) = found.lines
    assert (line.bucket, line.path, line.line, line.function) == ("input", "train.py", 7, "step")
    assert line.ps == 450 * PS_PER_MS
    verdict = judge(signals, (found,))
    assert verdict.primary == "input"
    assert verdict.sentence.endswith("(61%) because of its input time.")


def test_a_late_worker_whose_input_is_as_fast_as_the_others_computes() -> None:
    signals = coordinator(
        BookItem(Account.REMOTE, "worker 1", "", 9, 500 * NS_PER_MS),
        *ran("worker 0", 20, step_ms=60, wait_ms=45),
        *ran("worker 1", 10, step_ms=110, wait_ms=45),
    )
    found = finding_about_late_workers(signals)
    assert "than those of the others, but it did not wait longer" in found.explanation
    assert not found.lines
    assert judge(signals, (found,)).sentence.endswith("because of its compute time.")


def test_without_steps_of_the_others_to_compare_with_the_cause_is_not_known() -> None:
    alone = BookItem(Account.REMOTE, "worker 1", "", 9, 500 * NS_PER_MS)
    signals = coordinator(alone, *ran("worker 1", 10, step_ms=80, wait_ms=55))
    assert "What it did was not recorded" in finding_about_late_workers(signals).explanation


def test_a_name_that_stands_for_several_workers_is_not_late() -> None:
    signals = coordinator(BookItem(Account.REMOTE, "others", "", 9, 500 * NS_PER_MS))
    assert straggler.check(signals) is None


def ran(name: str, steps: int, step_ms: int, wait_ms: int) -> tuple[BookItem, BookItem]:
    """What a server told of its steps; the times are of each."""
    where = "train.py:7 step"
    return (
        BookItem(Account.REMOTE_STEP, name, "", steps, steps * step_ms * NS_PER_MS),
        BookItem(Account.REMOTE_WAIT, name, where, steps, steps * wait_ms * NS_PER_MS),
    )


def coordinator(*items: BookItem) -> Signals:
    kept = books([{Account.PYTHON: 1.0, Account.REMOTE: 40.0}] * STEPS, items=items)
    tasks = {"chief": ("box:9",), "worker": ("box:0", "box:1"), "ps": ("box:7",)}
    return signals_for(worker(0, kept, task=Task("chief", 0), cluster=tasks))
