"""Ends the first epoch of a trial run after a number of steps, and times it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf


class BoundCallback(tf.keras.callbacks.Callback):
    """Calls `done` with nanoseconds, steps and loss when the steps are over."""

    # Uses only the beginning of a batch, which Keras 3 reports at once in any case. If a callback
    # wanted its end, Keras might fetch the logs of each batch.
    async_safe = True
    _supports_tf_logs = True

    def __init__(
        self,
        steps: int,
        seconds: float | None,
        at_once: int,
        done: Callable[[int, int, float | None], None],
    ) -> None:
        super().__init__()
        self._steps, self._seconds = steps, seconds
        self._at_once = at_once
        self._done = done
        self._began_ns = 0
        self._seen = 0

    def _implements_train_batch_hooks(self) -> bool:
        return True

    def _implements_test_batch_hooks(self) -> bool:
        return False

    def _implements_predict_batch_hooks(self) -> bool:
        return False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._began_ns = time.perf_counter_ns()

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._seen = batch + self._at_once
        late = self._seconds is not None and self._took_ns() > self._seconds * 1e9
        if self._seen >= self._steps or late:
            self.model.stop_training = True  # Keras ends the epoch after this call

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        loss = (logs or {}).get("loss")
        self._done(self._took_ns(), self._seen, None if loss is None else float(loss))

    def _took_ns(self) -> int:
        return time.perf_counter_ns() - self._began_ns
