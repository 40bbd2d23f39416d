"""All labels are the same.

What it finds
Labels that never differ, in a model whose loss compares outputs with labels.

Why it stalls
There is nothing to learn but one constant. The loss quickly falls to 0 and the accuracy is perfect,
which looks like success.

How it is measured
A capture samples the labels of some batches on their way into the loss: the first sixteen, and more
throughout the epoch. The samples must cover a good part of the first epoch. The finding is more
than a note only if the loss is one of Keras's own that compare outputs with labels, and only from
the second epoch on; otherwise, the labels may be a placeholder.

Example
The label column was read as strings and cast to integers: all labels are 0. The loss is 0.0004
after one epoch.

What to do
Count how many labels of each kind leave the input pipeline.

Blind spots
In a long dataset that is ordered by label, the samples may not reach the second kind of label; then
all labels seem to be of the first kind (see ST319).
"""

from __future__ import annotations

from stall_analyzer.detectors.numerics.loss_agrees import is_first_epoch_alone
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.numerics.batch_look import BatchLook
from stall_analyzer.signals.numerics.model_settings import CROSS_ENTROPIES
from stall_analyzer.signals.signals import Signals

ID = "ST318"
BUCKET = "numerics"

COMPARING = (*CROSS_ENTROPIES, "mean_squared_error", "mean_absolute_error", "huber")
LEAST_STEPS = 50
LEAST_SEEN = 32  # labels: fewer may be the same by chance


def check(signals: Signals) -> Finding | None:
    batches = signals.batches
    if batches is None or batches.labels is None or not _are_the_same(batches):
        return None
    labels, learning = batches.labels, signals.learning
    # Data of one class may come first by design, and the others in later calls of fit.
    is_compared = learning.settings.loss in COMPARING and (learning.step_count or 0) >= LEAST_STEPS
    is_compared &= not is_first_epoch_alone(signals)
    sampled = "one batch" if batches.looks == 1 else f"{batches.looks} batches"
    return Finding(
        severity="act" if is_compared else "note",
        title=f"All labels are the same: {labels.mean:.4g}",
        explanation=(
            f"{labels.seen:,.0f} labels from {sampled} were sampled, and all of them are "
            "the same. A model that always outputs this label is perfect, so there is nothing to "
            "learn."
        ),
        change=Change(
            "Count how many labels of each kind leave the input pipeline.",
            before="model.fit(x, y)",
            after="print(np.unique(y, return_counts=True))\nmodel.fit(x, y)",
        ),
        confidence=0.9 if is_compared else 0.5,
    )


def _are_the_same(batches: BatchLook) -> bool:
    labels, targets = batches.labels, batches.targets
    if labels is None or targets is None or labels.seen < LEAST_SEEN or not batches.spans:
        return False
    is_one_class = labels.kinds == 1
    return is_one_class or (targets.is_constant and targets.not_finite == 0)
