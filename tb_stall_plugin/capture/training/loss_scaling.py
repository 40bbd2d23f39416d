"""Loss scaling. Keras 2 has a LossScaleOptimizer with loss_scale and dynamic_counter, Keras 3 one
with dynamic_scale and step_counter, and a fixed loss_scale_factor in every optimizer.
"""

from __future__ import annotations

from typing import Any


def scale_of(optimizer: Any) -> Any | None:
    """What the loss of the coming step is multiplied by: a number, a tensor or a variable."""
    if not hasattr(optimizer, "inner_optimizer"):
        return getattr(optimizer, "loss_scale_factor", None)
    if hasattr(optimizer, "loss_scale"):
        return optimizer.loss_scale
    return optimizer.dynamic_scale if optimizer.built else optimizer.initial_scale


def scales_gradients(optimizer: Any) -> bool:
    """Whether those that it is given are still scaled."""
    return not hasattr(optimizer, "loss_scale")


def finite_steps(optimizer: Any) -> Any | None:
    """Counts steps since the scale last changed: 0 after a skipped update, and after a raise."""
    if hasattr(optimizer, "dynamic_counter"):
        return optimizer.dynamic_counter
    return getattr(optimizer, "step_counter", None)
