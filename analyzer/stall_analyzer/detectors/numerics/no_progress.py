"""The loss stays at the cost of a constant answer, or where it began.

What it finds
A model whose loss never gets clearly below the cost of giving the same answer for all inputs, with
an accuracy that does not rise; a loss that is the same number epoch after epoch; a loss that fell
back to ln(K), the cost of a guess among K classes, and stays there; and, as a note, any loss that
has hardly moved since the beginning.

Why it stalls
The steps run, but the model does not get better at its task. Either the updates do not reach the
weights, or there is nothing to learn in the data.

How it is measured
A constant answer costs ln(K) if K classes get the same probability. If the accuracy is the same
number in three epochs, the model gives one answer: its accuracy is the share of the largest class,
and the cost is the entropy of that share. The number of classes comes from the stored model; losses
and accuracies come from the event files. In every epoch (at least three), the loss must be above
the cost or within 2% of it. In the last one, it must fall by less than 2% (0.5% if no accuracy was
logged), and the learning rate must not be rising. A hundred steps make the finding certain; with
fewer, the loss must have moved by less than 0.5% in total. A loss that is the same to six digits in
three epochs, or to four digits since the beginning, is judged without the number of classes; a loop
without epochs is judged by thirds of its steps. A model that broke down is recognized within one
epoch: its step losses were at least a tenth below ln(K) or three times as high as ln(K), and from
some step on, each of them stayed within 2% of ln(K). Where the learning rate or the last layer
explains it, the finding about that is shown instead of this one.

Example
A loss of 2.303 in all three epochs on ten classes, which is ln(10): the labels had been shuffled
without the images.

What to do
Train on one batch of 32 examples. If the loss does not go to 0, the updates do not reach the
weights: look for frozen layers, dead relu units, vanishing gradients. If it does go to 0, the
labels probably do not match the inputs: look at a few of both, as they leave the input pipeline.
For a model that broke down, look for NaN in the inputs, scale them, lower the learning rate or clip
the gradients.

Blind spots
For regression and custom losses, an ordinary log does not show what a constant answer costs, so a
loss that hardly moves only gets a note: the model may have been trained before. A plateau that the
run would have left later looks the same while it lasts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stall_analyzer.detectors.numerics.breakdown import broke_down, broken_at
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import counted
from stall_analyzer.model.units import Float64s
from stall_analyzer.signals.numerics.baseline import (
    SURELY,
    Baseline,
    Course,
    accuracy_rises,
    baseline_of,
    classes_near,
    course_of,
    has_decayed,
    is_never_below,
    is_surely_below,
    is_warming_up,
    steps_passed,
)
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.signals import Signals

ID = "ST305"
BUCKET = "numerics"

# Fewer steps or epochs are too early to say.
LEAST_STEPS = 100
LEAST_EPOCHS = 2
LEAST_EPOCHS_UNCOUNTED = 4  # where the number of steps is not known, with an accuracy at hand
# In many healthy runs, fewer steps than this have moved nothing yet.
FEW_STEPS = 24
# How close to ln(K) counts as a guess, and how little the last epochs may differ: a slow but
# healthy beginning falls by a percent or more per epoch.
NEAR_GUESS = 0.02
STILL = 0.005
# On its way down to a guess a loss may fall faster, as long as the accuracy does not rise.
SLOW = 0.02
# A plateau ends with a fall of this much in an epoch, and of this many times what it moved before.
LEAVING = 1e-3
LEAVING_TIMES = 3.0
# An accuracy this far above chance has learned something.
ABOVE_CHANCE = 0.05
# After this many epochs at a guess, with an accuracy that agrees, nothing has been learned.
SURE_EPOCHS = 3
# One answer for everything is right this often only in data that is hard to learn anyway.
RARE_CLASS = 0.9
# The same number to all digits of float32, in this many epochs: no update arrives. To four digits:
# updates arrive, but are far too small.
SAME = 1e-6
NEARLY_SAME = 1e-4
LEAST_SAME = 3
# A loss that fell by this much before it stopped has learned something, and one this small is done.
HAD_FALLEN = 0.1
DONE = 1e-5
# For a loss whose constant answer is not known: a fall this small may be none at all, and scatter
# this large hides it.
HARDLY = 0.05
SCATTER_MOST = 0.2
# A model that is right this often need not learn anything more.
GOOD_ACCURACY = 0.9
# Where classes differ in size, one answer for all inputs may be right this much more often than a
# guess: a loss that hardly moves is worth a note.
NEAR_CHANCE = 0.1
# A loss that has settled at a guess is closer to it than one that passes by.
AT_GUESS = 0.002

WHAT_WOULD_TELL = (
    "StallCallback measures the gradients and updates of each layer: a run with it shows where "
    "learning stops."
)
ONE_BATCH = Change(
    "Train on a single batch until its loss is near 0. If it gets there, look at the labels as "
    "they leave the input pipeline; if not, look at the layers, the gradients and the loss.",
    before="model.fit(data, epochs=3)",
    after="model.fit(data.take(1).cache().repeat(200))",
)


def check(signals: Signals) -> Finding | None:
    learning = signals.learning
    epochs = learning.epoch_losses
    if not np.isfinite(epochs).all():
        return None
    broken = broken_at(learning)
    if broken is not None:
        return broke_down(learning, broken)
    if learning.settings.frozen and len(epochs) >= LEAST_EPOCHS:
        return _frozen(learning)
    finding = _standing(learning)
    if finding is None or signals.layers.gradients is not None:
        return finding
    return replace(finding, explanation=f"{finding.explanation} {WHAT_WOULD_TELL}")


def _standing(learning: LearningSignals) -> Finding | None:
    if _guesses(learning):
        return _guessing(learning)
    course, baseline = course_of(learning), baseline_of(learning)
    if course is None or is_warming_up(learning) or course.levels[-1] < DONE:
        return None
    if baseline is not None and _stays_above(learning, baseline, course):
        return _constant_answer(learning, baseline, course)
    if has_decayed(learning):
        return None
    if _is_good(learning, baseline, course):
        return _hardly_moved(learning, course) if _is_near_chance(learning) else None
    return (
        _same_number(learning, course)
        or _hardly_moved(learning, course)
        or _ends_at_a_guess(learning, course)
    )


def _guesses(learning: LearningSignals) -> bool:
    guess, classes = learning.settings.guess_loss, learning.settings.classes
    epochs, validation = learning.epoch_losses, learning.validation_losses
    if guess is None or classes is None or len(epochs) < LEAST_EPOCHS:
        return False
    if not _is_late_enough(learning):
        return False
    if any(is_surely_below(learning, guess, at[-1]) for at in (epochs, validation) if len(at)):
        return False
    last = epochs[-2:]
    if np.abs(last - guess).max() > NEAR_GUESS * guess or np.ptp(last) > STILL * guess:
        return False
    if _leaves(learning, epochs):
        return False
    accuracies = learning.accuracies
    return not len(accuracies) or bool(accuracies[-1] < 1 / classes + ABOVE_CHANCE)


def _leaves(learning: LearningSignals, levels: Float64s) -> bool:
    """Whether the last epoch improved more than all before it: the end of a plateau."""
    accuracies, falls = learning.accuracies, -np.diff(levels) / np.abs(levels[-1])
    if len(accuracies) > 1 and accuracies[-1] <= accuracies[:-1].max():
        return False
    before = float(np.abs(falls[:-1]).max(initial=0.0))
    return bool(falls[-1] > max(LEAVING, LEAVING_TIMES * before))


def _stays_above(learning: LearningSignals, baseline: Baseline, course: Course) -> bool:
    """At or above a constant answer from the first epoch to the last, and hardly moving."""
    if not is_never_below(learning, baseline, course) or _leaves(learning, course.levels):
        return False
    if _steps(learning) < LEAST_STEPS:
        return _steps(learning) >= FEW_STEPS and course.spread <= STILL
    is_above = len(learning.accuracies) > 0 and course.levels[-1] > baseline.cost
    pace = SLOW if is_above else STILL
    return abs(course.last_fall) <= pace + 2 * course.error / baseline.cost


def _is_good(learning: LearningSignals, baseline: Baseline | None, course: Course) -> bool:
    """Whether the model has learned something, so that it may have nothing more to learn."""
    if len(learning.accuracies) and learning.accuracies[-1] >= GOOD_ACCURACY:
        return True
    return accuracy_rises(learning) or (
        baseline is not None and bool(course.levels[-1] < (1 - HAD_FALLEN) * baseline.cost)
    )


def _is_near_chance(learning: LearningSignals) -> bool:
    """Better than a guess, but no better than one answer for all inputs may be."""
    classes, accuracies = learning.settings.classes, learning.accuracies
    return bool(classes and len(accuracies) and accuracies[-1] < 1 / classes + NEAR_CHANCE)


def _same_number(learning: LearningSignals, course: Course) -> Finding | None:
    """A loss that is the same in whole epochs, which has the same causes for every loss."""
    if course.error or len(course.levels) < LEAST_SAME or course.fall > HAD_FALLEN:
        return None
    tail = course.levels[-LEAST_SAME:]
    exactly = bool(np.ptp(tail) <= SAME * abs(tail[-1]))
    if not exactly and course.spread > NEARLY_SAME:
        return None
    return _constant(learning, exactly)


def _hardly_moved(learning: LearningSignals, course: Course) -> Finding | None:
    level, trend = float(course.levels[-1]), learning.trend
    error = 2 * course.error / level
    if error:  # thirds of the steps
        falls = trend is not None and trend.fall > SURELY * trend.error
        if falls or abs(course.fall) > max(error, STILL) or error > SCATTER_MOST:
            return None
    else:
        since = course.since_second if len(course.levels) > LEAST_SAME else course
        noise = 2 * trend.error / level if trend is not None else 0.0
        is_still = abs(course.last_fall) <= max(STILL, noise) and abs(since.fall) <= HARDLY
        if not is_still or abs(course.fall) > HAD_FALLEN or _steps(learning) < LEAST_STEPS:
            return None
    classes = _classes_by_level(course, error) if learning.settings.loss is None else None
    return _at_a_guess(course, classes) if classes is not None else _note(learning, level, course)


def _ends_at_a_guess(learning: LearningSignals, course: Course) -> Finding | None:
    """An unknown loss that has been at a guess since the middle of the run, or began at one and has
    hardly moved. Two networks that train against each other may end there, and slow beginnings
    look the same, so it is only a note."""
    if learning.settings.loss is not None:
        return None
    middle, ended = (classes_near(float(level), AT_GUESS) for level in course.levels[-2:])
    is_there = ended is not None and ended == middle
    is_near = classes_near(learning.first_loss or 0.0, STILL) and abs(course.fall) < HARDLY
    return _note(learning, float(course.levels[-1]), course) if is_there or is_near else None


def _classes_by_level(course: Course, error: float) -> int | None:
    """The number of classes among which guessing costs this much. Needed in a loop, which says
    nothing about its loss."""
    if course.spread + error > 2 * STILL:
        return None
    return classes_near(float(course.levels[-1]), STILL)


def _steps(learning: LearningSignals) -> int:
    """The steps of all epochs. If they were not counted: enough, where there are enough epochs."""
    if learning.step_count is not None:
        return max(learning.step_count, steps_passed(learning))
    return LEAST_STEPS if len(learning.accuracies) >= LEAST_EPOCHS_UNCOUNTED else 0


def _is_late_enough(learning: LearningSignals) -> bool:
    if learning.step_count is not None:
        return learning.step_count >= LEAST_STEPS
    return min(len(learning.epoch_losses), len(learning.accuracies)) >= LEAST_EPOCHS_UNCOUNTED


def _guessing(learning: LearningSignals) -> Finding:
    settings, epochs = learning.settings, learning.epoch_losses
    sure = len(learning.accuracies) and len(epochs) >= SURE_EPOCHS
    return Finding(
        severity="act" if sure else "consider",
        title=(
            f"The loss stays at {epochs[-1]:.3g}, no better than guessing among "
            f"{settings.classes} classes"
        ),
        explanation=(
            f"After {len(epochs)} epochs{_at_rate(learning)} the loss is still "
            f"ln({settings.classes}), the cost of giving each class the same probability."
            f"{_accuracy(learning)} Either the labels do not match the inputs, so that no "
            "model could learn them, or the updates do not reach the weights. The log cannot tell "
            "which."
        ),
        change=ONE_BATCH,
        confidence=0.85 if sure else 0.7,
    )


def _constant_answer(learning: LearningSignals, baseline: Baseline, course: Course) -> Finding:
    last, accuracies = course.levels[-1], learning.accuracies
    rare = len(accuracies) > 0 and accuracies[-1] >= RARE_CLASS
    is_known = len(accuracies) > 0 or learning.label_cost is not None
    sure = is_known and not rare and _steps(learning) >= LEAST_STEPS
    return Finding(
        severity="act" if sure else "consider",
        title=f"The loss is {last:.3g}, no better than always giving the same answer",
        explanation=(
            f"It began at {course.levels[0]:.4g} and is {last:.4g} after {_length(learning)}"
            f"{_at_rate(learning)}; {baseline.cost:.4g} is the cost of {baseline.words}."
            f"{_accuracy(learning)} So nothing has been learned from the inputs: either the "
            f"updates do not reach the weights, or they are far too small, or the labels do not "
            f"match the inputs."
        ),
        change=ONE_BATCH,
        confidence=0.85 if sure else 0.7,
    )


def _constant(learning: LearningSignals, exactly: bool) -> Finding:
    epochs = learning.epoch_losses
    digits, why = "six", "although updating the weights always moves a loss a little"
    reasons = (
        "The gradient is zero because of dead or saturated units or an operation without a "
        "gradient, or the optimizer was not given the variables."
    )
    if not exactly:
        digits, why = "nearly four", "from the first epoch on, as if the weights hardly moved"
        reasons = (
            "The updates are far too small: the learning rate or the clipping limit is much too "
            "low, gradients vanish along the way, or weights are not trained."
        )
    return Finding(
        severity="act" if exactly and _steps(learning) >= LEAST_STEPS else "consider",
        title=f"The loss is {epochs[-1]:.6g}, epoch after epoch",
        explanation=f"It is the same to {digits} digits, {why}. {reasons}",
        change=ONE_BATCH,
        confidence=0.8 if exactly else 0.7,
    )


def _at_a_guess(course: Course, classes: int) -> Finding:
    return Finding(
        severity="consider",
        title=f"The loss stays at {course.levels[-1]:.3g}, which is ln({classes})",
        explanation=(
            f"It was {course.levels[0]:.4g} at first and is {course.levels[-1]:.4g} at the end. "
            f"If it is a cross-entropy over {classes} classes, that is the cost of giving each of "
            f"them the same probability: nothing has been learned. Usual reasons: updates that do "
            f"not reach the weights, softmax applied twice, labels that do not match the inputs."
        ),
        change=ONE_BATCH,
        confidence=0.6,
    )


def _note(learning: LearningSignals, level: float, course: Course) -> Finding:
    return Finding(
        severity="note",
        title=f"The loss has hardly moved in {_length(learning)}",
        explanation=(
            f"It was {course.levels[0]:.3g} at first and is {level:.3g} at the end. For a model "
            f"that was trained before, or for a task that is hardly predictable, that is normal. "
            f"For a new model, it means that only a constant answer was learned. To check, compare "
            f"the loss with the variance of the targets, or with the entropy of the labels."
        ),
        change=ONE_BATCH,
        confidence=0.5,
    )


def _frozen(learning: LearningSignals) -> Finding:
    epochs, course = learning.epoch_losses, course_of(learning)
    hardly = course is not None and course.fall <= HARDLY and len(learning.accuracies) > 0
    nothing = learning.is_flat(STILL) or (hardly and not accuracy_rises(learning))
    return Finding(
        severity="act" if nothing else "consider",
        title="Every layer of the model is frozen",
        explanation=(
            f"All layers with weights have trainable=False. The loss is {epochs[0]:.4g} in the "
            f"first and {epochs[-1]:.4g} in the last of {len(epochs)} epochs: there is nothing to "
            "train."
        ),
        change=Change(
            "Set trainable=True on the layers that should learn, and compile the model again.",
            before="model.trainable = False",
            after="model.layers[-1].trainable = True\nmodel.compile(...)",
        ),
        confidence=0.95,
    )


def _length(learning: LearningSignals) -> str:
    epochs = len(learning.epoch_losses)
    return counted(epochs, "epoch") if epochs else counted(_steps(learning), "step")


def _at_rate(learning: LearningSignals) -> str:
    return f" at a learning rate of {learning.rate:.3g}" if learning.rate is not None else ""


def _accuracy(learning: LearningSignals) -> str:
    accuracies = learning.accuracies
    return f" The accuracy is {accuracies[-1]:.3g}." if len(accuracies) else ""
