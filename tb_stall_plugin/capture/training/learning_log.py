"""What a training run reports about itself at no cost: the logs of its epochs, and its settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.captures.capture_records import ModelRecord
from tb_stall_plugin.capture.process.recorder import Recorder
from tb_stall_plugin.capture.training.all_losses import KeptLosses, first_not_finite, told
from tb_stall_plugin.capture.training.batch_numbers import BatchNumbers
from tb_stall_plugin.capture.training.batch_sample import (
    Batch,
    is_numeric,
    packed,
    tensors_of,
    unpacked,
)
from tb_stall_plugin.capture.training.keras_model import FitSettings
from tb_stall_plugin.capture.training.probe import Probe, learning_rate_of
from tb_stall_plugin.capture.training.stored_model import model_json
from tb_stall_plugin.capture.training.trained_weights import TrainedWeights

VALIDATION = "val_"  # Keras's prefix for names of metrics of a validation


class LearningLog:
    """The log of one fit, or of one loop."""

    def __init__(
        self,
        recorder: Recorder,
        model: Any = None,
        optimizer: Any = None,
        settings: FitSettings | None = None,
    ) -> None:
        self._recorder = recorder
        self._model = model
        self._optimizer = optimizer
        self._settings = settings or FitSettings()

        self._given = KeptLosses()  # losses that a loop gave us
        self._logged: tuple[int, Any] | None = None  # a step, and Keras's logs after it
        self._logged_at = 0  # the last step whose logs we were given
        self._sum, self._steps = 0.0, 0  # sum and number of the losses in this epoch
        self._batch: Batch | None = None  # of a loop, if its step is due
        self._numbers = BatchNumbers()
        self._weights: TrainedWeights | None = None

    def step_ended(self, loss: Any, batch: Batch | None) -> None:
        """Takes what a loop knows about the step."""
        self._batch = batch
        if loss is not None:
            self._given.put(loss)

    def look_at_batch(self, probe: Probe | None) -> dict[str, float]:
        """Scalars by tag, about the batch of a step that was due."""
        batch, self._batch = self._batch, None
        if batch is not None:
            looked_at = tensors_of(batch, is_numeric)
            if looked_at and all(np.size(tensor) for _, tensor in looked_at):
                return self._numbers.of(unpacked(packed(*zip(*looked_at, strict=True)).numpy()))
        elif probe is not None and probe.batch:
            parts, probe.batch = probe.batch, []
            return self._numbers.of(parts)
        return {}

    def logged(self, step: int, logs: Any) -> None:
        """Takes the logs that Keras gave to callbacks last, unless we were given them before."""
        if step != self._logged_at:
            self._logged_at, self._logged = step, (step, logs)

    def losses(self, probe: Probe | None, step: int) -> dict[str, float]:
        """Scalars by tag, about all steps since the last call. Waits for `step`, the last one."""
        losses = self._given.taken() or (probe.taken_losses() if probe is not None else [])
        self._sum, self._steps = self._sum + sum(losses), self._steps + len(losses)
        ago = first_not_finite(losses)
        if ago is not None and ago + 1 < len(losses):  # also the last finite loss before it
            self._recorder.scalar(Tag.LOSS, losses[-ago - 2], step - ago - 1)
        if ago:
            self._recorder.scalar(Tag.LOSS, math.nan, step - ago)
        if not losses:
            self._record_logged()
        return told(losses)

    def _record_logged(self) -> None:
        """A custom train_step may show its loss only to Keras."""
        (step, logs), self._logged = self._logged or (0, None), None
        loss = _number(logs.get("loss")) if isinstance(logs, Mapping) else None
        if loss is not None:
            self._recorder.scalar(f"{Tag.TRAIN}batch_loss", loss, step)

    def describe(self, probe: Probe | None, why_not_probed: str | None) -> None:
        """Called after the first step, when even models that are built late have their weights."""
        weights = getattr(self._model, "trainable_variables", None) or ()
        model = ModelRecord(
            optimizer=None if self._optimizer is None else type(self._optimizer).__name__,
            parameters=sum(math.prod(weight.shape) for weight in weights),
            layers=tuple(watched.layer for watched in probe.layers) if probe is not None else (),
            probed=why_not_probed is None,
            why=why_not_probed,
            class_weight=self._settings.class_weight,
            batch_size=self._settings.batch_size,
            shuffle=self._settings.shuffle,
        )
        self._recorder.record(model)
        if weights:
            self._weights = TrainedWeights(self._model, self._optimizer)
        if self._model is not None:
            stored = model_json(self._model, self._optimizer)
            if stored is not None:
                self._recorder.keras_model(stored)

    def look_at_weights(self, probe: Probe | None, steps: int) -> None:
        """Called at the end of an epoch: which weights have moved in that many steps."""
        record = self._weights.look(probe, steps) if self._weights is not None else None
        if record is not None:
            self._recorder.record(record)

    def epoch_ended(self, epoch: int, logs: Any) -> None:
        """`logs`: Keras's, by name; values that are not numbers are left out."""
        values: dict[str, float] = {}
        for name, value in logs.items() if isinstance(logs, Mapping) else ():
            number = _number(value)
            if number is not None:
                values[_tag(str(name))] = number
        if self._steps:
            values.setdefault(_tag("loss"), self._sum / self._steps)
        self._sum, self._steps = 0.0, 0
        rate = learning_rate_of(self._optimizer)
        if values and rate is not None:
            values.setdefault(_tag("learning_rate"), rate)
        if values:
            self._recorder.scalars(values, epoch)


def _tag(name: str) -> str:
    """The tag that Keras's TensorBoard callback uses, for training or for validation."""
    if name.startswith(VALIDATION):
        return f"{Tag.VALIDATION}epoch_{name.removeprefix(VALIDATION)}"
    return f"{Tag.TRAIN}epoch_{name}"


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
