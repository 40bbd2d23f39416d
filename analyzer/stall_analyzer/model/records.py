"""Dataclasses that are quick to make.

There are hundreds of them, and for each one Python compiles up to six functions: a third of the
time in which a small run is analyzed, though that makes few of most kinds. Here all share the same
functions; only a class of which many instances are made gets an initializer of its own. That nobody
assigns to a field of a frozen one is left to mypy, which sees Python's own dataclass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

MANY = 100  # instances: compiling an initializer takes as long as making these without one

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  for others to import from here
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, kw_only: bool = False
    ) -> Any:
        def make(cls: type) -> type:
            cls.__doc__ = cls.__doc__ or cls.__name__  # Python would work out a signature
            # In annotations that are texts, Python would search for the kinds that are no fields.
            annotations = vars(cls).get("__annotations__", {})
            cls.__annotations__ = {
                name: kind if "ClassVar" in kind else object for name, kind in annotations.items()
            }
            made = dataclasses.dataclass(init=False, eq=False, repr=False, kw_only=kw_only)(cls)
            made.__annotations__ = annotations
            fields = dataclasses.fields(made)
            shared: dict[str, object] = {"__init__": _initializer(made, fields), "__repr__": _repr}
            if eq:
                shared |= {"__eq__": _are_equal, "__hash__": _hash if frozen else None}
            for name in shared.keys() - vars(cls).keys():
                setattr(made, name, shared[name])
            made.__names__ = tuple(field.name for field in fields)
            made.__values__ = staticmethod(_getter(made.__names__))
            return made

        return make if cls is None else make(cls)


def _initializer(cls: Any, fields: Sequence[Any]) -> Callable[..., None]:
    """Takes and refuses what an `__init__` of Python's would."""
    by_place = [field.name for field in fields if not field.kw_only]
    unset = {field.name: field.default for field in fields}  # all of them, in their order
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
    """Python's own."""
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
