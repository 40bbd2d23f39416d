"""One training run without TensorFlow: what happened when, losses, the host, hangs. Where the time
of a step went is not known here, so there are no books and no profile.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from stall_analyzer.captures.capture_format import MarkName, Tag, TrainingPhase
from stall_analyzer.captures.capture_records import MarkRecord
from tb_stall_plugin.capture.backend import backend
from tb_stall_plugin.capture.process.guard import guard
from tb_stall_plugin.capture.process.pulse import NS
from tb_stall_plugin.capture.training.measured_steps import MeasuredSteps

logger = logging.getLogger("stall")

NAMES = {"jax": "JAX", "torch": "PyTorch", "": "something other than TensorFlow"}
LONG_STEP_S = 0.05  # steps at least this long are all logged, shorter ones when they are due
NOT_LOOKED_INTO = (
    "This model is trained with {name}. Epochs, steps, losses, memory and hangs are recorded, but "
    "not where the time of a step went, because the capture can see inside TensorFlow's steps only."
)


class PlainSession:
    """Called by the training thread. If an exception ends a fit, the watchdog ends its session."""

    def __init__(self, logdir: str, hang_after_s: float | None) -> None:
        self._guard = guard(logdir, hang_after_s)
        self._recorder, self._pulse = self._guard.recorder, self._guard.pulse
        self._lock = threading.RLock()
        self._fit: object | None = None  # None while no fit is running
        self._when_left: Callable[[], bool] | None = None
        self._measured_steps = MeasuredSteps()

    @property
    def is_usable(self) -> bool:
        return self._guard.is_open

    def begin(
        self, steps_in_epoch: int | None = None, was_left: Callable[[], bool] | None = None
    ) -> None:
        """`was_left` tells whether an exception has ended the fit, if that can be known."""
        self._pulse.was_left()
        with self._lock:
            self.end()
            name = NAMES.get(backend(), backend())
            self._recorder.note("info", NOT_LOOKED_INTO.format(name=name))
            self._fit = fit = object()
            if was_left is not None:
                self._when_left = lambda: self._end_if(was_left, fit)
                self._pulse.fits.append(self._when_left)
            self._guard.describe()
            self._pulse.begin(TrainingPhase.STARTUP)
            self._mark(MarkName.FIT_BEGIN, steps=steps_in_epoch)

    def end(self, write: bool = True) -> None:
        with self._lock:
            if self._fit is None:
                return
            self._fit = None
            if self._when_left in self._pulse.fits:
                self._pulse.fits.remove(self._when_left)
            self._when_left = None
            self._mark(MarkName.FIT_END)
            self._pulse.begin(TrainingPhase.IDLE)
            if write:
                self._guard.write_now()

    def _end_if(self, was_left: Callable[[], bool], fit: object) -> bool:
        """Called by the watchdog, which must never wait."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._fit is not fit or not was_left():
                return False
            self.end(write=False)
            return True
        finally:
            self._lock.release()

    def failed(self, error: BaseException) -> None:
        self._guard.exception(error)

    def epoch_begins(self, epoch: int) -> None:
        self._mark(MarkName.EPOCH_BEGIN, epoch)
        self._pulse.begin(TrainingPhase.BETWEEN_BATCHES)
        self._pulse.step_begins_now()

    def epoch_ends(self, epoch: int) -> None:
        self._mark(MarkName.EPOCH_END, epoch)
        self._pulse.begin(TrainingPhase.EPOCH_END)

    def validation_begins(self, epoch: int) -> None:
        self._mark(MarkName.VALIDATION_BEGIN, epoch)
        self._pulse.begin(TrainingPhase.VALIDATION)

    def validation_ends(self, epoch: int) -> None:
        self._mark(MarkName.VALIDATION_END, epoch)
        self._pulse.begin(TrainingPhase.EPOCH_END)

    def step_begins(self) -> None:
        self._pulse.begin(TrainingPhase.TRAIN_BATCH)

    def step_ends(self, loss: Callable[[], float | None]) -> None:
        """`loss` is called for a few steps only."""
        self._pulse.step_done()
        was_due, _ = self._measured_steps.steps_ended(1)
        seconds = self._pulse.step_ns[-1] / NS
        if was_due or seconds >= LONG_STEP_S:
            values = {Tag.STEP_SECONDS: seconds}
            told = loss()
            if told is not None:
                values[Tag.LOSS] = told
            self._recorder.scalars(values, self._pulse.steps_done - 1)
        self._pulse.phase = TrainingPhase.BETWEEN_BATCHES

    def alive(self) -> None:
        """A validation step has ended."""
        self._pulse.alive()

    def _mark(self, what: str, epoch: int | None = None, steps: int | None = None) -> None:
        done, now_ns = self._pulse.steps_done, time.time_ns()
        self._recorder.record(MarkRecord(ns=now_ns, what=what, epoch=epoch, step=done, steps=steps))


class MeanOfEpoch:
    """Keras reports the mean loss of an epoch so far: works out the mean of the latest steps."""

    def __init__(self) -> None:
        self._told = 0, 0.0

    def begin_anew(self) -> None:
        self._told = 0, 0.0

    def since(self, steps: int, logs: Any) -> float | None:
        mean = (logs or {}).get("loss")
        if mean is None:
            return None
        before, mean_before = self._told
        self._told = steps, float(mean)
        if steps <= before:
            return None
        return (steps * float(mean) - before * mean_before) / (steps - before)


def quietly(action: Callable[[], None]) -> bool:
    """Returns whether it worked. Whatever happens in it, the training continues."""
    try:
        action()
    except Exception:
        logger.warning("The capture is turned off; training continues.", exc_info=True)
        return False
    return True
