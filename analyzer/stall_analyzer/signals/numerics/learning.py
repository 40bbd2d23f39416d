"""What the event files say about learning: losses, rates, accuracies and gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from stall_analyzer.attribute.wasted_steps import captured_loss
from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.model.columns import median
from stall_analyzer.model.event_log import EventLog, Series
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.units import Float64s, Int64s
from stall_analyzer.signals.numerics.epoch_logs import OF_EPOCHS, training_logs, validation_logs
from stall_analyzer.signals.numerics.learning_rates import as_written, lower_rate
from stall_analyzer.signals.numerics.losses import StepLosses, first_fit, step_losses
from stall_analyzer.signals.numerics.model_settings import ModelSettings, settings_of
from stall_analyzer.signals.numerics.trend import Trend, trend_of

# In fewer steps of a single epoch, even a healthy loss may not have moved.
FLAT_LEAST_STEPS = 50
# If only some steps were logged, they must span this many, and their scatter must not hide more
# than this many times the movement that counts as none.
SAMPLED_LEAST_STEPS = 100
HIDDEN_MOST = 4.0

NO_VALUES: Float64s = np.empty(0)
NO_STEPS: Int64s = np.empty(0, np.int64)


@dataclass(frozen=True)
class NotFinite:
    """Where the loss was first NaN or infinite."""

    tag: str
    step: int | None  # None: only epochs were logged
    last_finite_step: int | None  # before it; further steps between them were not logged
    epoch: int
    at_ps: int | None  # when it was logged, in window time
    share: float | None  # of its epoch's logged losses, from that step on
    to_the_end: bool  # the last loss that was logged is not finite either


@dataclass(frozen=True)
class LearningSignals:
    """What one run logged about learning; empty where it logged nothing."""

    steps: StepLosses = field(default_factory=StepLosses)
    epoch_losses: Float64s = field(default_factory=lambda: NO_VALUES)
    validation_losses: Float64s = field(default_factory=lambda: NO_VALUES)
    accuracies: Float64s = field(default_factory=lambda: NO_VALUES)  # per epoch
    learning_rates: Float64s = field(default_factory=lambda: NO_VALUES)  # at each epoch's end
    captured_rates: Float64s = field(default_factory=lambda: NO_VALUES)  # of single steps
    captured_rate_steps: Int64s = field(default_factory=lambda: NO_STEPS)  # these, from 0
    settings: ModelSettings = field(default_factory=ModelSettings)
    not_finite: NotFinite | None = None
    gradients: Mapping[str, Float64s] = field(default_factory=dict)  # by tag
    label_cost: float | None = None  # of the best constant answer, if labels were sampled
    steps_per_epoch: int | None = None
    # Everything logged per epoch, by name: losses of single outputs, and metrics.
    metrics: Mapping[str, Float64s] = field(default_factory=dict)
    validation_metrics: Mapping[str, Float64s] = field(default_factory=dict)

    @cached_property
    def trend(self) -> Trend | None:
        """The trend of the loss over all logged steps in which it is a number."""
        finite = np.isfinite(self.steps.value)
        return trend_of(self.steps.value[finite], self.steps.rounding[finite])

    @property
    def first_loss(self) -> float | None:
        """The loss of the first step, before any update."""
        steps = self.steps
        return float(steps.value[0]) if len(steps) and steps.step[0] <= 1 else None

    @property
    def last_loss(self) -> float | None:
        """The typical loss at the end of what was logged, if it is a number."""
        if self.trend is not None and np.isfinite(self.steps.value[-1]):
            return self.trend.late
        if len(self.epoch_losses) and np.isfinite(self.epoch_losses[-1]):
            return float(self.epoch_losses[-1])
        return None

    def is_flat(self, share: float) -> bool:
        """Does the loss move by no more than `share` of itself, or no more than scatter explains?

        Epochs run over the same data, so their losses compare directly; steps only by thirds.
        """
        epochs, trend = self.epoch_losses, self.trend
        if trend is not None and abs(trend.fall) > 2 * trend.error + share * abs(trend.early):
            return False
        if len(epochs) > 1 and np.isfinite(epochs).all():
            return bool(np.ptp(epochs) <= share * abs(epochs[0]))
        if trend is None:
            return False
        return trend.count >= FLAT_LEAST_STEPS or self._is_surely_flat(trend, share)

    def _is_surely_flat(self, trend: Trend, share: float) -> bool:
        """Whether the few logged steps scatter so little that no movement can hide in them."""
        passed = int(self.steps.step[-1] - self.steps.step[0])
        most = abs(trend.fall) + 2 * trend.error
        return passed >= SAMPLED_LEAST_STEPS and most <= HIDDEN_MOST * share * abs(trend.early)

    def why_weights_survived(self, skips_updates: bool) -> str:
        """What shows that the weights are numbers although a loss was not; empty: nothing does."""
        if self.not_finite is None:
            return ""
        if not self.not_finite.to_the_end:
            return "A later loss is a number again, so the weights survived."
        if len(self.validation_losses) and np.isfinite(self.validation_losses[-1]):
            return "The last validation loss is a number, so the weights survived."
        if skips_updates and len(self.epoch_losses) < 2:
            return "Loss scaling skipped such updates, so the weights may have survived."
        return ""

    @property
    def rate(self) -> float | None:
        """The learning rate of the first epoch."""
        rate = self.settings.learning_rate
        if len(self.learning_rates):
            rate = float(self.learning_rates[0])
        elif rate is None and len(self.captured_rates):
            rate = float(median(self.captured_rates))
        return as_written(rate) if rate is not None else None

    @property
    def lower_rate(self) -> float | None:
        """The lower rate that all findings suggest, so that a report names only one."""
        return lower_rate(self.settings, self.rate) if self.rate is not None else None

    @property
    def highest_rate(self) -> float | None:
        """The highest rate that the run can have used; None where that is not known."""
        rates = [*self.learning_rates, *self.captured_rates]
        if self.settings.highest_rate is not None:
            rates.append(self.settings.highest_rate)
        elif not len(self.captured_rates):
            return None  # what a schedule does within an epoch is not logged
        return as_written(max(rates))

    @property
    def step_count(self) -> int | None:
        """The steps of all logged epochs."""
        if self.steps_per_epoch is None:
            return None
        return self.steps_per_epoch * max(len(self.epoch_losses), 1)


def learning_signals(timeline: Timeline) -> LearningSignals:
    events = timeline.events
    if events is None:
        return LearningSignals()
    steps = step_losses(events, timeline.window.start_unix_ns)
    train, validation = training_logs(events), validation_logs(events)
    rate_steps, rates = _captured_rates(events)
    return LearningSignals(
        steps=steps,
        epoch_losses=_values(train.get("epoch_loss")),
        validation_losses=_values(validation.get("epoch_loss")),
        accuracies=_values(_accuracy(train)),
        learning_rates=_values(train.get("epoch_learning_rate")),
        captured_rates=rates,
        captured_rate_steps=rate_steps,
        settings=_settings(events),
        not_finite=_not_finite(events, steps),
        gradients=_gradients(events),
        steps_per_epoch=_steps_per_epoch(steps, events, timeline),
        metrics=_by_name(train),
        validation_metrics=_by_name(validation),
    )


def _values(series: Series | None) -> Float64s:
    whole = first_fit(series)
    return whole.value if whole is not None else NO_VALUES


def _by_name(logs: Mapping[str, Series]) -> dict[str, Float64s]:
    return {
        tag.removeprefix(OF_EPOCHS): _values(series)
        for tag, series in logs.items()
        if tag.startswith(OF_EPOCHS)
    }


def _captured_rates(events: EventLog) -> tuple[Int64s, Float64s]:
    """Steps and their rates."""
    series = events.capture.series if events.capture is not None else {}
    rates = first_fit(series.get(Tag.LEARNING_RATE.removeprefix(Tag.ALL)))
    if rates is None:
        return NO_STEPS, NO_VALUES
    finite = np.isfinite(rates.value)
    return rates.step[finite], rates.value[finite]


def _settings(events: EventLog) -> ModelSettings:
    """From the stored model; a capture knows the optimizer if no model was stored."""
    settings = settings_of(events.stored_model)
    record = events.capture.model if events.capture is not None else None
    if settings.optimizer is None and record is not None and record.optimizer:
        settings = replace(settings, optimizer=record.optimizer)
    if record is not None and record.class_weight:  # a stored model does not have them
        settings = replace(settings, averaged=False)
    return settings


def _accuracy(train: Mapping[str, Series]) -> Series | None:
    tags = [tag for tag in train if tag.startswith("epoch_") and "acc" in tag]
    return train[tags[0]] if len(tags) == 1 else None


def _not_finite(events: EventLog, steps: StepLosses) -> NotFinite | None:
    """From the loss of each step if it was logged, or from whatever is called a loss."""
    bad = np.flatnonzero(~np.isfinite(steps.value))
    train = training_logs(events)
    epoch_losses = _values(train.get("epoch_loss"))
    if len(bad):
        row = int(bad[0])
        epoch = int(steps.epoch[row])
        mine = steps.epoch == epoch
        # The mean of an epoch stays NaN; the losses of single steps show whether it recovered.
        singly = captured_loss(events) is not None
        by_epoch = len(epoch_losses) > steps.epoch[-1] and not singly
        later = epoch_losses if by_epoch else steps.value
        return NotFinite(
            tag="loss",
            step=int(steps.step[row]),
            last_finite_step=int(steps.step[row - 1]) if row else None,
            epoch=epoch,
            at_ps=int(steps.at_ps[row]),
            share=float(np.sum(mine & (np.arange(len(steps)) >= row)) / np.sum(mine)),
            to_the_end=not np.isfinite(later[-1]),
        )
    for tag, series in train.items():
        values = _values(series)
        wrong = np.flatnonzero(~np.isfinite(values))
        if tag.endswith("loss") and len(wrong):
            epoch = int(series.step[wrong[0]]) if tag.startswith("epoch_") else 0
            ends = not np.isfinite(values[-1])
            return NotFinite(tag.removeprefix("epoch_"), None, None, epoch, None, None, ends)
    return None


def _gradients(events: EventLog) -> dict[str, Float64s]:
    """What the user logged about gradients or updates, by tag."""
    words = ("grad", "update_ratio", "update_to_weight")
    return {
        tag: _values(series)
        for tag, series in events.train.items()
        if any(word in tag.lower() for word in words) and len(series)
    }


def _steps_per_epoch(steps: StepLosses, events: EventLog, timeline: Timeline) -> int | None:
    """In the first epoch, from the first source that has it."""
    marked = events.capture.steps_of_first_epoch if events.capture is not None else None
    if marked:
        return marked
    first = steps.step[steps.epoch == 0]
    if len(first):
        return int(first[-1])
    iterations = events.validation.get("evaluation_loss_vs_iterations")
    if iterations is not None and len(iterations):
        return int(iterations.step[0])
    traced = [step for step in timeline.steps if step.phase == "training"]
    if sum(step.end_ps - step.start_ps for step in traced) < timeline.window.duration_ps / 2:
        return None  # a profile of a few batches
    return len(traced) or None
