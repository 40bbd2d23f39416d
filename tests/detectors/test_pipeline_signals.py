"""The pipeline as it ran: its stages, their own time, and what faster input would save."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stall_analyzer.detectors.input.faster_input import faster_beside_input
from stall_analyzer.model.intervals import total
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.input.input_pipeline import (
    Spans,
    inside_of,
    overlap_ps,
    pipeline_signals,
)
from tests.detectors.pipelines import (
    DECODING_MAP,
    FILES,
    GENERATOR,
    PYTHON_MAP,
    RECORDS,
    STEPS,
    TINY_RECORD_FILES,
    UNBATCHED_MAP,
    Program,
    Stage,
    below_prefetch,
)
from tests.detectors.training import signals_for
from tests.traces import call, event, host, steps, timeline_of


def test_a_stage_is_described_by_what_it_wrote(tmp_path: Path) -> None:
    stages = {stage.kind: stage for stage in UNBATCHED_MAP.signals(tmp_path).pipeline.stages}
    assert list(stages) == ["Root", "Prefetch", "BatchV2", "Map"]
    assert (stages["Prefetch"].name, stages["Prefetch"].label) == ("", "Prefetch")
    assert stages["BatchV2"].parameters == {"batch_size": 400}
    assert stages["Map"].path == "Root::Prefetch::BatchV2::Map"
    assert stages["Map"].count == 400 * STEPS
    (named,) = FILES.signals(tmp_path).pipeline.of_kind("Map")
    assert (named.name, named.count) == ("MapDataset:1", 8 * STEPS)


def test_the_outermost_stage_of_tensorflow_until_2_6_is_the_root_too(tmp_path: Path) -> None:
    """It was called Model then."""
    old = below_prefetch(Stage("Root::Prefetch::BatchV2", 0.999, 1, {"batch_size": 400}))
    consumer, producer = (
        [replace(stage, path=stage.path.replace("Root", "Model", 1)) for stage in stages]
        for stages in (old.consumer, old.producer)
    )
    stages = replace(old, consumer=consumer, producer=producer).signals(tmp_path).pipeline.stages
    assert [stage.kind for stage in stages] == ["Root", "Prefetch", "BatchV2"]


def test_a_stage_that_sees_whole_batches_is_kept_however_quick_it_is(tmp_path: Path) -> None:
    """A buffer's parameters say how many batches were in it."""
    quick = [event("Iterator::Root::Prefetch", 0, 0.0001, buffered_elements=7)]
    python, work = steps(0, 1)
    planes = host(("python", python), ("tf_Compute", work), ("tf_data", quick))
    (buffer,) = signals_for(timeline_of(tmp_path, planes)).pipeline.of_kind("Prefetch")
    assert buffer.parameters == {"buffered_elements": 7}


def test_inner_iterators_of_a_stage_are_one_stage(tmp_path: Path) -> None:
    (records,) = TINY_RECORD_FILES.signals(tmp_path).pipeline.of_kind("TFRecord")
    assert records.path == "Root::Prefetch::FlatMap::TFRecord"
    assert records.count == 2 * STEPS
    assert records.iterators == 2 * STEPS


def test_the_first_of_two_fused_stages_gives_the_label(tmp_path: Path) -> None:
    fused = below_prefetch(
        Stage("Root::Prefetch::MapAndBatch", 0.9, 1, {"name": "fused(MapDataset:2,Batch:3)"})
    )
    (stage,) = fused.signals(tmp_path).pipeline.of_kind("MapAndBatch")
    assert stage.label == "MapDataset:2"


def test_short_elements_without_rows_are_still_counted(tmp_path: Path) -> None:
    """400 elements of 49.5 µs in 20 ms: too short for rows, and nearly all of the time."""
    signals = UNBATCHED_MAP.signals(tmp_path)
    (stage,) = signals.pipeline.of_kind("Map")
    assert stage.seen_share < 0.1
    waits = signals.intervals_of("input.wait")
    own = signals.pipeline.own_ps(waits)
    assert own[stage.path] == pytest.approx(0.99 * overlap_ps(waits, inside_of(waits)), rel=0.02)


def test_own_times_never_exceed_the_wait_on_one_thread(tmp_path: Path) -> None:
    for program in (PYTHON_MAP, GENERATOR, UNBATCHED_MAP, RECORDS):
        signals = program.signals(tmp_path)
        waits = signals.intervals_of("input.wait")
        own = signals.pipeline.own_ps(waits)
        assert 0 <= sum(own.values()) <= overlap_ps(waits, inside_of(waits))


def test_the_overlap_is_what_both_cover() -> None:
    def spans(*pairs: tuple[int, int]) -> Spans:
        return np.array([p[0] for p in pairs], np.int64), np.array([p[1] for p in pairs], np.int64)

    assert overlap_ps(spans((0, 10), (20, 30)), inside_of(spans((5, 25)))) == 10
    assert overlap_ps(spans((0, 10)), inside_of(spans((10, 20)))) == 0
    assert overlap_ps(spans((0, 100)), inside_of(spans((0, 10), (5, 20)))) == 20
    assert overlap_ps(spans(), inside_of(spans((0, 5)))) == 0


def test_a_trace_without_a_pipeline_has_no_stages(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, host(("python", call(0, 10, 1))))
    pipeline = signals_for(timeline).pipeline
    assert pipeline.stages == ()
    assert pipeline.produce_ps() == 0


def test_the_windows_of_a_capture_add_up(tmp_path: Path) -> None:
    (aligned,) = PYTHON_MAP.signals(tmp_path).traces
    later = replace(aligned, shift_ps=aligned.shift_ps + aligned.covered_ps[1])
    one, two = pipeline_signals([aligned]), pipeline_signals([aligned, later])
    assert [s.path for s in two.stages] == [s.path for s in one.stages]
    for before, after in zip(one.stages, two.stages, strict=True):
        assert (after.count, after.total_ps) == (2 * before.count, 2 * before.total_ps)
        assert total(*after.spans) == 2 * total(*before.spans)
        assert (after.name, after.kind, after.iterators) == (
            before.name, before.kind, before.iterators,
        )  # fmt: skip
    assert two.produce_ps() == one.produce_ps()
    assert two.python_ps == 2 * one.python_ps


def test_faster_input_wins_what_then_fits_behind_the_step(tmp_path: Path) -> None:
    signals = PYTHON_MAP.signals(tmp_path)  # 20 ms of waiting, 5 ms of work
    won_ms = [
        signals.hidden_if_ahead_ps(ms * PS_PER_MS) / PS_PER_MS / STEPS for ms in (0, 5, 15, 25)
    ]
    assert won_ms == pytest.approx([20, 20, 10, 0], abs=0.1)


def test_far_ahead_training_waits_only_for_what_production_as_a_whole_is_late(
    tmp_path: Path,
) -> None:
    signals = PYTHON_MAP.signals(tmp_path)  # 20 ms of waiting, 5 ms of work
    won_ms = [
        signals.hidden_if_far_ahead_ps(ms * PS_PER_MS) / PS_PER_MS / STEPS for ms in (0, 5, 15)
    ]
    late = [0, 5 / STEPS, (15 * STEPS - 5 * (STEPS - 1)) / STEPS]  # per step, on average
    assert won_ms == pytest.approx([20 - ms for ms in late], abs=0.1)


@pytest.mark.parametrize(
    ("program", "in_python", "most_ms"),
    [
        (PYTHON_MAP, True, 0.85 * 5 + 0.5 * 5),  # waits for the interpreter's lock
        (DECODING_MAP, False, 0.5 * 5 + 0.45 * 5),  # shares cores and caches
    ],
)
def test_work_beside_a_pipeline_that_never_rests_may_be_faster_without_it(
    tmp_path: Path, program: Program, in_python: bool, most_ms: float
) -> None:
    busy = replace(program, between_ms=5, never_rests=True)  # 20 ms of waiting, 5 ms of work
    signals = busy.signals(tmp_path)
    gain = faster_beside_input(signals, in_python)
    contention = signals.causes_ps["input.contention"]
    assert gain.low_ps == 0
    most = most_ms * PS_PER_MS * STEPS + (1 - 0.45) * contention  # which is no compute time
    assert gain.high_ps == pytest.approx(most, rel=0.05)


def test_a_pipeline_of_microseconds_that_is_waited_for_never_rests(tmp_path: Path) -> None:
    """Its stages leave no rows, but the 5 ms of each step still count as next to it."""
    gain = faster_beside_input(UNBATCHED_MAP.signals(tmp_path), in_python=False)
    assert gain.high_ps == pytest.approx(0.45 * 5 * PS_PER_MS * (STEPS - 1), rel=0.05)


def test_work_beside_a_pipeline_at_rest_is_as_fast_as_it_can_be(tmp_path: Path) -> None:
    signals = replace(PYTHON_MAP, between_ms=5).signals(tmp_path)
    assert faster_beside_input(signals, in_python=True).high_ps == 0
