"""How many examples a batch has, if anything in the log shows it."""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.columns import is_in
from stall_analyzer.model.event_log import EventLog, KerasConfig, Series
from stall_analyzer.signals.numerics.losses import first_fit

# With several examples per batch, some of this many batches would be partly right. Right and wrong
# must also alternate in this share of the steps: examples sorted by class make long runs of either.
LEAST_STEPS = 30
LEAST_TURNS = 0.15
NEAR_WHOLE = 0.02  # how far float32 may take a sum from a whole number


def batch_size(events: EventLog | None, keras: KerasConfig | None) -> int | None:
    """From the capture or the model's input shape; 1, if the accuracy of each step shows it."""
    model = events.capture.model if events is not None and events.capture is not None else None
    given = model.batch_size if model is not None else None
    if given is not None or events is None:
        return given
    return _built_for(keras) or (1 if _each_is_right_or_wrong(events) else None)


def _built_for(keras: KerasConfig | None) -> int | None:
    for layer in keras.layers if keras is not None else ():
        shape = layer.get("batch_shape", layer.get("batch_input_shape"))
        if isinstance(shape, list) and shape and isinstance(shape[0], int):
            return shape[0]
    return None


def _each_is_right_or_wrong(events: EventLog) -> bool:
    """Whether the accuracy of every step is all or nothing, as with a single example."""
    tags = [tag for tag in events.train if tag.startswith("batch_") and "acc" in tag]
    if len(tags) != 1:
        return False
    right = _right_so_far(first_fit(events.train[tags[0]]))
    if right is None or len(right) < LEAST_STEPS:
        return False
    gained = np.diff(right, prepend=0.0)
    whole = np.round(gained)
    if np.abs(gained - whole).max() > NEAR_WHOLE or not is_in(whole, (0, 1)).all():
        return False
    return bool(np.mean(np.diff(whole) != 0) >= LEAST_TURNS)


def _right_so_far(series: Series | None) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    """How many were right in the first epoch, from running means; None if steps are missing."""
    if series is None or len(series) == 0 or series.step[0] not in (0, 1):
        return None
    count = series.step - series.step[0] + 1
    if not (np.diff(count) == 1).all() or not np.isfinite(series.value).all():
        return None
    total = count * series.value
    # The next epoch starts a new mean, so the sum usually drops.
    again = np.flatnonzero(np.diff(total) < -NEAR_WHOLE)
    return np.asarray(total[: again[0] + 1] if len(again) else total, dtype=np.float64)
