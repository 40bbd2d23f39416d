"""StallCallback: one line in a training script that shows the analyzer the whole first epoch."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tb_stall_plugin.capture.process.guard import folder_for, guard
from tb_stall_plugin.capture.training import keras_model
from tb_stall_plugin.capture.training.endless_data import is_endless
from tb_stall_plugin.capture.training.keras_model import Batches, Fit
from tb_stall_plugin.capture.training.training_session import TrainingSession

logger = logging.getLogger("stall")


def _in_fit(hook: Callable[..., None]) -> Callable[..., None]:
    """A hook that is called only during fit, and is given the session of that fit."""

    @functools.wraps(hook)
    def called(self: StallCallback, *arguments: Any, **named: Any) -> None:
        session = self._under_way
        if session is not None:
            with session.books:
                self._try(hook, self, session, *arguments, **named)

    return called


class StallCallback(tf.keras.callbacks.Callback):
    """Captures a training run for `stall-analyze` and the Stall tab.

        model.fit(..., callbacks=[StallCallback("logs/run1")])

    logdir        where the event file and profiles go; Keras's TensorBoard callback may use it, too
    budget        share of the first epoch's time that profiling may cost
    hang_after_s  no step for this long is recorded as a hang; None: learned from the steps
    probe         measure gradients and updates inside the step
    profile       profile the first epoch, slow steps and hangs
    report        print a line when the first epoch has ended: how long it took, and why
    source        record the text of your own lines that take time
    preflight     before the first epoch, try one batch: can it be learned at all?

    If something in it fails, it says so once, and training continues. One callback may serve
    several fits.
    """

    # For Keras 3: the next batch may begin before we hear of this one's end, as without callbacks.
    async_safe = True
    # For Keras 2: the logs of a batch need not be fetched for us.
    _supports_tf_logs = True

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        *,
        budget: float = 0.02,
        hang_after_s: float | None = None,
        probe: bool = True,
        profile: bool = True,
        report: bool = True,
        source: bool = True,
        preflight: bool = False,
    ) -> None:
        super().__init__()
        self._options: dict[str, Any] = {
            "logdir": os.fspath(logdir),
            "budget": budget,
            "hang_after_s": hang_after_s,
            "probe": probe,
            "profile": profile,
            "report": report,
            "source": source,
        }
        self._is_to_check = preflight
        self._session: TrainingSession | None = None
        self._under_way: TrainingSession | None = None  # the session, while its fit is running
        self._epoch = 0
        self._at_once = 1  # steps per execution
        self._train_batches = self._test_batches = Batches(told_later=False)

    @property
    def logdir(self) -> str:
        return folder_for(self._options["logdir"])

    def __getstate__(self) -> dict[str, Any]:
        """A copy starts over: a session has threads and files, and the copy gets another model."""
        anew = {"_session": None, "_under_way": None, "model": None, "_model": None}
        return {name: anew.get(name, value) for name, value in vars(self).items()}

    # Keras 2 calls these methods. If both versions of Keras are installed, our base class lacks
    # them.
    def _implements_train_batch_hooks(self) -> bool:
        return True

    def _implements_test_batch_hooks(self) -> bool:
        return True

    def _implements_predict_batch_hooks(self) -> bool:
        return False

    def on_train_begin(self, logs: Any = None) -> None:
        self._try(self._begin)

    @_in_fit
    def on_train_end(self, session: TrainingSession, logs: Any = None) -> None:
        self._end_of_batches(session)
        session.end()
        self._under_way = None

    @_in_fit
    def on_epoch_begin(self, session: TrainingSession, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch
        self._train_batches.begin_anew()
        session.epoch_begins(epoch)

    @_in_fit
    def on_epoch_end(self, session: TrainingSession, epoch: int, logs: Any = None) -> None:
        self._end_of_batches(session)
        session.epoch_ends(epoch, logs)

    # These four are called for each batch, with as few calls in between as possible. Clocks around
    # them would take as long as most of them.

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        session = self._under_way
        if session is not None:
            try:
                batches = self._train_batches
                if batches.begun is not None:
                    session.step_ends()
                batches.begun = batch
                session.step_begins()
            except Exception:
                self._switch_off()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        session = self._under_way
        if session is not None and self._train_batches.ended(batch, logs):
            try:
                session.step_ends()
            except Exception:
                self._switch_off()

    @_in_fit
    def on_test_begin(self, session: TrainingSession, logs: Any = None) -> None:
        self._end_of_batches(session)
        self._test_batches.begin_anew()
        data = getattr(self.model, "_eval_epoch_iterator", None)
        session.validation_begins(self._epoch, endless=is_endless(data))

    @_in_fit
    def on_test_end(self, session: TrainingSession, logs: Any = None) -> None:
        if self._test_batches.last_ended():
            session.test_step_ends()
        session.validation_ends(self._epoch)

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        session = self._under_way
        if session is not None:
            try:
                batches = self._test_batches
                if batches.begun is not None:
                    session.test_step_ends()
                batches.begun = batch
                session.test_step_begins()
            except Exception:
                self._switch_off()

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        session = self._under_way
        if session is not None and self._test_batches.ended(batch, None):
            try:
                session.test_step_ends()
            except Exception:
                self._switch_off()

    def _begin(self) -> None:
        fit = Fit(self)
        if self._session is None or not self._session.is_usable:
            self._session = TrainingSession(**self._options)
        if self._is_to_check:
            self._check()
        callback_list = fit.callback_list
        self._under_way = self._session
        self._train_batches = Batches(getattr(callback_list, "_async_train", False))
        self._test_batches = Batches(getattr(callback_list, "_async_test", False))
        model = self.model
        self._at_once = at_once = keras_model.steps_per_execution(model)
        batches = (getattr(self, "params", None) or {}).get("steps")
        self._session.begin(
            model,
            getattr(model, "optimizer", None),
            steps_in_epoch=-(-batches // at_once) if batches else None,
            was_left=fit.was_left,
            others=keras_model.profiled_by_keras(callback_list),
            marks_steps=not keras_model.marks_its_steps(model),
            callbacks=[c for c in getattr(callback_list, "callbacks", ()) if c is not self],
            settings=fit.settings,
        )
        self._session.logged = self._last_logs

    def _check(self) -> None:
        """Done before the books are opened: its time is not part of the epoch."""
        from tb_stall_plugin.capture.preflight.preflight import preflight, say  # noqa: PLC0415

        self._is_to_check = False  # the first fit is enough
        record = preflight(self.model, guard(self._options["logdir"]).recorder)
        if self._options["report"]:
            say(record)

    def _last_logs(self) -> tuple[int, Any] | None:
        """Which step of the epoch has ended last, as far as Keras has told us, and its logs."""
        told = self._train_batches.told
        return None if told is None else (told[0] // self._at_once, told[1])

    def _end_of_batches(self, session: TrainingSession) -> None:
        if self._train_batches.last_ended():
            session.step_ends()

    def _try(self, action: Callable[..., None], *arguments: Any, **named: Any) -> None:
        """Whatever happens in it, training continues."""
        try:
            action(*arguments, **named)
        except Exception:
            self._switch_off()

    def _switch_off(self) -> None:
        self._under_way = None
        logger.warning("StallCallback is turned off; training continues.", exc_info=True)
