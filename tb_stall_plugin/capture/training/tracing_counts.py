"""How often the train and test functions of a Keras model have been traced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

FUNCTIONS = ("train_function", "test_function")
DEEPEST = 3  # Keras 3 hides the tf.function in a closure inside a closure


def tracing_counts(model: Any) -> dict[str, int]:
    """Counts by function; what is not a tf.function (yet) is left out."""
    counts = {}
    for name in FUNCTIONS:
        function = next(_tf_functions(getattr(model, name, None), DEEPEST), None)
        if function is not None:
            counts[name] = int(function.experimental_get_tracing_count())
    return counts


def _tf_functions(function: Any, depth: int) -> Iterator[Any]:
    if hasattr(function, "experimental_get_tracing_count"):
        yield function
    elif depth and callable(function):
        inner = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
        inner.append(getattr(function, "__wrapped__", None))
        for candidate in inner:
            yield from _tf_functions(candidate, depth - 1)
