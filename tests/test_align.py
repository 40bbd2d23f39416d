"""Where the first epoch begins and ends, and what its steps are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from stall_analyzer.align.align import align
from stall_analyzer.captures.capture_records import Environment, MarkRecord, WindowRecord
from stall_analyzer.model.event_log import Capture, EventLog, KerasConfig, Series
from stall_analyzer.model.runs import ProfileSession
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.units import PS_PER_MS, PS_PER_S
from tests.traces import (
    GRAPH,
    TRAIN_OPS,
    call,
    clock,
    event,
    host,
    ops,
    timeline_of,
    trace_of,
    trainer,
)
from tests.xspace import Event

UNIX_NS = 1_700_000_000 * 10**9


def assigns(start_ms: float, count: int) -> list[Event]:
    """Keras resets its metrics: eager assignments outside of any function."""
    return [
        event("EagerLocalExecute: AssignVariableOp", start_ms + n * 0.1, start_ms + n * 0.1 + 0.05)
        for n in range(count)
    ]


def iterator(start_ms: float) -> list[Event]:
    return [event("EagerLocalExecute: MakeIterator", start_ms, start_ms + 0.5)]


def epoch(start_ms: float, first_run: int, steps: int = 3) -> tuple[list[Event], list[Event]]:
    """What Keras does: resets the metrics, creates an iterator, then runs steps of 10 ms."""
    thread = [*assigns(start_ms, 4), *iterator(start_ms + 1)]
    work: list[Event] = []
    for nth in range(steps):
        at = start_ms + 2 + nth * 10
        thread += call(at, at + 10, run=first_run + nth)
        work += ops(at + 1, at + 10, first_run + nth, *TRAIN_OPS)
    return thread, work


def series(values: Mapping[float, float], base_ns: int = UNIX_NS) -> Series:
    """Values by the second in which they were written."""
    return Series(
        step=np.arange(len(values), dtype=np.int64),
        wall_ns=np.array([base_ns + round(s * 1e9) for s in values], dtype=np.int64),
        value=np.array(list(values.values()), dtype=np.float64),
    )


def log(keras_s: float | None = None, **tags: Series) -> EventLog:
    walls = [int(w) for s in tags.values() for w in s.wall_ns]
    keras = None
    if keras_s is not None:
        keras = KerasConfig(UNIX_NS + round(keras_s * 1e9), "Sequential", ())
    return EventLog(
        tags, {}, keras, min(walls, default=None), max(walls, default=None), None, len(walls)
    )


def milliseconds(timeline: Timeline) -> list[tuple[float, float]]:
    return [(s.start_ps / PS_PER_MS, s.end_ps / PS_PER_MS) for s in timeline.steps]


def phases(timeline: Timeline) -> dict[str, float]:
    return {p.name: (p.end_ps - p.start_ps) / PS_PER_MS for p in timeline.phases}


def test_the_first_epoch_lasts_from_one_reset_of_the_metrics_to_the_next(tmp_path: Path) -> None:
    one, two = epoch(100, first_run=1), epoch(200, first_run=11)
    timeline = timeline_of(tmp_path, trainer(one[0] + two[0], one[1] + two[1]))
    assert timeline.window.duration_ps == round((200 - 100.35) * PS_PER_MS)
    assert [round(s) for s, _ in milliseconds(timeline)] == [2, 12, 22]
    assert phases(timeline).keys() == {"startup", "training", "epoch_end"}


def test_phases_tile_the_window(tmp_path: Path) -> None:
    thread, work = epoch(100, first_run=1)
    check = [*assigns(140, 4), *iterator(141)]
    for nth in range(2):
        at = 142 + nth * 5
        check += call(at, at + 5, run=21 + nth, graph="__inference_test_step_9")
        work += ops(at, at + 5, 21 + nth, "dense/MatMul:MatMul")
    following = epoch(160, first_run=11)
    timeline = timeline_of(tmp_path, trainer(thread + check + following[0], work + following[1]))
    found = phases(timeline)
    assert list(found) == ["startup", "training", "validation", "epoch_end"]
    assert sum(found.values()) * PS_PER_MS == timeline.window.duration_ps
    assert [s.phase for s in timeline.steps] == ["training"] * 3 + ["validation"] * 2


def test_a_learning_rate_callback_begins_no_epoch(tmp_path: Path) -> None:
    thread, work = epoch(100, first_run=1)
    thread += assigns(133, 1)  # one assignment, not a reset
    thread += call(135, 145, run=4)
    work += ops(135, 145, 4, *TRAIN_OPS)
    timeline = timeline_of(tmp_path, trainer(thread, work))
    assert len(timeline.steps) == 4


def test_in_a_custom_loop_each_iterator_begins_an_epoch(tmp_path: Path) -> None:
    thread, work = [], []
    for at, run in ((10, 1), (30, 2)):
        thread += [*iterator(at), *call(at + 1, at + 11, run=run)]
        work += ops(at + 1, at + 11, run, *TRAIN_OPS)
    timeline = timeline_of(tmp_path, trainer(thread, work))
    assert timeline.window.duration_ps == 20 * PS_PER_MS
    assert len(timeline.steps) == 1


def loop(begins_ms: tuple[int, ...]) -> tuple[list[Event], list[Event]]:
    """A custom loop in which each epoch creates an iterator and has one step of 10 ms."""
    thread, work = [], []
    for run, at in enumerate(begins_ms, start=1):
        thread += [*iterator(at), *call(at + 1, at + 11, run=run)]
        work += ops(at + 1, at + 11, run, *TRAIN_OPS)
    return thread, work


def test_a_loop_that_logs_no_epochs_ends_when_its_iterator_is_taken_down(tmp_path: Path) -> None:
    thread, work = loop((10,))
    thread.append(event("TFE_DeleteTensorHandle", 22, 500))
    logged = log(batch_loss=series({0.0215: 1.0}))
    timeline = timeline_of(tmp_path, trainer(thread, work), clock(UNIX_NS, 1), events=logged)
    assert timeline.window.duration_ps == 490 * PS_PER_MS


def test_the_first_epoch_of_a_loop_that_logs_none_is_as_traced(tmp_path: Path) -> None:
    logged = log(batch_loss=series({0.0215: 1.0, 0.0415: 0.9}))
    timeline = timeline_of(tmp_path, trainer(*loop((10, 30))), clock(UNIX_NS, 1), events=logged)
    assert timeline.window.duration_ps == 20 * PS_PER_MS


def test_markers_are_steps(tmp_path: Path) -> None:
    marks = [event("train", n * 20, n * 20 + 15, step_num=n, _r=1) for n in range(3)]
    calls = [e for n in range(3) for e in call(n * 20 + 1, n * 20 + 14, run=n + 1)]
    timeline = timeline_of(tmp_path, host(("python", marks + calls)))
    assert {s.source for s in timeline.steps} == {"marker"}
    assert [s for s, _ in milliseconds(timeline)] == [0, 20, 40]


def test_with_markers_of_keras_2_the_epoch_number_ends_the_epoch(tmp_path: Path) -> None:
    marks = [
        event("train", n * 10, n * 10 + 9, step_num=n, epoch_num=n // 2, _r=1) for n in range(4)
    ]
    calls = [e for n in range(4) for e in call(n * 10 + 1, n * 10 + 8, run=n + 1)]
    timeline = timeline_of(tmp_path, host(("python", marks + calls)))
    assert timeline.window.duration_ps == 20 * PS_PER_MS
    assert len(timeline.steps) == 2


def test_event_files_end_the_epoch_where_the_trace_does_not(tmp_path: Path) -> None:
    timeline = timeline_of(
        tmp_path,
        trainer(*epoch(100, first_run=1)),
        clock(UNIX_NS, 1),
        events=log(keras_s=0.09, epoch_loss=series({0.25: 1.0})),
    )
    assert timeline.window.duration_ps == round((250 - 100.35) * PS_PER_MS)
    assert timeline.window.end_source == "first epoch's scalars"


def test_a_callback_that_evaluates_begins_no_later_epoch(tmp_path: Path) -> None:
    """It resets the metrics and creates an iterator, as an epoch does; the log has one epoch."""
    parts = [epoch(at, first_run=run) for at, run in ((100, 1), (200, 11), (300, 21))]
    planes = trainer([e for part in parts for e in part[0]], [e for part in parts for e in part[1]])
    traced_alone = timeline_of(tmp_path, planes, clock(UNIX_NS, 1))
    assert len(traced_alone.later_epochs_ps) == 1  # the third has no end in the trace
    logged = log(keras_s=0.09, epoch_loss=series({0.35: 1.0}))
    timeline = timeline_of(tmp_path, planes, clock(UNIX_NS, 1), events=logged)
    assert timeline.later_epochs_ps == ()


def test_a_profile_of_the_middle_covers_a_part_of_the_epoch(tmp_path: Path) -> None:
    timeline = timeline_of(
        tmp_path,
        trainer(call(10, 20, run=1), ops(10, 20, 1, *TRAIN_OPS)),
        clock(UNIX_NS + 4 * 10**9, 0.05),
        events=log(keras_s=0, epoch_loss=series({10: 1.0, 13: 0.5, 16: 0.4})),
    )
    assert timeline.window.duration_ps == 10 * PS_PER_S
    (aligned,) = timeline.traces
    assert aligned.covered_ps == (4 * PS_PER_S, 4 * PS_PER_S + 50 * PS_PER_MS)
    assert [gap // PS_PER_S for gap in timeline.later_epochs_ps] == [3, 3]
    assert phases(timeline) == {"training": 10_000}
    assert "began after the start of the first epoch" in timeline.notes[0].text


def test_event_files_alone_show_the_epoch_and_its_steps() -> None:
    timeline = align(
        [],
        log(
            keras_s=0,
            epoch_loss=series({10: 1.0, 12: 0.5}),
            batch_loss=series({4: 3.0, 7: 2.0, 9.5: 1.5, 10.5: 1.0}),
        ),
    )
    assert timeline.window.duration_ps == 10 * PS_PER_S
    assert [(s.end_ps - s.start_ps) / PS_PER_S for s in timeline.steps] == [4, 3, 2.5]
    assert {s.source for s in timeline.steps} == {"events"}


def test_a_trace_without_a_clock_is_placed_by_its_summary_writes(tmp_path: Path) -> None:
    writes = [event("EagerLocalExecute: WriteSummary", at, at + 0.1) for at in (25, 47, 61)]
    thread, work = epoch(10, first_run=1, steps=5)
    timeline = timeline_of(
        tmp_path,
        trainer(thread + writes, work),
        events=log(
            keras_s=5,
            batch_loss=series({5.025: 3.0, 5.047: 2.0, 5.061: 1.0}),
            epoch_loss=series({5.2: 1.0}),
        ),
    )
    assert timeline.window.start_unix_ns is not None
    start_ms = (timeline.window.start_unix_ns - UNIX_NS) / 1e6
    assert abs(start_ms - 5010.35) < 0.1


def test_a_run_about_which_nothing_is_known_has_no_window() -> None:
    timeline = align([], None)
    assert timeline.window.duration_ps == 0
    assert timeline.window.epoch is None


def test_a_second_graph_of_the_function_validates_after_a_reset_under_xla(tmp_path: Path) -> None:
    """XLA hides the ops, so a backward pass cannot be seen."""
    thread = [*assigns(0, 4), *call(2, 10, run=1), *call(10, 20, run=2)]
    thread += [*assigns(21, 4), *call(23, 30, run=3, graph=GRAPH + "99")]
    timeline = timeline_of(tmp_path, host(("python", thread)))
    assert [s.phase for s in timeline.steps] == ["training", "training", "validation"]


# ---------------------------------------------------------------- captures


def capture(
    *marks: tuple[str, float],
    steps: Mapping[float, float] | None = None,
    windows: tuple[WindowRecord, ...] = (),
) -> EventLog:
    """Marks by the second in which they were set; steps by their end, with how long they took."""
    records = tuple(MarkRecord(at(s), what, 0, 0) for what, s in marks)
    ends = series(steps or {})
    last_ns = max([mark.ns for mark in records] + [int(w) for w in ends.wall_ns])
    captured = Capture(
        environment=Environment(host="host"),
        marks=records,
        windows=windows,
        first_ns=records[0].ns,
        last_ns=last_ns,
        series={"step_seconds": ends} if steps else {},
    )
    return EventLog({}, {}, None, records[0].ns, last_ns, None, 1, captures=(captured,))


def at(seconds: float) -> int:
    return UNIX_NS + round(seconds * 1e9)


def test_the_marks_of_a_capture_are_the_epoch() -> None:
    """Callbacks at the end of an epoch belong to it: it ends when the next one begins."""
    log = capture(
        ("fit_begin", 1), ("epoch_begin", 2), ("epoch_end", 12), ("epoch_begin", 13),
        ("epoch_end", 17), ("fit_end", 18),
        steps={6: 4.0, 8: 2.0, 10: 2.0, 15: 1.0},
    )  # fmt: skip
    timeline = align([], log)
    assert timeline.window.start_unix_ns == at(2)
    assert timeline.window.duration_ps == 11 * PS_PER_S
    assert [ps // PS_PER_S for ps in timeline.later_epochs_ps] == [5]
    assert [(s.start_ps / PS_PER_S, s.end_ps / PS_PER_S) for s in timeline.steps] == [
        (0, 4), (4, 6), (6, 8),
    ]  # fmt: skip
    assert {s.source for s in timeline.steps} == {"capture"}
    assert phases(timeline) == {"training": 10_000, "epoch_end": 1000}


def test_marks_are_believed_before_the_trace(tmp_path: Path) -> None:
    one, two = epoch(100, first_run=1), epoch(200, first_run=11)
    lines = trainer(one[0] + two[0], one[1] + two[1])
    log = capture(("epoch_begin", 0.1), ("epoch_end", 0.19), ("fit_end", 0.195))
    timeline = timeline_of(tmp_path, lines, clock(UNIX_NS, 1), events=log)
    assert timeline.window.duration_ps == 95 * PS_PER_MS
    assert timeline.window.end_source == "the capture marked it"


def test_the_trace_shows_where_the_first_step_of_a_capture_began(tmp_path: Path) -> None:
    log = capture(
        ("epoch_begin", 0.1), ("epoch_end", 0.14), ("fit_end", 0.14),
        steps={0.112: 0.012, 0.122: 0.01, 0.132: 0.01},
    )  # fmt: skip
    lines = trainer(*epoch(100, first_run=1))
    timeline = timeline_of(tmp_path, lines, clock(UNIX_NS, 1), events=log)
    assert [(round(s), round(e)) for s, e in milliseconds(timeline)] == [
        (2, 12), (12, 22), (22, 32),
    ]  # fmt: skip
    assert list(phases(timeline)) == ["startup", "training"]


def test_a_lost_record_leaves_a_hole_between_the_steps() -> None:
    log = capture(
        ("epoch_begin", 0), ("epoch_end", 10), steps={2: 2.0, 4: 2.0, 9: 2.0}
    )  # fmt: skip
    assert [(s.start_ps // PS_PER_S, s.end_ps // PS_PER_S) for s in align([], log).steps] == [
        (0, 2), (2, 4), (7, 9),
    ]  # fmt: skip


def test_validation_is_a_phase_although_none_of_its_steps_was_seen() -> None:
    log = capture(
        ("epoch_begin", 0), ("validation_begin", 4.5), ("validation_end", 7),
        ("epoch_end", 8), ("fit_end", 8), steps={2: 2.0, 4: 2.0},
    )  # fmt: skip
    assert phases(align([], log)) == {"training": 4500, "validation": 2500, "epoch_end": 1000}


def test_a_run_that_was_killed_while_it_validated_never_reached_the_end_of_the_epoch() -> None:
    log = capture(("epoch_begin", 0), ("validation_begin", 4), steps={2: 2.0, 6: 1.0})
    assert phases(align([], log)) == {"training": 4000, "validation": 2000}


def test_a_loop_that_marks_no_epochs_is_one() -> None:
    log = capture(("fit_begin", 1), ("fit_end", 9), steps={3: 2.0, 5: 2.0})
    timeline = align([], log)
    assert timeline.window.duration_ps == 8 * PS_PER_S
    assert "marked no epochs" in timeline.window.end_source


def test_the_epoch_of_a_killed_run_lasts_until_its_last_record() -> None:
    timeline = align([], capture(("epoch_begin", 0), steps={2: 2.0, 4: 2.0}))
    assert timeline.window.duration_ps == 4 * PS_PER_S
    assert "no finished epoch" in timeline.notes[0].text


def test_a_second_fit_is_not_the_first_epoch() -> None:
    log = capture(
        ("fit_begin", 0), ("epoch_begin", 1), ("epoch_end", 5), ("fit_end", 6),
        ("fit_begin", 10), ("epoch_begin", 11), ("epoch_end", 40), ("fit_end", 41),
    )  # fmt: skip
    timeline = align([], log)
    assert timeline.window.duration_ps == 5 * PS_PER_S
    assert timeline.later_epochs_ps == ()


def test_a_trace_without_a_clock_begins_when_the_capture_opened_it(tmp_path: Path) -> None:
    """TensorFlow 2.15 to 2.18 write no clock into their traces."""
    opened = WindowRecord(at(3), "opened", "sample")
    saved = WindowRecord(at(4), "saved", "sample", session="session")
    log = capture(("epoch_begin", 1), ("epoch_end", 9), windows=(opened, saved))
    lines = trainer(*epoch(0, first_run=1))
    (aligned,) = timeline_of(tmp_path, lines, events=log).traces
    assert aligned.shift_ps == 2 * PS_PER_S


def test_a_window_ends_when_the_capture_closed_it_not_when_it_was_saved(tmp_path: Path) -> None:
    """Saving uses cores that training leaves idle, and only then does the profiler write its
    end."""
    windows = (
        WindowRecord(at(1), "opened", "start"),
        WindowRecord(at(8), "saved", "start", session="session", seconds=5.5),
    )
    log = capture(("epoch_begin", 1), ("epoch_end", 9), windows=windows)
    planes = (trainer(*epoch(0, first_run=1)), clock(at(1), 6.9))
    (aligned,) = timeline_of(tmp_path, *planes, events=log).traces
    assert aligned.covered_ps == (0, round(1.5 * PS_PER_S))


def test_steps_of_all_sessions_count(tmp_path: Path) -> None:
    traces = []
    for number, second in enumerate((0, 4)):
        lines = trainer(*epoch(0, first_run=1 + 10 * number))
        planes = (lines, clock(UNIX_NS + second * 10**9, 0.1))
        traces.append((ProfileSession(str(second), "", ()), trace_of(tmp_path, *planes)))
    timeline = align(traces, log(keras_s=0, epoch_loss=series({10: 1.0, 12: 0.5})))
    assert [round(start) for start, _ in milliseconds(timeline)] == [2, 12, 22, 4002, 4012, 4022]
