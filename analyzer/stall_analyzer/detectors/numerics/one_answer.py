"""The model gives one answer for all inputs, and its metrics show it.

What it finds
A recall, precision or overlap metric (F1, IoU, dice) that is 0 at the end of training; or an
accuracy that is the same number epoch after epoch, below 0.98. Reported only as a note: an accuracy
of 0 in a model whose number of classes is not known.

Why it stalls
A model that never predicts a class has a recall of 0 for it, and one that always predicts the same
class is right exactly as often as that class occurs. The loss may still fall, because the model
becomes more certain of its one answer.

How it is measured
From the metrics of the epochs in the event files, including those of single outputs. The last three
epochs must agree in training and, if the run has validation, in validation as well. Accuracies
count only after a hundred steps, and only for classifiers whose learning rate has not been reduced
to almost nothing, because weights that no longer move keep giving the same answers, too.

Example
Class weights were set to the share of each class instead of its inverse: in all seven epochs, the
accuracy is 0.942 and the recall 0.

What to do
Look at the labels and the class weights first: rare classes need larger weights. Then look at the
inputs as they reach the model.

Blind spots
Metrics with custom names are not recognized. A rare class that the model would have learned later
looks the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.kinds import Severity
from stall_analyzer.model.units import Float64s
from stall_analyzer.signals.numerics.baseline import has_decayed
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.signals import Signals

ID = "ST330"
BUCKET = "numerics"

LEAST_EPOCHS = 3
LEAST_STEPS = 100  # before that a small model may not have changed any answer yet
SAME = 1e-6  # rounding in float32
# A model that is right this often may have learned everything.
GOOD_ACCURACY = 0.98
# A model whose loss fell to this share of its start has learned something.
LEARNED = 0.5
# The outputs of a regression rarely equal their targets this often.
BY_CHANCE = 0.02
OF_ONE_CLASS = ("recall", "precision", "f1", "fbeta", "iou", "io_u", "dice", "true_positives")


def check(signals: Signals) -> Finding | None:
    learning = signals.learning
    never = next(_never_right(learning), None)
    if never is not None:
        return _finding(
            f"{never} is 0 at the end: one class is never recognized",
            f"In the last {LEAST_EPOCHS} epochs, {never} was 0. The model has learned to ignore "
            f"one of the classes.{_meanwhile(learning)}",
        )
    same = next(_always_the_same(learning), None)
    if same is None:
        return _never_equal(learning)
    name, accuracy = same
    return _finding(
        f"{name} is {accuracy:.4g}, epoch after epoch: the model always gives the same answer",
        f"In the last {LEAST_EPOCHS} epochs, {name} was the same to the last digit. A model that "
        f"looks at its inputs changes some of its answers in every epoch.{_meanwhile(learning)}",
    )


def _never_equal(learning: LearningSignals) -> Finding | None:
    """An accuracy of 0, which even a guess exceeds."""
    if learning.settings.classes is not None or has_decayed(learning):
        return None
    for name, values in learning.metrics.items():
        if "acc" in name.lower() and all(not last.any() for last in _ends(learning, name, values)):
            return _finding(
                f"{name} is 0 in the last {LEAST_EPOCHS} epochs",
                f"In regression, accuracy means nothing: it counts the outputs that are exactly "
                f"equal to their targets. In classification, even a guess is sometimes right, so "
                f"the loss and the metric are not computed from the same values: perhaps a mask is "
                f"inverted, or the labels are not in the form that the metric expects (one-hot "
                f"instead of integers, say).{_meanwhile(learning)}",
                "note",
            )
    return None


def _finding(title: str, explanation: str, severity: Severity = "consider") -> Finding:
    return Finding(
        severity=severity,
        title=title,
        explanation=explanation,
        change=Change(
            "Count the labels of each class, and give rare classes larger weights. Then look "
            "at a few inputs as they reach the model.",
            before="class_weight = {0: share_of_0, 1: share_of_1}",
            after="class_weight = {0: 0.5 / share_of_0, 1: 0.5 / share_of_1}",
        ),
        confidence=0.75,
    )


def _never_right(learning: LearningSignals) -> Iterator[str]:
    for name, values in learning.metrics.items():
        is_of_one_class = any(word in name.lower() for word in OF_ONE_CLASS)
        if is_of_one_class and all(not last.any() for last in _ends(learning, name, values)):
            yield name


def _always_the_same(learning: LearningSignals) -> Iterator[tuple[str, float]]:
    is_early = learning.step_count is not None and learning.step_count < LEAST_STEPS
    if is_early or has_decayed(learning):
        return
    for name, values in learning.metrics.items():
        if "acc" not in name.lower() or not _is_classification(learning, name):
            continue
        ends = [*_ends(learning, name, values)]
        if ends and all(np.ptp(last) <= SAME and last[-1] < GOOD_ACCURACY for last in ends):
            yield name, float(ends[0][-1])


def _ends(learning: LearningSignals, name: str, values: Float64s) -> Iterator[Float64s]:
    """The last epochs of training and validation; if there are too few, values that disagree."""
    too_short = np.array([1.0, np.nan])
    for logged in (values, learning.validation_metrics.get(name)):
        if logged is not None:
            yield logged[-LEAST_EPOCHS:] if len(logged) > LEAST_EPOCHS else too_short


def _is_classification(learning: LearningSignals, name: str) -> bool:
    """Regressions are sometimes given accuracies, too, which mean nothing: they are usually 0."""
    if learning.settings.classes is not None:
        return True
    if learning.settings.loss is None and learning.metrics[name][-1] > BY_CHANCE:
        return True
    losses = learning.metrics.get(_loss_of(name, learning.metrics), np.empty(0))
    return len(losses) > LEAST_EPOCHS and bool(losses[-1] > LEARNED * losses[0] > 0)


def _loss_of(accuracy: str, metrics: Mapping[str, Float64s]) -> str:
    """The loss of the same output, where a model has several."""
    outputs = (name.removesuffix("_loss") for name in metrics if name.endswith("_loss"))
    mine = [output for output in outputs if accuracy.startswith(f"{output}_")]
    return f"{max(mine, key=len)}_loss" if mine else ""


def _meanwhile(learning: LearningSignals) -> str:
    losses = learning.epoch_losses
    if len(losses) < 2 or not losses[0] > losses[-1]:
        return ""
    first, last = f"{losses[0]:.3g}", f"{losses[-1]:.3g}"
    return f" Meanwhile, the loss fell from {first} to {last}." if first != last else ""
