"""The losses of all steps, although only a few steps are measured.

In a compiled step, four small ops put the loss into a ring buffer; outside, losses are kept as they
are. Neither waits for a step: losses are read when a measured step is waited for anyway.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from stall_analyzer.captures.capture_format import Tag

raw = tf.raw_ops
# Between two looks, there are hundreds of fast steps, rarely thousands. Copying 16 kB is quick.
ROOM = 4096


class LossRing:
    """Losses of compiled steps. Its variables belong to no model, no checkpoint, no strategy."""

    def __init__(self) -> None:
        self._ring = tf.Variable(tf.zeros([ROOM]), trainable=False)
        self._count = tf.Variable(tf.constant(0, tf.int64), trainable=False)
        self._is_used = False
        self._read = 0

    def put(self, loss: Any) -> None:
        """Called inside the step. A step that finds no more batches has no loss, and is not
        counted."""
        self._is_used = True
        with tf.control_dependencies([loss]):
            one = tf.constant(1, tf.int64)
            raw.AssignAddVariableOp(resource=self._count.handle, value=one)
        count = raw.ReadVariableOp(resource=self._count.handle, dtype=tf.int64)
        place = raw.FloorMod(x=count, y=tf.constant(ROOM, tf.int64))
        raw.ResourceScatterUpdate(resource=self._ring.handle, indices=place, updates=loss)

    def taken(self) -> list[float]:
        """The losses since the last call, as far as there was room for them."""
        if not self._is_used:
            return []
        count = int(raw.ReadVariableOp(resource=self._count.handle, dtype=tf.int64).numpy())
        new = min(count - self._read, ROOM)
        self._read = count
        if new <= 0:
            return []
        ring = raw.ReadVariableOp(resource=self._ring.handle, dtype=tf.float32).numpy()
        losses: list[float] = ring[np.arange(count - new + 1, count + 1) % ROOM].tolist()
        return losses


class KeptLosses:
    """Losses that a loop or an eager step gave us: numbers, or tensors that are not waited for."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def put(self, loss: Any) -> None:
        if len(self._kept) >= ROOM:
            del self._kept[: ROOM // 2]
        self._kept.append(loss)

    def taken(self) -> list[float]:
        """The losses since the last call."""
        kept, self._kept = self._kept, []
        return [float(loss) for loss in kept]


def told(losses: Sequence[float]) -> dict[str, float]:
    """Scalars by tag, about the step that has just ended, and about all steps since the last
    look."""
    if not losses:
        return {}
    values = {Tag.LOSS: losses[-1]}
    if len(losses) > 1:
        finite = [loss for loss in losses if math.isfinite(loss)]
        values[Tag.LOSS_STEPS] = len(losses)
        values[Tag.LOSS_NOT_FINITE] = len(losses) - len(finite)
        if finite:
            values[Tag.LOSS_MEAN] = sum(finite) / len(finite)
            values[Tag.LOSS_LOWEST] = min(finite)
            values[Tag.LOSS_HIGHEST] = max(finite)
    return values


def first_not_finite(losses: Sequence[float]) -> int | None:
    """How many steps before the last one the first such loss was; None if all are finite."""
    bad = [n for n, loss in enumerate(losses) if not math.isfinite(loss)]
    return len(losses) - 1 - bad[0] if bad else None
