"""What `stall-analyze check` adds to `fit`: the checks, and then the end of the program."""

from __future__ import annotations

import logging
import os
from typing import Any

import tensorflow as tf

from tb_stall_plugin.capture.preflight.preflight import preflight
from tb_stall_plugin.capture.process.guard import guard

logger = logging.getLogger("stall")


class PreflightCallback(tf.keras.callbacks.Callback):
    async_safe = True
    _supports_tf_logs = True

    def __init__(self, logdir: str | os.PathLike[str], goes_on: bool) -> None:
        super().__init__()
        self._logdir, self._goes_on = os.fspath(logdir), goes_on

    def _implements_train_batch_hooks(self) -> bool:
        return False

    def _implements_test_batch_hooks(self) -> bool:
        return False

    def _implements_predict_batch_hooks(self) -> bool:
        return False

    def on_train_begin(self, logs: Any = None) -> None:
        try:
            self._check()
        except Exception:
            logger.warning("The checks before training failed.", exc_info=True)
        if not self._goes_on:
            raise SystemExit(0)

    def _check(self) -> None:
        captured = guard(self._logdir)
        captured.describe()
        preflight(self.model, captured.recorder, may_consume=not self._goes_on)
        captured.recorder.flush(urgent=True)
