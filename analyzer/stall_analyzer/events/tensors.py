"""TensorProto, as far as summaries and dumps use it: one number, one text, an array of floats."""

from __future__ import annotations

import warnings
from typing import Any, TypeAlias

import numpy as np
from google.protobuf.message import DecodeError
from tensorboard.compat.proto.types_pb2 import DataType

from stall_analyzer.errors import WireError
from stall_analyzer.model.units import Float64s

# Protobuf before 4 prints such damage to the terminal; checksums tell us.
warnings.filterwarnings("ignore", "Unexpected end-group tag", RuntimeWarning)

Tensor: TypeAlias = Any  # a TensorProto: TensorBoard's protos have no types

# How tensor_content stores an element, and the field that has the elements otherwise.
_FLOATS = {
    DataType.DT_FLOAT: ("<f4", "float_val"),
    DataType.DT_DOUBLE: ("<f8", "double_val"),
    DataType.DT_HALF: ("<f2", "half_val"),
    DataType.DT_BFLOAT16: ("<u2", "half_val"),
}
_NUMBERS = _FLOATS | {
    DataType.DT_INT8: ("<i1", "int_val"),
    DataType.DT_INT16: ("<i2", "int_val"),
    DataType.DT_INT32: ("<i4", "int_val"),
    DataType.DT_INT64: ("<i8", "int64_val"),
    DataType.DT_UINT8: ("<u1", "int_val"),
    DataType.DT_UINT16: ("<u2", "int_val"),
    DataType.DT_UINT32: ("<u4", "uint32_val"),
    DataType.DT_UINT64: ("<u8", "uint64_val"),
    DataType.DT_BOOL: ("?", "bool_val"),
}


def parsed(kind: Any, data: bytes) -> Any:
    """A message of this kind of proto; raises WireError if the bytes are not one."""
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise WireError(str(error)) from error


def scalar_of(tensor: Tensor) -> float | None:
    """The value of a rank-0 numeric tensor; None for any other."""
    shape = tensor.tensor_shape
    if shape.dim or shape.unknown_rank or tensor.dtype not in _NUMBERS:
        return None
    values = _elements(tensor, *_NUMBERS[tensor.dtype])
    if not len(values):
        return 0.0  # protobuf leaves out zeros
    return float(values[0]) if len(values) == 1 else None


def floats_of(tensor: Tensor) -> Float64s | None:
    """All elements of a tensor of floats, whatever its shape; None for any other type."""
    return _elements(tensor, *_FLOATS[tensor.dtype]) if tensor.dtype in _FLOATS else None


def text_of(tensor: Tensor) -> str | None:
    """The first element of a string tensor."""
    return tensor.string_val[0].decode("utf-8", "replace") if tensor.string_val else None


def _elements(tensor: Tensor, layout: str, field: str) -> Float64s:
    content: bytes = tensor.tensor_content
    if not content and field != "half_val":
        return np.array(getattr(tensor, field), dtype=np.float64)
    if not content:  # 16 bits each, stored in integers
        content = np.array(tensor.half_val, dtype="<u4").astype("<u2").tobytes()
    if len(content) % np.dtype(layout).itemsize:
        raise WireError("a tensor ends inside an element")
    values = np.frombuffer(content, layout)
    if tensor.dtype == DataType.DT_BFLOAT16:  # the upper half of a float32
        values = (values.astype("<u4") << 16).view("<f4")
    with np.errstate(invalid="ignore"):  # there are NaNs that processors complain about
        return values.astype(np.float64)
