"""The batches that a fit will begin with, read without taking them away from it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import tensorflow as tf

from tb_stall_plugin.capture.preflight.copied_dataset import copied
from tb_stall_plugin.capture.preflight.unchanged import own_generators_unchanged

KERAS_BATCH = 32  # fit's default batch size
MOST_ROWS = 64  # of a batch: enough to see what it is like


class CannotRead(Exception):
    """Says why there is no batch to look at, in words for the user."""


@dataclass(frozen=True)
class OneBatch:
    """A batch as the step gets it."""

    x: Any
    y: Any = None
    weights: Any = None

    @property
    def rows(self) -> int | None:
        """None if its tensors differ in length."""
        sizes = {leaf.shape[0] if leaf.shape else None for leaf in self._leaves}
        return sizes.pop() if len(sizes) == 1 else None

    @property
    def _leaves(self) -> list[Any]:
        return [
            leaf for leaf in tf.nest.flatten((self.x, self.y, self.weights)) if leaf is not None
        ]

    def some(self, count: int) -> OneBatch:
        """A batch of `count` of its examples, taken evenly from all of it."""
        rows = self.rows
        if rows is None or rows <= count:
            return self
        return OneBatch(*_at(_spread(rows, count), (self.x, self.y, self.weights)))


@dataclass(frozen=True)
class FirstBatches:
    batches: tuple[OneBatch, ...]
    # If fit was given arrays, all of the data:
    all_inputs: Any = None
    all_labels: Any = None

    @property
    def first(self) -> OneBatch:
        return self.batches[0].some(MOST_ROWS)


def first_batches(model: Any, examples: int, may_consume: bool) -> FirstBatches:
    """The first batches of the fit further up the stack: enough to hold that many examples.

    `may_consume`: nobody will train on the data afterward."""
    given = _locals_of_fit(model)
    x: Any = given.get("x")
    y, weights = given.get("y"), given.get("sample_weight")
    if isinstance(x, tf.data.Dataset):
        dataset = x if may_consume else copied(x)
        return FirstBatches(_until(examples, map(_unpacked, dataset)))
    if _is_indexed(x):
        with own_generators_unchanged(x):
            return FirstBatches(_until(examples, (_unpacked(x[n]) for n in range(len(x)))))
    if hasattr(x, "__next__"):
        return FirstBatches(_until(examples, map(_unpacked, _peeked(given, x, may_consume))))
    if not all(hasattr(leaf, "shape") for leaf in tf.nest.flatten(x)):
        raise CannotRead(f"data of type {type(x).__name__} cannot be inspected")
    return FirstBatches(tuple(_slices(x, y, weights, examples, given)), x, y)


def _locals_of_fit(model: Any) -> dict[str, Any]:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "fit" and frame.f_locals.get("self") is model:
            return dict(frame.f_locals)
        frame = frame.f_back
    raise CannotRead("the model is not trained by Keras's own fit")


def _is_indexed(x: Any) -> bool:
    """Whether it is a PyDataset of Keras 3, or a Sequence of Keras 2."""
    return any(kind.__name__ in ("PyDataset", "Sequence") for kind in type(x).__mro__[:-1])


def _peeked(given: dict[str, Any], x: Iterator[Any], may_consume: bool) -> Iterable[Any]:
    """A generator yields each batch only once, but Keras 3 keeps the first ones that it read."""
    adapter = getattr(given.get("epoch_iterator"), "data_adapter", None)
    kept = getattr(adapter, "_first_batches", None)
    if kept:
        return list(kept)
    if may_consume:
        return x
    raise CannotRead("a Python generator yields each batch only once, and training needs them all")


def _until(examples: int, batches: Iterable[OneBatch]) -> tuple[OneBatch, ...]:
    taken: list[OneBatch] = []
    for batch in batches:
        taken.append(batch)
        if len(taken) * (batch.rows or examples) >= examples:
            break
    if not taken:
        raise CannotRead("the data contains no batch")
    return tuple(taken)


def _unpacked(element: Any) -> OneBatch:
    if not isinstance(element, (tuple, list)):
        return OneBatch(_cast(element))
    return OneBatch(*(_cast(part) for part in tuple(element)[:3]))


def _slices(
    x: Any, y: Any, weights: Any, examples: int, given: dict[str, Any]
) -> Iterator[OneBatch]:
    """Batches from arrays. If fit shuffles, a batch has examples from everywhere."""
    rows = int(tf.nest.flatten(x)[0].shape[0])
    size = min(int(given.get("batch_size") or KERAS_BATCH), rows)
    count = min(-(-examples // size), rows // size)
    chosen = _spread(rows, count * size) if given.get("shuffle") else np.arange(count * size)
    # If the data is sorted, each batch gets rows from all of it.
    parts = [chosen[n::count] for n in range(count)] if given.get("shuffle") else None
    for part in parts or np.split(chosen, count):
        yield OneBatch(*(_cast(value) for value in _at(part, (x, y, weights))))


def _spread(rows: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.linspace(0, rows - 1, count).round().astype(np.int64)


def _at(rows: np.ndarray[Any, np.dtype[np.int64]], values: Sequence[Any]) -> Any:
    return tf.nest.map_structure(lambda leaf: _rows_of(leaf, rows), tuple(values))


def _rows_of(leaf: Any, rows: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
    if leaf is None:
        return None
    if hasattr(leaf, "iloc"):
        return np.asarray(leaf.iloc[rows])
    return tf.gather(leaf, rows) if tf.is_tensor(leaf) else np.asarray(leaf[rows])


def _cast(value: Any) -> Any:
    """As Keras does it: float64 becomes the type that layers compute with."""
    return tf.nest.map_structure(_as_tensor, value)


def _as_tensor(leaf: Any) -> Any:
    if leaf is None:
        return None
    tensor = tf.convert_to_tensor(leaf) if not tf.is_tensor(leaf) else leaf
    if not isinstance(tensor, tf.Tensor):
        raise CannotRead(f"data of type {type(leaf).__name__} cannot be inspected")
    return tf.cast(tensor, tf.keras.backend.floatx()) if tensor.dtype == tf.float64 else tensor
