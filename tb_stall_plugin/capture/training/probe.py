"""Numbers from the training steps: loss, gradients, updates, loss scale.

All of them pass through the optimizer, in every kind of training. Its methods are hooked before the
train function is traced, so that the measuring ops become part of its graph and nothing is traced
again. Only a few steps are measured: those that `measured_steps` selects.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from stall_analyzer.captures.capture_format import Tag
from tb_stall_plugin.capture.training import timed_calls
from tb_stall_plugin.capture.training.around import Instead, Method
from tb_stall_plugin.capture.training.batch_sample import Batch, Part
from tb_stall_plugin.capture.training.gradients import GradientMeter
from tb_stall_plugin.capture.training.hook import Hook
from tb_stall_plugin.capture.training.measured_steps import MeasuredSteps
from tb_stall_plugin.capture.training.measured_vector import update_ratios
from tb_stall_plugin.capture.training.own_time import shown
from tb_stall_plugin.capture.training.plain_gradients import plain
from tb_stall_plugin.capture.training.strategies import (
    outside_of_graphs_and_strategies,
    runs_elsewhere,
)
from tb_stall_plugin.capture.training.updates import UpdateMeter
from tb_stall_plugin.capture.training.watched_layers import WatchedLayer, choose

AfterUpdate = Callable[[], None]

_probes: weakref.WeakKeyDictionary[Any, Probe] = weakref.WeakKeyDictionary()


def probe_of(optimizer: Any) -> Probe:
    """The same probe for all fits with an optimizer, for as long as it lives: steps that were
    traced with the probe in them keep using its variables."""
    probe = _probes.get(optimizer)
    if probe is None:
        probe = _probes[optimizer] = Probe(optimizer)
    return probe


class Probe:
    """Measures the steps that go through one optimizer. It never raises in them."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer_if_alive = weakref.ref(optimizer)  # we must not keep it alive
        self.measured_steps = MeasuredSteps()
        self.layers: list[WatchedLayer] = []
        self.is_in_step = False  # a step was traced, or run eagerly, with the probe in it
        self.failure: str | None = None  # why it no longer measures
        self._weights: list[Any] = []  # of the layers; next, their biases, or None
        self._biases: list[Any] = []
        self._ready: GradientMeter | None = None
        self._gradients: GradientMeter | None = None  # the same, once layers are chosen
        self._updates: UpdateMeter | None = None
        self._dense: list[tuple[WatchedLayer, Any]] = []  # layers whose updates are measured
        self.given: set[int] = set()  # ids of the variables that the optimizer was given
        self.without_gradient: list[Any] = []  # those that had no gradient in the last trace
        self.batch: list[Part] = []  # a sample of the batch that was measured last
        self._replica = threading.local()  # each replica is traced in its own thread
        self._hooks: list[Hook] = []

    @property
    def optimizer(self) -> Any:
        return self._optimizer_if_alive()

    def put_in(self, model: Any = None) -> None:
        """`model`: that of a fit. Its compute_loss shows us the batches."""
        if self._hooks:  # put in by another fit, which is still running
            return
        if not tf.compat.v1.executing_eagerly_outside_functions():
            return  # TensorFlow 1, whose sessions know nothing of our variables
        if self._ready is None:
            optimizer = self.optimizer
            self._ready = outside_of_graphs_and_strategies(lambda: GradientMeter(optimizer))
        if self._gradients is not None:
            self._gradients.measure_next(self.measured_steps.is_due)
            self._gradients.losses()  # drops those of steps that we did not capture
        # Keras 3 applies gradients in one place, apply(gradients, variables); Keras 2 has only
        # apply_gradients(pairs). The loss is seen on its way to be scaled or minimized.
        before: dict[str, Callable[..., Instead]]
        if hasattr(self.optimizer, "apply"):
            before = {"apply": self._apply, "scale_loss": self._take_loss}
        else:
            before = {"apply_gradients": self._apply_gradients, "minimize": self._take_loss}
        for name, stand_in in before.items():
            if hasattr(self.optimizer, name):
                self._hooks.append(Hook(self.optimizer, name, stand_in))
        if hasattr(model, "compute_loss"):
            self._hooks.append(Hook(model, "compute_loss", self._take_batch))
        for hook in self._hooks:
            hook.put_in()

    def take_out(self) -> None:
        """Steps traced so far keep the probe, but it no longer measures anything."""
        while self._hooks:
            self._hooks.pop().take_out()
        if self._updates is not None:
            self._updates.forget()
        if self._gradients is not None:
            self._gradients.measure_next(False)
            self._gradients.let_go()

    def after_step(self, was_due: bool, next_is_due: bool) -> dict[str, float]:
        """What was measured, if the step was due: scalars by tag."""
        if self.failure is not None:
            raise RuntimeError(self.failure)
        if self._gradients is None:
            return {}
        measured = self._gradients.read() if was_due else {}
        self._gradients.measure_next(next_is_due)
        if self._updates is None and self._dense:
            layers, weights = zip(*self._dense, strict=True)
            self._updates = UpdateMeter(layers, weights)
        squares = None
        if self._updates is not None:
            if was_due or next_is_due:
                squares = self._updates.look()
            if not next_is_due:
                self._updates.forget()
        return self._values(self._gradients, measured, squares) if measured else {}

    def taken_losses(self) -> list[float]:
        """The losses of all steps since the last call."""
        return self._gradients.losses() if self._gradients is not None else []

    def _values(
        self,
        gradients: GradientMeter,
        measured: dict[str, float],
        squares: list[tuple[float, float]] | None,
    ) -> dict[str, float]:
        values = dict(measured)
        self.batch = gradients.batch()
        rate = learning_rate_of(self.optimizer)
        if rate is not None:
            values[Tag.LEARNING_RATE] = rate
        skipped = gradients.skipped_updates()
        if skipped is not None:
            values[Tag.SKIPPED_UPDATES] = skipped
        # An update that was put off or skipped does not count as a small update.
        if squares and (self._updates_each_step() or any(change != 0 for change, _ in squares)):
            values.update(update_ratios(squares, [watched for watched, _ in self._dense]))
        return values

    def _updates_each_step(self) -> bool:
        accumulates = getattr(self.optimizer, "gradient_accumulation_steps", None)
        return not accumulates and not hasattr(self.optimizer, "inner_optimizer")

    # ------------------------------------------------------------ the hooks
    # Whatever happens to the measuring, the method gets what it was given: optimizers that are not
    # Keras's own may have other arguments.

    def _take_loss(self, method: Method, *arguments: Any, **named: Any) -> Instead:
        self._replica.loss = arguments[0] if arguments else named.get("loss")
        return Instead(_as_autograph_has_it(method))

    def _take_batch(self, method: Method, *arguments: Any, **named: Any) -> Instead:
        def after(loss: Any, failed: bool) -> None:
            if not failed:
                given = dict(zip(Batch._fields, arguments, strict=False)) | named
                self._replica.batch = Batch(*(given.get(name) for name in Batch._fields))
                self._replica.loss = loss  # a custom train_step need not scale it

        return Instead(_as_autograph_has_it(method), after=after)

    def _apply(self, method: Method, *arguments: Any, **named: Any) -> Instead:
        def begin() -> AfterUpdate | None:
            gradients = arguments[0] if arguments else named["grads"]
            variables = arguments[1] if len(arguments) > 1 else named.get("trainable_variables")
            if variables is None:
                variables = getattr(self.optimizer, "_trainable_variables", ())
            return self._begin(_read_twice(gradients), _read_twice(variables))

        return Instead(_as_autograph_has_it(method), after=self._after(begin))

    def _apply_gradients(self, method: Method, *arguments: Any, **named: Any) -> Instead:
        # It is often a zip, which can be read only once.
        if arguments and isinstance(arguments[0], Iterator):
            arguments = list(arguments[0]), *arguments[1:]
        elif isinstance(named.get("grads_and_vars"), Iterator):
            named["grads_and_vars"] = list(named["grads_and_vars"])

        def begin() -> AfterUpdate | None:
            pairs = _read_twice(arguments[0] if arguments else named["grads_and_vars"])
            return self._begin([gradient for gradient, _ in pairs], [v for _, v in pairs])

        after = self._after(begin)
        return Instead(_as_autograph_has_it(method), arguments, named, after)

    def _after(self, begin: Callable[[], AfterUpdate | None]) -> Callable[[Any, bool], None]:
        after_update = self._attempt(begin)

        def after(result: Any, failed: bool) -> None:
            if not failed:
                self._attempt(after_update)

        return after

    def _attempt(self, action: Callable[[], Any] | None) -> Any:
        if action is None or self.failure is not None:
            return None
        try:
            with timed_calls.at_own_work():
                return shown(action)
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"
            return None

    def _begin(self, gradients: Sequence[Any], variables: Sequence[Any]) -> AfterUpdate | None:
        """Measures before the update, and returns what is left to do after it."""
        loss, self._replica.loss = getattr(self._replica, "loss", None), None
        batch, self._replica.batch = getattr(self._replica, "batch", None), None
        if not _is_first_replica(tf.distribute.get_replica_context()):
            return None
        if self._gradients is None:
            self._choose(gradients, variables)
        self.given |= {number for variable in variables for number in ids_of(variable)}
        self.without_gradient = [
            v for v, gradient in zip(variables, gradients, strict=True) if gradient is None
        ]
        gradient_of = {id(v): g for v, g in zip(variables, gradients, strict=True)}
        meter = self._gradients
        if meter is None or not all(id(weight) in gradient_of for weight in self._weights):
            return None  # an optimizer may serve several models
        self.is_in_step = True
        scale = meter.before_update(
            [plain(gradient_of[id(weight)], weight.shape) for weight in self._weights],
            [
                None if bias is None else plain(gradient_of.get(id(bias)), bias.shape)
                for bias in self._biases
            ],
            loss,
            batch or Batch(),
        )
        return lambda: meter.after_update(scale)

    def _choose(self, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        layers = choose(variables, gradients)
        if not layers:
            return
        self._weights = [variables[w.weight] for w in layers]
        self._biases = [None if w.bias is None else variables[w.bias] for w in layers]
        # Only the rows of an embedding that are in use change, and outside we do not know them.
        self._dense = [
            (watched, tf_variable(weight))
            for watched, weight in zip(layers, self._weights, strict=True)
            if not watched.is_sparse
        ]
        self.layers = layers
        if self._ready is not None:
            self._ready.watch(layers)
        self._gradients = self._ready


def _as_autograph_has_it(method: Method) -> Method:
    """A custom method may contain an `if` that only AutoGraph can turn into a graph."""
    if tf.executing_eagerly():
        return method
    autograph = tf.__internal__.autograph
    context = autograph.control_status_ctx()
    if context.status.name == "DISABLED":  # as in fit: converting it would change nothing
        return method
    converted: Method = autograph.tf_convert(method, context)
    return converted


def learning_rate_of(optimizer: Any) -> float | None:
    """The rate of the last step. Read from outside: in the step, it would be another input."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    try:
        rate = getattr(optimizer, "_learning_rate", None)
        if isinstance(rate, tf.keras.optimizers.schedules.LearningRateSchedule):
            rate = rate(optimizer.iterations - 1)  # the optimizer gives that of the next step
        else:
            rate = optimizer.learning_rate
        return float(tf.convert_to_tensor(rate).numpy())
    except Exception:  # some optimizers have none
        return None


def ids_of(variable: Any) -> set[int]:
    """The ids of a variable and of what it wraps: a loop may pass either."""
    return {id(variable), id(getattr(variable, "_value", variable))}


def _read_twice(given: Any) -> list[Any]:
    if isinstance(given, Iterator):
        raise TypeError("the optimizer was given an iterator, which can be read only once")
    return list(given)


def _is_first_replica(context: Any) -> bool:
    """Whether it is the first of this process. Steps in other processes or on a TPU do not
    count."""
    if context is None or runs_elsewhere(context.strategy):
        return False
    if context.num_replicas_in_sync == 1:
        return True
    replica = tf.get_static_value(context.replica_id_in_sync_group)
    local = len(context.strategy.extended.worker_devices)
    return replica is not None and int(replica) % local == 0


def tf_variable(variable: Any) -> Any:
    """TensorFlow's variable: Keras 3 wraps it, and a strategy has one for each replica."""
    inner = variable if isinstance(variable, tf.Variable) else variable.value
    return inner.values[0] if hasattr(inner, "values") else inner
