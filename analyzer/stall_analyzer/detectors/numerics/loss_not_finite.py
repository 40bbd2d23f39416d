"""The loss is NaN or infinite.

What it finds
A training loss that stops being a number and does not recover. From that step on the weights are
NaN, too: every later step costs time and teaches the model nothing.

Why it stalls
NaN spreads. One infinite activation makes the loss NaN, its gradient makes every weight NaN, and
no later batch can repair that.

How it is measured
From the event files: the first logged loss that is NaN or infinite, and whether the last one still
is. Keras logs the mean of the epoch so far, so one bad batch makes it NaN until the epoch ends,
even if the weights survive. If a later epoch's loss or the validation loss is finite, or if loss
scaling skipped updates, the finding is rated only "consider". A capture logs the loss of individual
steps: there, the next finite loss shows that the weights survived. From the first bad step on, all
time spent in steps counts as wasted, unless a later loss is finite.

Example
The loss is 0.4 at step 15, and NaN at step 16 and for the remaining 84% of the epoch: record 16 of
the input had an empty field, which was read as NaN.

What to do
Stop such runs at once with keras.callbacks.TerminateOnNaN(). Then look at what came before: a loss
that grew first points to the learning rate; a sudden break points to the data, or to log(0), a
division by 0 or sqrt(0) in a custom loss. tf.debugging.enable_check_numerics() names the op; so
does a debugger dump, with the line that created it (ST313).

Blind spots
Without a loss per batch, only the epoch is known. In graphs on a CPU, relu turns NaN into 0, so
weights can be NaN although the loss looks healthy.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.detectors.numerics.rate_turns import turned_to
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.signals.numerics.learning import LearningSignals, NotFinite
from stall_analyzer.signals.signals import Signals

ID = "ST301"
BUCKET = "numerics"

# A loss that grew tenfold before it broke was diverging; scatter alone does not do that.
DIVERGED = 10.0
LOOK_BACK = 10  # steps before the break


_FIX_THE_OP = Change(
    "Fix the operation that ST313 names, and stop broken runs at once.",
    before="model.fit(...)",
    after="model.fit(..., callbacks=[keras.callbacks.TerminateOnNaN()])",
)


def check(signals: Signals) -> Finding | None:
    learning = signals.learning
    broken = learning.not_finite
    if broken is None:
        return None
    survived = signals.why_weights_survived
    lost = signals.causes_ps["numerics.nonfinite"]
    diverged = _diverged(learning)
    return Finding(
        severity="consider" if survived else "act",
        title=_title(broken, survived),
        explanation=_explanation(signals, broken, diverged, survived, lost),
        change=_FIX_THE_OP if _is_op_known(signals) else _change(learning, broken, diverged),
        lost_ps=lost,
        confidence=0.6 if survived else 0.97,
        evidence=signals.evidence_of("numerics.nonfinite", "computed after the loss became NaN"),
    )


def _is_op_known(signals: Signals) -> bool:
    origin = signals.origin
    return origin is not None and bool(origin.spoils) and not origin.is_older_than_dump


def _title(broken: NotFinite, survived: str) -> str:
    first = _first_possible_step(broken)
    if first is not None:
        when = f"became NaN or infinite between steps {first} and {broken.step}"
    elif survived:
        when = f"was NaN or infinite {'at' if broken.step is not None else 'in'} {_where(broken)}"
    else:
        when = f"is NaN or infinite from {_where(broken)} on"
    return f"The {broken.tag} {when}{'' if survived else ', and the training is lost'}"


def _where(broken: NotFinite) -> str:
    return f"step {broken.step}" if broken.step is not None else f"epoch {broken.epoch + 1}"


def _first_possible_step(broken: NotFinite) -> int | None:
    """The first step that may be bad, where some before the first bad one were not logged."""
    before = broken.last_finite_step
    if broken.step is None or before is None or before + 1 >= broken.step:
        return None
    return before + 1


def _batches(broken: NotFinite) -> str:
    """Those that may have caused it."""
    if broken.step is None:
        return "the data"
    first = _first_possible_step(broken)
    return f"batch {broken.step}" if first is None else f"batches {first} to {broken.step}"


def _diverged(learning: LearningSignals) -> float | None:
    """By what factor the loss had grown just before it broke."""
    finite = learning.steps.value[np.isfinite(learning.steps.value)]
    if len(finite) < 2 or finite[0] <= 0:
        return None
    growth = float(np.max(finite[-LOOK_BACK:]) / finite[0])
    return growth if growth >= DIVERGED else None


def _explanation(
    signals: Signals, broken: NotFinite, diverged: float | None, survived: str, lost: int
) -> str:
    parts = []
    if diverged is not None:
        parts.append(f"It had grown {diverged:.3g}-fold before that: the steps were too large.")
    elif broken.step is not None and broken.step > 1:
        parts.append("It was not diverging before that: one batch or one operation caused it.")
    elif broken.step is not None:
        parts.append("It was NaN or infinite in the very first step, before any update.")
    if survived:
        parts.append(survived)
    elif broken.share is not None:
        share = percent(broken.share, 1)  # of what was logged, which may not be every step
        parts.append(f"{share} of this epoch's logged losses are from that step or later.")
    if lost:
        share = percent(lost, signals.window_ps)
        parts.append(f"{seconds(lost)} of the first epoch ({share}) was wasted.")
    unknown = "The loss of individual steps was not logged, so the step is not known."
    return " ".join(parts) or unknown


def _change(learning: LearningSignals, broken: NotFinite, diverged: float | None) -> Change:
    rate, optimizer = learning.rate, f"keras.optimizers.{learning.settings.optimizer or 'SGD'}"
    if diverged is not None and rate is not None:
        lower = f"{learning.lower_rate:.3g}"
        return Change(
            f"Lower the learning rate from {rate:.3g} to {lower}, or clip the gradients, and stop "
            "broken runs at once with TerminateOnNaN.",
            before=f"optimizer = {optimizer}(learning_rate={rate:.3g})",
            after=f"optimizer = {optimizer}(learning_rate={lower}, clipnorm=1.0)\n"
            "model.fit(..., callbacks=[keras.callbacks.TerminateOnNaN()])",
            turns=turned_to(learning.lower_rate),
        )
    return Change(
        f"Check {_batches(broken)} for NaN or infinite values and labels out of range; in your own "
        "loss function, keep log, division and sqrt away from 0. Stop broken runs at once.",
        before="loss = -tf.math.log(p)",
        after="assert np.isfinite(x).all() and np.isfinite(y).all()\n"
        "loss = -tf.math.log(p + 1e-7)\n"
        "model.fit(..., callbacks=[keras.callbacks.TerminateOnNaN()])",
    )
