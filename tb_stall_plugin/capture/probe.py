"""Numbers from inside the training step: loss, gradients, updates, loss scale.

The optimizer is where all of them pass by, in every kind of training. Its methods are hooked before
the train function is traced, so that the measuring ops become part of its graph and nothing is
traced again. They work on few steps (`measure.is_due`); on all others they cost a branch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tensorflow as tf

from tb_stall_plugin.capture.hook import Hook
from tb_stall_plugin.capture.layers import Watched, choose
from tb_stall_plugin.capture.measure import Layer, Step, Variables, is_due
from tb_stall_plugin.capture.reading import Reading, read_vector

Method = Callable[..., Any]


class Probe:
    """Measures the steps that go through one optimizer. It never raises into them."""

    def __init__(self, optimizer: Any, several_a_call: bool) -> None:
        """`several_a_call`: steps_per_execution, by which not every step is seen from outside."""
        self.optimizer = optimizer
        self._several_a_call = several_a_call
        self.layers: list[Watched] = []
        self.is_in_step = False  # a step was traced, or run eagerly, with the probe in it
        self.failure: str | None = None  # why it measures no more
        self._watched: list[tuple[Any, Any]] = []  # weight and bias of each layer
        self._variables: Variables | None = None
        self._last_number = 0
        self._calls = 0
        self._replica = threading.local()  # replicas are traced in a thread each
        self._hooks: list[Hook] = []

    def put_in(self) -> None:
        # Keras 3 applies gradients in one place, apply(gradients, variables); Keras 2 has only
        # apply_gradients(pairs). The loss is seen on its way to be scaled or minimised.
        around: dict[str, Method]
        if hasattr(self.optimizer, "apply"):
            around = {"apply": self._apply, "scale_loss": self._take_loss}
        else:
            around = {"apply_gradients": self._apply_gradients, "minimize": self._take_loss}
        for name, stand_in in around.items():
            if hasattr(self.optimizer, name):
                hook = Hook(self.optimizer, name, stand_in)
                hook.put_in()
                self._hooks.append(hook)

    def take_out(self) -> None:
        """Steps traced so far keep the probe."""
        while self._hooks:
            self._hooks.pop().take_out()

    def after_step(self) -> Reading | None:
        """To be called after each call of the train function: what it measured, if that was due."""
        if self.failure is not None:
            raise RuntimeError(self.failure)
        self._calls += 1
        if self._variables is None or not (self._several_a_call or is_due(self._calls - 1)):
            return None
        return self._read(self._variables)

    def _read(self, variables: Variables) -> Reading | None:
        """What was measured last, if that is new. Waits until the step has been computed."""
        reading = read_vector(
            variables.vector.numpy(),
            [watched.layer for watched in self.layers],
            updates_each_step=not hasattr(self.optimizer, "inner_optimizer")
            and not getattr(self.optimizer, "gradient_accumulation_steps", None),
        )
        if reading.number == self._last_number:
            return None
        self._last_number = reading.number
        return reading

    # The hooks do what the method would have done, whatever happens to the measuring.

    def _take_loss(self, method: Method, loss: Any, *rest: Any, **named: Any) -> Any:
        self._replica.loss = loss
        return method(loss, *rest, **named)

    def _apply(self, method: Method, grads: Any, trainable_variables: Any = None) -> Any:
        gradients = list(grads)
        variables = trainable_variables
        if variables is None:
            variables = getattr(self.optimizer, "_trainable_variables", ())
        return self._measured(
            gradients, list(variables), lambda: method(gradients, trainable_variables)
        )

    def _apply_gradients(
        self, method: Method, grads_and_vars: Any, *rest: Any, **named: Any
    ) -> Any:
        pairs = list(grads_and_vars)
        return self._measured(
            [gradient for gradient, _ in pairs],
            [variable for _, variable in pairs],
            lambda: method(pairs, *rest, **named),
        )

    def _measured(
        self, gradients: Sequence[Any], variables: Sequence[Any], update: Callable[[], Any]
    ) -> Any:
        step = self._attempt(lambda: self._begin(gradients, variables))
        result = update()
        if step is not None:
            self._attempt(step.finish)
        return result

    def _attempt(self, action: Callable[[], Any]) -> Any:
        if self.failure is not None:
            return None
        try:
            return action()
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"
            return None

    def _begin(self, gradients: Sequence[Any], variables: Sequence[Any]) -> Step | None:
        """The measuring before the update. None: this update is not measured."""
        loss, self._replica.loss = getattr(self._replica, "loss", None), None
        if not _is_first_replica():
            return None
        if self._variables is None:
            self._choose(gradients, variables)
        gradient_of = {id(v): g for v, g in zip(variables, gradients, strict=True)}
        ours = all(id(weight) in gradient_of for weight, _ in self._watched)
        if self._variables is None or not ours:
            return None  # an optimizer may serve several models
        self.is_in_step = True
        layers = [
            Layer(watched, _tf_variable(weight), gradient_of[id(weight)], gradient_of.get(id(bias)))
            for watched, (weight, bias) in zip(self.layers, self._watched, strict=True)
        ]
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        return Step(self._variables, self.optimizer, layers, loss, replicas)

    def _choose(self, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        layers = choose(variables, [gradient is not None for gradient in gradients])
        if not layers:
            return
        self._watched = [
            (variables[w.weight], None if w.bias is None else variables[w.bias]) for w in layers
        ]
        self.layers = layers
        self._variables = _outside_of_graphs_and_strategies(lambda: Variables(len(layers)))


def _is_first_replica() -> bool:
    """Of this process. Where that is not known before the step runs (TPU), no replica is."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return context is not None
    replica = tf.get_static_value(context.replica_id_in_sync_group)
    local = len(context.strategy.extended.worker_devices)
    return replica is not None and int(replica) % local == 0


def _tf_variable(variable: Any) -> Any:
    """Keras 3 wraps it."""
    return variable if isinstance(variable, tf.Variable) else variable.value


def _outside_of_graphs_and_strategies(make: Callable[[], Variables]) -> Variables:
    """In a thread of its own, which has neither. (A variable that several workers share would make
    each wait for the others.)"""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()
