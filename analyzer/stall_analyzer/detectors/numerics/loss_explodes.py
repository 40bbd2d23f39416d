"""The loss grows by orders of magnitude, or from epoch to epoch.

What it finds
A training loss that is still a number but ends a hundred times as high as it began, or that jumped
that high along the way and has since been stuck at half its first value or higher. Also, a loss (of
the whole model or of any one output) that falls to a minimum and then rises to one and a half times
that minimum, in both training and validation.

Why it stalls
Each update makes the model worse instead of better, and soon the loss is NaN.

How it is measured
The typical loss of the last third of the logged steps is compared with the first step, or the last
epoch's loss with the first epoch's; both must be positive, and the growth must be larger than the
noise. For a jump, the highest loss of any step is compared with the loss of the first step. The
jump must come before the last third of the steps, and within that third the loss must no longer be
falling. For a rise, the lowest epoch must be in the first half, and the accuracy must not have
improved since. Where the learning rate is outside its usual range, the finding about the rate is
shown instead of this one.

Example
A recurrent network over 200 time steps without clipping: the loss goes from 0.5 to 3,000 in one
epoch.

What to do
Clip the gradients (clipnorm=1.0), lower the learning rate, scale inputs and targets. In recurrent
networks use LSTM or GRU, or an orthogonal initializer.

Blind spots
Losses that are negative by design are not judged. Losses may also grow because the task gets harder
(reinforcement learning, curricula): unless the growth is too large for that, the finding is rated
only "consider".
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.detectors.numerics.rate_turns import turned_to
from stall_analyzer.model.columns import median
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.units import Float64s
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.signals import Signals

ID = "ST302"
BUCKET = "numerics"

# The loss of a healthy run stays within a factor of ten of its first value.
EXPLODES = 100.0
# No task grows like this.
SURELY = 1e4
# A loss that jumped and is now below this share of its first value has come back.
CAME_BACK = 0.5
# It is still coming back while the later half of its last third is lower by more than this.
ON_ITS_WAY = 0.05
LEAST_AFTER = 10  # steps after the peak
ABOVE_CHANCE = 0.05
# A loss that rises ends this many times above its lowest epoch, and so does the epoch before:
# scatter does not do that. An accuracy that improved by this much says otherwise.
LEAST_EPOCHS = 4
RISEN, RISEN_BEFORE = 1.5, 1.2
BETTER = 0.02


def check(signals: Signals) -> Finding | None:
    learning = signals.learning
    ends = _first_and_last(learning)
    if ends is None or (learning.not_finite is not None and learning.not_finite.to_the_end):
        return None
    first, last, of_what = ends
    scatter = learning.trend.early_scatter if learning.trend is not None else 0.0
    if last < EXPLODES * first or last < first + 10 * scatter:
        return _thrown(learning) or _rising(learning)
    rate = learning.rate
    at_rate = f" at a learning rate of {rate:.3g}" if rate is not None else ""
    return Finding(
        severity="act" if last >= SURELY * first else "consider",
        title=f"The loss explodes from {first:.3g} to {last:.3g}",
        explanation=(
            f"Over {of_what} the loss grew {last / first:.3g}-fold{at_rate} and did not recover. "
            f"The updates make the model worse; the loss will soon be NaN."
        ),
        change=_shorter_steps(learning),
        confidence=0.9,
    )


def _thrown(learning: LearningSignals) -> Finding | None:
    """One update, or a few, moved the weights so far off that no later one brings them back."""
    losses = learning.steps.value
    first, last = learning.first_loss, learning.last_loss
    if first is None or last is None or first <= 0 or not np.isfinite(losses).all():
        return None
    peak = int(np.argmax(losses))
    if losses[peak] < EXPLODES * first or last < CAME_BACK * first or not _is_flat_since(losses):
        return None
    return Finding(
        severity="act" if _is_lost(learning, float(losses[peak]) / first) else "consider",
        title=f"The loss jumped from {first:.3g} up to {losses[peak]:.3g} and did not recover",
        explanation=(
            f"The peak was at step {learning.steps.step[peak]}. The loss came back only to about "
            f"{last:.3g} and no longer falls: the updates were so large that they left the model "
            f"with dead or saturated units."
        ),
        change=_shorter_steps(learning),
        confidence=0.85,
    )


def _rising(learning: LearningSignals) -> Finding | None:
    """The loss of any output that gets worse from epoch to epoch, in validation as well."""
    for name, losses in learning.metrics.items():
        held_out = learning.validation_metrics.get(name)
        if not name.endswith("loss") or held_out is None or not _rises(losses, held_out):
            continue
        if len(learning.accuracies) and _has_risen(learning.accuracies, int(np.argmin(losses))):
            continue
        return Finding(
            severity="consider",
            title=f"The {name.replace('_', ' ')} rises from {losses.min():.3g} to {losses[-1]:.3g}",
            explanation=(
                f"It was lowest in epoch {int(np.argmin(losses)) + 1} of {len(losses)} and has "
                f"risen since, in validation as well ({held_out.min():.3g} to "
                f"{held_out[-1]:.3g}). The updates make this output worse: they are too large, go "
                f"the wrong way, or are accumulated without being reset; or another output's loss "
                f"outweighs this one."
            ),
            change=_shorter_steps(learning),
            confidence=0.75,
        )
    return None


def _rises(*losses: Float64s) -> bool:
    """Whether each rises from its lowest epoch, in the first half, to its last two."""
    return all(
        len(one) >= LEAST_EPOCHS
        and bool(np.isfinite(one).all() and one.min() > 0)
        and int(np.argmin(one)) < len(one) / 2
        and bool(one[-2] > RISEN_BEFORE * one.min() and one[-1] > RISEN * one.min())
        for one in losses
    )


def _has_risen(accuracies: Float64s, since: int) -> bool:
    return bool(accuracies[-1] > accuracies[min(since, len(accuracies) - 1)] + BETTER)


def _is_flat_since(losses: Float64s) -> bool:
    """Whether the peak is long past, and the loss is no longer falling."""
    third = losses[-(len(losses) // 3) :]
    if len(third) < LEAST_AFTER or int(np.argmax(losses)) >= len(losses) - len(third):
        return False
    early, late = np.array_split(third, 2)
    return bool(median(late) >= (1 - ON_ITS_WAY) * median(early))


def _is_lost(learning: LearningSignals, growth: float) -> bool:
    """No better than chance, or too large a jump for any other reason."""
    classes, accuracies = learning.settings.classes, learning.accuracies
    if len(accuracies) and classes:
        return bool(accuracies[-1] < 1 / classes + ABOVE_CHANCE)
    return growth >= SURELY


def _shorter_steps(learning: LearningSignals) -> Change:
    rate, to = learning.rate, learning.lower_rate
    optimizer = learning.settings.optimizer or "SGD"
    before = f"learning_rate={rate:.3g}" if rate is not None else ""
    lower = f"learning_rate={to:.3g}, " if to is not None else ""
    return Change(
        "Clip the gradients; if the loss still grows, lower the learning rate and "
        "scale inputs and targets to about 1.",
        before=f"optimizer = keras.optimizers.{optimizer}({before})",
        after=f"optimizer = keras.optimizers.{optimizer}({lower}clipnorm=1.0)",
        turns=turned_to(to),
    )


def _first_and_last(learning: LearningSignals) -> tuple[float, float, str] | None:
    first, last = learning.first_loss, learning.last_loss
    of_what = f"{len(learning.steps)} logged steps"
    if first is None and len(learning.epoch_losses) > 1:
        first = float(learning.epoch_losses[0])
        of_what = f"{len(learning.epoch_losses)} epochs"
    if first is None or last is None or not np.isfinite(first) or first <= 0:
        return None
    return first, last, of_what
