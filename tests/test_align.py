"""Where the first epoch begins and ends, and what its steps are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from stall_analyzer.align import align
from stall_analyzer.model import PS_PER_MS, PS_PER_S, EventLog, KerasConfig, Series, Timeline
from tests.traces import (
    GRAPH,
    TRAIN_OPS,
    call,
    clock,
    event,
    host,
    ops,
    timeline_of,
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
    """What Keras does: reset, make an iterator, then steps of 10 ms."""
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
    timeline = timeline_of(
        tmp_path, host(("python", one[0] + two[0]), ("tf_Compute", one[1] + two[1]))
    )
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
    timeline = timeline_of(
        tmp_path,
        host(("python", thread + check + following[0]), ("tf_Compute", work + following[1])),
    )
    found = phases(timeline)
    assert list(found) == ["startup", "training", "validation", "epoch_end"]
    assert sum(found.values()) * PS_PER_MS == timeline.window.duration_ps
    assert [s.phase for s in timeline.steps] == ["training"] * 3 + ["validation"] * 2


def test_a_learning_rate_callback_begins_no_epoch(tmp_path: Path) -> None:
    thread, work = epoch(100, first_run=1)
    thread += assigns(133, 1)  # one assignment, not a reset
    thread += call(135, 145, run=4)
    work += ops(135, 145, 4, *TRAIN_OPS)
    timeline = timeline_of(tmp_path, host(("python", thread), ("tf_Compute", work)))
    assert len(timeline.steps) == 4


def test_in_a_custom_loop_each_iterator_begins_an_epoch(tmp_path: Path) -> None:
    thread, work = [], []
    for at, run in ((10, 1), (30, 2)):
        thread += [*iterator(at), *call(at + 1, at + 11, run=run)]
        work += ops(at + 1, at + 11, run, *TRAIN_OPS)
    timeline = timeline_of(tmp_path, host(("python", thread), ("tf_Compute", work)))
    assert timeline.window.duration_ps == 20 * PS_PER_MS
    assert len(timeline.steps) == 1


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
    thread, work = epoch(100, first_run=1)
    timeline = timeline_of(
        tmp_path,
        host(("python", thread), ("tf_Compute", work)),
        clock(UNIX_NS, 1),
        events=log(keras_s=0.09, epoch_loss=series({0.25: 1.0})),
    )
    assert timeline.window.duration_ps == round((250 - 100.35) * PS_PER_MS)
    assert timeline.window.end_source == "first epoch's scalars"


def test_a_profile_of_the_middle_covers_a_part_of_the_epoch(tmp_path: Path) -> None:
    thread, work = call(10, 20, run=1), ops(10, 20, 1, *TRAIN_OPS)
    timeline = timeline_of(
        tmp_path,
        host(("python", thread), ("tf_Compute", work)),
        clock(UNIX_NS + 4 * 10**9, 0.05),
        events=log(keras_s=0, epoch_loss=series({10: 1.0, 13: 0.5, 16: 0.4})),
    )
    assert timeline.window.duration_ps == 10 * PS_PER_S
    (aligned,) = timeline.traces
    assert aligned.covered_ps == (4 * PS_PER_S, 4 * PS_PER_S + 50 * PS_PER_MS)
    assert [gap // PS_PER_S for gap in timeline.later_epochs_ps] == [3, 3]
    assert phases(timeline) == {"training": 10_000}
    assert "began after the first epoch had begun" in timeline.notes[0].text


def test_event_files_alone_tell_the_epoch_and_its_steps() -> None:
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
        host(("python", thread + writes), ("tf_Compute", work)),
        events=log(
            keras_s=5,
            batch_loss=series({5.025: 3.0, 5.047: 2.0, 5.061: 1.0}),
            epoch_loss=series({5.2: 1.0}),
        ),
    )
    assert timeline.window.start_unix_ns is not None
    start_ms = (timeline.window.start_unix_ns - UNIX_NS) / 1e6
    assert abs(start_ms - 5010.35) < 0.1


def test_a_run_that_nothing_is_known_of_has_no_window() -> None:
    timeline = align([], None)
    assert timeline.window.duration_ps == 0
    assert timeline.window.epoch is None


def test_a_second_graph_of_the_function_validates_after_a_reset_under_xla(tmp_path: Path) -> None:
    """XLA hides the ops, so a backward pass cannot be seen."""
    thread = [*assigns(0, 4), *call(2, 10, run=1), *call(10, 20, run=2)]
    thread += [*assigns(21, 4), *call(23, 30, run=3, graph=GRAPH + "99")]
    timeline = timeline_of(tmp_path, host(("python", thread)))
    assert [s.phase for s in timeline.steps] == ["training", "training", "validation"]
