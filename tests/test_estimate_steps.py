"""What an estimate says about the first step, the pipeline and a usual step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from stall_analyzer.model.units import PS_PER_MS, PS_PER_S
from stall_analyzer.signals.estimate.first_step import (
    FirstStepEvidence,
    divide_first_step,
    evidence_of,
)
from stall_analyzer.signals.estimate.production import Production, production_of
from stall_analyzer.signals.estimate.usual_steps import (
    UsualStep,
    as_long_as_all,
    with_production,
)
from stall_analyzer.signals.input.input_pipeline import NEVER, PipelineSignals, Stage
from tests.ordinary_logs import KerasLog

# ---------------------------------------------------------------- the first step

PLAIN = FirstStepEvidence(
    ops=70,
    traced_twice=False,
    compiled_by_xla=False,
    eager=False,
    by_keras=True,
    source_may_be_slow=False,
    in_memory=False,
    traced=True,
    element_ps=0,
)
EXTRA_PS = 5 * PS_PER_S


def first(evidence: FirstStepEvidence, extra_ps: float = EXTRA_PS) -> dict[str, float]:
    """Seconds by cause; they add up to the extra time, and are one-time costs."""
    part = divide_first_step(extra_ps, evidence)
    assert part.once
    assert part.length_ps == pytest.approx(extra_ps)
    return {cause: ps / PS_PER_S for cause, ps in part.likely_ps.items()}


def test_a_larger_graph_takes_longer_to_build() -> None:
    small, large = (
        first(replace(PLAIN, ops=ops), 0.3 * PS_PER_S)["compile.tracing"] for ops in (20, 2000)
    )
    assert small < 0.15
    assert large > 0.25


def test_what_a_graph_does_not_explain_is_python_in_the_model() -> None:
    assert first(PLAIN)["compile.tracing"] > 4


def test_without_a_trace_the_source_may_be_slow_as_well() -> None:
    spent = first(replace(PLAIN, traced=False))
    assert spent["input.first_element"] == pytest.approx(spent["compile.tracing"], rel=0.1)


def test_a_step_that_creates_variables_is_traced_twice() -> None:
    once, twice = (
        first(replace(PLAIN, traced_twice=again), 0.3 * PS_PER_S)["compile.tracing"]
        for again in (False, True)
    )
    assert twice > 1.2 * once


def test_eager_training_builds_no_graph() -> None:
    assert "compile.tracing" not in first(replace(PLAIN, eager=True))


def test_with_xla_its_compiler_takes_the_time() -> None:
    assert first(replace(PLAIN, compiled_by_xla=True))["compile.xla"] > 4


def test_a_source_that_must_be_opened_may_be_late() -> None:
    """A generator that starts, or files that are read, take more than a slow machine explains."""
    spent = first(replace(PLAIN, source_may_be_slow=True))
    assert spent["input.first_element"] > 4
    assert divide_first_step(EXTRA_PS, replace(PLAIN, source_may_be_slow=True)).doubt > 0.5


def test_a_buffer_that_must_be_filled_takes_its_elements_time() -> None:
    filling = first(replace(PLAIN, element_ps=3 * PS_PER_S))["input.first_element"]
    assert filling - first(PLAIN, 2 * PS_PER_S)["input.first_element"] == pytest.approx(3)
    assert first(replace(PLAIN, element_ps=9 * PS_PER_S))["input.first_element"] == 5


def test_data_in_memory_is_there_at_once() -> None:
    ready = first(replace(PLAIN, in_memory=True))["input.first_element"]
    assert ready < first(PLAIN)["input.first_element"]


def test_a_first_step_of_no_length_is_divided_among_nothing() -> None:
    assert divide_first_step(0.0, PLAIN).likely_ps == {}


def stage(path: str, count: int = 1, total_ms: float = 1.0, **parameters: int) -> Stage:
    total_ps = round(total_ms * PS_PER_MS)
    kind = path.rpartition("::")[2]
    return Stage(path, kind, "", parameters, count, 1, total_ps, NEVER, 1.0)


def pipeline(*stages: Stage) -> PipelineSignals:
    return PipelineSignals(stages)


def test_a_generator_may_be_slow_to_start_and_slices_are_in_memory() -> None:
    started = pipeline(stage("Root"), stage("Root::FlatMap"), stage("Root::FlatMap::Generator"))
    slices = pipeline(stage("Root"), stage("Root::BatchV2"), stage("Root::BatchV2::TensorSlice"))
    generator, memory = (evidence_of((), None, p, None) for p in (started, slices))
    assert (generator.source_may_be_slow, generator.in_memory) == (True, False)
    assert (memory.source_may_be_slow, memory.in_memory) == (False, True)


def test_a_shuffle_buffer_is_filled_with_what_is_below_it() -> None:
    """A thousand elements of 2 ms each."""
    shuffled = pipeline(
        stage("Root"),
        stage("Root::Shuffle", buffer_size=1000),
        stage("Root::Shuffle::Map", count=10, total_ms=20),
    )
    assert evidence_of((), None, shuffled, None).element_ps == 2 * PS_PER_S


def test_the_layers_of_a_model_that_was_not_traced_are_counted(tmp_path: Path) -> None:
    keras = KerasLog(compiled='"jit_compile": true').read(tmp_path).keras
    evidence = evidence_of((), keras, pipeline(), None)
    assert (evidence.ops, evidence.compiled_by_xla, evidence.traced) == (20, True, False)
    eager = KerasLog(compiled='"run_eagerly": true').read(tmp_path).keras
    assert evidence_of((), eager, pipeline(), None).eager


# ---------------------------------------------------------------- what the pipeline can make

BUFFER = (stage("Root"), stage("Root::Prefetch", buffered_elements=8))


@pytest.mark.parametrize(
    ("stages", "state"),
    [
        ((stage("Root"), stage("Root::Map")), "in the step"),
        (BUFFER, "slower"),
        ((*BUFFER, stage("Root::Prefetch::Map", total_ms=30)), "seen"),
        ((stage("Root"), stage("Root::FlatMap"), stage("Root::FlatMap::Generator")), "hidden"),
        # Below a stage that works during the step, working ahead hides only a part of the wait.
        ((stage("Root"), stage("Root::Map"), stage("Root::Map::Prefetch")), "in the step"),
    ],
)
def test_what_one_profiled_batch_shows_of_the_pipeline(stages: Sequence[Stage], state: str) -> None:
    found = production_of(pipeline(*stages), 50 * PS_PER_MS)
    assert found is not None and found.state == state


def test_a_trace_without_a_pipeline_says_nothing_of_it() -> None:
    assert production_of(pipeline(), PS_PER_S) is None
    assert production_of(pipeline(stage("Root", count=0)), PS_PER_S) is None


def test_a_batch_takes_what_its_source_took_or_what_a_parallel_one_was_given() -> None:
    serial = pipeline(*BUFFER, stage("Root::Prefetch::Map", total_ms=30))
    assert production_of(serial, 50 * PS_PER_MS) == Production("seen", 30 * PS_PER_MS)
    fused = (
        stage("Root"),
        stage("Root::MapAndBatch", batch_size=32),
        stage("Root::MapAndBatch::TFRecord", count=8),
    )
    quarter = production_of(pipeline(*fused), 50 * PS_PER_MS)
    assert quarter is not None
    assert quarter.batch_ps == 200 * PS_PER_MS, "a quarter of a batch in 50 ms"
    assert not quarter.certain, "they may have come out of a full buffer"


def test_a_stage_that_only_its_source_shows_still_works_ahead() -> None:
    """It produced no element while steps were profiled, so it wrote no event. One was started for
    the two batches that were taken."""
    taken = (stage("Root", count=2), stage("Root::Prefetch", count=2))
    stages = (*taken, stage("Root::Prefetch::ParallelMapV2::TensorSlice"))
    found = production_of(pipeline(*stages), 50 * PS_PER_MS)
    assert found is not None
    assert (found.state, found.batch_ps) == ("seen", 50 * PS_PER_MS)


def test_a_parallel_stage_that_takes_up_all_it_is_asked_for_keeps_up() -> None:
    stages = (*BUFFER, stage("Root::Prefetch::ParallelMapV2::TensorSlice"))
    found = production_of(pipeline(*stages), 50 * PS_PER_MS)
    assert found == Production("seen", 0, certain=False)


def test_a_source_that_gave_nothing_is_slower() -> None:
    found = production_of(pipeline(*BUFFER, stage("Root::Prefetch::Map", count=0)), PS_PER_S)
    assert found == Production("slower", ready=8)


def usual(profiled: int = 1, **causes_ms: float) -> UsualStep:
    """`input_wait=3` for 3 ms of `input.wait`."""
    causes = {name.replace("_", ".", 1): ms * PS_PER_MS for name, ms in causes_ms.items()}
    return UsualStep(causes, profiled, (), 0.35, "")


def waits_ms(step: UsualStep) -> float:
    return step.causes_ps.get("input.wait", 0.0) / PS_PER_MS


def test_batches_that_take_longer_than_the_step_make_it_wait_for_the_rest() -> None:
    step = with_production(usual(compute_step=10), Production("seen", 30 * PS_PER_MS), 0)
    assert waits_ms(step) == 20
    quick = with_production(usual(compute_step=10), Production("seen", 3 * PS_PER_MS), 0)
    assert waits_ms(quick) == 0


@pytest.mark.parametrize("state", ["slower", "hidden"])
def test_a_pipeline_that_may_be_slow_is_doubted(state: str) -> None:
    production = Production("slower" if state == "slower" else "hidden", ready=1)
    step = with_production(usual(compute_step=10), production, 1000 * PS_PER_MS)
    assert waits_ms(step) > 0
    assert step.doubt >= 0.5
    assert step.why


def test_what_was_taken_out_of_a_buffer_is_doubted_more() -> None:
    sure, unsure = (
        with_production(usual(compute_step=10), Production("seen", 30 * PS_PER_MS, certain), 0)
        for certain in (True, False)
    )
    assert waits_ms(sure) == waits_ms(unsure)
    assert sure.doubt < unsure.doubt


def test_a_wait_that_was_seen_is_the_usual_state() -> None:
    step = usual(compute_step=10, input_wait=10)
    assert with_production(step, Production("slower"), PS_PER_S) is step
    assert with_production(step, None, PS_PER_S) is step


def test_several_steps_show_it_themselves() -> None:
    step = usual(5, compute_step=10)
    assert with_production(step, Production("slower"), PS_PER_S) is step


def test_of_many_steps_their_mean_length_counts() -> None:
    step = usual(compute_step=10)
    assert as_long_as_all(step, 12 * PS_PER_MS, works_ahead=True) is step, "steps differ"
    ahead = as_long_as_all(step, 40 * PS_PER_MS, works_ahead=True)
    assert waits_ms(ahead) == 30
    inside = as_long_as_all(step, 40 * PS_PER_MS, works_ahead=False)
    assert waits_ms(inside) == 0
    assert inside.doubt == 0.75, "nothing tells what the other three quarters were"
