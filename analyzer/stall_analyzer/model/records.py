"""Dataclasses that are quick to create.

There are hundreds of them, and Python compiles up to six functions for each: a third of the time it
takes to analyze a small run, which creates few instances of most. Here, all share the same
functions; only a class with many instances gets its own initializer. Only mypy, which sees Python's
own dataclass, checks that fields of frozen ones are not assigned.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

MANY = 100  # instances: compiling an initializer takes as long as creating this many without one
_FIELD: Any = dataclasses._FIELD  # type: ignore[attr-defined]  # what Python's functions check

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  for others to import from here
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, kw_only: bool = False
    ) -> Any:
        def make(cls: Any) -> type:
            fields = _fields(cls, kw_only)
            shared: dict[str, object] = {"__init__": _initializer(cls, fields), "__repr__": _repr}
            if eq:
                shared |= {"__eq__": _are_equal, "__hash__": _hash if frozen else None}
            for name, function in shared.items():
                if name not in vars(cls):
                    setattr(cls, name, function)
            cls.__dataclass_fields__ = {field.name: field for field in fields}  # as in Python's own
            cls.__names__ = tuple(cls.__dataclass_fields__)
            cls.__values__ = staticmethod(_getter(cls.__names__))
            return cls

        return make if cls is None else make(cls)


def _fields(cls: Any, kw_only: bool) -> list[Any]:
    """Inherited fields and its own, in Python's form, so that its functions for dataclasses
    recognize them."""
    found = dict(getattr(cls, "__dataclass_fields__", {}))
    for name, kind in vars(cls).get("__annotations__", {}).items():
        if "ClassVar" in kind:
            continue
        given = vars(cls).get(name, dataclasses.MISSING)
        field: Any = given if isinstance(given, dataclasses.Field) else None
        if field is None:
            field = dataclasses.field(default=given)
        elif field.default is dataclasses.MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, field.default)
        field.name, field.type, field._field_type = name, kind, _FIELD
        if field.kw_only is dataclasses.MISSING:
            field.kw_only = kw_only
        found[name] = field
    return list(found.values())


def _initializer(cls: Any, fields: Sequence[Any]) -> Callable[..., None]:
    """Accepts and refuses what Python's own `__init__` would."""
    by_place = [field.name for field in fields if not field.kw_only]
    unset = {field.name: field.default for field in fields}  # all fields, in order
    factories = {
        field.name: field.default_factory
        for field in fields
        if field.default_factory is not dataclasses.MISSING
    }
    required = {
        name for name, value in unset.items() if value is dataclasses.MISSING
    } - factories.keys()

    made = 0

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        nonlocal made
        made += 1
        if made == MANY:
            cls.__init__ = _compiled_initializer(cls)
        given = dict(zip(by_place, values, strict=False))
        given.update(named)
        attributes = vars(self)
        attributes.update(unset)
        attributes.update(given)
        if len(attributes) > len(unset) or len(given) < len(values) + len(named):
            raise TypeError(f"{cls.__name__} takes {', '.join(unset)}, each once")
        if len(given) < len(unset):
            if not required <= given.keys():
                raise TypeError(
                    f"{cls.__name__} needs {', '.join(sorted(required - given.keys()))}"
                )
            for name, make in factories.items():
                if name not in given:
                    attributes[name] = make()

    return __init__


def _compiled_initializer(cls: Any) -> Callable[..., None]:
    """Python's own initializer."""
    fields = [
        (of.name, object, dataclasses.field(
            default=of.default, default_factory=of.default_factory, kw_only=of.kw_only
        ))
        for of in dataclasses.fields(cls)
    ]  # fmt: skip
    twin: Any = dataclasses.make_dataclass(cls.__name__, fields, eq=False, repr=False)
    initializer: Callable[..., None] = twin.__init__
    return initializer


def _getter(names: Sequence[str]) -> Callable[[Any], Any]:
    """The values of an instance, as a tuple."""
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
    shown = map("{}={!r}".format, self.__names__, self.__values__(self))
    return f"{self.__class__.__qualname__}({', '.join(shown)})"
