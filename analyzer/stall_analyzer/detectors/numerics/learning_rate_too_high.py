"""The learning rate is far above what the optimizer can use, and the loss shows it.

What it finds
A learning rate above the usual range of its optimizer in a run whose loss ends no lower than it
began, or no lower than the loss of a guess.

Why it stalls
Each update overshoots its target. The weights end up far from where they began, units die or
saturate, and further steps cannot bring them back.

How it is measured
The rate is the one logged at the end of the first epoch, or the one in the stored model; momentum m
multiplies the rate of SGD by 1 / (1 - m). The explanation says what is usual for the optimizer. The
loss of the last third of the steps is compared with that of the first step, which no update has
touched, and with ln(K), the loss of guessing among K classes. If the loss rose far above its start
but came back, the finding is rated only "consider".

Example
Adam at 1.0, a thousand times its default: the loss jumps from 1.7 to 90 within five steps and ends
at 1.61, which is ln(5): the model is guessing among its 5 classes.

What to do
Start at the optimizer's default and change it by factors of 3. If you want a high rate, ramp it up
over the first hundred steps.

Blind spots
Optimizers without a known range, rates that callbacks change between epochs, and models whose
settings were not stored are not judged. A high rate with a falling loss is not reported.
"""

from __future__ import annotations

from stall_analyzer.detectors.numerics.rate_turns import turned_to
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.numerics.learning_rates import (
    effective_rate,
    is_above,
    lower_rate,
    usual_rates,
)
from stall_analyzer.signals.signals import Signals

ID = "ST303"
BUCKET = "numerics"

# Nobody chooses ten times the highest usual rate on purpose.
ABSURD = 10.0
# A model that learned anything is at least this much better than a guess.
BETTER_THAN_GUESS = 0.98
# Training makes an epoch better than its first step; three times worse is not scatter.
FAR_ABOVE = 3.0


def check(signals: Signals) -> Finding | None:
    learning = signals.learning
    settings, rate, usual = learning.settings, learning.rate, usual_rates(learning.settings)
    if rate is None or usual is None:
        return None
    effective, start = effective_rate(settings, rate), lower_rate(settings, rate)
    if not is_above(effective, usual.high):
        return None
    lost = _why_nothing_was_learned(learning)
    complaint = lost or _why_it_suffers(learning)
    if not complaint:
        return None
    surely = bool(lost) and effective >= ABSURD * usual.high
    momentum = f" with momentum {settings.momentum:.3g}" if effective != rate else ""
    return Finding(
        severity="act" if surely else "consider",
        title=f"A learning rate of {rate:.3g}{momentum} is too high for {settings.optimizer}",
        explanation=(
            f"Usual rates for {settings.optimizer} are {usual.low:.0e} to {usual.high:.3g}. "
            f"{complaint} Steps this large overshoot."
        ),
        change=Change(
            f"Start with a learning rate of {start:.3g} and change it by factors of 3.",
            before=f"optimizer = keras.optimizers.{settings.optimizer}(learning_rate={rate:.3g})",
            after=f"optimizer = keras.optimizers.{settings.optimizer}(learning_rate={start:.3g})",
            turns=turned_to(start),
        ),
        confidence=0.95 if surely else 0.7,
    )


def _why_nothing_was_learned(learning: LearningSignals) -> str:
    """Empty where the loss ends lower than it began, and lower than a guess."""
    broken, first, last = learning.not_finite, learning.first_loss, learning.last_loss
    if broken is not None and broken.to_the_end and broken.epoch == 0:
        return "The loss became NaN or infinite within the first epoch."
    if last is None:
        return ""
    error = learning.trend.error if learning.trend is not None else 0.0
    if first is not None and last > first + 2 * error:
        return f"The loss began at {first:.3g} and ended at {last:.3g}."
    guess = learning.settings.guess_loss
    if guess is not None and last >= BETTER_THAN_GUESS * guess:
        classes = learning.settings.classes
        return f"The loss ends at {last:.3g}; a guess among {classes} classes gives {guess:.3g}."
    return ""


def _why_it_suffers(learning: LearningSignals) -> str:
    """A loss that was far above its start along the way, even if it came back."""
    first, epochs = learning.first_loss, learning.epoch_losses
    if first is None or first <= 0 or not len(epochs) or not epochs.max() > FAR_ABOVE * first:
        return ""
    return (
        f"The loss began at {first:.3g}, but the average of an epoch was as high as "
        f"{epochs.max():.3g}."
    )
