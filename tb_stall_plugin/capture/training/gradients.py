"""Gradients, measured by ops inside the step, and the losses of all steps.

All of its work inside the step is in a function behind an If: a step that is not measured pays only
for the If, and if a step is traced twice, the function is traced once. If gradients are small and
in the memory of this machine, a measured step only keeps them, and the rest is done outside. If
they are very small, every step keeps them, because an If would cost more. Otherwise, all results
are one vector; what can be worked out from it outside is not computed in the graph.
"""

from __future__ import annotations

import functools
import itertools
import math
import weakref
from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.framework import func_graph
from tensorflow.python.ops import control_flow_util

from tb_stall_plugin.capture.training import loss_scaling
from tb_stall_plugin.capture.training.all_losses import KeptLosses, LossRing
from tb_stall_plugin.capture.training.batch_sample import (
    Batch,
    Part,
    RowsOf,
    is_numeric,
    narrowed,
    packed,
    packed_length,
    part_of,
    rows_of,
    tensors_of,
    unpacked,
)
from tb_stall_plugin.capture.training.held_tensors import Arrays, HeldTensors
from tb_stall_plugin.capture.training.measured_vector import (
    NOT_MEASURED,
    VectorHead,
    head_of,
    scalars_of,
    vector_length,
    vector_of,
)
from tb_stall_plugin.capture.training.plain_gradients import demand_same_types, demand_shape
from tb_stall_plugin.capture.training.strategies import outside_of_graphs_and_strategies
from tb_stall_plugin.capture.training.watched_layers import WatchedLayer

raw = tf.raw_ops  # these take a quarter of the time of the usual functions, to trace and to run

# How a function is run. Otherwise, each of its inputs is handed to the thread pool needlessly. An
# inlined one is not run as such: there, TensorFlow would complain about the attribute.
IN_THIS_THREAD = {"executor_type": tf.compat.v1.AttrValue(s=b"SINGLE_THREADED_EXECUTOR")}

# As in tf.cond: a branch that is not taken is skipped op by op.
INLINED = "_lower_using_switch_merge"

MOST_HELD_BYTES = 16 << 20  # of gradients, which would otherwise be freed during the step
LITTLE_BYTES = 256 << 10  # this stays in a core's cache, and may be kept by every step
USUAL_ROWS = 1024  # assumed for a batch whose number of rows is not known


class _Measured(NamedTuple):
    """What a step keeps to be measured outside."""

    is_given: tuple[bool, ...]  # for gradients of weights and of biases, and for the loss scale
    replicas: int
    batch: tuple[RowsOf, ...]


class GradientMeter:
    """Its variables belong to no model, no checkpoint and no strategy.

    It must live as long as the steps that were traced with it: TensorFlow's functions do not keep
    the variables that they use.
    """

    def __init__(self, optimizer: Any) -> None:
        """To be created before a step is traced: the less is done during tracing, the better."""
        self._optimizer_if_alive = weakref.ref(optimizer)
        self._layers: Sequence[WatchedLayer] = ()
        self._functions: dict[Hashable, Any] = {}
        # Variables by their length: each holds the number of a step, and a sample of its batch.
        self._samples: dict[int, Any] = {}
        self._vector: Any = None  # created only if something is measured inside the step
        self._skipped = tf.Variable(0.0, trainable=False)
        self._is_due = tf.Variable(True, trainable=False)
        self._will_measure = True
        self._last_number = 0.0
        self._losses, self._eager_losses = LossRing(), KeptLosses()
        self._put_in: list[_PutIn] = []
        weakref.finalize(self, _take_out, self._put_in).atexit = False
        self._held = HeldTensors()
        self._parts: list[Part] = []  # of the batch that was kept last

    @property
    def _optimizer(self) -> Any:
        return self._optimizer_if_alive()

    def watch(self, layers: Sequence[WatchedLayer]) -> None:
        """Sets what is measured, once that is known."""
        self._layers = layers

    # ------------------------------------------------------------ from outside

    def losses(self) -> list[float]:
        """The losses of all steps since the last call."""
        return self._losses.taken() or self._eager_losses.taken()

    def let_go(self) -> None:
        self._held.let_go()

    def measure_next(self, is_due: bool) -> None:
        if is_due:
            self._held.let_go()  # drops what steps that were not due have kept
        if is_due != self._will_measure:
            self._will_measure = is_due
            raw.AssignVariableOp(resource=self._is_due.handle, value=is_due)

    def read(self) -> dict[str, float]:
        """Scalars of the last measured step by tag, if they are new. Waits for the step to end.
        To be called before `measure_next`."""
        held = self._held.taken() if self._will_measure else None
        if held is not None:
            return self._of_held(*held)
        if self._vector is None:
            return {}
        held = raw.ReadVariableOp(resource=self._vector.handle, dtype=tf.float32)
        vector: list[float] = held.numpy().tolist()
        number = head_of(vector).number
        if number == self._last_number:
            return {}
        self._last_number = number
        return scalars_of(vector, self._layers)

    def _of_held(self, what: _Measured, arrays: Arrays) -> dict[str, float]:
        left = iter(arrays)
        tensors = [next(left) if each else None for each in what.is_given]
        self._parts = [part_of(*each) for each in zip(what.batch, left, strict=True)]
        if not all(part.sample.size for part in self._parts):
            self._parts = []  # with several replicas, one may get no rows
        count = len(self._layers)
        scale = tensors[-1]
        is_scaled = scale is not None and loss_scaling.scales_gradients(self._optimizer)
        head = VectorHead(
            number=0,  # not needed: they are taken only once
            loss_scale=NOT_MEASURED if scale is None else float(scale),
            factor=(float(scale) if scale is not None and is_scaled else 1.0) / what.replicas,
        )
        weights, biases = tensors[:count], tensors[count:-1]
        return scalars_of(vector_of(head, self._layers, weights, biases), self._layers)

    def batch(self) -> list[Part]:
        """A sample of the batch of the last measured step."""
        if self._parts:
            parts, self._parts = self._parts, []
            return parts
        for variable in self._samples.values():
            vector = raw.ReadVariableOp(resource=variable.handle, dtype=tf.float32).numpy()
            if vector[0] == self._last_number:
                return unpacked(vector[1:])
        return []

    def skipped_updates(self) -> float | None:
        """How many so far; None without loss scaling."""
        if loss_scaling.finite_steps(self._optimizer) is None:
            return None
        return float(self._skipped.numpy())

    # ------------------------------------------------------------ inside the step

    def before_update(
        self, weights: Sequence[Any], biases: Sequence[Any], loss: Any, batch: Batch
    ) -> Any:
        """Takes plain gradients of the layers, or None if there is none. Returns what
        `after_update` needs: the loss scale."""
        scale = _number(loss_scaling.scale_of(self._optimizer))
        loss = _number(loss) if _is_of_this_step(loss) else None
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        if loss is not None:
            # Each replica has only its share of the mean over the batch.
            loss = loss if replicas == 1 else loss * float(replicas)
            (self._eager_losses if tf.executing_eagerly() else self._losses).put(loss)
        looked_at = tensors_of(batch, _is_number_of_this_step)
        if self._is_held([*weights, *biases, scale], replicas, looked_at):
            return scale
        if self._vector is None:
            self._vector = _zeros_of_our_own(vector_length(self._layers))
        roles = tuple(role for role, _ in looked_at)
        tensors = [*weights, *biases, scale, *(tensor for _, tensor in looked_at)]
        if tf.executing_eagerly():
            if self._will_measure:
                self._measure(tensors, replicas, roles)
            return scale
        given = [tensor for tensor in tensors if tensor is not None]
        is_given = tuple(tensor is not None for tensor in tensors)
        self._if_due(self._measuring(is_given, replicas, roles), given)
        return scale

    def _if_due(self, function: Any, given: Sequence[Any], is_inlined: bool = False) -> None:
        """Adds the function to the step, behind an If. An inlined If is far cheaper, but then its
        ops cost a little in steps that are not measured."""
        graph = tf.compat.v1.get_default_graph()
        measure = function.get_concrete_function(given)
        inputs = [*given, *measure.captured_inputs]
        demand_same_types(inputs, measure.inputs)
        nothing = _doing_nothing(tuple(tensor.dtype for tensor in inputs))
        nothing.add_to_graph(graph)
        either = raw.If(
            cond=raw.ReadVariableOp(resource=self._is_due.handle, dtype=tf.bool),
            input=inputs,
            Tout=[],
            then_branch=measure,
            else_branch=tf.compat.v1.NameAttrList(
                name=nothing.name, attr=None if is_inlined else IN_THIS_THREAD
            ),
        )
        if is_inlined:
            either._set_attr(INLINED, tf.compat.v1.AttrValue(b=True))
        name = tf.compat.as_str(measure.name)
        self._put_in.append(_PutIn(weakref.ref(graph), name, measure.graph))

    def _is_held(
        self, tensors: Sequence[Any], replicas: int, batch: Sequence[tuple[int, Any]]
    ) -> bool:
        """Whether the step keeps them, so that they can be measured outside."""
        given = [tensor for tensor in tensors if tensor is not None]
        rows = [rows_of(*each) for each in batch]
        known = tuple(each for each in rows if each is not None)
        if not given or len(known) < len(rows):
            return False
        if _likely_bytes(given) > MOST_HELD_BYTES or _is_elsewhere():
            return False
        if tf.executing_eagerly() and not self._will_measure:
            return True
        what = _Measured(tuple(tensor is not None for tensor in tensors), replicas, known)
        given += [tensor for _, tensor in batch]
        if tf.executing_eagerly() or _likely_bytes(given) <= LITTLE_BYTES:
            self._keep(what, given)
        else:
            self._if_due(self._keeping(what), given, is_inlined=True)
        return True

    def _keeping(self, what: _Measured) -> Any:
        def measure(tensors: Sequence[Any]) -> None:  # its name appears in the graph
            self._keep(what, tensors)

        return self._functions.setdefault(what, tf.function(measure, autograph=False))

    def _keep(self, what: _Measured, tensors: Sequence[Any]) -> None:
        count = sum(what.is_given)
        parts = zip(what.batch, tensors[count:], strict=True)
        self._held.put(what, [*tensors[:count], *(narrowed(*part) for part in parts)])

    def after_update(self, scale: Any) -> None:
        """A skipped update sets the count of finite steps to 0. So does raising the scale."""
        finite_steps = loss_scaling.finite_steps(self._optimizer)
        if finite_steps is not None:
            is_raised = _number(loss_scaling.scale_of(self._optimizer)) > scale
            is_skipped = (_number(finite_steps) == 0) & ~is_raised
            self._skipped.assign_add(tf.cast(is_skipped, tf.float32))

    def _measuring(self, is_given: tuple[bool, ...], replicas: int, roles: tuple[int, ...]) -> Any:
        def measure(gradients_and_more: Sequence[Any]) -> None:  # its name appears in the graph
            left = iter(gradients_and_more)
            self._measure([next(left) if each else None for each in is_given], replicas, roles)

        key = is_given, replicas, roles
        return self._functions.setdefault(key, tf.function(measure, autograph=False))

    def _measure(self, tensors: Sequence[Any], replicas: int, roles: Sequence[int]) -> None:
        count = len(self._layers)
        weights, biases = tensors[:count], tensors[count : 2 * count]
        scale, *batch = tensors[2 * count :]
        before = raw.ReadVariableOp(resource=self._vector.handle, dtype=tf.float32)
        number = raw.GatherV2(params=before, indices=VectorHead._fields.index("number"), axis=0)
        is_scaled = scale is not None and loss_scaling.scales_gradients(self._optimizer)
        head = VectorHead(
            number=raw.AddV2(x=number, y=1.0),
            loss_scale=NOT_MEASURED if scale is None else scale,
            factor=(scale if is_scaled else 1.0) / float(replicas),
        )
        halves = [NOT_MEASURED if g is None else raw.L2Loss(t=_float32(g)) for g in weights]
        parts = [tf.stack([*head, *halves]), self._zeros(weights, biases)]
        value = raw.ConcatV2(values=parts, axis=0)
        demand_shape(value, self._vector.shape)
        raw.AssignVariableOp(resource=self._vector.handle, value=value)
        if batch:
            self._sample(head.number, roles, batch)

    def _sample(self, number: Any, roles: Sequence[int], batch: Sequence[Any]) -> None:
        length = 1 + packed_length(batch)
        if length not in self._samples:
            # XLA needs to know its length.
            self._samples[length] = _zeros_of_our_own(length)
        handle = self._samples[length].handle

        def keep() -> None:
            value = tf.concat([[number], packed(roles, batch)], axis=0)
            raw.AssignVariableOp(resource=handle, value=value)

        # With several replicas, one may get no rows.
        tf.cond(tf.reduce_all([tf.size(each) > 0 for each in batch]), keep, lambda: None)

    def _zeros(self, weights: Sequence[Any], biases: Sequence[Any]) -> Any:
        """How many units have learned nothing from the batch, summed up to each layer."""
        layers = [each for each in zip(self._layers, weights, biases, strict=True) if each[0].units]
        if not layers:
            return tf.zeros([0])
        gradients = tf.concat([_of_units(*layer) for layer in layers], axis=0)
        demand_shape(gradients, [sum(watched.units for watched, *_ in layers)])
        is_zero = raw.Cast(x=raw.Equal(x=gradients, y=0.0), DstT=tf.int32)
        ends = [end - 1 for end in itertools.accumulate(watched.units for watched, *_ in layers)]
        zeros = raw.GatherV2(params=raw.Cumsum(x=is_zero, axis=0), indices=ends, axis=0)
        return raw.Cast(x=zeros, DstT=tf.float32)


class _PutIn(NamedTuple):
    """A function of ours in the graph of a step."""

    step: weakref.ref[Any]
    name: str
    graph: Any


def _take_out(functions: Sequence[_PutIn]) -> None:
    """The optimizer is gone, and with it all steps. TensorFlow keeps their graphs forever, with our
    functions in them; and whoever creates functions like ours must dismantle their graphs."""
    with suppress(Exception):  # this uses internals of TensorFlow
        inner: dict[str, Any] = {function.name: function for function in functions}
        for function in functions:
            inner |= function.graph._functions
        steps = [graph for function in functions if (graph := function.step()) is not None]
        for step, name in itertools.product(steps, inner):
            if name in step._functions:
                step._remove_function(name)
        for function in inner.values():
            func_graph.dismantle_func_graph(function.graph)


def _zeros_of_our_own(length: int) -> Any:
    return outside_of_graphs_and_strategies(
        lambda: tf.Variable(tf.zeros([length]), trainable=False)
    )


def _is_elsewhere() -> bool:
    """Whether gradients are on another device, or in code that XLA compiles: they stay there."""
    if any(device.device_type != "CPU" for device in tf.config.list_logical_devices()):
        return True
    graph = tf.compat.v1.get_default_graph()
    return not tf.executing_eagerly() and control_flow_util.GraphOrParentsInXlaContext(graph)


def _likely_bytes(tensors: Sequence[Any]) -> int:
    """An estimate: how many rows a batch has, or how many of an embedding it uses, may be
    unknown."""
    return sum(
        tensor.dtype.size
        * math.prod(USUAL_ROWS if n is None else n for n in tensor.shape.as_list())
        for tensor in tensors
    )


@functools.cache
def _doing_nothing(types: tuple[Any, ...]) -> Any:
    """What a step that is not measured does instead."""
    return tf.function(lambda unused: None, autograph=False).get_concrete_function(
        [tf.TensorSpec(None, each) for each in types]
    )


def _of_units(watched: WatchedLayer, of_weight: Any, of_bias: Any) -> Any:
    """A gradient for each unit; zero if nothing came back through the unit."""
    if of_bias is not None:
        flat = of_bias if of_bias.shape.rank == 1 else raw.Reshape(tensor=of_bias, shape=[-1])
        return _float32(flat)
    if of_weight is None:
        return tf.ones([watched.units])
    axes = list(range(len(watched.shape) - 1))
    return raw.Max(input=raw.Abs(x=_float32(of_weight)), axis=axes)


def _is_of_this_step(loss: Any) -> bool:
    """Whether it is a single number, and not left over from another trace."""
    if not tf.is_tensor(loss) or loss.shape.rank != 0:
        return False
    return tf.executing_eagerly() or loss.graph is tf.compat.v1.get_default_graph()


def _is_number_of_this_step(tensor: Any) -> bool:
    if not is_numeric(tensor):
        return False
    return tf.executing_eagerly() or (
        tf.is_tensor(tensor) and tensor.graph is tf.compat.v1.get_default_graph()
    )


def _number(value: Any) -> Any:
    return None if value is None else _float32(tf.convert_to_tensor(value))


def _float32(tensor: Any) -> Any:
    return tensor if tensor.dtype == tf.float32 else tf.cast(tensor, tf.float32)
