"""What a program of this folder is given: the capture, or nothing that looks like it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


class NotWatched:
    """`watch`, of a program that runs alone."""

    def epoch(self) -> None: ...

    def step(self, loss: Any = None) -> None: ...


@dataclass
class Capture:
    """`logdir`: None in the run without a capture."""

    folder: Path  # for files of the program's own
    logdir: str | None
    results: list[str] = field(default_factory=list)
    left: dict[str, float] = field(default_factory=dict)  # what must not grow, by what it is

    @property
    def is_on(self) -> bool:
        return self.logdir is not None

    def callbacks(self, logdir: str | None = None, **options: Any) -> list[Any]:
        from tb_stall_plugin import StallCallback  # noqa: PLC0415 (it brings Keras)

        return [StallCallback(logdir or self.logdir, **options)] if self.logdir else []

    @contextmanager
    def watch(self, model: Any = None, optimizer: Any = None) -> Iterator[Any]:
        from tb_stall_plugin import watch  # noqa: PLC0415

        if self.logdir is None:
            yield NotWatched()
        else:
            with watch(self.logdir, model, optimizer) as watched:
                yield watched

    def result(self, values: Iterable[Any]) -> None:
        """Weights, or whatever must be the same to the last bit."""
        for value in values:
            array = np.asarray(value)
            told = f"{array.dtype}{array.shape}".encode() + array.tobytes()
            self.results.append(hashlib.sha256(told).hexdigest()[:16])

    def weights(self, *models: Any) -> None:
        for model in models:
            self.result(model.get_weights())


@dataclass(frozen=True)
class Kind:
    name: str
    what: str  # in words for the table
    program: Callable[[Capture], None]
    needs: str = ""  # a package that need not be there
    environment: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()  # of Python
    sends: int = 0  # a signal, when the program has said that it is ready
    through: tuple[str, ...] = ()  # a command of stall-analyze that starts it, if not alone
    says: tuple[str, ...] = ()  # our other words on the console, besides the first epoch's line


KINDS: dict[str, Kind] = {}


def kind(what: str, **options: Any) -> Callable[[Callable[[Capture], None]], Kind]:
    """Makes a function a program of this folder. Its name is the function's."""

    def register(program: Callable[[Capture], None]) -> Kind:
        found = Kind(program.__name__, what, program, **options)
        KINDS[found.name] = found
        return found

    return register
