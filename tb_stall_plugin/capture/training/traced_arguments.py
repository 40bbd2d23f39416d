"""Why a function is traced again: which of its arguments differ from those of its last trace."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

MOST_LEAVES = 200  # a model may be given thousands of tensors
MOST_NAMED = 2
MOST_LETTERS = 60  # of a Python value


class TracedArguments:
    """The arguments of all functions that are traced."""

    def __init__(self) -> None:
        self._last: weakref.WeakKeyDictionary[Any, dict[str, str]] = weakref.WeakKeyDictionary()

    def what_changed(self, function: Any, values: Any = (), named: Any = None) -> str:
        """What changed since its last trace; empty for the first one. Never raises, because it runs
        in the middle of the user's own call."""
        try:
            now = dict(_described(function, values or (), named or {}))
            before = self._last.get(function)
            self._last[function] = now
        except Exception:  # arguments may be anything
            return ""
        return "" if before is None else _difference(before, now)


def _difference(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    changed = [name for name in now if now[name] != before.get(name)]
    shown = [f"{name}: {before.get(name, 'nothing')}, now {now[name]}" for name in changed]
    more = len(shown) - MOST_NAMED
    return "; ".join(shown[:MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _described(
    function: Any, values: Sequence[Any], named: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    names = _names(function)
    arguments = {
        names[at] if at < len(names) else f"argument {at + 1}": value
        for at, value in enumerate(values)
    }
    left = MOST_LEAVES
    for name, value in {**arguments, **named}.items():
        for path, leaf in _leaves(getattr(value, "element_spec", value)):
            if left == 0:
                return
            left -= 1
            yield name + path, _text(leaf)


def _names(function: Any) -> list[str]:
    try:
        return [*inspect.signature(function).parameters]
    except (TypeError, ValueError):  # not every callable has a signature
        return []


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(part, f"{path}[{key!r}]")
    elif isinstance(value, tuple | list):
        for at, part in enumerate(value):
            yield from _leaves(part, f"{path}[{at}]")
    else:
        yield path, value


def _text(leaf: Any) -> str:
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if isinstance(shape, tf.TensorShape) and dtype is not None:
        return f"{getattr(dtype, 'name', dtype)}{'[…]' if shape.rank is None else shape.as_list()}"
    if leaf is None or isinstance(leaf, bool | int | float | str | bytes):
        return repr(leaf)[:MOST_LETTERS]
    return f"{type(leaf).__name__} {id(leaf):x}"  # only the same object counts as unchanged
