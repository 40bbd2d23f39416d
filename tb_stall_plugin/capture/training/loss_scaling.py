"""Loss scaling. Keras 2 has a LossScaleOptimizer with loss_scale and dynamic_counter. Keras 3 has
one with dynamic_scale and step_counter, and every optimizer has a fixed loss_scale_factor.
"""

from __future__ import annotations

from typing import Any


def scale_of(optimizer: Any) -> Any | None:
    """What the loss of the next step is multiplied by: a number, a tensor or a variable."""
    if not hasattr(optimizer, "inner_optimizer"):
        return getattr(optimizer, "loss_scale_factor", None)
    if hasattr(optimizer, "loss_scale"):
        return optimizer.loss_scale
    return optimizer.dynamic_scale if optimizer.built else optimizer.initial_scale


def scales_gradients(optimizer: Any) -> bool:
    """Whether the gradients that it is given are still scaled."""
    return not hasattr(optimizer, "loss_scale")


def finite_steps(optimizer: Any) -> Any | None:
    """Counts the steps since the scale last changed: 0 after a skipped update or an increase."""
    if hasattr(optimizer, "dynamic_counter"):
        return optimizer.dynamic_counter
    return getattr(optimizer, "step_counter", None)
