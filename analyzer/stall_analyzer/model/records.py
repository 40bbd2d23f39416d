"""Dataclasses that are quick to make.

There are hundreds of them, and for each one Python compiles up to six functions: a quarter of the
time in which a small run is analyzed. Here only `__init__` is compiled; the others are shared. That
nobody assigns to a field of a frozen one is left to mypy, which sees Python's own dataclass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  for others to import from here
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, kw_only: bool = False
    ) -> Any:
        def make(cls: type) -> type:
            cls.__doc__ = cls.__doc__ or cls.__name__  # Python would work out a signature
            shared: dict[str, object] = {"__repr__": _repr}
            if eq:
                shared |= {"__eq__": _are_equal, "__hash__": _hash if frozen else None}
            for name in shared.keys() - vars(cls).keys():
                setattr(cls, name, shared[name])
            made = dataclasses.dataclass(eq=False, repr=False, kw_only=kw_only)(cls)
            made.__values__ = staticmethod(_getter(made))
            return made

        return make if cls is None else make(cls)


def _getter(cls: Any) -> Callable[[Any], Any]:
    """The values of an instance, as a tuple."""
    names = [field.name for field in dataclasses.fields(cls)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _are_equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.__values__(self) == self.__values__(other)


def _hash(self: Any) -> int:
    return hash(self.__values__(self))


def _repr(self: Any) -> str:
    names = [field.name for field in dataclasses.fields(self)]
    shown = (f"{name}={getattr(self, name)!r}" for name in names)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"
