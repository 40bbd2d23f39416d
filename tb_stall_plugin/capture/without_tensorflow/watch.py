"""`watch` for loops that train without TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tb_stall_plugin.capture.without_tensorflow.session import PlainSession, quietly


class watch:
    """Takes the same options as `watch` for TensorFlow, but the model, the optimizer and those for
    profiles, the probe and the line about the first epoch have no effect. Never raises."""

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        model: Any = None,
        optimizer: Any = None,
        hang_after_s: float | None = None,
        **_: Any,
    ) -> None:
        self._logdir, self._hang_after_s = os.fspath(logdir), hang_after_s
        self._session: PlainSession | None = None
        self._epoch: int | None = None

    def __enter__(self) -> watch:
        self._try(self._begin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._try(lambda: self._end(error))

    def epoch(self) -> None:
        """An epoch begins."""
        self._try(self._begin_epoch)

    def step(self, loss: Any = None) -> None:
        """A step has ended. The loss is fetched for a few steps only."""
        self._try(lambda: self._end_step(loss))

    def _begin(self) -> None:
        self._session = PlainSession(self._logdir, self._hang_after_s)
        self._session.begin()
        self._session.step_begins()

    def _begin_epoch(self) -> None:
        if self._session is not None:
            self._end_epoch(self._session)
            self._epoch = 0 if self._epoch is None else self._epoch + 1
            self._session.epoch_begins(self._epoch)
            self._session.step_begins()

    def _end_step(self, loss: Any) -> None:
        if self._session is not None:
            self._session.step_ends(lambda: None if loss is None else float(loss))
            self._session.step_begins()

    def _end(self, error: BaseException | None) -> None:
        if self._session is not None:
            if error is not None:
                self._session.failed(error)
            self._end_epoch(self._session)
            self._session.end()

    def _end_epoch(self, session: PlainSession) -> None:
        if self._epoch is not None:
            session.epoch_ends(self._epoch)

    def _try(self, action: Callable[[], None]) -> None:
        if not quietly(action):
            self._session = None
