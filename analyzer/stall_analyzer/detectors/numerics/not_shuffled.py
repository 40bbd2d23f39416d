"""The data is ordered by label: each batch contains labels of one kind.

What it finds
Batches in which the labels hardly differ, although they differ across the dataset.

Why it stalls
Each batch pulls the model toward its own kind of label, and the next kind makes it forget the last.
While one kind lasts, the training loss looks low, but the model knows only what it saw last.

How it is measured
A capture samples the labels of some batches. It computes what share of the variance of all labels
is found within individual batches: about 1 where rows are drawn at random, near 0 where they are
ordered. The finding is more than a note only where the loss agrees: the validation loss is far
above the training loss, the loss of individual steps goes far above the mean of the last epoch, or
nothing is learned.

Example
The file lists all examples of class 0, then all of class 1, and the pipeline has no shuffle: the
training loss is 0.1, and so is the validation accuracy.

What to do
Shuffle the rows before they are batched.

Blind spots
Windows of a time series may be in order on purpose; in that case, the loss falls as it should.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.detectors.numerics.loss_agrees import learns_nothing
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import percent
from stall_analyzer.signals.signals import Signals

ID = "ST319"
BUCKET = "numerics"

# Rows drawn at random leave all of the variance within batches, give or take a few tenths.
WITHIN = 0.1
LEAST_LOOKS = 8
LEAST_ROWS = 8  # of a batch: fewer may be of one kind by chance
# A single loss this many times the mean of its epoch: the model has forgotten what it knew.
JUMPS = 3.0
# A validation loss this many times that of training: it knows only what it saw last.
WORSE = 2.0


def check(signals: Signals) -> Finding | None:
    batches = signals.batches
    labels = batches.labels if batches is not None else None
    if batches is None or labels is None or labels.within is None or not labels.variance:
        return None
    if batches.looks < LEAST_LOOKS or batches.rows < LEAST_ROWS or labels.within > WITHIN:
        return None
    reason = _forgets(signals)
    return Finding(
        severity="consider" if reason else "note",
        title="The data is not shuffled: each batch contains labels of one kind",
        explanation=(
            f"Labels in the same batch hardly differ: {percent(labels.within, 1)} of the variance "
            f"of all labels is found within individual batches ({batches.looks} were sampled). "
            f"{reason}"
        ).strip(),
        change=_change(signals),
        confidence=0.85 if reason else 0.5,
    )


def _forgets(signals: Signals) -> str:
    """How the loss agrees; empty where it does not."""
    learning = signals.learning
    last, validation = learning.last_loss, learning.validation_losses
    if len(validation) and last is not None and validation[-1] > WORSE * abs(last):
        return f"The validation loss is {validation[-1]:.3g}, but the training loss is {last:.3g}."
    highest = _highest(signals)
    epochs = learning.epoch_losses
    if highest is not None and len(epochs) and highest > JUMPS * abs(epochs[-1]):
        return (
            f"The loss of individual steps goes as high as {highest:.3g}; the mean is "
            f"{epochs[-1]:.3g}."
        )
    return "The loss shows that nothing is learned." if learns_nothing(signals) else ""


def _highest(signals: Signals) -> float | None:
    """The highest loss of any step in the last third of the training, well past the beginning."""
    name = Tag.LOSS_HIGHEST.removeprefix(Tag.ALL)
    series = signals.capture.series.get(name) if signals.capture is not None else None
    if series is None or not len(series):
        return None
    late = series.value[series.step >= 2 * series.step[-1] / 3]
    return float(np.max(late))


def _change(signals: Signals) -> Change:
    record = signals.capture.model if signals.capture is not None else None
    if record is not None and record.shuffle is False:
        return Change(
            "Let fit shuffle the rows.",
            before="model.fit(x, y, shuffle=False)",
            after="model.fit(x, y)",
        )
    return Change(
        "Shuffle the rows before they are batched, with a buffer large enough to hold many kinds "
        "of labels at once.",
        before="data.batch(32)",
        after="data.shuffle(len(x)).batch(32)",
    )
