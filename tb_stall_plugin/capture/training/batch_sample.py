"""A sample of a batch: a few rows and columns of inputs, labels and outputs, as one vector.

It is taken by ops, inside the step or eagerly, and read outside, where `batch_numbers` reduces it
to a few numbers. The sample itself is never stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

raw = tf.raw_ops
ROWS = 64
ROWS_OF_NUMBERS = 256  # if each row is a single number
COLUMNS = 256
MOST_INPUTS = 4
INPUTS, LABELS, OUTPUTS, WEIGHTS = range(4)  # the role of a part
UNKNOWN = -1.0  # a length that is not known when the step is traced

Rows = npt.NDArray[np.float32]


class Batch(NamedTuple):
    """What a loss is computed from, as the caller has it; None for what is missing."""

    x: Any = None
    y: Any = None
    y_pred: Any = None
    sample_weight: Any = None


class Part(NamedTuple):
    """One tensor of a batch: its sample, and the shape of the whole."""

    role: int
    rank: int
    last: int  # length of the last axis
    rows: int  # in the batch
    columns: int  # in a flattened row
    sample: Rows


class _Head(NamedTuple):
    """What comes before a sample in the vector."""

    role: Any
    rank: Any
    last: Any
    rows: Any
    columns: Any
    sampled_rows: Any
    sampled_columns: Any


def tensors_of(batch: Batch, usable: Any) -> list[tuple[int, Any]]:
    """The tensors that can be looked at, with their roles. If there are several labels or outputs,
    they are left out: it is not known which belong together."""
    inputs = [x for x in tf.nest.flatten(batch.x) if usable(x)][:MOST_INPUTS]
    found = [(INPUTS, x) for x in inputs]
    for role, given in ((LABELS, batch.y), (OUTPUTS, batch.y_pred), (WEIGHTS, batch.sample_weight)):
        several = tf.nest.flatten(given)
        if len(several) == 1 and usable(several[0]):
            found.append((role, several[0]))
    return found


def is_numeric(tensor: Any) -> bool:
    """Whether it is dense, has rows, and consists of numbers."""
    if not isinstance(tensor, (tf.Tensor, np.ndarray)):
        return False
    kind = tf.as_dtype(tensor.dtype)
    is_number = kind.is_floating or kind.is_integer or kind.is_bool
    return is_number and tensor.shape is not None and len(_shape(tensor) or ()) > 0


class RowsOf(NamedTuple):
    """What is known about a tensor when a step is traced."""

    role: int
    rank: int
    last: int
    columns: int


def rows_of(role: int, tensor: Any) -> RowsOf | None:
    """None if the length of its rows is not known."""
    shape = _shape(tensor) or []
    columns = _columns(shape)
    if columns is None:
        return None
    return RowsOf(role, len(shape), int(UNKNOWN) if shape[-1] is None else shape[-1], columns)


def narrowed(rows: RowsOf, tensor: Any) -> Any:
    """The tensor, with no more columns than a sample has."""
    if rows.columns <= COLUMNS:
        return tensor
    flat = raw.Reshape(tensor=tensor, shape=[-1, rows.columns])
    return raw.GatherV2(params=flat, indices=_places(COLUMNS, rows.columns), axis=1)


def part_of(rows: RowsOf, narrow: npt.NDArray[Any]) -> Part:
    """The sample, taken outside of the step."""
    count = len(narrow)
    places = _places(min(count, ROWS_OF_NUMBERS if rows.columns == 1 else ROWS), count)
    sample = narrow.reshape(count, -1)[places].astype(np.float32)
    return Part(rows.role, rows.rank, rows.last, count, rows.columns, sample)


def packed(roles: Sequence[int], tensors: Sequence[Any]) -> Any:
    """The vector: for each tensor a head, followed by its sample, row by row."""
    parts = []
    for role, tensor in zip(roles, tensors, strict=True):
        parts += _packed(role, tensor)
    return tf.concat(parts, axis=0)


def packed_length(tensors: Sequence[Any]) -> int:
    """The length of the vector, which is known when a step is traced."""
    return sum(len(_Head._fields) + math.prod(_sampled(tensor)) for tensor in tensors)


def unpacked(vector: Rows) -> list[Part]:
    parts, at = [], 0
    while at < len(vector):
        head = _Head(*vector[at : at + len(_Head._fields)].tolist())
        at += len(_Head._fields)
        rows, columns = int(head.sampled_rows), int(head.sampled_columns)
        sample = vector[at : at + rows * columns].reshape(rows, columns)
        at += rows * columns
        # A batch with fewer rows than the sample gave some of them twice.
        keep = [np.unique(_places(n, int(of)), return_index=True)[1]
                for n, of in ((rows, head.rows), (columns, head.columns))]  # fmt: skip
        whole = sample[np.ix_(*keep)]
        numbers = int(head.role), int(head.rank), int(head.last)
        parts.append(Part(*numbers, int(head.rows), int(head.columns), whole))
    return parts


def _packed(role: int, tensor: Any) -> list[Any]:
    shape = _shape(tensor) or []
    rows, width = _sampled(tensor)
    dynamic = tf.shape(tensor, out_type=tf.int64)
    count = dynamic[0]
    flat = raw.Reshape(tensor=tensor, shape=[-1])
    per_row = tf.size(flat, out_type=tf.int64) // tf.maximum(count, 1)
    places = _spread(rows, count)[:, None] * per_row + _spread(width, per_row)[None, :]
    picked = raw.GatherV2(params=flat, indices=raw.Reshape(tensor=places, shape=[-1]), axis=0)
    last = UNKNOWN if shape[-1] is None else float(shape[-1])
    head = _Head(
        float(role), float(len(shape)), last, _float32(count), _float32(per_row),
        float(rows), float(width),
    )  # fmt: skip
    return [tf.stack([*head]), _float32(picked)]


def _sampled(tensor: Any) -> tuple[int, int]:
    """How many rows and columns are sampled."""
    shape = _shape(tensor) or []
    columns = _columns(shape)
    most_rows = ROWS_OF_NUMBERS if columns == 1 else ROWS
    rows = most_rows if shape[0] is None else max(min(shape[0], most_rows), 1)
    return rows, COLUMNS if columns is None else max(min(columns, COLUMNS), 1)


def _columns(shape: Sequence[int | None]) -> int | None:
    """The number of columns in a flattened row."""
    return None if None in shape[1:] else math.prod(n for n in shape[1:] if n is not None)


def _spread(count: int, of: Any) -> Any:
    """`count` indices, spread evenly over `of`; the same as `_places`."""
    return tf.range(count, dtype=tf.int64) * of // count


def _places(count: int, of: int) -> npt.NDArray[np.int64]:
    return np.arange(count, dtype=np.int64) * of // count


def _shape(tensor: Any) -> list[int | None] | None:
    shape = tf.TensorShape(tensor.shape)
    return None if shape.rank is None else list(shape.as_list())


def _float32(tensor: Any) -> Any:
    return tf.cast(tensor, tf.float32)
