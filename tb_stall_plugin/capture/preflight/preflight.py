"""The checks before the first epoch: tries one batch, and puts everything back."""

from __future__ import annotations

import functools
import math
import sys
import time
from typing import Any

import tensorflow as tf

from stall_analyzer.captures.capture_format import CHECK_TITLES, CheckName, CheckResult
from stall_analyzer.captures.capture_records import PreflightCheck, PreflightRecord
from tb_stall_plugin.capture.preflight.constant_answer import constant_answer, least, loss_used
from tb_stall_plugin.capture.preflight.copied_dataset import CannotCopy
from tb_stall_plugin.capture.preflight.first_batches import (
    CannotRead,
    FirstBatches,
    OneBatch,
    first_batches,
)
from tb_stall_plugin.capture.preflight.judged import (
    judged_data,
    judged_gradients,
    judged_labels,
    judged_loss,
    judged_outputs,
    not_checked,
)
from tb_stall_plugin.capture.preflight.overfit import Overfitted
from tb_stall_plugin.capture.preflight.trial import Trial
from tb_stall_plugin.capture.preflight.unchanged import PutBack, captured_by, unchanged
from tb_stall_plugin.capture.process.recorder import Recorder

FEW = 16  # examples to memorize
FEWEST = 2
MOST_BATCHES = 8  # if they are tiny; each has its own forward pass in the graph
SECONDS = 15.0  # to memorize them
# With more, copies of the weights and of an optimizer's state might not fit in memory.
MOST_PARAMETERS = 100_000_000
NAMES = (
    CheckName.DATA, CheckName.LABELS, CheckName.OUTPUTS, CheckName.LOSS, CheckName.GRADIENTS,
    CheckName.OVERFIT,
)  # fmt: skip
IS_KERAS_2 = "_train_counter"  # an attribute that only its models have


def preflight(model: Any, recorder: Recorder, may_consume: bool = False) -> PreflightRecord:
    """To be called by a callback when fit begins. Raises nothing."""
    began_s = time.perf_counter()
    checks: list[PreflightCheck] = []
    try:
        _check(model, may_consume, checks)
    except (CannotRead, CannotCopy) as why:
        checks += _others(checks, str(why))
    except Exception as error:  # of the model itself, for example: training will raise it, too
        said = str(error).strip().splitlines()[:1]
        reason = f"trying one batch failed: {type(error).__name__}: {''.join(said)}"
        checks += _others(checks, reason)
    record = PreflightRecord(seconds=time.perf_counter() - began_s, checks=tuple(checks))
    recorder.record(record)
    return record


def said_in_one_line(record: PreflightRecord) -> str:
    found = [check for check in record.checks if check.result == CheckResult.FAILED]
    passed = sum(check.result == CheckResult.PASSED for check in record.checks)
    what = "; ".join(f"{CHECK_TITLES[check.name]}: {check.text}" for check in found)
    return (
        f"Checks before the first epoch ({record.seconds:.1f} s): "
        f"{what or _without_problem(passed, len(record.checks))}"
    )


def _without_problem(passed: int, count: int) -> str:
    """What to say if no check failed. A check also has no result if that is not clear."""
    if not passed:
        return "no check gave a result"
    if passed == count:
        return f"no problem was found; all {count} checks passed"
    others = "other" if count - passed == 1 else f"other {count - passed}"
    return (
        f"no problem was found; {passed} of {count} checks passed, and the {others} gave no result"
    )


def say(record: PreflightRecord) -> None:
    if sys.stderr is not None:
        print(said_in_one_line(record), file=sys.stderr, flush=True)


def _others(checks: list[PreflightCheck], why: str) -> list[PreflightCheck]:
    done = {check.name for check in checks}
    return [not_checked(name, why) for name in NAMES if name not in done]


def _check(model: Any, may_consume: bool, checks: list[PreflightCheck]) -> None:
    why_not = _cannot_be_tried(model)
    if why_not is not None and "strateg" in why_not:
        raise CannotRead(why_not)
    with unchanged():
        data = first_batches(model, FEW, may_consume)
    checks.append(judged_data(data))
    if why_not is not None:
        raise CannotRead(why_not)
    few = _few(model, data)
    if not model.built:  # outside of `unchanged`: its initial weights are drawn once, as usual
        tf.function(lambda: model(few[0].x, training=True), autograph=False).get_concrete_function()
    if _parameters(model) > MOST_PARAMETERS:
        raise CannotRead(f"the model has more than {MOST_PARAMETERS:,} parameters")
    variables = [*model.variables, *(v for metric in model.metrics for v in metric.variables)]
    with unchanged(variables) as put_back:
        _try(model, data, few, checks, put_back)


def _cannot_be_tried(model: Any) -> str | None:
    strategy = getattr(model, "distribute_strategy", None)
    if strategy is not None and "Default" not in type(strategy).__name__:
        return f"models under {type(strategy).__name__} (a distribution strategy) are not tried"
    step = getattr(type(model), "train_step", None)
    if not getattr(step, "__module__", "").startswith(("keras.", "tf_keras.")):
        return "the model has a custom train_step"
    if not model.built and hasattr(model, IS_KERAS_2):
        return "the model has no weights before its first step; give it an Input layer"
    return None


def _parameters(model: Any) -> int:
    return sum(math.prod(weight.shape) for weight in model.trainable_variables)


def _few(model: Any, data: FirstBatches) -> list[OneBatch]:
    """Examples to memorize: no more than a small model can hold."""
    parameters = _parameters(model) if model.built else 2 * FEW
    count = min(max(parameters // 2, FEWEST), FEW)
    first = data.batches[0]
    if len(data.batches) == 1:
        return [first if _has_fixed_batch(model) else first.some(count)]
    wanted = -(-count // (first.rows or 1))
    return list(data.batches[: min(max(wanted, 1), MOST_BATCHES)])


def _has_fixed_batch(model: Any) -> bool:
    try:
        return any(tensor.shape[0] is not None for tensor in tf.nest.flatten(model.inputs))
    except (AttributeError, TypeError, IndexError):  # a subclassed model has no inputs
        return False


def _try(
    model: Any,
    data: FirstBatches,
    few: list[OneBatch],
    checks: list[PreflightCheck],
    put_back: list[PutBack],
) -> None:
    seen = Trial(model, [data.first] if not _has_fixed_batch(model) else [data.batches[0]])
    put_back += captured_by(seen.looked)
    begin_anew = list(put_back)
    look, loss = seen.look(), loss_used(model)
    is_known = len(look.outputs) == 1 and not seen.is_masked
    loss = loss if is_known else None
    if loss is not None:
        checks.append(judged_labels(data, loss, look.outputs[0], last_activation(model)))
    else:
        checks.append(not_checked(CheckName.LABELS, "the loss is custom, masked or one of several"))
    checks.append(judged_outputs(look.outputs, loss))
    checks.append(judged_loss(look, constant_answer(loss, data.first.y, data.first.weights), loss))
    _do_all(begin_anew)
    trial = Trial(model, few)
    first = trial.look()
    trial.prepare()
    constant, floor = _constant_of(few, loss)
    overfitted = Overfitted(constant, floor, first, SECONDS)
    if math.isfinite(first.loss) and trial.names:
        overfitted.run(trial, functools.partial(_do_all, begin_anew))
    at_end = abs(look.data_loss) < 1e-6
    checks.append(judged_gradients(trial.names, [look, first, *overfitted.looks], at_end))
    examples = sum(batch.rows or 1 for batch in few)
    if not math.isfinite(first.loss):
        checks.append(not_checked(CheckName.OVERFIT, "the loss is not finite"))
    else:
        checks.append(overfitted.judged(examples))


def _do_all(actions: list[PutBack]) -> None:
    for action in actions:
        action()


def _constant_of(few: list[OneBatch], loss: Any) -> tuple[float | None, float]:
    """The loss of one constant answer for all batches together, and the least possible loss."""
    if any(not isinstance(batch.y, tf.Tensor) or batch.weights is not None for batch in few):
        return None, 0.0
    labels = tf.concat([batch.y for batch in few], axis=0)
    return constant_answer(loss, labels), least(loss, labels)


def last_activation(model: Any) -> str | None:
    """None if it is not known, or if the model has several outputs."""
    layers = getattr(model, "layers", ())
    outputs = getattr(model, "outputs", None)
    if not layers or outputs is None or len(outputs) != 1:
        return None
    made_by = getattr(outputs[0], "_keras_history", [layers[-1]])[0]
    return getattr(getattr(made_by, "activation", None), "__name__", None)
