"""Calls with something done before and after them, in C if possible (_around.c).

TensorFlow records the whole stack with each op that it builds. So a frame of ours around a step
costs about a hundredth of the time that it takes to trace it, and C has no frames.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from tb_stall_plugin.capture.training.time_sheet import Span

Method = Callable[..., Any]


class Instead(NamedTuple):
    """What to do with a call. Without `arguments`, it gets those that it was called with."""

    call: Method | None = None  # instead of the method
    arguments: tuple[Any, ...] | None = None
    named: Mapping[str, Any] | None = None
    after: Callable[[Any, bool], object] | None = None  # told the result, and whether it failed


class InPython:
    """The same without a compiler."""

    def __init__(self, call: Method, before: Callable[..., Instead | None] | Span | None) -> None:
        self.call, self.before = call, before

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        before, call = self.before, self.call
        after: Callable[..., object] | None = None
        plan = None
        if isinstance(before, Span):
            after = before.sheet.leave if before.begins() else None
        elif before is not None:
            plan = before(*arguments, **named)
        if plan is not None:
            call, after = plan.call or call, plan.after
            if plan.arguments is not None:
                arguments, named = plan.arguments, dict(plan.named or {})
        if after is None:
            return call(*arguments, **named)
        result, failed = None, True
        try:
            result = call(*arguments, **named)
            failed = False
            return result
        finally:
            after(result, failed)


if TYPE_CHECKING:
    _Around = InPython
else:
    try:
        _Around = import_module("tb_stall_plugin.capture.training._around").Around
    except ImportError:
        _Around = InPython


class Around(_Around):
    """Stands in for the function `call`, or for a method of a class. `before` gets the arguments
    of each call, and returns None if the call is to be made as it is. A span times all calls."""

    # With this attribute, AutoGraph considers it its own, and converts neither it nor what it
    # calls.
    autograph_info__ = None

    def __init__(self, call: Method, before: Callable[..., Instead | None] | Span) -> None:
        super().__init__(call, before)
        functools.update_wrapper(self, call)
