"""Tensors that a compiled step keeps, so that they can be examined after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tb_stall_plugin.capture.training import gradients
from tb_stall_plugin.capture.training.batch_sample import (
    INPUTS,
    narrowed,
    packed,
    part_of,
    rows_of,
    unpacked,
)
from tb_stall_plugin.capture.training.held_tensors import HeldTensors
from tb_stall_plugin.capture.training.probe import Probe
from tests.capture.small_trainings import small_model, tf
from tests.capture.test_probe import X, Y

RANDOM = np.random.default_rng(5)


def keeps(held: HeldTensors, what: str) -> Any:
    """A compiled step that does nothing else."""

    @tf.function
    def step(*tensors: Any) -> None:
        held.put(what, tensors)

    return step


def test_all_tensors_of_the_last_step_are_kept_whatever_their_types_and_shapes() -> None:
    held = HeldTensors()
    step = keeps(held, "numbers")
    given = [tf.constant([1.5, 2.5]), tf.constant(7), tf.constant([[True]])]
    step(tf.constant([0.0]), tf.constant(0), tf.constant([[False]]))
    step(*given)
    taken = held.taken()
    assert taken is not None
    what, arrays = taken
    assert what == "numbers"
    assert [array.tolist() for array in arrays] == [[1.5, 2.5], 7, [[True]]]


def test_they_are_taken_only_once() -> None:
    held = HeldTensors()
    assert held.taken() is None
    keeps(held, "numbers")(tf.constant(1.0))
    assert held.taken() is not None
    assert held.taken() is None


def test_steps_that_keep_different_things_are_told_apart() -> None:
    held = HeldTensors()
    one, other = keeps(held, "one"), keeps(held, "other")
    one(tf.constant(1.0))
    held.let_go()
    other(tf.constant(2), tf.constant(3.0))
    taken = held.taken()
    assert taken is not None and taken[0] == "other"


def test_what_a_later_update_writes_does_not_change_what_is_kept() -> None:
    held, variable = HeldTensors(), tf.Variable([1.0, 2.0])

    @tf.function
    def step() -> None:
        held.put("before", [variable.read_value()])
        variable.assign_add([10.0, 10.0])

    step()
    taken = held.taken()
    assert taken is not None and taken[1][0].tolist() == [1.0, 2.0]
    assert variable.numpy().tolist() == [11.0, 12.0]


@pytest.mark.parametrize("shape", [(5,), (5, 3), (300,), (70, 3), (100, 40, 40), (9, 600)])
def test_a_sample_taken_outside_is_the_sample_that_a_step_would_take(shape: tuple[int]) -> None:
    tensor = tf.constant(RANDOM.normal(size=shape).astype("float32"))
    rows = rows_of(INPUTS, tensor)
    assert rows is not None
    outside = part_of(rows, narrowed(rows, tensor).numpy())
    [inside] = unpacked(packed([INPUTS], [tensor]).numpy())
    assert outside[:-1] == inside[:-1]
    assert np.array_equal(outside.sample, inside.sample)


def measured(steps: int = 2) -> tuple[dict[str, float], Any, list[Any]]:
    """Scalars by tag and the sample of the batch of the last step, and the weights."""
    model = small_model()
    probe = Probe(model.optimizer)
    probe.put_in(model)
    for _ in range(steps):
        model.train_on_batch(X, Y)
        values = probe.after_step(was_due=True, next_is_due=True)
    probe.take_out()
    return values, probe.batch, model.get_weights()


@pytest.mark.parametrize("little_bytes", [0, gradients.LITTLE_BYTES])
def test_both_ways_of_measuring_have_the_same_result(
    monkeypatch: pytest.MonkeyPatch, little_bytes: int
) -> None:
    monkeypatch.setattr(gradients, "LITTLE_BYTES", little_bytes)
    outside, batch, weights = measured()
    monkeypatch.setattr(gradients, "MOST_HELD_BYTES", 0)
    inside, same_batch, same_weights = measured()
    assert inside.keys() == outside.keys()
    assert outside == pytest.approx(inside, rel=1e-5)
    assert [part[:-1] for part in batch] == [part[:-1] for part in same_batch] != []
    for one, other in zip(batch, same_batch, strict=True):
        assert np.array_equal(one.sample, other.sample)
    assert all(map(np.array_equal, weights, same_weights))


def test_what_xla_compiles_is_measured_inside() -> None:
    model = small_model()
    model.compile("sgd", "mse", jit_compile=True)
    probe = Probe(model.optimizer)
    probe.put_in(model)
    model.train_on_batch(X, Y)
    assert probe.after_step(was_due=True, next_is_due=True)
    probe.take_out()
    assert probe.failure is None


def test_a_step_that_is_not_measured_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradients, "LITTLE_BYTES", 0)
    model = small_model()
    probe = Probe(model.optimizer)
    probe.put_in(model)
    model.train_on_batch(X, Y)
    assert probe.after_step(was_due=True, next_is_due=False)
    model.train_on_batch(X, Y)
    meter = probe._gradients
    assert meter is not None and meter._held.taken() is None
    meter.measure_next(True)
    model.train_on_batch(X, Y)
    assert probe.after_step(was_due=True, next_is_due=False)
    probe.take_out()
