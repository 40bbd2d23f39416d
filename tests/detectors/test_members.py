"""Members of a cluster: missing, misconfigured, gone first, uneven. Each case and its near miss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stall_analyzer.align.align import align
from stall_analyzer.captures.capture_records import EndRecord, Environment, MarkRecord, Task
from stall_analyzer.captures.look_records import CapturedError, DumpRecord, Look
from stall_analyzer.detectors.cluster import (
    cluster_misconfigured,
    ended_first,
    host_missing,
    uneven_work,
)
from stall_analyzer.detectors.profiling import uneven_capture
from stall_analyzer.diagnose.verdict import judge
from stall_analyzer.model.event_log import Capture, EventLog, Series
from stall_analyzer.model.findings import Finding
from stall_analyzer.model.units import PS_PER_MS, PS_PER_S
from stall_analyzer.signals.signals import Signals
from tests import clusters
from tests.clusters import PUNCTUAL, Way, steadily, timeline_of, traces_of, write_job
from tests.detectors.training import found, signals_for

NS = 1_000_000_000
START_NS = 1_700_000_000 * NS
LATER_NS = START_NS + 3600 * NS  # when the logs are read


def worker(
    index: int,
    lasts_s: float = 100.0,
    *,
    workers: int = 2,
    host: str = "box",
    addresses: Sequence[str] = (),
    steps: int = 0,
    finished: int | None = None,
    idle_s: float | None = None,
    ended: str | None = None,
    error: str = "",
) -> Capture:
    """A worker that began at 0 s; `steps` were made, and an epoch of `finished` steps ended."""
    listed = tuple(addresses) or tuple(f"node{n}:2222" for n in range(workers))
    last_ns = START_NS + round(lasts_s * NS)
    marks = [MarkRecord(START_NS + NS, "epoch_begin", 0, 0)] if steps or finished else []
    if finished is not None:
        marks.append(MarkRecord(last_ns, "epoch_end", 0, finished))
    look = Look(ns=last_ns, step=steps, idle_s=idle_s or 0.0, phase="train_batch", cpu_s=1.0)
    failed = CapturedError("UnavailableError", error)
    dumps = (DumpRecord(**vars(look), reason="exception", error=failed),) if error else ()
    beats = () if idle_s is None or error else (look,)
    return Capture(
        environment=Environment(
            host=host, pid=100 + index, task=Task("worker", index), cluster={"worker": listed}
        ),
        marks=tuple(marks),
        beats=beats,
        dumps=dumps,
        end=EndRecord(last_ns, ended) if ended else None,
        first_ns=START_NS,
        last_ns=last_ns,
        series={"step_seconds": timed(steps)} if steps else {},
    )


def timed(steps: int) -> Series:
    """The last of the steps, as a capture times it."""
    at = np.array([START_NS + NS], dtype=np.int64)
    return Series(np.array([steps - 1], dtype=np.int64), at, np.ones(1))


def captured(*captures: Capture, read_ns: int = LATER_NS) -> Signals:
    last = max(capture.last_ns for capture in captures)
    events = EventLog(
        {}, {}, None, START_NS, last, None, 1, captures=tuple(captures), read_ns=read_ns
    )
    return signals_for(align([], events))


def blames(index: int) -> str:
    return (
        "Collective ops is aborted by: recvmsg:Connection reset by peer\nAdditional GRPC error "
        f"information from remote target /job:worker/replica:0/task:{index} while calling RecvBuf"
    )


# ---------------------------------------------------------------- missing


def test_a_worker_that_never_came_leaves_the_others_stuck() -> None:
    signals = captured(worker(0, workers=3), worker(2, workers=3))
    finding = found(host_missing.check(signals), "act")
    assert finding.title == "worker 1 never joined, so the others could not begin"
    assert "ran no step in 1 min 40 s" in finding.explanation
    verdict = judge(signals, (finding,))
    assert (verdict.status, verdict.primary, verdict.host) == ("stuck", "communication", "worker 1")
    assert signals.cluster.others_waited_ps == 100 * PS_PER_S


def test_a_worker_that_gave_up_waiting_is_not_the_one_to_blame() -> None:
    """Worker 0 was ended while it waited for worker 2; worker 1 then lost worker 0."""
    signals = captured(
        worker(0, 80, workers=3), worker(1, 90, workers=3, ended="exception", error=blames(0))
    )
    assert ended_first.check(signals) is None
    assert judge(signals, ()).sentence.startswith("Stuck: worker 2 never joined")


def test_a_worker_that_may_still_come_is_no_reason_to_act() -> None:
    beginning = captured(worker(0, lasts_s=40), read_ns=START_NS + 45 * NS)
    assert found(host_missing.check(beginning), "note").title == "worker 1 has not joined yet"
    assert judge(beginning, ()).status != "stuck"
    long_ago = captured(worker(0, lasts_s=400), read_ns=START_NS + 401 * NS)
    assert found(host_missing.check(long_ago), "act")


def test_where_steps_were_made_only_files_are_missing() -> None:
    signals = captured(worker(0, steps=50, ended="exit"))
    finding = found(host_missing.check(signals), "note")
    assert finding.title.startswith("worker 1 was not seen")
    assert "According to TF_CONFIG, 2 hosts train together." in finding.explanation
    assert host_missing.check(captured(worker(0, steps=9), worker(1, steps=9))) is None


def test_a_hole_in_the_numbers_of_the_workers_is_a_missing_worker(tmp_path: Path) -> None:
    job = {f"box-worker-{n}": steadily(PUNCTUAL) for n in (0, 1, 3)}
    finding = found(host_missing.check(clusters.signals_for(tmp_path, job)), "note")
    assert finding.title.startswith("worker 2 was not seen")
    whole = {f"box-worker-{n}": steadily(PUNCTUAL) for n in range(3)}
    assert host_missing.check(clusters.signals_for(tmp_path, whole)) is None
    named = {f"node{n}": steadily(PUNCTUAL) for n in (0, 1, 3)}
    assert host_missing.check(clusters.signals_for(tmp_path, named)) is None


def test_collectives_say_how_many_hosts_there_are(tmp_path: Path) -> None:
    job = {name: steadily(PUNCTUAL) for name in ("a", "b")}
    finding = found(host_missing.check(clusters.signals_for(tmp_path, job, group_size=4)), "note")
    assert finding.title.startswith("2 of 4 hosts were not seen")
    assert host_missing.check(clusters.signals_for(tmp_path, job, group_size=2)) is None


def test_a_trace_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, traces_of(write_job(tmp_path, {"a": [PUNCTUAL] * 9})))
    finding = found(host_missing.check(signals_for(replace(timeline, unread_hosts=("b",)))), "note")
    assert "The trace of b cannot be read." in finding.explanation


# ---------------------------------------------------------------- gone first


def test_the_errors_of_the_others_lead_to_the_one_that_ended_first() -> None:
    """Worker 0 lost worker 2; workers 1 and 3 then lost worker 0."""
    signals = captured(
        worker(0, 80, workers=4, steps=60, idle_s=20, ended="exception", error=blames(2)),
        worker(1, 81, workers=4, steps=60, idle_s=21, ended="exception", error=blames(0)),
        worker(2, 59, workers=4, steps=60),
        worker(3, 81, workers=4, steps=60, idle_s=21, ended="exception", error=blames(0)),
    )
    finding = found(ended_first.check(signals), "act")
    assert finding.title.startswith("box-worker-2 ended first at ")
    assert "Of the others, all 3 failed with UnavailableError" in finding.explanation
    first = signals.cluster.ended_first
    assert first is not None
    # It was last heard from at 59 s, but the others made steps with it until 60 s.
    assert first.at_unix_ns == START_NS + 60 * NS
    assert first.others_waited_ps == pytest.approx((20 + 21 + 21) / 3 * PS_PER_S)
    verdict = judge(signals, (finding,))
    assert (verdict.status, verdict.host) == ("dead", "box-worker-2")


def test_two_others_are_both() -> None:
    signals = captured(
        worker(0, 80, workers=3, steps=60, idle_s=20, ended="exception", error=blames(2)),
        worker(1, 81, workers=3, steps=60, idle_s=21, ended="exception", error=blames(0)),
        worker(2, 59, workers=3, steps=60),
    )
    finding = found(ended_first.check(signals), "act")
    assert "Of the others, both failed with UnavailableError" in finding.explanation


def test_to_fail_is_no_step_that_the_one_gone_first_was_there_for() -> None:
    failed = worker(0, 80, steps=60, idle_s=0, ended="exception", error=blames(1))
    waits = Look(START_NS + 70 * NS, step=60, idle_s=10, phase="train_batch", cpu_s=1.0)
    signals = captured(replace(failed, beats=(waits,)), worker(1, 59, steps=60))
    first = signals.cluster.ended_first
    assert first is not None
    assert first.others_waited_ps == 20 * PS_PER_S


def test_records_that_stop_while_the_others_go_on() -> None:
    gone = captured(worker(0, 300, steps=9, idle_s=200), worker(1, 99, steps=9))
    assert found(ended_first.check(gone), "act").title.startswith("box-worker-1 ended first")
    # Half a minute may be the time between two records, and a last word does not mean death.
    assert ended_first.check(captured(worker(0, 130, steps=9), worker(1, 100, steps=9))) is None
    left = captured(worker(0, 300, steps=9), worker(1, 99, steps=9, ended="exit"))
    assert ended_first.check(left) is None


def test_workers_that_blame_each_other_leave_it_open() -> None:
    both = captured(
        worker(0, 80, steps=9, ended="exception", error=blames(1)),
        worker(1, 80, steps=9, ended="exception", error=blames(0)),
    )
    assert ended_first.check(both) is None


def cut_short(folder: Path, after: int, others_go_on: bool) -> Signals:
    """Two hosts; the trace of one ends after that many steps, and then the other waits."""
    goes_on = steadily(PUNCTUAL, 300) if others_go_on else [Way(input_ms=3000)]
    files = write_job(
        folder,
        {"a": [*steadily(PUNCTUAL, after), *goes_on], "b": [*steadily(PUNCTUAL, after), *goes_on]},
    )
    (folder / "short").mkdir()
    short = write_job(folder / "short", {name: steadily(PUNCTUAL, after) for name in ("a", "b")})
    return signals_for(timeline_of(folder, traces_of([files[0], short[1]])))


def test_a_trace_that_ends_where_the_others_stop_making_steps(tmp_path: Path) -> None:
    signals = cut_short(tmp_path, after=20, others_go_on=False)
    finding = found(ended_first.check(signals), "act")
    assert finding.title.startswith("b ended first")
    assert "Its trace ends there." in finding.explanation
    assert "before b ended went to compute" in finding.explanation


def test_a_profiler_that_was_merely_stopped_sooner(tmp_path: Path) -> None:
    assert ended_first.check(cut_short(tmp_path, after=20, others_go_on=True)) is None


# ---------------------------------------------------------------- uneven


def test_epochs_of_different_lengths() -> None:
    signals = captured(
        *(worker(n, workers=3, finished=500, steps=500, ended="exit") for n in (0, 1)),
        worker(2, workers=3, finished=480, steps=480, ended="exit"),
    )
    finding = found(uneven_work.check(signals), "consider")
    assert "box-worker-2 ran 480, the others 500" in finding.title
    near = captured(
        worker(0, finished=500, steps=500, ended="exit"),
        worker(1, finished=499, steps=499, ended="exit"),
    )
    assert uneven_work.check(near) is None


def test_hosts_that_were_profiled_at_different_times(tmp_path: Path) -> None:
    together = {"a": steadily(PUNCTUAL), "b": steadily(PUNCTUAL)}
    assert uneven_capture.check(clusters.signals_for(tmp_path, together)) is None
    one_later = clusters.signals_for(tmp_path, together, begins_ms={"b": 150})
    finding = found(uneven_capture.check(one_later), "note")
    assert finding.title == "Only 70.0 ms was recorded on both hosts at the same time"
    assert one_later.covered_by_all_ps == 70 * PS_PER_MS


# ---------------------------------------------------------------- settings


def faulty(*captures: Capture) -> Finding:
    return found(cluster_misconfigured.check(captured(*captures)), "act")


def test_the_same_task_twice() -> None:
    assert (
        faulty(worker(0, host="a"), worker(0, host="b")).title
        == "Two processes claim to be worker 0"
    )
    restarted = replace(
        worker(0, host="b"), first_ns=START_NS + 200 * NS, last_ns=START_NS + 300 * NS
    )
    assert cluster_misconfigured.check(captured(worker(0, host="a"), restarted)) is None


def test_workers_that_disagree_about_the_size() -> None:
    finding = faulty(worker(0, workers=2), worker(1, workers=3))
    assert finding.title == "The workers disagree about the size of the cluster"
    assert "on worker 0 (2) and worker 1 (3)" in finding.explanation


def test_a_task_that_is_not_in_the_list() -> None:
    assert faulty(worker(2, workers=2)).title == "There is no worker 2 in the cluster"


def test_an_address_that_is_listed_twice() -> None:
    finding = faulty(worker(0, addresses=["a:1", "a:1"]), worker(1, addresses=["a:1", "a:1"]))
    assert finding.title == "The address a:1 is listed more than once"


def test_localhost_on_two_machines() -> None:
    local = ["localhost:1", "localhost:2"]
    finding = faulty(worker(0, host="a", addresses=local), worker(1, host="b", addresses=local))
    assert "spans several machines, but lists localhost:1" in finding.title
    on_one = captured(worker(0, addresses=local), worker(1, addresses=local))
    assert cluster_misconfigured.check(on_one) is None


def test_what_still_trains_need_not_be_acted_on() -> None:
    local = ["localhost:1", "localhost:2"]
    trains = captured(
        worker(0, host="a", steps=9, addresses=local), worker(1, host="b", steps=9, addresses=local)
    )
    assert found(cluster_misconfigured.check(trains), "consider")
