"""What a constant answer costs, and whether the loss ever got clearly below it.

A model that has learned nothing from its inputs can still give the same answer for all of them. The
best such answer has a cost: the entropy of the labels or, in a regression, the variance of the
targets. A model whose loss never gets below that has learned nothing from its inputs.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import Float64s
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.numerics.losses import StepLosses
from stall_analyzer.signals.numerics.trend import MIDDLE_ERROR, middle_mean, scatter_of

# A loss that is no more than this below the cost of a constant answer is not clearly below it.
CLEARLY = 0.02
# At least this share below it, and this many times the scatter, a little has been learned: from
# gray pictures or weak inputs there may be no more to learn.
A_LITTLE = 0.003
SURELY = 4.0
# Fewer epochs may all belong to a slow beginning.
LEAST_EPOCHS = 3
# In a loop without epochs, thirds of the steps take their place, if there are this many steps.
LEAST_STEPS = 100
LEAST_IN_THIRD = 5
# An accuracy this far above chance, or one that rises by this much, shows that something was
# learned.
ABOVE_CHANCE = 0.05
RISEN = 0.02
# A model that always gives the same answer has the same accuracy in every epoch, to the digit.
SAME_ACCURACY = 1e-6
# If only the largest class is known, there is an upper bound for the entropy of the classes; it is
# rarely lower than this share of that bound.
OF_THE_BOUND = 0.8
# Numbers of classes that datasets have.
USUAL_CLASSES = (2, 3, 4, 5, 10, 20, 100, 1000)
# A rate that has grown by this factor since the first epoch is still being warmed up.
WARMING = 1.5
# A rate below this share of its highest value has done its work.
DECAYED = 0.01


@dataclass(frozen=True)
class Baseline:
    """What the best answer that ignores its inputs costs."""

    cost: float
    least: float  # a loss above this is not clearly below it
    words: str  # what that answer is, after "the cost of"
    is_bound: bool = False  # `cost` is an upper bound: the real cost may be less


@dataclass(frozen=True)
class Course:
    """The loss in a few stretches of the run: its epochs or, in a loop without any, thirds."""

    levels: Float64s
    error: float  # of the fall, from the scatter of the steps; 0 for epochs, which share their data

    @property
    def fall(self) -> float:
        """From the first stretch to the last, as a share of the first; below 0 where it rose."""
        return float(self.levels[0] - self.levels[-1]) / abs(float(self.levels[0]))

    @property
    def last_fall(self) -> float:
        return float(self.levels[-2] - self.levels[-1]) / abs(float(self.levels[-2]))

    @property
    def since_second(self) -> Course:
        """Without the first stretch, in which any model learns what is typical."""
        return Course(self.levels[1:], self.error)

    @property
    def spread(self) -> float:
        """The difference between the highest and the lowest stretch, as a share of the last."""
        return float(np.ptp(self.levels)) / abs(float(self.levels[-1]))


def baseline_of(learning: LearningSignals) -> Baseline | None:
    """From labels that a capture sampled, or the accuracy, or the number of classes."""
    if learning.label_cost is not None:
        cost, words = learning.label_cost, "the best constant answer"
        return Baseline(cost, (1 - CLEARLY) * cost, words)
    settings = learning.settings
    if settings.guess_loss is None or settings.classes is None:
        return None
    share = _share_of_one_answer(learning)
    if share is not None and share >= 1 / settings.classes + ABOVE_CHANCE:
        bound = _entropy_bound(share, settings.classes)
        least = (1 - CLEARLY) * bound if settings.classes == 2 else OF_THE_BOUND * bound
        words = f"always giving the answer that is right for {100 * share:.3g}% of the examples"
        return Baseline(bound, least, words, is_bound=settings.classes > 2)
    words = f"giving each of {settings.classes} classes the same probability"
    return Baseline(settings.guess_loss, (1 - CLEARLY) * settings.guess_loss, words)


def classes_near(level: float, share: float) -> int | None:
    """The usual number of classes for which a guess costs this much, give or take a share of it."""
    near = (n for n in USUAL_CLASSES if abs(level - math.log(n)) <= share * math.log(n))
    return next(near, None)


def course_of(learning: LearningSignals) -> Course | None:
    """None for runs that are too short, or whose loss is not a positive number throughout."""
    epochs = learning.epoch_losses
    course: Course | None = None
    if len(epochs) >= LEAST_EPOCHS:
        course = Course(epochs, 0.0)
    elif len(epochs) == 0 and learning.trend is not None and steps_passed(learning) >= LEAST_STEPS:
        course = _by_thirds(learning.steps)
    else:
        return None
    if course is None or not np.isfinite(course.levels).all():
        return None
    return course if (course.levels > 0).all() else None


def is_never_below(learning: LearningSignals, baseline: Baseline, course: Course) -> bool:
    """Is the loss at or above the cost of a constant answer, with an accuracy that agrees?"""
    if not baseline.is_bound and is_surely_below(learning, baseline.cost, course.levels[-1]):
        return False
    held_out = learning.validation_losses[-1:]  # lower than that of training under heavy dropout
    never = (course.levels >= baseline.least).all() and not (held_out < baseline.least).any()
    return bool(never) and not accuracy_rises(learning)


def is_surely_below(learning: LearningSignals, cost: float, loss: float) -> bool:
    """Whether the loss is below this cost by more than scatter can explain, even if only a
    little."""
    error = learning.trend.error if learning.trend is not None else 0.0
    return cost - loss > max(A_LITTLE * cost, SURELY * error)


def accuracy_rises(learning: LearningSignals) -> bool:
    """Whether an accuracy was logged that shows at least a little learning."""
    accuracies = learning.accuracies
    if len(accuracies) == 0:
        return False
    if _share_of_one_answer(learning) is not None:
        return False
    classes = learning.settings.classes
    if classes and accuracies[-1] >= 1 / classes + ABOVE_CHANCE:
        return True
    return bool(accuracies[-1] >= accuracies[0] + RISEN)


def is_warming_up(learning: LearningSignals) -> bool:
    """Whether the rate is still growing: what the loss does then says little."""
    rates = _rates(learning)
    return len(rates) > 1 and bool(rates[-1] > WARMING * rates[0])


def has_decayed(learning: LearningSignals) -> bool:
    """Whether the rate was lowered to almost nothing: then the loss cannot move."""
    rates = _rates(learning)
    return len(rates) > 1 and bool(rates[-1] <= DECAYED * rates.max())


def _rates(learning: LearningSignals) -> Float64s:
    return learning.learning_rates if len(learning.learning_rates) else learning.captured_rates


def steps_passed(learning: LearningSignals) -> int:
    """From the first logged step to the last, including those not logged."""
    steps = learning.steps.step
    return int(steps[-1] - steps[0]) + 1 if len(steps) else 0


def _by_thirds(steps: StepLosses) -> Course | None:
    """Thirds of the run, not of the records: a capture logs more of the first steps."""
    finite = np.isfinite(steps.value)
    number, value = steps.step[finite], steps.value[finite]
    ends = np.linspace(number[0], number[-1] + 1, 4)
    thirds = [value[(number >= low) & (number < high)] for low, high in pairwise(ends)]
    fewest = min(len(third) for third in thirds)
    if fewest < LEAST_IN_THIRD:
        return None
    error = MIDDLE_ERROR * scatter_of(value) * math.sqrt(2 / fewest)
    return Course(np.array([middle_mean(third) for third in thirds]), error)


def _share_of_one_answer(learning: LearningSignals) -> float | None:
    """The accuracy of the last epochs if it is always the same: that of a single answer."""
    last = learning.accuracies[-LEAST_EPOCHS:]
    if len(last) < LEAST_EPOCHS or np.ptp(last) > SAME_ACCURACY or not 0 < last[-1] < 1:
        return None
    return float(last[-1])


def _entropy_bound(share: float, classes: int) -> float:
    """The highest entropy that labels can have if one class has this share of them."""
    rest = 1 - share
    return -share * math.log(share) - rest * math.log(rest / (classes - 1))
