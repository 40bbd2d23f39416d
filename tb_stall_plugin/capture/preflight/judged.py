"""What the checks find in a batch, in the model's outputs for it, and in its gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from stall_analyzer.captures.capture_format import CheckFault, CheckName, CheckResult
from stall_analyzer.captures.capture_records import PreflightCheck
from tb_stall_plugin.capture.preflight.constant_answer import (
    BINARY,
    CATEGORICAL,
    CROSS_ENTROPIES,
    REGRESSIONS,
    SPARSE,
    LossUsed,
)
from tb_stall_plugin.capture.preflight.first_batches import FirstBatches, OneBatch
from tb_stall_plugin.capture.preflight.trial import Look

# What the last activation can produce; labels outside of this range cannot be reached.
RANGES = {"sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "relu": (0.0, np.inf)}
OUT_OF_REACH = 0.1  # share of the labels: single outliers do not spoil a training
ROUNDED = 1e-3  # how far probabilities in half precision may be off
FAR = 5.0  # times a constant answer's loss: worth a remark, but many healthy models begin there
MOST_NAMED = 4
MOST_NUMBERS = 20_000_000  # can be checked one by one in some hundredths of a second


def counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def passed(name: str, text: str) -> PreflightCheck:
    return PreflightCheck(name, CheckResult.PASSED, text)


def failed(name: str, text: str, fault: str) -> PreflightCheck:
    return PreflightCheck(name, CheckResult.FAILED, text, fault)


def not_checked(name: str, why: str) -> PreflightCheck:
    return PreflightCheck(name, CheckResult.NOT_CHECKED, why)


# ---------------------------------------------------------------- the batch


def judged_data(data: FirstBatches) -> PreflightCheck:
    looked_at = (
        ("the inputs of the first batch", data.first.x),
        ("the labels of the first batch", data.first.y),
        ("all inputs", _small(data.all_inputs)),
        ("all labels", _small(data.all_labels)),
    )
    for what, value in looked_at:
        share = max(map(_not_finite, _numbers(value)), default=0.0)
        if share > 0:
            text = f"{100 * share:.3g}% of {what} are NaN or infinite"
            return failed(CheckName.DATA, text, CheckFault.NOT_FINITE)
    if _same(data.batches, "x") and not _same(data.batches, "y"):
        text = f"all examples of the first batch are the same ({_described(data.first.x)})"
        return failed(CheckName.DATA, text, CheckFault.SAME_INPUTS)
    y = "" if data.first.y is None else f"; labels {_described(data.first.y)}"
    return passed(CheckName.DATA, f"inputs {_described(data.first.x)}{y}")


def _small(value: Any) -> list[Any]:
    """Whole arrays, if they can be checked in no time."""
    leaves = [leaf for leaf in tf.nest.flatten(value) if leaf is not None]
    return [leaf for leaf in leaves if math.prod(leaf.shape) <= MOST_NUMBERS]


def _numbers(value: Any) -> list[Any]:
    leaves = [np.asarray(leaf) for leaf in tf.nest.flatten(value) if leaf is not None]
    return [leaf for leaf in leaves if leaf.dtype.kind in "fiu" or leaf.dtype.name == "bfloat16"]


def _not_finite(values: Any) -> float:
    """The share of values that are not finite; integers always are."""
    if not values.size or values.dtype.kind in "iu":
        return 0.0
    return float(1 - np.isfinite(values).mean())


def _same(batches: Sequence[OneBatch], part: str) -> bool:
    """Whether there are at least two examples, and all are the same."""
    leaves = list(zip(*(tf.nest.flatten(getattr(b, part)) for b in batches), strict=True))
    if any(leaf is None or not leaf.shape for of_batches in leaves for leaf in of_batches):
        return False
    columns = [np.concatenate([np.asarray(leaf) for leaf in of_batches]) for of_batches in leaves]
    return all(len(rows) > 1 and bool((rows == rows[:1]).all()) for rows in columns)


def _described(value: Any) -> str:
    return ", ".join(map(_of_one, _numbers(value)[:MOST_NAMED])) or "that are not numbers"


def _of_one(values: Any) -> str:
    shape = "×".join(map(str, values.shape)) or "1"
    if not values.size:
        return f"{shape} {values.dtype}"
    return f"{shape} {values.dtype} from {values.min():.4g} to {values.max():.4g}"


# ---------------------------------------------------------------- labels and outputs


def judged_labels(
    data: FirstBatches, loss: LossUsed | None, outputs: Any, activation: str | None
) -> PreflightCheck:
    y = data.first.y
    if not isinstance(y, tf.Tensor) or loss is None:
        why = "there are no labels" if y is None else "the loss is not built into Keras"
        return not_checked(CheckName.LABELS, why)
    labels = np.asarray(y, np.float64)
    fault = _wrong_labels(labels, loss, outputs) or _out_of_reach(labels, loss, activation)
    if fault is None and loss.name in CROSS_ENTROPIES:
        fault = _only_one_class(data.all_labels, loss)
    if fault is not None:
        return failed(CheckName.LABELS, fault, CheckFault.LABELS)
    return passed(CheckName.LABELS, f"the labels are valid for {loss.name}")


def _wrong_labels(labels: Any, loss: LossUsed, outputs: Any) -> str | None:
    low, high = float(labels.min()), float(labels.max())
    if loss.name == SPARSE:
        classes = outputs.shape[-1]
        if low < 0 or high >= classes:
            units = counted(classes, "unit")
            allowed = f"0 to {classes - 1}" if classes > 1 else "0"
            return (
                f"the classes range from {low:g} to {high:g}, but a last layer with {units} allows "
                f"only {allowed}"
            )
        return "classes must be whole numbers" if (labels % 1).any() else None
    if loss.name in CROSS_ENTROPIES and (low < 0 or high > 1):
        return f"the labels range from {low:g} to {high:g}, but {loss.name} needs 0 to 1"
    if loss.name != CATEGORICAL and labels.size != outputs.size:
        shapes = "×".join(map(str, labels.shape)), "×".join(map(str, outputs.shape))
        return f"labels of shape {shapes[0]} are compared with outputs of shape {shapes[1]}"
    return None


def _out_of_reach(labels: Any, loss: LossUsed, activation: str | None) -> str | None:
    if loss.name not in REGRESSIONS or activation not in RANGES:
        return None
    low, high = RANGES[activation]
    share = float(((labels < low - ROUNDED) | (labels > high + ROUNDED)).mean())
    if share < OUT_OF_REACH:
        return None
    return f"{share:.0%} of the labels lie outside the range of {activation} in the last layer"


def _only_one_class(labels: Any, loss: LossUsed) -> str | None:
    """Looks at all labels, if they are available: a single batch may well have only one class."""
    known = getattr(labels, "dtype", None)
    if known is None or np.ndim(labels) == 0 or len(labels) < 2:
        return None
    every = np.asarray(labels)
    if loss.name == CATEGORICAL or (loss.name == BINARY and every.ndim > 1 and every.shape[1] > 1):
        return None
    is_one = bool((every == every.flat[0]).all())
    return f"all {len(every):,} labels are {every.flat[0]}" if is_one else None


def judged_outputs(outputs: list[Any], loss: LossUsed | None) -> PreflightCheck:
    text = ", ".join(map(_of_one, outputs[:MOST_NAMED]))
    if max(map(_not_finite, outputs), default=0.0) > 0:
        text = "the model outputs NaN or infinity with its initial weights"
        return failed(CheckName.OUTPUTS, text, CheckFault.NOT_FINITE)
    fault = _no_probabilities(outputs[0], loss) if len(outputs) == 1 and loss else None
    if fault is not None:
        return failed(CheckName.OUTPUTS, f"{fault} (outputs {text})", CheckFault.OUTPUTS)
    return passed(CheckName.OUTPUTS, text)


def _no_probabilities(outputs: Any, loss: LossUsed) -> str | None:
    if loss.name not in CROSS_ENTROPIES:
        return None
    if loss.name != BINARY and outputs.shape[-1] == 1:
        return f"{loss.name} with a single output unit is always 0"
    if loss.from_logits:
        return None
    if outputs.min() < -ROUNDED or outputs.max() > 1 + ROUNDED:
        return f"{loss.name} expects probabilities; add from_logits=True or an activation"
    if loss.name != BINARY and outputs.ndim == 2 and len(outputs) > 1:
        rows, columns = outputs.sum(-1), outputs.sum(0)
        if _far_from_one(rows) and not _far_from_one(columns):
            return "the softmax is taken over the batch, not over the classes"
    return None


def _far_from_one(sums: Any) -> bool:
    return bool((np.abs(sums - 1) > 10 * ROUNDED).any())


# ---------------------------------------------------------------- loss and gradients


def judged_loss(look: Look, constant: float | None, loss: LossUsed | None) -> PreflightCheck:
    if not np.isfinite(look.loss):
        return failed(CheckName.LOSS, f"the first loss is {look.loss}", CheckFault.NOT_FINITE)
    if loss is not None and look.data_loss < -ROUNDED:
        text = f"{loss.name} cannot be negative, but it is {look.data_loss:.4g}"
        return failed(CheckName.LOSS, text, CheckFault.LABELS)
    if constant is None:
        return passed(CheckName.LOSS, f"{look.loss:.4g}; a constant answer's loss is not known")
    text = f"{look.data_loss:.4g}; the best constant answer has a loss of {constant:.4g}"
    if look.data_loss > FAR * constant > 0:
        text += ", which is far lower: are inputs and targets scaled?"
    return passed(CheckName.LOSS, text)


def judged_gradients(names: list[str], looks: Sequence[Look], at_end: bool) -> PreflightCheck:
    """A layer behind weights that begin at zero has no gradient at first, but soon gets one."""
    if not names:
        return failed(CheckName.GRADIENTS, "no weight can be trained", CheckFault.NO_GRADIENT)
    first = looks[0].largest
    if not np.isfinite(first).all() and np.isfinite(looks[0].loss):
        where = _named([name for name, g in zip(names, first, strict=True) if not np.isfinite(g)])
        text = f"NaN or infinite in {where}, although the loss is finite"
        return failed(CheckName.GRADIENTS, text, CheckFault.NOT_FINITE)
    if not np.isfinite(first).all():
        return not_checked(CheckName.GRADIENTS, "the loss is not finite")
    largest = np.nanmax([look.largest for look in looks], axis=0)
    layers = list(dict.fromkeys(names))
    reached = {name for name, g in zip(names, largest, strict=True) if g > 0}
    missed = [layer for layer in layers if layer not in reached]
    if not missed:
        reach = f"they reach every layer with weights ({counted(len(layers), 'layer')})"
        return passed(CheckName.GRADIENTS, reach)
    if at_end:
        return not_checked(CheckName.GRADIENTS, "the loss is already at its minimum")
    if not reached:
        return failed(CheckName.GRADIENTS, "zero in every layer", CheckFault.NO_GRADIENT)
    return failed(CheckName.GRADIENTS, f"none in {_named(missed)}", CheckFault.UNREACHED)


def _named(names: list[str]) -> str:
    several = list(dict.fromkeys(names))
    more = f" and {len(several) - MOST_NAMED} more" if len(several) > MOST_NAMED else ""
    return ", ".join(several[:MOST_NAMED]) + more
