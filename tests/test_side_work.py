"""The caller decides: what a callback or a loop does with the model is neither input, validation
nor an epoch of the training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from stall_analyzer.attribute.attribute import attribute
from stall_analyzer.detectors.host import callback_time, validation_in_epoch
from stall_analyzer.detectors.input import pipeline_made_each_epoch
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.input.side_pipelines import side_stages
from tests.detectors.training import eager, found, signals_for
from tests.traces import TRAIN_OPS, causes_ms, event, ops, timeline_of, trainer
from tests.xspace import Event

FIT = "multi_step_on_iterator"  # trains and tests
PREDICT = "one_step_on_data_distributed"
ON_BATCH = "one_step_on_data"  # what train_on_batch calls
FORWARD = ("dense/MatMul:MatMul",)


class Script:
    """What the training thread does, one thing after another."""

    def __init__(self) -> None:
        self.now = 0.0
        self.thread: list[Event] = []
        self.work: list[Event] = []
        self.runs = 0

    def python(self, length_ms: float) -> Script:
        self.now += length_ms
        return self

    def op(self, name: str, length_ms: float = 1.0) -> Script:
        self.thread.append(eager(name, self.now, self.now + length_ms))
        return self.python(length_ms)

    def call(self, name: str, names: Sequence[str], length_ms: float = 10.0) -> Script:
        self.runs += 1
        begin, end = self.now, self.now + length_ms
        graph = f"EagerLocalExecute: __inference_{name}_{len(names)}"
        self.thread += [
            event(name, begin, end, tf_function_call="notTraced-nonXla", tracing_count=1),
            event(graph, begin, end),
            event("EagerKernelExecute", begin, end),
            event("KernelAndDeviceFunc::Run", begin, end),
            event("FunctionRun", begin, begin + 0.01, id=self.runs, _r=1, _p=self.runs),
        ]
        self.work += ops(begin, end, self.runs, *names)
        return self.python(length_ms)

    def train(self, name: str = FIT) -> Script:
        return self.call(name, TRAIN_OPS).python(1)

    def test(self) -> Script:
        return self.call(FIT, FORWARD).python(1)

    def reset(self) -> Script:
        for _ in range(4):
            self.op("AssignVariableOp", 0.1)
        return self

    def make(self) -> Script:
        return self.op("AnonymousIteratorV3", 0.5).op("MakeIterator", 4)

    def begin_epoch(self) -> Script:
        return self.reset().make()

    def predict(self, batches: int = 1) -> Script:
        """What Keras does: a dataset, an iterator, the batches, the next iterator."""
        self.op("TensorDataset", 2)
        self.thread.append(event("tf.function-graph_building", self.now, self.now + 3))
        self.python(3).op("ParallelMapDatasetV2").make()
        for _ in range(batches):
            self.op("IteratorGetNext").call(PREDICT, FORWARD, 5)
        return self.python(1).make()

    def evaluate(self) -> Script:
        return self.op("TensorDataset", 2).reset().make().test().test().make()

    def timeline(self, folder: Path) -> Timeline:
        return timeline_of(folder, trainer(self.thread, self.work))


def phases(timeline: Timeline) -> list[str]:
    return [phase.name for phase in timeline.phases]


def causes(timeline: Timeline) -> dict[str, float]:
    (host,) = attribute(timeline)
    return causes_ms(host.ledger)


def test_predict_after_each_batch_is_the_callbacks_time(tmp_path: Path) -> None:
    script = Script().begin_epoch()
    for _ in range(5):
        script.train().predict()
    timeline = script.begin_epoch().train().timeline(tmp_path)
    spent = causes(timeline)
    # 2 + 1 + 4.5 + 1 + 5 + 1 + 4.5 ms; the graph of the dataset is still made
    assert spent["host.callback"] == pytest.approx(5 * 19)
    assert spent["compile.tracing"] == pytest.approx(5 * 3)
    assert spent["input.iterator_create"] == pytest.approx(4.5)  # the epoch's own
    assert spent["compute.step"] == pytest.approx(50)


def test_neither_steps_nor_phases_nor_epochs_come_of_it(tmp_path: Path) -> None:
    script = Script().begin_epoch()
    for _ in range(5):
        script.train().predict()
    timeline = script.begin_epoch().train().timeline(tmp_path)
    assert [step.phase for step in timeline.steps] == ["training"] * 5
    assert "validation" not in phases(timeline)


def test_graphs_of_its_datasets_are_built_in_every_epoch(tmp_path: Path) -> None:
    script = Script().begin_epoch()
    for _ in range(5):
        script.train().predict()
    (host,) = attribute(script.timeline(tmp_path))
    assert host.ledger.causes_ps["compile.tracing"] == 5 * 3 * PS_PER_MS
    assert host.ledger.one_time_ps("compile") == 0


def test_evaluate_in_the_middle_is_the_callbacks_and_at_the_end_it_is_validation(
    tmp_path: Path,
) -> None:
    script = Script().begin_epoch().train().train().evaluate().train().train()
    timeline = script.evaluate().begin_epoch().train().timeline(tmp_path)
    kinds = [step.phase for step in timeline.steps]
    assert kinds == ["training"] * 4 + ["validation"] * 2
    assert causes(timeline)["host.callback"] > 20


def test_a_callback_that_predicts_at_the_end_does_not_validate(tmp_path: Path) -> None:
    script = Script().begin_epoch().train().train().evaluate().predict(batches=4)
    timeline = script.begin_epoch().train().timeline(tmp_path)
    assert [step.phase for step in timeline.steps] == ["training"] * 2 + ["validation"] * 2
    assert causes(timeline)["host.callback"] == pytest.approx(2 + 1 + 4.5 + 4 * 6 + 1 + 4.5)


def test_a_callback_that_loops_over_a_dataset_reads_no_training_input(
    tmp_path: Path,
) -> None:
    script = Script().begin_epoch()
    for _ in range(4):
        script.train().make()
        for _ in range(6):
            script.op("IteratorGetNext").op("MatMul", 2)
    timeline = script.train().timeline(tmp_path)
    assert [step.phase for step in timeline.steps] == ["training"] * 5
    assert timeline.steps[0].source == "function"  # it still trains in graphs
    assert "input.wait" not in causes(timeline)


def test_a_loop_that_predicts_between_its_steps_has_one_epoch(tmp_path: Path) -> None:
    script = Script()
    for _ in range(5):
        script.predict().reset().train(ON_BATCH)  # train_on_batch resets the metrics itself
    spent = causes(script.timeline(tmp_path))
    assert spent["host.callback"] >= 4 * 19
    assert "input.iterator_create" not in spent


def test_a_loop_that_makes_its_iterator_again_begins_an_epoch_after_predict(
    tmp_path: Path,
) -> None:
    script = Script()
    for _ in range(2):
        script.make()
        for _ in range(3):
            script.op("IteratorGetNext").train("step")
        script.predict()
    timeline = script.timeline(tmp_path)
    assert len(timeline.steps) == 3


def test_what_a_loop_evaluates_at_the_end_of_its_epoch_is_validation(tmp_path: Path) -> None:
    script = Script()
    for _ in range(2):
        script.make()
        for _ in range(3):
            script.op("IteratorGetNext").train("step")
        script.evaluate()
    timeline = script.timeline(tmp_path)
    assert [step.phase for step in timeline.steps] == ["training"] * 3 + ["validation"] * 2


def test_two_functions_that_train_are_both_training(tmp_path: Path) -> None:
    script = Script().make()
    for _ in range(4):
        script.op("IteratorGetNext").train("critic").train("generator")
    timeline = script.timeline(tmp_path)
    assert [step.phase for step in timeline.steps] == ["training"] * 8
    assert "host.callback" not in causes(timeline)


def test_a_function_that_comes_with_each_step_is_a_part_of_it(tmp_path: Path) -> None:
    script = Script().make()
    for _ in range(4):
        script.op("IteratorGetNext").train("step").call("update_target", FORWARD)
    timeline = script.timeline(tmp_path)
    assert [step.phase for step in timeline.steps] == ["training"] * 4
    assert causes(timeline)["compute.step"] == pytest.approx(80)


# ---------------------------------------------------------------- what is said about it


def asked_after_each_step(steps: int = 20) -> Script:
    script = Script().begin_epoch()
    for _ in range(steps):
        script.train().predict()
    return script


def test_predict_is_named_with_all_that_it_costs(tmp_path: Path) -> None:
    signals = signals_for(asked_after_each_step().timeline(tmp_path))
    finding = found(callback_time.check(signals), "act")
    assert finding.title.startswith("model.predict takes 2")
    assert finding.title.endswith("ms after each step")
    assert finding.gain.high_ps >= 19 * 22 * PS_PER_MS  # dataset, iterators, graph and call
    assert "model(x, training=False)" in finding.change.after
    assert "Python tracer" not in finding.explanation


def test_in_a_loop_the_model_is_called_itself(tmp_path: Path) -> None:
    script = Script()
    for _ in range(20):
        script.predict().reset().train(ON_BATCH)
    finding = found(callback_time.check(signals_for(script.timeline(tmp_path))), "act")
    assert finding.change.before == "y = model.predict(x)"
    assert "model.predict_on_batch(x)" in finding.change.after


def test_no_pipeline_is_made_again_and_nothing_is_validated(tmp_path: Path) -> None:
    signals = signals_for(asked_after_each_step().timeline(tmp_path))
    assert pipeline_made_each_epoch.check(signals) is None
    assert validation_in_epoch.check(signals) is None


def test_evaluate_at_each_tenth_batch_is_named(tmp_path: Path) -> None:
    script = Script().begin_epoch()
    for number in range(40):
        script.train()
        if number % 10 == 5:
            script.evaluate()
    finding = found(callback_time.check(signals_for(script.train().timeline(tmp_path))))
    assert finding.title.startswith("model.evaluate takes")
    assert finding.title.endswith("in each of 4 pauses")


def test_stages_that_only_a_callback_reads_from_are_not_the_trainings(tmp_path: Path) -> None:
    script = Script().begin_epoch()
    stages: list[Event] = []
    for number in range(3):
        root, below = "Iterator::Root", "Iterator::Root::FiniteTake"
        stages.append(event(root, script.now, script.now + 1, id=1))
        stages.append(event("Iterator::Root::Map", script.now, script.now + 1, id=2, parent_id=1))
        script.train().make()
        at, own = script.now, 10 * (number + 1)
        stages.append(event(root, at, at + 1, id=own))
        stages.append(event(below, at, at + 1, id=own + 1, parent_id=own))
        script.op("IteratorGetNext")
    lines = ("tf_data_iterator_get_next/1", stages)
    timeline = timeline_of(tmp_path, trainer(script.train().thread, script.work, lines))
    (aligned,) = timeline.traces
    assert side_stages(aligned, ("Iterator::Root",)) == ("Iterator::Root::FiniteTake",)
