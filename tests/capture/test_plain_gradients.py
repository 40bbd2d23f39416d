"""Whatever gradients an optimizer is given, the step runs as it would without the probe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stall_analyzer.captures.capture_format import Tag
from tb_stall_plugin.capture.training.plain_gradients import (
    demand_same_types,
    demand_shape,
    plain,
)
from tb_stall_plugin.capture.training.probe import Probe
from tests.capture.small_trainings import keras, tf

SHAPE = (6, 3)
VALUES = np.linspace(-1, 1, 18, dtype="float32").reshape(SHAPE)
ACCUMULATED: Any = tf.Variable(VALUES)


def of_unknown_shape(value: Any) -> Any:
    return tf.numpy_function(lambda: value, [], tf.float32)


GIVEN: dict[str, Callable[[], Any]] = {
    "a tensor": lambda: tf.constant(VALUES),
    "a variable": lambda: ACCUMULATED,
    "an array": lambda: VALUES,
    "rows": lambda: tf.IndexedSlices(tf.constant(VALUES[:2]), tf.constant([4, 1]), SHAPE),
    "an unknown shape": lambda: of_unknown_shape(VALUES),
}


def trained(give: Callable[[], Any], probe: bool) -> tuple[Any, Probe]:
    optimizer = keras.optimizers.SGD(0.1)
    weight = keras.Variable(np.ones(SHAPE, "float32")) if hasattr(keras, "Variable") else None
    weight = tf.Variable(np.ones(SHAPE, "float32")) if weight is None else weight
    measuring = Probe(optimizer)
    if probe:
        measuring.put_in()

    @tf.function
    def step() -> None:
        optimizer.apply_gradients([(give(), weight)])

    for _ in range(3):
        step()
    return weight.numpy(), measuring


@pytest.mark.parametrize("kind", GIVEN)
def test_the_step_is_as_it_would_have_been(kind: str) -> None:
    alone, _ = trained(GIVEN[kind], probe=False)
    measured, probe = trained(GIVEN[kind], probe=True)
    assert probe.failure is None
    np.testing.assert_array_equal(measured, alone)


def test_gradients_accumulated_in_variables_are_measured_by_their_values() -> None:
    _, probe = trained(GIVEN["a variable"], probe=True)
    values = probe.after_step(was_due=True, next_is_due=False)
    assert values[Tag.GRADIENT_NORM] == pytest.approx(np.linalg.norm(VALUES), rel=1e-5)


@pytest.mark.parametrize(
    "gradient",
    [
        None,
        tf.constant(VALUES[:, :2]),
        tf.constant(0.5),
        tf.constant(VALUES, tf.complex64),
        tf.IndexedSlices(tf.constant(VALUES[:, :2]), tf.range(6)),
    ],
    ids=["none", "other shape", "a number", "complex", "other rows"],
)
def test_what_might_fail_in_the_step_is_not_measured(gradient: Any) -> None:
    assert plain(gradient, SHAPE) is None


def test_inputs_of_other_types_than_expected_are_noticed_before_the_step_runs() -> None:
    with pytest.raises(TypeError):
        demand_same_types([tf.constant(1.0)], [tf.constant(1)])


def test_a_shape_that_is_not_known_is_noticed_before_the_step_runs() -> None:
    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
    def step(anything: Any) -> None:
        with pytest.raises(ValueError, match="shape"):
            demand_shape(anything, [3])

    step(tf.zeros([3]))


def test_a_custom_optimizer_is_converted_by_autograph_but_our_code_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Own:
        def apply_gradients(self, pairs: Any) -> None:
            for gradient, weight in pairs:
                if tf.reduce_sum(gradient) > 1e6:  # in a graph, this needs AutoGraph
                    weight.assign_sub(gradient)
                else:
                    weight.assign_sub(2 * gradient)

    optimizer, weight = Own(), tf.Variable(np.ones(SHAPE, "float32"))
    probe = Probe(optimizer)
    probe.put_in()
    tf.get_logger().addHandler(caplog.handler)
    try:
        tf.function(lambda: optimizer.apply_gradients([(tf.constant(VALUES), weight)]))()
    finally:
        tf.get_logger().removeHandler(caplog.handler)
    assert probe.failure is None and "AutoGraph" not in caplog.text
    np.testing.assert_array_equal(weight.numpy(), 1 - 2 * VALUES)
