"""Finds a generator behind the data that yields forever, according to its code."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from tb_stall_plugin.capture.process.loops import yields_for_ever
from tb_stall_plugin.capture.process.thread_stacks import line_of

MOST_STAGES = 50


def endless_generator(data: Any) -> str:
    """`path:line function` of an endless generator, also one given to `from_generator`; empty if
    there is none."""
    for generator in _generators(data):
        code = getattr(generator, "gi_code", None) or getattr(generator, "__code__", None)
        line = yields_for_ever(code) if code is not None else None
        if code is not None and line is not None:
            return line_of(code, line)
    return ""


def _generators(data: Any) -> Iterator[Any]:
    if inspect.isgenerator(data):
        yield data
    # A dataset is followed only along stages with a single input, all of which they read.
    for _ in range(MOST_STAGES):
        if not hasattr(data, "_inputs"):
            return
        yield from _given_to_from_generator(data)
        inputs = data._inputs()
        if len(inputs) != 1 or _may_end(data):
            return
        data = inputs[0]


def _may_end(dataset: Any) -> bool:
    """take(), take_while() and the like end, whatever they are given."""
    return any(word in type(dataset).__name__ for word in ("Take", "Window", "Scan"))


def _given_to_from_generator(dataset: Any) -> Iterator[Any]:
    """TensorFlow keeps the generator in variables of the functions that it makes from it."""
    for function in _functions(dataset):
        for outer in _variables(getattr(function, "_func", None)):
            for value in (outer, *_variables(outer)):
                if type(value).__name__ == "_GeneratorState":
                    yield getattr(value, "_generator", None)


def _functions(dataset: Any) -> list[Any]:
    return list(dataset._functions()) if hasattr(dataset, "_functions") else []


def _variables(function: Any) -> list[Any]:
    if not inspect.isfunction(function):
        return []
    return [*inspect.getclosurevars(function).nonlocals.values()]
