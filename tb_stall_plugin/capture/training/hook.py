"""Replaces a method of one object for a while, without affecting its class or its copies."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from tb_stall_plugin.capture.training.around import Around, Instead
from tb_stall_plugin.capture.training.time_sheet import Span


class Hook(Around):
    """Stands in for the method `name` of `owner`. `before` gets the method and the arguments of
    each call; a span needs none of them.

    A copy or a pickle of the owner gets the plain method, which must not act on the original.
    """

    def __init__(self, owner: Any, name: str, before: Callable[..., Instead | None] | Span) -> None:
        self._owner = owner
        self._name = name
        self._own = vars(owner).get(name)  # the owner may have its own, besides its class's
        self._method = method = getattr(owner, name)
        super().__init__(
            method, before if isinstance(before, Span) else functools.partial(before, method)
        )

    def put_in(self) -> None:
        # Bypasses the owner's __setattr__, where Keras and TensorFlow track what is assigned.
        vars(self._owner)[self._name] = self

    def take_out(self) -> None:
        """If somebody else has wrapped this hook in the meantime, it stays and does nothing."""
        self.before = None
        attributes = vars(self._owner)
        if attributes.get(self._name) is self:
            if self._own is None:
                del attributes[self._name]
            else:
                attributes[self._name] = self._own

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
