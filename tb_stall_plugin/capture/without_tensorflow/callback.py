"""StallCallback for Keras 3 on JAX and on PyTorch."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import keras

from tb_stall_plugin.capture.process.guard import folder_for
from tb_stall_plugin.capture.training.keras_model import Fit, steps_per_execution
from tb_stall_plugin.capture.without_tensorflow.session import MeanOfEpoch, PlainSession, quietly


def _in_fit(hook: Callable[..., None]) -> Callable[..., None]:
    """A hook that is called only during fit, and is given the session of that fit."""

    @functools.wraps(hook)
    def called(self: StallCallback, *arguments: Any, **named: Any) -> None:
        session = self._under_way
        if session is not None and not quietly(
            functools.partial(hook, self, session, *arguments, **named)
        ):
            self._under_way = None

    return called


class StallCallback(keras.callbacks.Callback):
    """Takes the same options as `StallCallback` for TensorFlow, but those for profiles, the probe
    and the line about the first epoch have no effect. If the callback fails, training continues."""

    def __init__(
        self, logdir: str | os.PathLike[str], *, hang_after_s: float | None = None, **_: Any
    ) -> None:
        super().__init__()
        self._logdir, self._hang_after_s = os.fspath(logdir), hang_after_s
        self._session: PlainSession | None = None
        self._under_way: PlainSession | None = None
        self._epoch = 0
        self._loss = MeanOfEpoch()

    @property
    def logdir(self) -> str:
        return folder_for(self._logdir)

    def __getstate__(self) -> dict[str, Any]:
        """A copy starts over: a session has threads and files, and the copy gets another model."""
        anew = {"_session": None, "_under_way": None, "model": None, "_model": None}
        return {name: anew.get(name, value) for name, value in vars(self).items()}

    def on_train_begin(self, logs: Any = None) -> None:
        quietly(self._begin)

    def _begin(self) -> None:
        if self._session is None or not self._session.is_usable:
            self._session = PlainSession(self._logdir, self._hang_after_s)
        batches = (self.params or {}).get("steps")
        steps = -(-batches // steps_per_execution(self.model)) if batches else None
        self._session.begin(steps, Fit(self).was_left)
        self._under_way = self._session

    @_in_fit
    def on_train_end(self, session: PlainSession, logs: Any = None) -> None:
        session.end()
        self._under_way = None

    @_in_fit
    def on_epoch_begin(self, session: PlainSession, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch
        self._loss.begin_anew()
        session.epoch_begins(epoch)

    @_in_fit
    def on_epoch_end(self, session: PlainSession, epoch: int, logs: Any = None) -> None:
        session.epoch_ends(epoch)

    @_in_fit
    def on_train_batch_begin(self, session: PlainSession, batch: int, logs: Any = None) -> None:
        session.step_begins()

    @_in_fit
    def on_train_batch_end(self, session: PlainSession, batch: int, logs: Any = None) -> None:
        session.step_ends(lambda: self._loss.since(batch + 1, logs))

    @_in_fit
    def on_test_begin(self, session: PlainSession, logs: Any = None) -> None:
        session.validation_begins(self._epoch)

    @_in_fit
    def on_test_batch_end(self, session: PlainSession, batch: int, logs: Any = None) -> None:
        session.alive()

    @_in_fit
    def on_test_end(self, session: PlainSession, logs: Any = None) -> None:
        session.validation_ends(self._epoch)
