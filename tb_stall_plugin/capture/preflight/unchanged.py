"""Puts back everything that a trial may have changed: weights, statistics, random numbers."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.ops import stateful_random_ops

KERAS_3_STATE = "keras.src.backend.common.global_state"
KERAS_3_GENERATOR = "global_seed_generator"
KERAS_2_BACKENDS = ("keras.src.backend", "tf_keras.src.backend")

PutBack = Callable[[], Any]


@contextlib.contextmanager
def unchanged(variables: Iterable[Any] = ()) -> Iterator[list[PutBack]]:
    """Yields a list to which more actions that put something back may be added."""
    put_back = [*_random_numbers(), *map(_value, variables)]
    try:
        yield put_back
    finally:
        for action in put_back:
            action()


@contextlib.contextmanager
def own_generators_unchanged(owner: Any) -> Iterator[None]:
    """Puts back the generators and counters of an object that hands out batches."""
    attributes = dict(vars(owner))
    states = [_generator(value) for value in attributes.values()]
    try:
        yield
    finally:
        vars(owner).clear()
        vars(owner).update(attributes)
        for put_back in filter(None, states):
            put_back()


def _generator(value: Any) -> PutBack | None:
    if isinstance(value, np.random.Generator):
        generator, state = value.bit_generator, value.bit_generator.state
        return lambda: setattr(generator, "state", state)
    if isinstance(value, np.random.RandomState):
        numpy_state = value.get_state()
        return lambda: value.set_state(numpy_state)
    if isinstance(value, random.Random):
        python_state = value.getstate()
        return lambda: value.setstate(python_state)
    if isinstance(value, tf.random.Generator):
        return _value(value.state)
    return None


def _random_numbers() -> Iterator[PutBack]:
    python, numpy = random.getstate(), np.random.get_state()
    yield lambda: random.setstate(python)
    yield lambda: np.random.set_state(numpy)
    generators = [
        getattr(context.context(), "_rng", None),
        stateful_random_ops.global_generator,
        *(_keras_2_generator(name) for name in KERAS_2_BACKENDS),
    ]
    yield from filter(None, map(_generator, generators))
    yield from _keras_3_generator()


def _keras_2_generator(module: str) -> Any:
    seeds = getattr(sys.modules.get(module), "_SEED_GENERATOR", None)
    return getattr(seeds, "generator", None)


def _keras_3_generator() -> Iterator[PutBack]:
    """Keras creates it when it is first needed, with a seed from Python's random."""
    state = sys.modules.get(KERAS_3_STATE)
    if state is not None:
        known = state.get_global_attribute(KERAS_3_GENERATOR)
        if known is not None:
            yield _value(known.state)
        yield lambda: state.set_global_attribute(KERAS_3_GENERATOR, known)


def _value(variable: Any) -> PutBack:
    plain = plain_variable(variable)
    value = plain.numpy()
    return lambda: plain.assign(value)


def plain_variable(variable: Any) -> Any:
    """TensorFlow's variable inside a variable of Keras 3."""
    inner = getattr(variable, "_value", None)
    return inner if isinstance(inner, tf.Variable) else variable


def captured_by(function: Any) -> Iterator[PutBack]:
    """Puts back all variables that a traced function can reach, such as a generator's state."""
    for handle, _ in function.graph.captures:
        known = getattr(handle, "_handle_data", None)
        if handle.dtype == tf.resource and known is not None and known.shape_and_type:
            yield _resource(handle, known.shape_and_type[0].dtype)


def _resource(handle: Any, kind: int) -> PutBack:
    dtype = tf.dtypes.as_dtype(kind)
    value = tf.identity(tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype))
    copy = value.numpy()
    return lambda: tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(copy, dtype))
