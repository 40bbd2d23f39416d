"""Which learning rates people use with which optimizer.

From the published recipes of each optimizer: the low end is for fine-tuning large models, the high
end for small networks or large batches. A rate outside the range is not wrong by itself; a detector
also looks at the loss.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.records import dataclass
from stall_analyzer.signals.numerics.model_settings import ModelSettings

ROUNDING = 1e-6


@dataclass(frozen=True)
class UsualRates:
    """What people use with an optimizer."""

    low: float
    high: float
    start: float  # where to start a search


# Adam and similar optimizers divide the gradient by its size: each weight moves by about the rate
# itself in each step, whatever the loss. Weights are around 0.1.
_BY_ITS_SIZE = UsualRates(1e-6, 1e-2, 1e-3)
# These shrink their steps as they go, so they start with longer ones.
_SHRINKING = UsualRates(1e-4, 0.5, 1e-2)

USUAL = {
    # The rate is multiplied by the gradient, which may be small: a rate of 1 (0.1 with momentum
    # 0.9) may be fine if the loss falls, and is the first suspect if it does not.
    "SGD": UsualRates(1e-4, 0.9, 1e-2),
    "Adam": _BY_ITS_SIZE,
    "AdamW": _BY_ITS_SIZE,
    "Nadam": _BY_ITS_SIZE,
    "Adamax": _BY_ITS_SIZE,
    "RMSprop": _BY_ITS_SIZE,
    # Moves by the rate exactly, so its authors use a third to a tenth of Adam's.
    "Lion": UsualRates(1e-7, 3e-3, 1e-4),
    "Adagrad": _SHRINKING,
    "Ftrl": _SHRINKING,
    # Chooses its own step size; the rate only scales it, and the paper uses 1.
    "Adadelta": UsualRates(1e-4, 10.0, 1.0),
}


def usual_rates(settings: ModelSettings) -> UsualRates | None:
    return USUAL.get(settings.optimizer or "")


def lower_rate(settings: ModelSettings, rate: float) -> float:
    """The rate to try if steps are too long: a usual one or, if it is one, a tenth of it."""
    usual = usual_rates(settings)
    is_high = usual is not None and is_above(effective_rate(settings, rate), usual.high)
    return usual.start if usual is not None and is_high and usual.start < rate else rate / 10


def is_above(rate: float, limit: float) -> bool:
    """Whether it is above by more than rounding: 0.1 / (1 - 0.9) counts as 1."""
    return rate > limit * (1 + ROUNDING)


def as_written(rate: float) -> float:
    """The number as in the program: logs and stored models have it as float32, 1.00000001e-07."""
    return float(str(np.float32(rate)))


def effective_rate(settings: ModelSettings, rate: float) -> float:
    """Momentum adds up earlier steps: 0.9 makes each step ten times as long."""
    if settings.optimizer == "SGD" and 0 < settings.momentum < 1:
        return rate / (1 - settings.momentum)
    return rate
