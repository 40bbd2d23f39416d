"""The whole first epoch from what an ordinary log shows of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stall_analyzer.model.causes import BUCKETS, CAUSES, code
from stall_analyzer.model.estimate import Estimate
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.units import PS_PER_MS, PS_PER_S
from stall_analyzer.signals.estimate.first_step import (
    FirstStepEvidence,
    divide_first_step,
    evidence_of,
)
from stall_analyzer.signals.estimate.parts import Part, likely_ledger, ranges
from stall_analyzer.signals.estimate.production import Production, production_of
from stall_analyzer.signals.estimate.usual_steps import (
    UsualStep,
    as_long_as_all,
    with_production,
)
from stall_analyzer.signals.input.input_pipeline import NEVER, PipelineSignals, Stage
from stall_analyzer.signals.signals import Signals
from tests.detectors.training import signals_for
from tests.ordinary_logs import KerasLog
from tests.test_sampling import epoch as sampled_epoch
from tests.traces import TRAIN_OPS, call, causes_ms, device, event, ops, trainer, wait
from tests.xspace import Event

STEP_MS = 50.0  # as long as the profile is

# ---------------------------------------------------------------- time is conserved

parts_of_an_epoch = st.lists(
    st.builds(
        Part,
        likely_ps=st.dictionaries(st.sampled_from(CAUSES), st.floats(0, 1e12), max_size=4),
        once=st.booleans(),
        doubt=st.floats(0, 1),
        rivals=st.lists(st.sampled_from(BUCKETS), max_size=3).map(tuple),
    ),
    max_size=6,
)
segments = st.lists(
    st.tuples(st.integers(1, 10**12), st.sampled_from(CAUSES), st.booleans()), min_size=1
)


def ledger_of(tiles: Sequence[tuple[int, str, bool]]) -> Ledger:
    bounds = np.cumsum([0, *(ps for ps, _, _ in tiles)])
    causes = np.array([code(cause) for _, cause, _ in tiles], dtype=np.uint8)
    return Ledger(bounds, causes, np.array([once for _, _, once in tiles]))


@given(segments, parts_of_an_epoch)
def test_whatever_the_parts_claim_time_is_conserved(
    tiles: Sequence[tuple[int, str, bool]], parts: list[Part]
) -> None:
    """What was traced stays as it was, and what was not is given away at most once."""
    exact = ledger_of(tiles)
    likely = likely_ledger(exact, parts)
    whole = int(exact.bounds_ps[-1])
    assert sum(likely.causes_ps.values()) == whole
    for cause, ps in exact.causes_ps.items():
        assert cause == "unknown.not_traced" or likely.causes_ps.get(cause, 0) >= ps
    found = ranges(likely, exact, parts)
    for bucket, ps in likely.buckets_ps.items():
        assert 0 <= found[bucket].low_ps <= ps <= found[bucket].high_ps <= whole
        if bucket != "unknown":
            assert found[bucket].low_ps >= exact.buckets_ps[bucket]


# ---------------------------------------------------------------- whole logs


def profile(input_ms: float = 0.0, count: int = 1, *lines: tuple[str, list[Event]]) -> bytes:
    """Steps that wait and then compute, together as long as the profile."""
    python: list[Event] = []
    work: list[Event] = []
    length = STEP_MS / count
    for number in range(count):
        at, run = number * length, number + 2
        ready = at + input_ms / count
        python += call(at, at + length, run=run)
        work += [*wait(at, ready, run), *ops(ready, at + length, run, *TRAIN_OPS)]
    return trainer(python, work, *lines)


def estimated(signals: Signals) -> Estimate:
    """The estimate, if it keeps the laws that hold for each."""
    found = signals.estimate
    assert found is not None
    likely = found.ledger.buckets_ps
    assert sum(likely.values()) == signals.window_ps, "time is conserved"
    for bucket, traced in signals.buckets_ps.items():
        known = found.ranges[bucket]
        assert known.low_ps <= likely[bucket] <= known.high_ps
        assert bucket == "unknown" or known.low_ps >= traced
    assert found.rests_on
    return found


def seconds_of(estimate: Estimate) -> dict[str, float]:
    return {cause: round(ms / 1000, 1) for cause, ms in causes_ms(estimate.ledger).items()}


KERAS = KerasLog(epochs=[10.0], graph_s=3.0)


def of(folder: Path, log: KerasLog = KERAS, trace: bytes | None = None) -> Estimate:
    """With a profile of the second batch."""
    planes = (profile(),) if trace is None else (trace,)
    return estimated(signals_for(log.timeline(folder, *planes, profile_s=3.0)))


def test_the_steps_after_the_first_are_like_those_that_were_profiled(tmp_path: Path) -> None:
    found = of(tmp_path, trace=profile(input_ms=30))
    assert found.profiled_steps == 1
    steps = {
        c: ps for c, ps in found.ledger.causes_ps.items() if c in ("input.wait", "compute.step")
    }
    shares = {cause: ps / sum(steps.values()) for cause, ps in steps.items()}
    assert shares["input.wait"] == pytest.approx(0.6, abs=0.02)
    assert sum(steps.values()) == pytest.approx(7 * PS_PER_S, rel=0.02)
    assert found.ledger.one_time_ps() == pytest.approx(3 * PS_PER_S, rel=0.03)
    assert "1 step was profiled." in found.rests_on
    assert any("Keras wrote the graph after the first batch" in text for text in found.rests_on)


def test_more_profiled_steps_are_doubted_less(tmp_path: Path) -> None:
    one, ten = (of(tmp_path, trace=profile(30, count)) for count in (1, 10))
    assert ten.profiled_steps == 5, "the later half, in which the buffers are empty"
    widths = [e.ranges["input"].high_ps - e.ranges["input"].low_ps for e in (ten, one)]
    assert widths[0] < widths[1]


def test_what_later_epochs_lack_came_once(tmp_path: Path) -> None:
    """Retracing, say: 10 s, of which 3 are the first step, and later epochs take 2 s."""
    log = replace(KERAS, epochs=[10.0, 12.0, 14.0])
    found = of(tmp_path, log)
    assert seconds_of(found)["compile.retracing"] == 5.0
    assert found.ledger.one_time_ps() == pytest.approx(8 * PS_PER_S, rel=0.03)
    assert "2 later epochs took 2.00 s in the median." in found.rests_on


def test_with_a_cache_it_was_filled(tmp_path: Path) -> None:
    path = "Iterator::Root::Prefetch::MemoryCache"
    stages = [event("Iterator::Root", 0, 5), event("Iterator::Root::Prefetch", 0.1, 4.9)]
    reading = ("tf_data_iterator_get_next", [*stages, event(path, 0.2, 4.8)])
    found = of(tmp_path, replace(KERAS, epochs=[10.0, 12.0]), profile(0, 1, reading))
    assert seconds_of(found)["input.cache_fill"] == 5.0


def test_later_epochs_as_long_as_the_first_leave_nothing_that_came_once(tmp_path: Path) -> None:
    """The first step took 3 s, and later epochs are no shorter: it cannot have come once."""
    found = of(tmp_path, replace(KERAS, epochs=[10.0, 20.0, 30.0]))
    assert found.ledger.one_time_ps() <= 1.6 * PS_PER_S
    assert "compile.retracing" not in found.ledger.causes_ps


def test_steps_whose_number_is_known_may_have_waited(tmp_path: Path) -> None:
    """A prefetching pipeline: 100 steps take 70 ms each, though the profiled one took 50."""
    found = of(tmp_path, replace(KERAS, epochs=[10.0], rate=10.1), trace=prefetched(elements=1))
    assert found.steps == 101
    assert seconds_of(found)["input.wait"] == pytest.approx(2.0, abs=0.2)
    assert "All steps took 69.5 ms on average: batches come no faster." in found.rests_on


def prefetched(elements: int) -> bytes:
    """A batch is taken at once from a buffer that was given so many in the meantime."""
    taken = [event("Iterator::Root", 0, 0.1), event("Iterator::Root::Prefetch", 0.01, 0.09)]
    source = [
        event("Iterator::Root::Prefetch::ParallelMapV2::TensorSlice", 10 * n, 10 * n + 5)
        for n in range(elements)
    ]
    outer = [event("Iterator::Root::Prefetch::ParallelMapV2", 0, 20)]
    return profile(
        0, 1, ("tf_data_iterator_get_next", taken), ("tf_data_iterator_resource", [*outer, *source])
    )


def test_a_pipeline_that_made_no_batch_meanwhile_keeps_steps_waiting(tmp_path: Path) -> None:
    """The buffer, filled during the first step, hides it from the one step that was profiled."""
    taken = [event("Iterator::Root", 0, 0.1), event("Iterator::Root::Prefetch", 0.01, 0.09)]
    found = of(tmp_path, trace=profile(0, 1, ("tf_data_iterator_get_next", taken)))
    assert found.ledger.buckets_ps["input"] > 3 * PS_PER_S
    assert any("each takes longer than a step" in text for text in found.rests_on)
    assert found.ranges["compute"].high_ps > 5 * PS_PER_S, "it may as well have kept up"


def test_a_loss_that_is_no_number_made_steps_compute_in_vain(tmp_path: Path) -> None:
    found = of(tmp_path, replace(KERAS, loss=float("nan")))
    spent = seconds_of(found)
    assert spent["numerics.nonfinite"] == pytest.approx(spent["compute.step"], abs=0.1)


def test_a_validation_that_nobody_traced_is_in_it(tmp_path: Path) -> None:
    log = replace(KERAS, evaluated=[(40, 9.9)], validation_opened_s=6.0)
    found = of(tmp_path, log)
    assert "Validation took 3.65 s; none of it was profiled." in found.rests_on
    doubted = of(tmp_path).ranges["input"]
    assert found.ranges["input"].high_ps > doubted.high_ps, "what it waited for was not seen"


def test_what_validation_takes_longer_than_all_the_steps_may_be_waiting(tmp_path: Path) -> None:
    """2.75 s of steps, and 6.25 s of validation: half of the difference."""
    log = replace(KERAS, graph_s=0.5, epochs=[10.0], evaluated=[(40, 9.5)], validation_opened_s=3.0)
    timeline = log.timeline(tmp_path, profile(), profile_s=0.5)
    assert seconds_of(estimated(signals_for(timeline)))["input.wait"] == 1.8


def test_without_a_profile_any_bucket_of_a_step_may_have_its_time(tmp_path: Path) -> None:
    signals = signals_for(KERAS.timeline(tmp_path))
    found = estimated(signals)
    assert found.words == "estimated from what was logged"
    assert found.rests_on[0].startswith("No step was profiled")
    for bucket in ("input", "host", "compute"):
        assert found.ranges[bucket].low_ps < PS_PER_S < 6 * PS_PER_S < found.ranges[bucket].high_ps


def test_without_a_mark_later_epochs_tell_what_the_first_step_took_longer(tmp_path: Path) -> None:
    signals = signals_for(KerasLog(epochs=[10.0, 14.0, 18.0]).timeline(tmp_path))
    assert estimated(signals).ledger.one_time_ps() == pytest.approx(6 * PS_PER_S, rel=1e-6)


def test_a_gpu_that_was_used_and_not_traced_computed(tmp_path: Path) -> None:
    """The host's executors are done after 5 ms; the step goes on for 45."""
    manager = ("tf_GPU_Event_Manager/7", [event("Wait", 0, 1)])
    work = [*ops(0, 2.5, 2, *TRAIN_OPS), *ops(47.5, 50, 2, "loss:Sum")]
    planes = (trainer(call(0, 50, run=2), work, manager), device("/device:GPU:0"))
    found = estimated(signals_for(KERAS.timeline(tmp_path, *planes, profile_s=3.0)))
    assert seconds_of(found)["compute.device"] == pytest.approx(6.3, abs=0.1)
    assert found.ranges["compute"].low_ps < 5 * PS_PER_S, "which is in doubt"


def test_where_the_beginning_was_traced_no_first_step_is_added(tmp_path: Path) -> None:
    """The first of two windows begins with the epoch: the ledger knows what it took."""
    found = estimated(signals_for(sampled_epoch(tmp_path, (0, 300))))
    assert set(seconds_of(found)) == {"input.wait", "compute.step"}
    assert found.ledger.one_time_ps() == 0


def test_windows_all_through_the_epoch_keep_their_own_estimate(tmp_path: Path) -> None:
    signals = signals_for(sampled_epoch(tmp_path))
    assert estimated(signals) is signals.sample
    assert "in 4 windows" in estimated(signals).rests_on[0]


def test_a_profile_of_a_later_epoch_shows_no_step_of_the_first(tmp_path: Path) -> None:
    log = replace(KERAS, epochs=[10.0, 12.0])
    found = estimated(signals_for(log.timeline(tmp_path, profile(), profile_s=11.0)))
    assert found.profiled_steps == 0


def test_what_was_traced_from_beginning_to_end_is_not_estimated(tmp_path: Path) -> None:
    log = KerasLog(epochs=[0.05])
    assert signals_for(log.timeline(tmp_path, profile(), profile_s=0.0)).estimate is None


def test_nothing_is_estimated_of_a_run_of_which_nothing_is_known(tmp_path: Path) -> None:
    assert signals_for(KerasLog(model=False).timeline(tmp_path)).estimate is None


# ---------------------------------------------------------------- the first step

PLAIN = FirstStepEvidence(
    ops=70,
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
    """Seconds by cause; they sum to what it took longer, and came once."""
    part = divide_first_step(extra_ps, evidence)
    assert part.once
    assert part.length_ps == pytest.approx(extra_ps)
    return {cause: ps / PS_PER_S for cause, ps in part.likely_ps.items()}


def test_a_larger_graph_takes_longer_to_build() -> None:
    small, large = (first(replace(PLAIN, ops=ops))["compile.tracing"] for ops in (20, 2000))
    assert small < large
    assert large > 4.5


def test_eager_training_builds_no_graph() -> None:
    assert "compile.tracing" not in first(replace(PLAIN, eager=True))


def test_with_xla_what_takes_long_is_its_compiler() -> None:
    assert first(replace(PLAIN, compiled_by_xla=True))["compile.xla"] > 4


def test_a_source_that_must_be_opened_may_be_late() -> None:
    """A generator that starts, files that are read: more than a slow machine explains."""
    spent = first(replace(PLAIN, source_may_be_slow=True))
    assert spent["input.first_element"] > 4
    assert divide_first_step(EXTRA_PS, replace(PLAIN, source_may_be_slow=True)).doubt > 0.5


def test_a_buffer_that_must_be_filled_takes_its_elements_time() -> None:
    filling = first(replace(PLAIN, element_ps=3 * PS_PER_S))["input.first_element"]
    assert filling - first(PLAIN, 2 * PS_PER_S)["input.first_element"] == pytest.approx(3)
    assert first(replace(PLAIN, element_ps=9 * PS_PER_S))["input.first_element"] == 5


def test_data_in_memory_are_there_at_once() -> None:
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


def test_of_a_model_that_was_not_traced_its_layers_are_counted(tmp_path: Path) -> None:
    keras = replace(KERAS, compiled='"jit_compile": true').read(tmp_path).keras
    evidence = evidence_of((), keras, pipeline(), None)
    assert (evidence.ops, evidence.compiled_by_xla, evidence.traced) == (20, True, False)
    eager = replace(KERAS, compiled='"run_eagerly": true').read(tmp_path).keras
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
        # Below a stage that works in the step, working ahead hides only a part of the wait.
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
    assert quarter == Production("seen", 200 * PS_PER_MS), "a quarter of a batch in 50 ms"


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
