"""The gradients given to an optimizer, as tensors that can be measured without any risk.

Loops pass whatever the optimizer accepts: variables with accumulated gradients, arrays, slices. An
op that is added to a step and fails there ends the training. So everything that could go wrong when
it runs must be known beforehand: kind, type and shape. What is not known is not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

TYPES = (tf.float16, tf.bfloat16, tf.float32, tf.float64)


def plain(gradient: Any, shape: Sequence[int | None]) -> Any:
    """The gradient of a weight of this shape, or the rows of it that were used; None if there is no
    gradient, or if measuring it might fail."""
    if gradient is None:
        return None
    is_of_rows = isinstance(gradient, tf.IndexedSlices)
    given = gradient.values if is_of_rows else gradient
    # Passes on a variable's value, and not the variable itself.
    tensor = tf.convert_to_tensor(given)
    known = tuple(tensor.shape) if tensor.shape.rank is not None else ()
    fits = known[1:] == tuple(shape)[1:] if is_of_rows and known else known == tuple(shape)
    return tensor if fits and tensor.dtype in TYPES else None


def demand_same_types(given: Sequence[Any], expected: Sequence[Any]) -> None:
    """Raises if a function expects inputs of other types than it will be given."""
    found, wanted = ([each.dtype for each in inputs] for inputs in (given, expected))
    if found != wanted:
        raise TypeError(f"the step passes {found}, but the measurement expects {wanted}")


def demand_shape(tensor: Any, shape: Sequence[int]) -> None:
    """Raises unless the tensor is certain to have this shape when the step runs."""
    if tensor.shape.rank is None or tuple(tensor.shape) != tuple(shape):
        raise ValueError(f"the shape {tensor.shape} is not {list(shape)}")
