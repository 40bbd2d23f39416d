"""The scalars of epochs, from whatever logged them: Keras's TensorBoard callback, or a capture."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.model.event_log import EventLog, Series

OF_EPOCHS = "epoch_"


def training_logs(events: EventLog) -> Mapping[str, Series]:
    """By the tags of Keras's callback, whose own values take precedence."""
    return _with_captured(events, events.train, Tag.TRAIN)


def validation_logs(events: EventLog) -> Mapping[str, Series]:
    return _with_captured(events, events.validation, Tag.VALIDATION)


def _with_captured(
    events: EventLog, logged: Mapping[str, Series], prefix: str
) -> Mapping[str, Series]:
    if events.capture is None or any(tag.startswith(OF_EPOCHS) for tag in logged):
        return logged
    start = prefix.removeprefix(Tag.ALL)
    found = {
        tag.removeprefix(start): _first_fit(series)
        for tag, series in events.capture.series.items()
        if tag.startswith(start)
    }
    return {**found, **logged}


def _first_fit(series: Series) -> Series:
    """Another fit() of the process starts its epochs over, or continues them."""
    again = np.flatnonzero(np.diff(series.step) <= 0)
    end = int(again[0]) + 1 if len(again) else len(series)
    return Series(series.step[:end], series.wall_ns[:end], series.value[:end])
