"""Replaces a method of one object for a while, without affecting its class or its copies."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

Around = Callable[..., Any]


class Hook:
    """Stands in for the method `name` of `owner`: a call becomes `around(method, *arguments)`.

    A copy or a pickle of the owner gets the plain method, which must not act on the original.
    """

    # With this attribute, AutoGraph considers it its own, and converts neither it nor what it
    # calls.
    autograph_info__ = None

    def __init__(self, owner: Any, name: str, around: Around) -> None:
        self._owner = owner
        self._name = name
        self._around: Around | None = around
        self._method = getattr(owner, name)
        self._own = vars(owner).get(name)  # the owner may have its own, besides its class's
        functools.update_wrapper(self, self._method)

    def put_in(self) -> None:
        # Bypasses the owner's __setattr__, where Keras and TensorFlow track what is assigned.
        vars(self._owner)[self._name] = self

    def take_out(self) -> None:
        """If somebody else has wrapped this hook in the meantime, it stays and does nothing."""
        self._around = None
        attributes = vars(self._owner)
        if attributes.get(self._name) is self:
            if self._own is None:
                del attributes[self._name]
            else:
                attributes[self._name] = self._own

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        around = self._around  # read only once: another thread may take the hook out
        if around is None:
            return self._method(*arguments, **named)
        return around(self._method, *arguments, **named)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if self._own is not None:
            return copy.deepcopy(self._own, memo)
        copied = memo.get(id(self._owner))
        return self._method if copied is None else getattr(type(copied), self._name).__get__(copied)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._own is not None:
            return _as_it_is, (self._own,)
        return getattr, (self._owner, self._name)


def _as_it_is(value: Any) -> Any:
    return value
