"""The loss of an answer that is the same for all inputs: the least that a model must beat."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

Numbers = np.ndarray[Any, np.dtype[np.float64]]

SPARSE, CATEGORICAL, BINARY = (
    "sparse_categorical_crossentropy",
    "categorical_crossentropy",
    "binary_crossentropy",
)
CROSS_ENTROPIES = (SPARSE, CATEGORICAL, BINARY)
SQUARED, ABSOLUTE = "mean_squared_error", "mean_absolute_error"
SHORT = {"mse": SQUARED, "mae": ABSOLUTE}
REGRESSIONS = (SQUARED, ABSOLUTE, "huber", "log_cosh")


@dataclass(frozen=True)
class LossUsed:
    """What is known about the loss of a model with one output."""

    name: str
    from_logits: bool = False
    smoothing: float = 0.0
    is_mean: bool = True
    is_plain: bool = True  # ignores no class, and is taken over the last axis


def loss_used(model: Any) -> LossUsed | None:
    """None if there are several losses, or a custom one."""
    loss: Any = getattr(model, "loss", None)
    if isinstance(loss, (list, tuple, dict)) and len(loss) == 1:
        loss = next(iter(loss.values() if isinstance(loss, dict) else loss))
    if isinstance(loss, str):
        return _known(loss, {})
    if callable(loss) and type(loss).__module__.startswith(("keras.", "tf_keras.")):
        try:
            return _known(type(loss).__name__, loss.get_config() | _arguments(loss))
        except Exception:  # a loss that does not tell its settings
            return None
    module = getattr(loss, "__module__", None) or ""
    return (
        _known(loss.__name__, {}) if loss and module.startswith(("keras.", "tf_keras.")) else None
    )


def _arguments(loss: Any) -> dict[str, Any]:
    return dict(getattr(loss, "_fn_kwargs", None) or {})


def _known(name: str, config: dict[str, Any]) -> LossUsed | None:
    words = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).strip("_")
    words = SHORT.get(words, words)
    if words not in (*CROSS_ENTROPIES, *REGRESSIONS):
        return None
    return LossUsed(
        words,
        bool(config.get("from_logits", False)),
        float(config.get("label_smoothing") or 0.0),
        str(config.get("reduction", "")).lower() != "sum",
        config.get("ignore_class") is None and config.get("axis", -1) in (-1, None),
    )


def constant_answer(loss: LossUsed | None, y: Any, weights: Any = None) -> float | None:
    """The loss of the best constant answer to these labels; None if it is not known."""
    if loss is None or y is None or not isinstance(y, tf.Tensor) or not loss.is_plain:
        return None
    cost = COSTS.get(loss.name)
    labels = np.asarray(y, np.float64)
    if cost is None or not np.isfinite(labels).all() or not labels.size or weights is not None:
        return None
    return cost(labels, loss.smoothing) * (1.0 if loss.is_mean else labels.shape[0])


def least(loss: LossUsed | None, y: Any) -> float:
    """The loss of the labels themselves as answers: above 0 if they are soft, or smoothed."""
    if loss is None or loss.name not in (CATEGORICAL, BINARY):
        return 0.0
    labels = np.asarray(y, np.float64)
    if loss.name == CATEGORICAL:
        rows = labels.reshape(-1, labels.shape[-1])
        cost = float(np.mean([_categorical(row[None], loss.smoothing) for row in rows]))
    else:
        cost = _binary(labels.reshape(1, -1), loss.smoothing)
    return cost * (1.0 if loss.is_mean else labels.shape[0])


def _sparse(labels: Numbers, _: float) -> float:
    counts = np.unique(labels, return_counts=True)[1]
    return _entropy(counts / counts.sum())


def _categorical(labels: Numbers, smoothing: float) -> float:
    rows = labels.reshape(-1, labels.shape[-1])
    shares: Numbers = rows.mean(0) * (1 - smoothing) + smoothing / rows.shape[1]
    total = float(shares.sum())
    return total * _entropy(shares / total) if total > 0 else 0.0


def _binary(labels: Numbers, smoothing: float) -> float:
    shares = _columns(labels).mean(0) * (1 - smoothing) + smoothing / 2
    return float(np.mean([_entropy(np.array([p, 1 - p])) for p in shares]))


def _squared(labels: Numbers, _: float) -> float:
    return float(_columns(labels).var(0).mean())


def _absolute(labels: Numbers, _: float) -> float:
    columns = _columns(labels)
    return float(np.abs(columns - np.median(columns, axis=0)).mean())


def _columns(labels: Numbers) -> Numbers:
    """A constant answer to rows of labels has a constant for each column; to a grid, only one."""
    return labels if labels.ndim == 2 else labels.reshape(-1, 1)


def _entropy(shares: Numbers) -> float:
    return -sum(float(p) * math.log(p) for p in shares if p > 0) or 0.0


COSTS: dict[str, Callable[[Numbers, float], float]] = {
    SPARSE: _sparse,
    CATEGORICAL: _categorical,
    BINARY: _binary,
    SQUARED: _squared,
    ABSOLUTE: _absolute,
}
