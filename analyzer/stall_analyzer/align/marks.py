"""What ordinary event files tell about the course of the first epoch, without a capture.

Keras's TensorBoard callback writes the model when fit begins, the graph (until Keras 3) after the
first batch, `batch_N` when a profile of batch N ends, `evaluation_*_vs_iterations` when a
validation ends. The profiler itself begins with a batch. Each proves how many steps were over by
then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stall_analyzer.model.columns import median
from stall_analyzer.model.event_log import EventLog, Series
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import FirstStep
from stall_analyzer.model.units import NS_PER_S, PS_PER_NS, Int64s

EVALUATED = ("evaluation_", "_vs_iterations")  # a tag of Keras's callback
STEPS_PER_SECOND = "epoch_steps_per_second"


@dataclass(frozen=True)
class Passed:
    """Proof that this many steps were over at a moment."""

    ns: int
    steps: int
    source: str


@dataclass(frozen=True)
class Profile:
    """A trace of some batches."""

    began_ns: int
    batches: int  # in the trace
    batch: int | None  # the number of the first in its epoch, from 1, if its markers say so


@dataclass(frozen=True)
class LoggedValidation:
    """The first validation. It begins somewhere in a second; its end is exact."""

    begin_ns: int
    begin_error_ns: int
    end_ns: int


def first_step_of(
    events: EventLog,
    start_ns: int,
    end_ns: int,
    batches: Series | None,
    profiles: Sequence[Profile],
) -> FirstStep | None:
    """The earliest proof that a step was over."""
    passed = [*_from_events(events, batches), *_from_profiles(events, profiles)]
    inside = [mark for mark in passed if start_ns < mark.ns < end_ns and mark.steps > 0]
    if not inside:
        return None
    first = min(inside, key=lambda mark: (mark.ns, mark.steps))
    return FirstStep((first.ns - start_ns) * PS_PER_NS, first.steps, first.source)


def _from_events(events: EventLog, batches: Series | None) -> list[Passed]:
    passed = [
        Passed(ns, number, f"batch {number} was profiled") for number, ns in events.profiled_batches
    ]
    # TensorFlow 2.0 and 2.1 write the graph before training; later ones after the first batch.
    graph_ns, keras = events.graph_wall_ns, events.keras
    if keras is not None and graph_ns is not None and graph_ns > keras.wall_ns:
        passed.append(Passed(graph_ns, 1, "Keras wrote the graph after the first batch"))
    if batches is not None and len(batches):
        passed.append(_first_batch(batches))
    return passed


def _first_batch(batches: Series) -> Passed:
    """With `update_freq=n`, every n-th batch is logged, from the n-th on, or from the first. If
    training resumes from a checkpoint, earlier steps do not belong to this run."""
    step = batches.step
    every = int(median(np.diff(step))) if len(step) > 1 else 1
    number = max(min(int(step[0]), every), 1)
    return Passed(int(batches.wall_ns[0]), number, f"batch {number} was logged")


def _from_profiles(events: EventLog, profiles: Sequence[Profile]) -> list[Passed]:
    """The first profile of the run, if it is known which batch it began with: by its own markers,
    or because Keras names the batch it ended with."""
    if not profiles:
        return []
    first = min(profiles, key=lambda profile: profile.began_ns)
    ended_with = [number for number, ns in events.profiled_batches if ns >= first.began_ns]
    if first.batch is None and not ended_with:
        return []
    number = first.batch or max(min(ended_with) - first.batches + 1, 1)
    return [Passed(first.began_ns, number - 1, f"the profile of batch {number} began")]


def validation_of(events: EventLog, start_ns: int, end_ns: int) -> LoggedValidation | None:
    """Its file is created when the first validation begins; the file's name has the second."""
    ended = _first_evaluation(events.validation)
    opened_ns = events.validation_opened_ns
    if ended is None or opened_ns is None or not start_ns < ended <= end_ns + NS_PER_S:
        return None
    if opened_ns > ended:  # the clock jumped, or the file belongs to another run
        return None
    ended = min(ended, end_ns)
    latest = min(opened_ns + NS_PER_S, ended)
    earliest = max(min(opened_ns, ended), start_ns)
    middle = (earliest + latest) // 2
    return LoggedValidation(middle, max(latest - middle, 0), ended)


def steps_of(events: EventLog, start_ns: int, end_ns: int) -> int | None:
    """Steps of the first epoch: counted at the end of its validation, or from the logged rate."""
    counted = _steps_between_evaluations(events)
    if counted is not None:
        return counted or None
    rate = events.train.get(STEPS_PER_SECOND)
    if rate is None or not len(rate) or not np.isfinite(rate.value[0]):
        return None
    return max(round(float(rate.value[0]) * (end_ns - start_ns) / NS_PER_S), 0) or None


def _steps_between_evaluations(events: EventLog) -> int | None:
    """Steps per epoch. Not every epoch need end with a validation."""
    counts = _evaluated_at(events.validation)
    epochs = _epochs_evaluated(events.validation) or list(range(len(counts)))
    known = min(len(counts), len(epochs))
    if known > 1:  # the optimizer may have counted steps before this fit
        return int(median(np.diff(counts[:known]) / np.diff(epochs[:known])))
    went_on = any(s.step[0] > 0 for tag, s in events.train.items() if tag.startswith("epoch_"))
    return counts[0] // (epochs[0] + 1) if known and not went_on else None


def _evaluations(series: Mapping[str, Series]) -> list[Series]:
    before, after = EVALUATED
    return [s for tag, s in series.items() if tag.startswith(before) and tag.endswith(after)]


def _first_evaluation(series: Mapping[str, Series]) -> int | None:
    return min((int(s.wall_ns[0]) for s in _evaluations(series) if len(s)), default=None)


def _epochs_evaluated(series: Mapping[str, Series]) -> list[int]:
    """The numbers of the epochs that ended with a validation, as long as they grow."""
    logged = [s for tag, s in series.items() if tag.startswith("epoch_")]
    return _rising(logged[0].step) if logged else []


def _evaluated_at(series: Mapping[str, Series]) -> list[int]:
    """The optimizer's count of steps at the end of each validation, as long as it grows."""
    found = _evaluations(series)
    return _rising(found[0].step) if found else []


def _rising(numbers: Int64s) -> list[int]:
    """Up to the first that is not greater than the one before: there, another fit() begins."""
    falls = np.flatnonzero(np.diff(numbers) <= 0)
    return [int(number) for number in (numbers[: falls[0] + 1] if len(falls) else numbers)]
