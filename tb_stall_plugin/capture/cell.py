"""Turns the capture on for a while in a running process: around a notebook's cell."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from stall_analyzer.captures.capture_format import StopReason
from tb_stall_plugin.capture.imports import TRAINERS, AfterImport, with_callback
from tb_stall_plugin.capture.process import guard


@contextmanager
def captured_fits(logdir: str | os.PathLike[str]) -> Iterator[list[str]]:
    """Inside the block, each `fit` gets a StallCallback, unless it has one. Yields the list of the
    folders that they write to, which is complete when the block ends."""
    folders: list[str] = []
    changed = _ChangedFits(lambda given: _callbacks(given, os.fspath(logdir), folders))
    for name in TRAINERS:
        if name in sys.modules:
            changed.change(sys.modules[name])
    missing = [name for name in TRAINERS if name not in sys.modules]
    finder = AfterImport(dict.fromkeys(missing, changed.change))
    sys.meta_path.insert(0, finder)
    try:
        yield folders
    finally:
        sys.meta_path.remove(finder)
        changed.put_back()
        if os.fspath(logdir) in folders and guard.is_on_duty():
            # Otherwise, the run would seem to continue for as long as the notebook's kernel lives.
            guard.guard(logdir).close(StopReason.EXIT)


def _callbacks(given: Sequence[Any], logdir: str, folders: list[str]) -> list[Any]:
    from tb_stall_plugin import StallCallback  # noqa: PLC0415  it brings TensorFlow

    there = [callback for callback in given if isinstance(callback, StallCallback)]
    new = [] if there else [StallCallback(logdir, report=False)]
    for folder in (callback.logdir for callback in (*there, *new)):
        if folder not in folders:
            folders.append(folder)
    return new


class _ChangedFits:
    def __init__(self, ours: Callable[[Sequence[Any]], list[Any]]) -> None:
        self._ours: Callable[[Sequence[Any]], list[Any]] | None = ours
        self._before: list[tuple[Any, Any, Any]] = []  # the class, its own fit, and our fit

    def change(self, module: ModuleType) -> None:
        trainer = getattr(module, TRAINERS[module.__name__])
        before = trainer.fit
        trainer.fit = with_callback(before, self._callbacks)
        self._before.append((trainer, before, trainer.fit))

    def put_back(self) -> None:
        """If somebody has wrapped our fit in the meantime, it stays and does nothing."""
        self._ours = None
        for trainer, before, ours in self._before:
            if trainer.fit is ours:
                trainer.fit = before

    def _callbacks(self, given: Sequence[Any]) -> list[Any]:
        return self._ours(given) if self._ours else []
