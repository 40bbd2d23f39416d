"""How far a captured run in progress is, and what it is doing right now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.attribute.attribute import attribute
from stall_analyzer.live.state import ProcessState
from stall_analyzer.live.words import costs, how_far, in_a_line, just_now, left
from stall_analyzer.model.timeline import Timeline, Window
from stall_analyzer.model.units import PS_PER_S
from tests import captures
from tests.captures import NS, START_NS
from tests.live_logs import TRACED, USUAL, LiveLog, books, epoch, fit, looked_at, worker


@pytest.fixture
def log(tmp_path: Path) -> LiveLog:
    return LiveLog(tmp_path)


# ---------------------------------------------------------------- how far it is


def test_epoch_step_share_and_time_left_are_said(log: LiveLog) -> None:
    log.append(captures.start(), fit(200), epoch(0.0), books(0.0, [USUAL] * 56))
    (process,) = log.state(56.5).processes
    assert in_a_line(process) == (
        "epoch 1, step 56 of 200, 70% waiting for input, about 2 min left in this epoch"
    )


def test_the_shares_are_those_of_the_ledger(log: LiveLog) -> None:
    rows = [TRACED, *[USUAL] * 9, {"callback": 2.0, "python": 0.5}]
    log.append(captures.start(), fit(), epoch(0.0), books(0.0, rows))
    (process,) = log.state(22.6).processes
    events = captures.read(log.folder, [captures.start(), fit(), epoch(0.0), books(0.0, rows)])
    window = Window(0, round(22.5 * PS_PER_S), "", "", clock_unix_ns=START_NS)
    (host,) = attribute(Timeline(window, (), (), (), (), events))
    assert process.causes_ps == host.ledger.causes_ps
    assert sum(process.spent_ps.values()) == window.duration_ps


def test_the_pace_is_that_of_recent_steps_without_those_that_were_traced(log: LiveLog) -> None:
    slow = [{"step": 4.0}] * 10
    log.append(captures.start(), fit(130), epoch(0.0), books(0.0, [TRACED, *slow]))
    log.append(books(51.0, [{"step": 0.5}] * 100))
    (process,) = log.state(101.0).processes
    assert process.step_ps == PS_PER_S // 2
    assert process.left_ps == 19 * PS_PER_S // 2


@pytest.mark.parametrize(
    ("steps", "rows", "now_s"),
    [(None, 9, 9.0), (200, 2, 2.0), (200, 9, 60.0)],
    ids=["the fit does not know its steps", "too few steps", "steps no longer end"],
)
def test_the_time_left_is_shown_only_if_it_is_known(
    log: LiveLog, steps: int | None, rows: int, now_s: float
) -> None:
    log.append(captures.start(), fit(steps), epoch(0.0), books(0.0, [USUAL] * rows))
    (process,) = log.state(now_s).processes
    assert left(process) == ""


def test_a_later_epoch_is_counted_by_itself_and_the_one_before_tells_how_many_steps_it_has(
    log: LiveLog,
) -> None:
    log.append(captures.start(), fit(), epoch(0.0), books(0.0, [USUAL] * 20))
    log.append(captures.mark("validation_begin", 20.0, 0, 20), captures.mark("epoch_end", 25.0))
    log.append(epoch(26.0, 1, 20), books(20.0, [{"step": 6.0}], "validation", steps=0))
    log.append(books(26.0, [{"step": 1.0}] * 5, epoch=1))
    (process,) = log.state(31.0).processes
    assert how_far(process) == "epoch 2, step 5 of 20"
    assert process.spent_ps["compute"] == 5 * PS_PER_S
    assert process.left_ps == (15 + 6) * PS_PER_S  # the validation of the first took six seconds


def test_many_epochs_leave_only_two_in_memory(log: LiveLog) -> None:
    log.append(captures.start(), fit(1))
    followed = log.followed()
    for n in range(50):
        log.append(epoch(n, n, n), books(n, [USUAL], epoch=n))
        followed.read_new()
    state = looked_at(followed, 50.0)
    assert how_far(state.processes[0]) == "epoch 50, step 1 of 1"
    (process,) = followed._processes.values()
    assert len(process._books) <= 3 and len(process._marks) <= 3


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("validation_begin", "epoch 1, validating"),
        ("validation_end", "epoch 1, at its end"),
        ("fit_end", "epoch 1, done training; the program is still running"),
    ],
)
def test_what_comes_after_the_steps_has_a_name(log: LiveLog, mark: str, words: str) -> None:
    log.append(captures.start(), fit(), epoch(0.0), captures.mark(mark, 5.0))
    assert how_far(log.state(6.0).processes[0]) == words


def test_a_loop_that_marks_no_epochs_counts_its_steps(log: LiveLog) -> None:
    log.append(captures.start(), fit(), books(0.0, [USUAL] * 7, "start"))
    assert in_a_line(log.state(7.0).processes[0]) == "step 7, 70% waiting for input"


def test_an_epoch_that_has_just_begun_has_no_shares_yet(log: LiveLog) -> None:
    log.append(captures.start(), fit(), epoch(5.0), books(0.0, [{"python": 5.0}], "start", steps=0))
    assert in_a_line(log.state(5.1).processes[0]) == "epoch 1, no step yet"


def test_a_capture_without_books_says_what_its_marks_say(log: LiveLog) -> None:
    log.append(captures.start(), fit(), epoch(0.0))
    assert in_a_line(log.state(1.0).processes[0]) == "epoch 1, no step yet"


def test_a_process_that_has_not_begun_to_train_says_so(log: LiveLog) -> None:
    log.append(captures.start())
    state = log.state(1.0)
    assert how_far(state.processes[0]) == "training has not begun" and not state.is_over


# ---------------------------------------------------------------- what it is doing right now


def open_row(at_s: float, spent: Mapping[str, float], **item: Any) -> bytes:
    items = [{"count": 1, "where": "", **item}] if item else []
    return books(at_s, [spent], steps=0, is_open=True, items=items)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"account": "trace", "name": "train_step"}, "tracing train_step for 12.0 s"),
        (
            {"account": "callback", "name": "Save.on_epoch_end", "where": "/home/me/train.py:25"},
            "in Save.on_epoch_end (train.py:25) for 12.0 s",
        ),
        (
            {"account": "callback", "name": "C.on_epoch_end", "where": f"{captures.SITE}/c.py:1"},
            "in C.on_epoch_end for 12.0 s",
        ),
    ],
)
def test_the_unfinished_row_shows_what_it_is_doing(
    log: LiveLog, item: dict[str, Any], words: str
) -> None:
    row = open_row(0.0, {item["account"]: 12.0}, **item, spent_ns=12 * NS)
    log.append(captures.start(), fit(200), epoch(0.0), row)
    assert just_now(log.state(12.5).processes[0]) == f"{words}; no step for 12.5 s"


def test_where_the_row_names_nothing_what_has_grown_tells(log: LiveLog) -> None:
    log.append(captures.start(), fit(), epoch(0.0))
    log.append(open_row(0.0, {"python": 3.0, "input": 1.0}))
    log.append(open_row(0.0, {"python": 3.0, "input": 2.0}))
    doing = log.state(5.0).processes[0].doing
    assert doing is not None and doing.account == "input" and doing.spent_ns == 2 * NS


def test_in_a_row_of_many_steps_the_last_one_is_known_to_the_second(log: LiveLog) -> None:
    """After the first epoch, rows last a second, and longer the longer a training runs."""
    log.append(captures.start(), fit(), epoch(0.0))
    followed = log.followed()
    for at_s, steps in ((1.0, 5), (2.0, 10), (3.0, 10), (4.0, 10)):
        row = books(0.0, [{"step": at_s}], steps=steps, is_open=True)
        log.append(row)
        followed.read_new()
        if at_s == 2.0:
            (moving,) = looked_at(followed, 2.0).processes
    (process,) = looked_at(followed, 4.5).processes
    assert (moving.step, moving.doing, sum(moving.spent_ps.values())) == (10, None, 0)
    assert process.doing is not None and process.doing.spent_ns == 2 * NS
    assert process.since_step_ps == 5 * PS_PER_S // 2


def test_while_steps_end_nothing_is_said_of_the_moment(log: LiveLog) -> None:
    log.append(captures.start(), fit(), epoch(0.0), books(0.0, [USUAL] * 9))
    assert just_now(log.state(9.5).processes[0]) == ""


def test_a_process_that_has_fallen_silent_is_reported_as_such(log: LiveLog) -> None:
    log.append(captures.start(), fit(), epoch(0.0), books(0.0, [USUAL] * 9))
    assert just_now(log.state(40.0).processes[0]) == (
        "the last step ended 31.0 s ago; nothing heard from the process for 31.0 s"
    )


def test_if_nothing_moves_the_looks_at_it_are_judged(log: LiveLog) -> None:
    log.append(captures.start(), fit(), epoch(0.0), books(0.0, [USUAL] * 9))
    threads = [captures.thread(*captures.IN_A_CALLBACK, *captures.QUEUE, main=True)]
    for at_s in range(15, 90, 5):
        look = {"step": 9, "idle_s": at_s - 9.0, "phase": "train_batch", "cpu_s": 3.0}
        log.append(captures.record("beat", at_s, **look, threads=threads))
    state = log.state(90.0)
    assert "9 steps" in state.stall and ("Stuck" in state.stall or "o step" in state.stall)


def test_only_looks_show_what_the_current_step_is_doing(
    log: LiveLog,
) -> None:
    """Its clocks have not stopped yet: it may be computing, or waiting for its batch."""
    log.append(captures.start(), fit(), epoch(0.0), books(0.0, [USUAL] * 9))
    before = log.state(9.0).processes[0].causes_ps
    call = {"account": "step", "name": "one_step_on_iterator"}
    log.append(open_row(9.0, {"step": 3.0}, **call, spent_ns=3 * NS))
    early = log.state(12.0).processes[0]
    assert early.causes_ps == before
    assert just_now(early).startswith("in the compiled function one_step_on_iterator for 3.00 s")
    threads = [captures.thread(*captures.IN_THE_STEP, main=True)]
    threads += [captures.thread(*captures.QUEUE, *captures.GENERATOR)]
    for at_s in range(15, 30, 1):
        look = {"step": 9, "idle_s": at_s - 9.0, "phase": "train_batch", "cpu_s": 3.0}
        log.append(captures.record("beat", at_s, **look, threads=threads))
    log.append(open_row(9.0, {"step": 20.0}, **call, spent_ns=20 * NS))
    later = log.state(29.5).processes[0]
    assert later.causes_ps["input.wait"] - before["input.wait"] == 20 * PS_PER_S
    assert "waiting for a batch for 20.0 s" in just_now(later)


def test_callbacks_are_told_apart_from_other_python() -> None:
    state = ProcessState(last_mark="epoch_begin", causes_ps={"host.callback": 7, "host.python": 3})
    assert costs(state) == "100% in callbacks"


def test_a_line_of_the_user_is_shown_next_to_the_share_it_explains() -> None:
    state = ProcessState(
        last_mark="epoch_begin",
        causes_ps={"input.wait": 71, "compute.step": 29},
        line="train.py:25 load",
    )
    assert costs(state) == "71% waiting for input (train.py:25 load)"


def test_that_line_is_known_from_the_first_epoch_on(log: LiveLog) -> None:
    """In later epochs, lines are no longer sampled, and the code is the same."""
    seen = captures.stacks(
        9.0, (captures.IN_THE_STEP, "step", "", False), (captures.GENERATOR, "step", "", True)
    )
    log.append(captures.start(), fit(), epoch(0.0), books(0.0, [USUAL] * 9), seen)
    assert costs(log.state(9.0).processes[0]) == "70% waiting for input (data.py:12 batches)"
    log.append(epoch(9.0, 1, 9), books(9.0, [USUAL] * 9, epoch=1))
    assert costs(log.state(18.0).processes[0]) == "70% waiting for input (data.py:12 batches)"


# ---------------------------------------------------------------- several processes


def test_the_worker_that_the_others_wait_for_is_marked(log: LiveLog) -> None:
    worker(log, 0, [{"step": 1.0}] * 10)
    worker(log, 1, [{"wait": 0.8, "step": 0.2}] * 10)
    first, second = log.state(10.0).processes
    assert (first.name, first.is_late) == ("worker 0", False)
    assert (second.name, second.is_late) == ("worker 1", True)


def test_plain_python_makes_no_worker_late_because_it_may_wait_for_the_others(
    log: LiveLog,
) -> None:
    worker(log, 0, [{"python": 0.9, "step": 0.1}] * 10)
    worker(log, 1, [{"step": 1.0}] * 10)
    assert not any(process.is_late for process in log.state(10.0).processes)


def test_a_worker_that_is_behind_is_marked(log: LiveLog) -> None:
    worker(log, 0, [{"step": 1.0}] * 20)
    worker(log, 1, [{"step": 2.0}] * 10)
    assert [process.is_late for process in log.state(20.0).processes] == [False, True]


def test_equal_workers_are_not(log: LiveLog) -> None:
    worker(log, 0, [{"wait": 0.52, "step": 0.5}] * 10)
    worker(log, 1, [{"wait": 0.50, "step": 0.5}] * 10)
    assert not any(process.is_late for process in log.state(10.3).processes)
