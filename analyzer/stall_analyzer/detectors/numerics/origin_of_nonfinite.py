"""The operation that produced the first NaN, found in a debugger dump.

What it finds
The op that produced the first of the NaNs or infinities that reached the weights: its name and
type, and the line of the user's code that created it.

Why it stalls
NaN spreads: once it is in the weights, every later step computes but teaches the model nothing. The
loss only shows that it happened, and when; the op shows what to fix.

How it is measured
From a dump of TensorFlow's debugger, which looks at every tensor. The search begins at the bad
values that were assigned to variables, and follows the ops' inputs back, within one call of the
function, to the ops whose own inputs were finite; if there are several such ops, the earliest is
named. So infinities that a mask creates on purpose are ignored, and the order in which the debugger
wrote its records does not matter. The search also follows the inputs of the function, back to the
data and to the ops of Dataset.map.

Example
In step 24 a probability reached 1, and the log of (1 - p) in a handwritten loss became -inf: the
first infinity was produced by Log at train.py:31. A millisecond later, the updates of all weights
were NaN.

What to do
Fix that line: keep log, division and sqrt away from 0, and exp away from large values; remove bad
records from the data; lower the learning rate if a product overflowed.

Blind spots
A dump is large and slow to make: use it for this question, not for every run. By default it keeps
only the last 1,000 records; pass circular_buffer_size=-1, or the origin may be lost. CURT_HEALTH
does not distinguish NaN from infinity, and NO_TENSOR and SHAPE show neither. XLA cannot compile
what the debugger adds to a graph: make the dump without jit_compile.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np

from stall_analyzer.detectors.numerics.rate_turns import turned_to
from stall_analyzer.model.debug_dump import CodeLine
from stall_analyzer.model.findings import Change, Evidence, Finding, Turn
from stall_analyzer.model.format import seconds
from stall_analyzer.model.kinds import Severity
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.units import PS_PER_NS
from stall_analyzer.signals.numerics.dumped_tensors import DATA, Origin
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.signals import Signals

ID = "ST313"
BUCKET = "numerics"

# Lines that only start the training: for these, the layer is named instead.
TRAINS = pattern(r"\b(fit|train_on_batch|gradient|gradients|minimize|apply_gradients)\(")

CAPTURE = (
    "tf.debugging.experimental.enable_dump_debug_info(\n"
    '    logdir, tensor_debug_mode="FULL_HEALTH", circular_buffer_size=-1)'
)


REMEDIES = {  # by a pattern of the op's type
    r"Log|Log1p|Xlogy|Xlog1py|LogGrad": Change(
        "Keep the argument of the logarithm away from 0, or use a loss that takes logits.",
        "tf.math.log(p)",
        "tf.math.log(p + 1e-7)",
    ),
    r"RealDiv|Div|Reciprocal|ReciprocalGrad|Inv|Xdivy|FloorMod": Change(
        "Keep the divisor away from 0.",
        "a / b",
        "tf.math.divide_no_nan(a, b)",
    ),
    r"Sqrt|Rsqrt|SqrtGrad|RsqrtGrad|Pow": Change(
        "Keep the argument of the square root above 0: at 0 its slope is infinite, and below 0 it "
        "is undefined.",
        "tf.sqrt(x)",
        "tf.sqrt(tf.maximum(x, 1e-12))",
    ),
    r"Exp|Expm1|Sinh|Cosh": Change(
        "Keep the argument of the exponential below 80, or work with logarithms.",
        "tf.exp(x)",
        "tf.exp(tf.minimum(x, 80.0))",
    ),
    r"IteratorGetNext.*|.*Dataset.*|Placeholder.*|_Arg|Parse.*|Decode.*|.*PyFunc": Change(
        "Find the records with NaN or infinite values, and fix or remove them.",
        "data = tf.data.Dataset.from_tensor_slices((x, y))",
        "data = data.filter(lambda x, y: tf.reduce_all(tf.math.is_finite(x)))",
    ),
    r"Cast": Change(
        "The value does not fit in the smaller type: keep this part in float32, or scale it.",
        "keras.layers.Dense(units)",
        'keras.layers.Dense(units, dtype="float32")',
        turns=(Turn("precision", "up"),),
    ),
}


def check(signals: Signals) -> Finding | None:
    origin = signals.origin
    if origin is None:
        return None
    if not origin.spoils and signals.learning.not_finite is None and origin.has_inf:
        return None  # a mask: infinities that go no further
    lost = signals.causes_ps["numerics.nonfinite"]
    return Finding(
        severity=_severity(signals, origin),
        title=_title(origin),
        explanation=_explanation(signals, origin),
        change=_change(signals, origin),
        lost_ps=lost,
        confidence=0.9 if origin.inputs_seen or _is_data(origin) else 0.7,
        evidence=_evidence(signals, origin),
    )


def _severity(signals: Signals, origin: Origin) -> Severity:
    loss_is_bad = signals.learning.not_finite is not None
    lost = loss_is_bad and not signals.why_weights_survived
    if origin.spoils == "weights" or (origin.spoils and lost):
        return "act"
    return "consider" if origin.spoils or loss_is_bad else "note"


def _what(origin: Origin) -> str:
    if origin.has_nan and origin.has_inf:
        return "NaN or infinity"
    return "NaN" if origin.has_nan else "infinity"


def _title(origin: Origin) -> str:
    what = _what(origin)
    if origin.is_older_than_dump:
        return f"A variable already held {what} when the debugger's dump began"
    if _is_data(origin):
        return f"The first {what} came in with the data{_where(origin)}"
    return f"The first {what} was produced by {origin.type or origin.name}{_where(origin)}"


def _is_data(origin: Origin) -> bool:
    return origin.type.startswith(DATA)


def _own_line(origin: Origin) -> CodeLine | None:
    """The user's line, unless it is the one that starts the training."""
    line = origin.line
    return line if line is not None and not TRAINS.search(line.text) else None


def _where(origin: Origin) -> str:
    line = _own_line(origin)
    if line is not None:
        return f" at {PurePosixPath(line.path.replace(chr(92), '/')).name}:{line.line}"
    scope = origin.name.rpartition("/")[0]
    return f" in {scope}" if scope else ""


def _explanation(signals: Signals, origin: Origin) -> str:
    assert signals.dump is not None
    name = origin.name or f"An eager {origin.type}"
    graph = f" (graph {origin.graph})" if origin.graph else ""
    finite = ", while its own inputs were finite" if origin.inputs_seen else ""
    parts = [f"{name}{graph} output {_what(origin)} {_when(signals, origin)}{finite}."]
    if origin.is_older_than_dump:
        parts = [
            f"{name}{graph} read {_what(origin)} from a variable: the value was produced before "
            "the first record that the dump still contains."
        ]
    if origin.spoils == "weights":
        parts.append("It reached the weights, and no later step can repair them.")
    elif origin.spoils == "variables":
        parts.append("It reached a variable that is not a weight, as far as the dump shows.")
    else:
        parts.append("It reached no variable in this dump, so it may be intended.")
    if signals.dump.mode == "CURT_HEALTH":
        parts.append("CURT_HEALTH does not distinguish NaN from infinity.")
    parts.append(f"The debugger looked at {signals.dump.looked_at:,} tensors.")
    return " ".join(parts)


def _at_ps(signals: Signals, origin: Origin) -> int | None:
    """When it happened in the window, where that is known."""
    start_ns = signals.timeline.window.start_unix_ns
    at_ps = (origin.at_ns - start_ns) * PS_PER_NS if start_ns is not None else -1
    return at_ps if 0 <= at_ps < signals.window_ps else None


def _when(signals: Signals, origin: Origin) -> str:
    assert signals.dump is not None
    at_ps = _at_ps(signals, origin)
    if at_ps is not None:
        return f"{seconds(at_ps)} into the first epoch"
    after_ps = (origin.at_ns - signals.dump.start_ns) * PS_PER_NS
    return f"{seconds(after_ps)} after the dump began" if after_ps > 0 else "as the dump began"


def _evidence(signals: Signals, origin: Origin) -> tuple[Evidence, ...]:
    """From the bad value to the end of its step."""
    at_ps = _at_ps(signals, origin)
    if at_ps is None:
        return ()
    ends = (step.end_ps for step in signals.timeline.steps if step.start_ps <= at_ps < step.end_ps)
    end_ps = next(ends, at_ps)
    return signals.evidence_at(
        np.array([at_ps]), np.array([end_ps]), "first value that is not finite"
    )


def _overflow(learning: LearningSignals) -> Change:
    rate, lower = learning.rate, learning.lower_rate
    optimizer = f"keras.optimizers.{learning.settings.optimizer or 'SGD'}"
    is_, to = ("learning_rate", "learning_rate / 10")
    if rate is not None and lower is not None:
        is_, to = f"{rate:.3g}", f"{lower:.3g}"
    return Change(
        "The values had grown too large for the type: lower the learning rate, clip the gradients "
        "and scale the inputs.",
        f"{optimizer}({is_})",
        f"{optimizer}({to}, clipnorm=1.0)",
        turned_to(lower),
    )


def _change(signals: Signals, origin: Origin) -> Change:
    if origin.is_older_than_dump:
        return Change("Record a new dump, with a buffer that keeps every record.", "", CAPTURE)
    if not origin.spoils:
        return Change(
            "If this value is intended, leave it as it is; if not, find out which ops use it."
        )
    suited = (change for types, change in REMEDIES.items() if re.fullmatch(types, origin.type))
    remedy = next(suited, None) or _overflow(signals.learning)
    line = _own_line(origin)
    if line is None or not line.text:
        return remedy
    at = f"  # {PurePosixPath(line.path).name}:{line.line}"
    return replace(remedy, before=f"{line.text}{at}")
