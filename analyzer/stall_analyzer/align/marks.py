"""What ordinary event files tell of the first epoch's course, without any capture of ours.

Keras' TensorBoard callback writes the model when fit begins, the graph (until Keras 3) after the
first batch, `batch_N` when a profile of batch N ends, `evaluation_*_vs_iterations` when a
validation ends. The profiler itself begins with a batch. Each says: by now so many steps were over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from stall_analyzer.model.event_log import EventLog, Series
from stall_analyzer.model.timeline import FirstStep
from stall_analyzer.model.units import NS_PER_S, PS_PER_NS

EVALUATED = ("evaluation_", "_vs_iterations")  # a tag of Keras' callback
STEPS_PER_SECOND = "epoch_steps_per_second"
# Keras profiles from the second batch on unless it is told otherwise; older ones name the batch.
FIRST_PROFILED = 2


@dataclass(frozen=True)
class Passed:
    """Proof that so many steps were over at a moment."""

    ns: int
    steps: int
    source: str
    assumed: bool = False


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
    profiles: Sequence[tuple[int, int | None]],
) -> FirstStep | None:
    """The earliest proof that a step was over. `profiles`: when each began (unix ns), and which
    batch that was by its own markers, from 1, where it has any."""
    passed = [*_from_events(events, batches), *_from_profiles(events, profiles)]
    inside = [mark for mark in passed if start_ns < mark.ns < end_ns and mark.steps > 0]
    if not inside:
        return None
    first = min(inside, key=lambda mark: (mark.ns, mark.steps))
    return FirstStep((first.ns - start_ns) * PS_PER_NS, first.steps, first.source, first.assumed)


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
    """With `update_freq=n` every n-th batch is logged; what the first one is called tells n."""
    step = batches.step
    every = int(np.median(np.diff(step))) if len(step) > 1 else 1
    number = 1 if every <= 1 else max(int(step[0]), 1)
    return Passed(int(batches.wall_ns[0]), number, f"batch {number} was logged")


def _from_profiles(events: EventLog, profiles: Sequence[tuple[int, int | None]]) -> list[Passed]:
    """The first profile of the run: what Keras calls batch N had N - 1 batches before it."""
    found = []
    for began_ns, batch in sorted(profiles, key=lambda profile: profile[0])[:1]:
        named = [number for number, ns in events.profiled_batches if ns >= began_ns]
        known = batch or min(named, default=None)
        number = known or FIRST_PROFILED
        source = f"the profile of batch {number} began"
        found.append(Passed(began_ns, number - 1, source, assumed=known is None))
    return found


def validation_of(events: EventLog, start_ns: int, end_ns: int) -> LoggedValidation | None:
    """Its file is made when the first validation begins; the name of the file tells the second."""
    ended = _first_evaluation(events.validation)
    opened_ns = events.validation_opened_ns
    if ended is None or opened_ns is None or not start_ns < ended <= end_ns + NS_PER_S:
        return None
    ended = min(ended, end_ns)
    latest = min(opened_ns + NS_PER_S, ended)
    earliest = max(min(opened_ns, ended), start_ns)
    middle = (earliest + latest) // 2
    return LoggedValidation(middle, max(latest - middle, 0), ended)


def steps_of(events: EventLog, start_ns: int, end_ns: int) -> int | None:
    """Steps of the first epoch: counted at the end of its validation, or from the logged rate."""
    counts = _evaluated_at(events.validation)
    if len(counts) > 1:  # the optimizer may have counted before this fit
        return int(np.median(np.diff(counts))) or None
    if counts:
        return counts[0] or None
    rate = events.train.get(STEPS_PER_SECOND)
    if rate is None or not len(rate) or not np.isfinite(rate.value[0]):
        return None
    return round(float(rate.value[0]) * (end_ns - start_ns) / NS_PER_S) or None


def _evaluations(series: Mapping[str, Series]) -> list[Series]:
    before, after = EVALUATED
    return [s for tag, s in series.items() if tag.startswith(before) and tag.endswith(after)]


def _first_evaluation(series: Mapping[str, Series]) -> int | None:
    return min((int(s.wall_ns[0]) for s in _evaluations(series) if len(s)), default=None)


def _evaluated_at(series: Mapping[str, Series]) -> list[int]:
    """The optimizer's count of steps at the end of each validation, as long as it grows."""
    found = _evaluations(series)
    counts = [int(step) for step in found[0].step] if found else []
    rising = [b > a for a, b in pairwise(counts)]
    return counts[: rising.index(False) + 1] if False in rising else counts
