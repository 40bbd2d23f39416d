"""Estimates the whole first epoch from what an ordinary log shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stall_analyzer.captures.capture_records import WindowRecord
from stall_analyzer.model.estimate import Estimate
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.runs import ProfileSession
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.signals import Signals
from tests.detectors.training import diagnosed, signals_for
from tests.ordinary_logs import BEGIN_S, KerasLog
from tests.test_sampling import epoch as sampled_epoch
from tests.traces import TRAIN_OPS, call, causes_ms, device, event, ops, trainer, wait
from tests.xspace import Event

STEP_MS = 50.0  # as long as the profile is


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
    """The estimate, after a check of the laws that hold for every estimate."""
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
    """The estimate with a profile of the second batch."""
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
    assert ten.profiled_steps == 5, "the later half, when the buffers are empty"
    widths = [e.ranges["input"].high_ps - e.ranges["input"].low_ps for e in (ten, one)]
    assert widths[0] < widths[1]


def test_what_later_epochs_lack_came_once(tmp_path: Path) -> None:
    """For example, retracing: 10 s, of which 3 s are the first step, and later epochs take 2 s."""
    log = replace(KERAS, epochs=[10.0, 12.0, 14.0])
    found = of(tmp_path, log)
    assert seconds_of(found)["compile.retracing"] == 5.0
    assert found.ledger.one_time_ps() == pytest.approx(8 * PS_PER_S, rel=0.03)
    assert "2 later epochs took 2.00 s (median)." in found.rests_on


def test_with_a_cache_it_was_filled(tmp_path: Path) -> None:
    path = "Iterator::Root::Prefetch::MemoryCache"
    stages = [event("Iterator::Root", 0, 5), event("Iterator::Root::Prefetch", 0.1, 4.9)]
    reading = ("tf_data_iterator_get_next", [*stages, event(path, 0.2, 4.8)])
    found = of(tmp_path, replace(KERAS, epochs=[10.0, 12.0]), profile(0, 1, reading))
    assert seconds_of(found)["input.cache_fill"] == 5.0


def test_later_epochs_as_long_as_the_first_leave_nothing_that_came_once(tmp_path: Path) -> None:
    """The first step took 3 s, and later epochs are no shorter: it cannot be a one-time cost."""
    found = of(tmp_path, replace(KERAS, epochs=[10.0, 20.0, 30.0]))
    assert found.ledger.one_time_ps() <= 1.6 * PS_PER_S
    assert "compile.retracing" not in found.ledger.causes_ps


def test_steps_whose_number_is_known_may_have_waited(tmp_path: Path) -> None:
    """A prefetching pipeline: 100 steps take 70 ms each, although the profiled one took 50."""
    found = of(tmp_path, replace(KERAS, epochs=[10.0], rate=10.1), trace=prefetched(elements=1))
    assert found.steps == 101
    assert seconds_of(found)["input.wait"] == pytest.approx(2.0, abs=0.2)
    assert (
        "Over the whole epoch, a step took 69.5 ms on average, because batches did not arrive any "
        "faster." in found.rests_on
    )


def prefetched(elements: int) -> bytes:
    """A batch is taken at once from a buffer that got that many elements in the meantime."""
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
    assert any("making a batch takes longer than a step" in text for text in found.rests_on)
    assert found.ranges["compute"].high_ps > 5 * PS_PER_S, "it may have kept up as well"


def test_a_nan_loss_made_steps_compute_for_nothing(tmp_path: Path) -> None:
    found = of(tmp_path, replace(KERAS, loss=float("nan")))
    spent = seconds_of(found)
    assert spent["numerics.nonfinite"] == pytest.approx(3 * spent["compute.step"], rel=0.05)


def test_a_validation_that_was_not_traced_is_included(tmp_path: Path) -> None:
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
    """The host's executors are done after 5 ms; the step continues for 45 ms."""
    manager = ("tf_GPU_Event_Manager/7", [event("Wait", 0, 1)])
    work = [*ops(0, 2.5, 2, *TRAIN_OPS), *ops(47.5, 50, 2, "loss:Sum")]
    planes = (trainer(call(0, 50, run=2), work, manager), device("/device:GPU:0"))
    found = estimated(signals_for(KERAS.timeline(tmp_path, *planes, profile_s=3.0)))
    assert seconds_of(found)["compute.device"] == pytest.approx(6.3, abs=0.1)
    assert found.ranges["compute"].low_ps < 5 * PS_PER_S, "this is in doubt"


def test_what_stopping_the_profiler_took_is_not_the_steps(tmp_path: Path) -> None:
    """The profile ended after 3.05 s, and its session was named 1.7 s later."""
    log = replace(KERAS, profiled={2: 3.05})
    session = ProfileSession("s", "", (), exported_unix_s=int(BEGIN_S) + 5)
    timeline = log.timeline(tmp_path, profile(), profile_s=3.0, session=session)
    found = estimated(signals_for(timeline))
    assert seconds_of(found)["profiler.stop"] == 1.7
    assert seconds_of(found)["compute.step"] == pytest.approx(5.3, abs=0.1)


def test_a_capture_saves_its_profile_while_training_continues(tmp_path: Path) -> None:
    """As above, but the capture says that it saved the session itself."""
    log = replace(KERAS, profiled={2: 3.05})
    session = ProfileSession("s", "", (), exported_unix_s=int(BEGIN_S) + 5)
    timeline = log.timeline(tmp_path, profile(), profile_s=3.0, session=session)
    assert timeline.events is not None
    capture = Capture(windows=(WindowRecord(0, "saved", "sample", session="s"),))
    timeline = replace(timeline, events=replace(timeline.events, captures=(capture,)))
    assert "profiler.stop" not in seconds_of(estimated(signals_for(timeline)))


def test_where_the_beginning_was_traced_no_first_step_is_added(tmp_path: Path) -> None:
    """The first of two windows begins with the epoch: the ledger knows how long it took."""
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


def test_a_profile_of_an_earlier_run_costs_the_first_step_nothing(tmp_path: Path) -> None:
    """The extra time of the first logged batch is not the end of that profile."""
    log = KerasLog(epochs=[10.0], batches=[(n, 5 + 0.1 * n) for n in range(1, 40)])
    signals = signals_for(log.timeline(tmp_path, profile(), profile_s=-8.0))
    assert signals.causes_ps["profiler.stop"] == 0
    assert estimated(signals).ledger.one_time_ps() > 4 * PS_PER_S


def test_what_was_traced_from_beginning_to_end_is_not_estimated(tmp_path: Path) -> None:
    log = KerasLog(epochs=[0.05])
    assert signals_for(log.timeline(tmp_path, profile(), profile_s=0.0)).estimate is None


def test_nothing_is_estimated_of_a_run_of_which_nothing_is_known(tmp_path: Path) -> None:
    assert signals_for(KerasLog(model=False).timeline(tmp_path)).estimate is None


# ---------------------------------------------------------------- bad input

moments = st.floats(-5, 30) | st.floats(-1e6, 1e9) | st.integers(-2, 20).map(float)
numbers = st.integers(0, 50) | st.integers(0, 2**62)
records = st.lists(st.tuples(numbers, moments), max_size=6)
any_log = st.builds(
    KerasLog,
    epochs=st.lists(moments, max_size=5),
    first_epoch=st.integers(0, 9),
    loss=st.sampled_from([1.0, float("nan"), float("inf")]),
    model=st.booleans(),
    graph_s=st.none() | moments,
    profiled=st.dictionaries(st.integers(0, 30), moments, max_size=3),
    batches=records,
    rate=st.none() | st.floats(width=32),
    evaluated=records,
    validation_opened_s=st.none() | moments,
    others=st.dictionaries(st.sampled_from(["loss", "a/b"]), records, max_size=2),
)


@settings(max_examples=60, deadline=None)
@given(any_log, st.none() | moments, st.integers(1, 10), st.floats(0, STEP_MS))
def test_whatever_times_a_log_holds_it_is_answered_and_the_laws_hold(
    log: KerasLog, profile_s: float | None, count: int, input_ms: float
) -> None:
    """Clocks that jump, records that are missing, files of several runs in one folder."""
    with TemporaryDirectory() as folder:
        trace = profile(input_ms, count)
        timeline = log.timeline(Path(folder), trace, profile_s=profile_s)
        signals = signals_for(timeline)
        if signals.estimate is not None:
            estimated(signals)
        assert diagnosed(timeline).verdict.sentence
