"""Custom loops under `watch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.scenarios.harm.capture import Capture, kind
from tests.scenarios.harm.small import BATCH, data, dataset, keras, model, tf


def _step(of: Any, optimizer: Any) -> Callable[[Any, Any], Any]:
    def step(x: Any, y: Any) -> Any:
        with tf().GradientTape() as tape:
            loss = tf().reduce_mean(tf().square(of(x, training=True) - y))
        weights = of.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    return step


def _loop(capture: Capture, made: Callable[[Any], Any]) -> None:
    of, optimizer = model(), keras().optimizers.Adam(0.01)
    step = made(_step(of, optimizer))
    with capture.watch(of, optimizer) as watched:
        for _ in range(3):
            watched.epoch()
            for x, y in dataset():
                watched.step(loss=step(x, y))
    capture.weights(of)


@kind("a loop with tf.function")
def loop(capture: Capture) -> None:
    _loop(capture, tf().function)


@kind("a loop, eager")
def eager_loop(capture: Capture) -> None:
    _loop(capture, lambda step: step)


@kind("a loop with tf.function(jit_compile=True)")
def jit_loop(capture: Capture) -> None:
    _loop(capture, lambda step: tf().function(step, jit_compile=True))


@kind("a loop inside the graph, over the dataset")
def loop_in_graph(capture: Capture) -> None:
    of, optimizer = model(), keras().optimizers.Adam(0.01)
    step = _step(of, optimizer)

    @tf().function
    def epoch(batches: Any) -> Any:
        loss = tf().constant(0.0)
        for x, y in batches:
            loss = step(x, y)
        return loss

    with capture.watch(of, optimizer) as watched:
        for _ in range(3):
            watched.step(loss=epoch(dataset()))
    capture.weights(of)


@kind("gradients accumulated in variables, then applied")
def accumulated_in_variables(capture: Capture) -> None:
    of, optimizer = model(), keras().optimizers.Adam(0.01)
    weights = of.trainable_variables
    sums = [tf().Variable(np.zeros(weight.shape, "float32")) for weight in weights]

    @tf().function
    def add(x: Any, y: Any) -> Any:
        with tf().GradientTape() as tape:
            loss = tf().reduce_mean(tf().square(of(x, training=True) - y))
        for total, gradient in zip(sums, tape.gradient(loss, weights), strict=True):
            total.assign_add(gradient)
        return loss

    @tf().function
    def apply() -> None:
        optimizer.apply_gradients(zip(sums, weights, strict=True))
        for total in sums:
            total.assign(tf().zeros_like(total))

    with capture.watch(of, optimizer) as watched:
        for number, (x, y) in enumerate(dataset().repeat(2)):
            loss = add(x, y)
            if number % 4 == 3:
                apply()
            watched.step(loss=loss)
    capture.weights(of)


@kind("an update in a branch of the graph")
def update_in_a_branch(capture: Capture) -> None:
    of, optimizer = model(), keras().optimizers.SGD(0.01)
    optimizer.build(of.trainable_variables)

    @tf().function
    def step(x: Any, y: Any, applies: Any) -> Any:
        with tf().GradientTape() as tape:
            loss = tf().reduce_mean(tf().square(of(x) - y))
        weights = of.trainable_variables
        gradients = tape.gradient(loss, weights)
        if applies:
            optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return loss

    with capture.watch(of, optimizer) as watched:
        for number, (x, y) in enumerate(dataset()):
            watched.step(loss=step(x, y, tf().constant(number % 2 == 0)))
    capture.weights(of)


@kind("train_on_batch in a loop")
def batch_by_batch(capture: Capture) -> None:
    of = model()
    with capture.watch(of) as watched:
        for x, y in dataset().repeat(2):
            of.train_on_batch(x, y)
            watched.step()
    capture.weights(of)


@kind("a loop under a strategy, strategy.run in tf.function")
def distributed_loop(capture: Capture) -> None:
    cpu = tf().config.list_physical_devices("CPU")[0]
    halves = [tf().config.LogicalDeviceConfiguration()] * 2
    tf().config.set_logical_device_configuration(cpu, halves)
    strategy = tf().distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        of, optimizer = model(), keras().optimizers.SGD(0.01)
        optimizer.build(of.trainable_variables)
    step = _step(of, optimizer)

    @tf().function
    def both(x: Any, y: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(step, (x, y)), axis=None)

    with capture.watch(of, optimizer) as watched:
        for x, y in strategy.experimental_distribute_dataset(dataset()):
            watched.step(loss=both(x, y))
    capture.weights(of)


@kind("a non-Keras optimizer, without a model")
def own_optimizer(capture: Capture) -> None:
    class Plain:
        def apply_gradients(self, pairs: Any) -> None:
            for gradient, weight in pairs:
                if tf().reduce_sum(gradient) > 0:  # which only AutoGraph can put into a graph
                    weight.assign_sub(0.1 * gradient)
                else:
                    weight.assign_sub(0.2 * gradient)

    weight, optimizer = tf().Variable(np.ones((8, 1), "float32")), Plain()

    @tf().function
    def step(x: Any, y: Any) -> Any:
        with tf().GradientTape() as tape:
            loss = tf().reduce_mean(tf().square(x @ weight - y))
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
        return loss

    with capture.watch(None, optimizer) as watched:
        for x, y in dataset():
            watched.step(loss=step(x, y))
    capture.result([weight.numpy()])


@kind("TensorFlow 1: graph, session, no eager execution")
def session_of_tensorflow_1(capture: Capture) -> None:
    v1 = tf().compat.v1
    v1.disable_eager_execution()
    v1.set_random_seed(1)
    x, y = data()
    given, wanted = v1.placeholder(tf().float32, (None, 8)), v1.placeholder(tf().float32, (None, 1))
    weight = v1.get_variable("w", initializer=np.ones((8, 1), "float32"))
    loss = tf().reduce_mean(tf().square(tf().matmul(given, weight) - wanted))
    optimizer = v1.train.AdamOptimizer(0.01)
    with capture.watch(None, optimizer) as watched:
        train = optimizer.minimize(loss)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for start in range(0, len(x), BATCH):
                at = slice(start, start + BATCH)
                told, _ = session.run([loss, train], {given: x[at], wanted: y[at]})
                watched.step(loss=told)
            capture.result([session.run(weight)])
