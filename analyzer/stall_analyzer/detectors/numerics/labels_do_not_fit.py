"""The labels lie outside the range of the last layer.

What it finds
Labels that no output can reach: outside the range from 0 to 1 with a sigmoid or softmax, from -1 to
1 with a tanh, or below 0 with a relu; classes that the last layer has no unit for; and labels
outside the range from 0 to 1 with a cross-entropy, which expects probabilities.

Why it stalls
Outputs go to the end of their range and stay there, where the gradient is zero. With a
cross-entropy, such labels let the loss fall below zero without limit.

How it is measured
The smallest and largest label in the batches that a capture sampled are compared with what the last
activation and the loss of the stored model allow. A twentieth of the range is allowed for noise.
Classes without a unit are always more than a note; other labels are more than a note only where
even their mean is out of reach, or the loss shows that nothing is learned.

Example
Prices in thousands, predicted by a sigmoid: the largest label is 500, but the largest possible
output is 1.

What to do
Use a linear last layer, or scale the labels into the range of the activation.

Blind spots
Needs the stored model. A custom layer that scales the outputs is not recognized.
"""

from __future__ import annotations

import math

from stall_analyzer.detectors.numerics.loss_agrees import learns_nothing
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import counted
from stall_analyzer.model.records import dataclass
from stall_analyzer.signals.numerics.batch_look import BatchLook, Values
from stall_analyzer.signals.numerics.model_settings import BINARY, ModelSettings
from stall_analyzer.signals.signals import Signals

ID = "ST321"
BUCKET = "numerics"

SPARSE = "sparse_categorical_crossentropy"
SHARES = (BINARY, "categorical_crossentropy")
REGRESSIONS = ("mean_squared_error", "mean_absolute_error", "huber", "log_cosh")
RANGES = {
    "sigmoid": (0.0, 1.0),
    "hard_sigmoid": (0.0, 1.0),
    "softmax": (0.0, 1.0),
    "tanh": (-1.0, 1.0),
    "softsign": (-1.0, 1.0),
    "relu": (0.0, math.inf),
    "softplus": (0.0, math.inf),
}
SLACK = 0.05  # of the range


@dataclass(frozen=True)
class _Reach:
    low: float
    high: float
    why: str  # why no other value can be reached

    def misses(self, labels: Values) -> bool:
        slack = SLACK * (self.high - self.low if math.isfinite(self.high) else labels.spread)
        return labels.smallest < self.low - slack or labels.largest > self.high + slack

    def misses_most(self, mean: float) -> bool:
        return not self.low <= mean <= self.high


def check(signals: Signals) -> Finding | None:
    batches, settings = signals.batches, signals.learning.settings
    if batches is None or batches.targets is None or batches.labels is None:
        return None
    reach = _reach(settings)
    if reach is None or not reach.misses(batches.targets):
        return None
    return _finding(signals, batches, batches.targets, reach)


def _reach(settings: ModelSettings) -> _Reach | None:
    output, loss = settings.output, settings.loss
    if loss == SPARSE:
        units = output.units if output is not None else None
        if not units:
            return None
        classes = f"classes from 0 to {units - 1}" if units > 1 else "class 0 only"
        why = f"the last layer has {counted(units, 'unit')}, for {classes}"
        return _Reach(0.0, units - 1.0, why)
    if loss in SHARES:
        return _Reach(0.0, 1.0, f"{loss} expects probabilities from 0 to 1")
    if loss not in REGRESSIONS or output is None or output.activation not in RANGES:
        return None
    low, high = RANGES[output.activation]
    top = f"from {low:g} to {high:g}" if math.isfinite(high) else "that are 0 or above"
    return _Reach(low, high, f"{output.activation} can only output numbers {top}")


def _finding(signals: Signals, batches: BatchLook, targets: Values, reach: _Reach) -> Finding:
    is_class = signals.learning.settings.loss == SPARSE
    mean = batches.labels.mean if batches.labels is not None else 0.0
    agrees = is_class or reach.misses_most(mean) or learns_nothing(signals)
    consequence = (
        "A class without a unit cannot be learned."
        if is_class
        else "Labels that cannot be reached pull outputs to the end of their range, where the "
        "gradient is zero."
    )
    return Finding(
        severity="act" if agrees else "note",
        title=f"The labels range from {targets.smallest:.4g} to {targets.largest:.4g}, and some "
        "are out of reach",
        explanation=f"The capture sampled labels in that range, but {reach.why}. {consequence}",
        change=Change(
            "Make the last layer linear, or scale the labels into its range.",
            before='keras.layers.Dense(1, activation="sigmoid")',
            after="keras.layers.Dense(1)  # for amounts, with a loss such as mean_squared_error",
        )
        if not is_class
        else Change(
            "Number the classes from 0, and give the last layer one unit for each.",
            before="keras.layers.Dense(9)  # labels from 1 to 10",
            after="keras.layers.Dense(10)  # labels - 1",
        ),
        confidence=0.9 if agrees else 0.5,
    )
