"""Python around the steps: each detector fires on its own case and is silent on a near miss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stall_analyzer.align.align import align
from stall_analyzer.detectors.host import (
    callback_time,
    checkpoint_in_steps,
    gpu_unused,
    one_intra_op_thread,
    python_in_graph,
    summaries_in_steps,
    validation_in_epoch,
)
from stall_analyzer.detectors.profiling import (
    gpu_not_traced,
    little_was_traced,
    no_trace,
    profiler_overhead,
)
from stall_analyzer.model.event_log import EventLog, HistogramSums, Series
from stall_analyzer.model.findings import Finding
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.signals import Signals
from tests import captures
from tests.detectors.training import diagnosed, eager, found, signals_for, training
from tests.traces import TRAIN_OPS, clock, device, event, host, ops, steps, timeline_of, trainer
from tests.xspace import Event

NS_PER_S = 1_000_000_000


# ---------------------------------------------------------------- threads


@pytest.mark.parametrize(
    ("threads", "cores", "op", "is_found"),
    [
        (1, 2, "dense/MatMul:MatMul", True),
        (2, 2, "dense/MatMul:MatMul", False),
        (1, 1, "dense/MatMul:MatMul", False),
        (1, 2, "embedding/Gather:GatherV2", False),  # is not divided anyway
        (0, 2, "dense/MatMul:MatMul", False),  # the pool was never used
    ],
)
def test_large_ops_on_one_thread(
    tmp_path: Path, threads: int, cores: int, op: str, is_found: bool
) -> None:
    names = (op, "gradient_tape/x:Mul", "sgd/Sub:AssignSubVariableOp")
    python, work = steps(0, 20, length_ms=25, pause_ms=5, names=names)
    pool = [(f"tf_numa_-1_Eigen/{n}", [event("part", 1, 24)]) for n in range(threads)]
    reads = [event("Iterator::Root", n * 30, n * 30 + 0.1, cpu_budget=cores) for n in range(20)]
    lines = [("python", python), ("tf_Compute/9", work), ("tf_data_iterator_get_next/8", reads)]
    finding = one_intra_op_thread.check(signals_for(timeline_of(tmp_path, host(*lines, *pool))))
    assert (finding is not None) == is_found
    if finding is not None:
        assert finding.severity == "note"
        assert finding.gain.low_ps == 0 < finding.gain.high_ps <= finding.lost_ps


# ---------------------------------------------------------------- callbacks


def test_python_after_each_step_is_found(tmp_path: Path) -> None:
    signals = training(tmp_path, pause_ms=30)
    finding = found(callback_time.check(signals), "act")
    assert "30.0 ms after each step" in finding.title
    causes = signals.causes_ps  # steps that are no longer interrupted start and run faster
    warmer = 0.3 * (causes["compute.step"] + causes["host.dispatch"])
    assert finding.lost_ps == finding.gain.high_ps == 19 * 30 * PS_PER_MS + round(warmer)
    assert finding.gain.low_ps < 19 * 25 * PS_PER_MS
    assert "Python tracer" in finding.explanation


@pytest.mark.parametrize("pause_ms", [0.5, 3, 5])
def test_pauses_that_keras_needs_are_not(tmp_path: Path, pause_ms: float) -> None:
    assert callback_time.check(training(tmp_path, pause_ms=pause_ms)) is None


def test_a_named_function_is_named(tmp_path: Path) -> None:
    def between(number: int, at: float) -> list[Event]:
        return [
            event("$callback_list.py:172 on_train_batch_end", at, at + 29),
            event("$train.py:41 report", at + 1, at + 28),
            event("$time sleep", at + 2, at + 27),
        ]

    signals = training(tmp_path, pause_ms=30, between=between)
    finding = found(callback_time.check(signals), "act")
    assert finding.title.startswith("train.py:41 report takes")
    assert "Python tracer" not in finding.explanation
    (report, *_) = signals.between_steps.python_calls
    assert report.count == 19


def test_where_another_thread_holds_the_interpreter_callbacks_are_not_blamed(
    tmp_path: Path,
) -> None:
    """Then starting a graph is slow as well, and some pauses are long while others are not."""

    def most_are_short(number: int, at: float) -> Sequence[Event]:
        return () if number % 3 else [eager("TensorSliceDataset", at, at + 8)]

    busy = training(tmp_path, pause_ms=8, dispatch_ms=5, between=most_are_short)
    assert callback_time.check(busy) is None
    free = training(tmp_path, pause_ms=8, between=most_are_short)
    assert found(callback_time.check(free), "act").confidence == 0.8
    always = training(tmp_path, pause_ms=8, dispatch_ms=5)
    assert found(callback_time.check(always), "act").confidence == 0.5


def test_what_happens_once_in_an_epoch_is_seldom_already(tmp_path: Path) -> None:
    def all_but_one(number: int, at: float) -> Sequence[Event]:
        return () if number == 10 else [eager("TensorSliceDataset", at, at + 30)]

    once = training(tmp_path, pause_ms=30, steps=15, between=all_but_one)
    assert once.share(int(once.between_steps.unnamed_ps.max())) > 0.05
    assert callback_time.check(once) is None


def test_saving_and_summaries_are_not_blamed_on_callbacks(tmp_path: Path) -> None:
    signals = training(tmp_path, pause_ms=30, between=keras_saves)
    assert callback_time.check(signals) is None
    assert signals.between_steps.unnamed_ps.max() <= PS_PER_MS


# ---------------------------------------------------------------- saving


def keras_saves(number: int, at: float) -> Sequence[Event]:
    return [eager("ReadVariableOp", at + n, at + n + 0.1) for n in range(1, 6)]


def tensorflow_saves(number: int, at: float) -> Sequence[Event]:
    return [
        eager("StringJoin", at + 1, at + 1.1),
        eager("ReadVariableOp", at + 2, at + 2.1),
        eager("SaveV2", at + 3, at + 25),
        eager("MergeV2Checkpoints", at + 26, at + 29),
    ]


def test_ops_that_write_checkpoints_are_found(tmp_path: Path) -> None:
    signals = training(tmp_path, pause_ms=30, between=tensorflow_saves)
    finding = found(checkpoint_in_steps.check(signals), "act")
    assert finding.title == "The model is saved 19 times in the epoch, 28.0 ms each time"
    part = replace(signals, host=replace(signals.host, covered_ps=signals.window_ps // 2))
    title = found(checkpoint_in_steps.check(part)).title
    assert title == "The model is saved 19 times in the part that was profiled, 28.0 ms each time"
    assert finding.confidence > 0.8


def test_a_row_of_variable_reads_is_how_keras_saves(tmp_path: Path) -> None:
    finding = found(
        checkpoint_in_steps.check(training(tmp_path, pause_ms=30, between=keras_saves)), "act"
    )
    assert "19 times" in finding.title
    assert "for another purpose looks the same" in finding.explanation


def test_one_save_at_the_end_is_what_one_asks_for(tmp_path: Path) -> None:
    signals = training(
        tmp_path, pause_ms=30, between=lambda n, at: keras_saves(n, at) if n == 18 else ()
    )
    assert len(signals.between_steps.saves) == 1
    assert checkpoint_in_steps.check(signals) is None


def test_a_learning_rate_that_is_read_is_no_save(tmp_path: Path) -> None:
    signals = training(
        tmp_path, pause_ms=30, between=lambda n, at: [eager("ReadVariableOp", at + 1, at + 1.1)]
    )
    assert len(signals.between_steps.saves) == 0


# ---------------------------------------------------------------- summaries


def histogram(number: int, at: float) -> Sequence[Event]:
    return [
        *(eager("OneHot", at + n, at + n + 0.9) for n in range(1, 28)),
        eager("WriteSummary", at + 28, at + 29),
    ]


def with_histograms(signals: Signals) -> Signals:
    """In the event files."""
    events = replace(captures.log(), histograms={"dense/kernel": HistogramSums()})
    return Signals(replace(signals.timeline, events=events), signals.hosts, signals.host)


def test_without_histograms_in_the_event_files_none_are_claimed(tmp_path: Path) -> None:
    signals = training(tmp_path, pause_ms=30, between=histogram)
    finding = found(summaries_in_steps.check(signals), "consider")
    assert "have no histograms" in finding.explanation
    assert "histogram" not in finding.change.text + finding.change.after


def test_histograms_are_found_and_never_loud(tmp_path: Path) -> None:
    signals = with_histograms(training(tmp_path, pause_ms=30, between=histogram))
    finding = found(summaries_in_steps.check(signals), "consider")
    assert "28.0 ms in each of 19 pauses" in finding.title
    assert "histogram_freq" in finding.change.after


def test_histograms_of_a_large_model_at_the_end_of_the_epoch_are_found(tmp_path: Path) -> None:
    """Long ops with Python in between, which takes a while as well; scalars after each step."""

    def writes(number: int, at: float) -> Sequence[Event]:
        if number != 5:
            return [eager("WriteSummary", at, at + 0.5)]
        ops = [eager("OneHot", at + start, at + start + 30) for start in (0, 36, 72)]
        return [*ops, eager("WriteSummary", at + 108, at + 110)]

    signals = with_histograms(training(tmp_path, steps=8, pause_ms=120, between=writes))
    finding = found(summaries_in_steps.check(signals), "consider")
    assert "110 ms in one pause" in finding.title
    assert "histogram_freq=10" in finding.change.after


def test_a_few_scalars_are_a_note(tmp_path: Path) -> None:
    def scalar(number: int, at: float) -> Sequence[Event]:
        return [eager("_EagerConst", at, at + 0.1), eager("WriteSummary", at + 0.5, at + 1)]

    finding = found(summaries_in_steps.check(training(tmp_path, between=scalar)), "note")
    assert "step % 100" in finding.change.after


def test_ops_of_a_callback_next_to_a_summary_are_its_own(tmp_path: Path) -> None:
    def asks_the_model(number: int, at: float) -> Sequence[Event]:
        return [
            eager("MatMul", at + 1, at + 26),
            eager("Relu", at + 26, at + 27),
            eager("WriteSummary", at + 28, at + 28.5),
        ]

    signals = training(tmp_path, pause_ms=30, between=asks_the_model)
    assert signals.between_steps.summaries.host_ps == 19 * PS_PER_MS // 2
    assert callback_time.check(signals) is not None


# ---------------------------------------------------------------- the step


def test_python_inside_the_step_is_found(tmp_path: Path) -> None:
    names = (*TRAIN_OPS, "loss/EagerPyFunc:EagerPyFunc")
    finding = found(python_in_graph.check(training(tmp_path, names=names)), "act")
    assert "2.50 ms of each step" in finding.title
    assert python_in_graph.check(training(tmp_path)) is None


def test_python_in_the_input_pipeline_is_not_in_the_step(tmp_path: Path) -> None:
    pipeline = ops(0, 200, 999, "map/EagerPyFunc:EagerPyFunc")
    signals = training(tmp_path, lines=[("tf_data_private_threadpool", pipeline)])
    assert python_in_graph.check(signals) is None


# ---------------------------------------------------------------- validation and devices


def validated(folder: Path, validation_steps: int, seen: float = 1) -> Finding | None:
    train, train_work = steps(0, 20)
    test, test_work = steps(
        200, validation_steps, first_run=21, graph="__inference_test_step_8", names=TRAIN_OPS[:1]
    )
    lines = trainer(train + test, train_work + test_work)
    signals = signals_for(timeline_of(folder, lines))
    traced = replace(signals.host, covered_ps=round(seen * signals.window_ps))
    return validation_in_epoch.check(replace(signals, host=traced))


def test_a_large_validation_is_found_and_a_small_one_is_not(tmp_path: Path) -> None:
    finding = found(validated(tmp_path, 25), "act")
    assert "validation_steps=6" in finding.change.after
    assert validated(tmp_path, 4) is None


def test_a_validation_shorter_than_the_training_is_a_matter_of_taste(tmp_path: Path) -> None:
    found(validated(tmp_path, 15), "consider")


def test_steps_that_were_seen_are_not_all_steps(tmp_path: Path) -> None:
    assert found(validated(tmp_path, 20)).explanation.startswith("After 20 training steps came 20")
    little = found(validated(tmp_path, 20, seen=0.1))
    assert little.explanation.startswith("After the training steps came the validation steps")
    assert "validation_steps=batches // 4" in little.change.after


def test_nothing_sure_is_promised_of_a_validation_of_which_too_little_was_traced(
    tmp_path: Path,
) -> None:
    """Building its graph, once, may be most of it."""
    little = found(validated(tmp_path, 25, seen=0.1), "consider")
    assert little.gain.low_ps == little.later_gain.low_ps == 0


def test_a_device_that_stands_idle_is_told_from_one_that_was_not_traced(tmp_path: Path) -> None:
    idle = training(tmp_path, planes=[device("/device:GPU:0")])
    assert found(gpu_unused.check(idle), "consider").title == "GPU:0 is available but was not used"
    assert gpu_not_traced.check(idle) is None
    watched = [("tf_GPU_Event_Manager", [event("poll", 0, 1)])]
    not_traced = training(tmp_path, planes=[device("/device:GPU:0")], lines=watched)
    assert found(gpu_not_traced.check(not_traced), "note")
    assert gpu_unused.check(not_traced) is None
    kernels = ("Stream #1(Compute)", [event("MatMul", 0, 200)])
    at_work = training(tmp_path, planes=[device("/device:GPU:0", kernels)])
    assert gpu_unused.check(at_work) is None
    assert gpu_not_traced.check(at_work) is None


# ---------------------------------------------------------------- what was captured


def epochs_ending_at(*seconds: float) -> EventLog:
    walls = np.array([round(s * NS_PER_S) for s in seconds], dtype=np.int64)
    steps = np.arange(len(walls), dtype=np.int64)
    losses = Series(steps, walls, np.ones(len(walls)))
    return EventLog({"epoch_loss": losses}, {}, None, NS_PER_S, int(walls[-1]), None, 1)


def test_event_files_alone_tell_that_the_first_epoch_was_slow() -> None:
    slow = signals_for(align([], epochs_ending_at(15, 17, 19)))
    finding = found(no_trace.check(slow), "note")
    assert finding.title.startswith("The first epoch took 7.0 times as long")
    assert finding.lost_ps == 12_000 * PS_PER_MS
    even = signals_for(align([], epochs_ending_at(3, 5, 7)))
    assert found(no_trace.check(even), "note").lost_ps == 0


def test_what_little_could_not_decide_is_said_with_the_capture_that_does(tmp_path: Path) -> None:
    """However the verdict words its candidates, ST411 stays a note next to it."""
    part = training(tmp_path, planes=[clock(5 * NS_PER_S, 0.3)], events=epochs_ending_at(11))
    report = diagnosed(part.timeline)
    assert len(report.verdict.candidates) > 1
    (note,) = [finding for finding in report.findings if finding.id == "ST411"]
    assert note.change.text == "Capture the whole first epoch, once."


def test_a_profile_of_a_part_of_the_epoch_is_not_the_epoch(tmp_path: Path) -> None:
    log = epochs_ending_at(11)
    part = training(tmp_path, planes=[clock(5 * NS_PER_S, 0.3)], events=log)
    finding = found(little_was_traced.check(part), "note")
    assert finding.title == "Only 3% of the epoch was traced"
    assert "profiler.experimental" in finding.change.after
    assert "is only estimated; a longer profile would show it" in finding.explanation
    assert part.estimate is not None
    assert finding.lost_ps == part.estimate.ledger.buckets_ps["unknown"], "what is left unknown"
    assert no_trace.check(part) is None
    assert little_was_traced.check(training(tmp_path)) is None


def test_a_run_without_profiler_events_has_no_profiler_cost(tmp_path: Path) -> None:
    assert profiler_overhead.check(training(tmp_path)) is None
