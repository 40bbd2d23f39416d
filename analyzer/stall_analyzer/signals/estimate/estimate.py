"""The whole first epoch from what was seen of it: the marks of the log, and the profiled steps.

The first step is what it took longer than a usual one, and a usual one; the other steps are like
those that were profiled; a validation and the end of the epoch are known by their marks. Later
epochs say what comes again: what the first one took longer was there once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stall_analyzer.model.causes import bucket_of
from stall_analyzer.model.estimate import Estimate
from stall_analyzer.model.format import seconds
from stall_analyzer.model.intervals import time_in
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.signals.estimate.first_step import divide_first_step, evidence_of
from stall_analyzer.signals.estimate.parts import UNTRACED, Part, divided, likely_ledger, ranges
from stall_analyzer.signals.estimate.production import Production, production_of
from stall_analyzer.signals.estimate.usual_steps import (
    UsualStep,
    as_long_as_all,
    usual_step,
    with_production,
)

if TYPE_CHECKING:
    from stall_analyzer.signals.signals import Signals

# With so much of it traced there is nothing worth estimating.
TRACED_SHARE = 0.9
# Without any profile: steps compute, wait for input or are held up by Python, as often as not.
STEP_SHARES = {"compute.step": 0.35, "input.wait": 0.4, "host.python": 0.25}
STEP_BUCKETS: tuple[Bucket, ...] = ("input", "host", "compute")
DOUBT_NO_PROFILE = 1.0
# Validation runs a smaller graph, and what its input does was not traced.
DOUBT_VALIDATION = 0.6
WAITING_VALIDATION = 0.5
DOUBT_EPOCH_END = 0.2
# Epochs differ by this much without a reason.
NOISE_SHARE = 0.15
IN_VAIN_SHARE = 0.5
LEAST_STEPS = 10  # whose mean length says something


@dataclass(frozen=True)
class _Stretches:
    """Picoseconds of the window that were not traced, by where they lie."""

    first_step: int
    steps: int
    validation: int
    epoch_end: int


def estimate_of(signals: Signals) -> Estimate | None:
    """None where all was traced, or where nothing is known of the epoch."""
    window_ps = signals.window_ps
    if not window_ps or signals.timeline.window.epoch is None:
        return None
    if signals.host.covered_ps >= TRACED_SHARE * window_ps:
        return None
    rests_on: list[str] = []
    left = _untraced(signals)
    step = _usual_step(signals, left, rests_on)
    parts = [
        *_first_step(signals, left.first_step, step, rests_on),
        *_steps(signals, left, step, rests_on),
        *_validation(left, step, rests_on),
    ]
    if left.epoch_end:
        parts.append(Part({"host.python": left.epoch_end}, False, DOUBT_EPOCH_END, ("compute",)))
    parts = [part for part in parts if part.length_ps > 0]
    if not parts:
        return None
    exact = signals.host.ledger
    likely = likely_ledger(exact, parts)
    stretches = step.stretches_ps if step is not None else ()
    return Estimate(
        ledger=likely,
        ranges=ranges(likely, exact, parts),
        rests_on=tuple(rests_on),
        estimated_ps=signals.causes_ps["unknown.not_traced"],
        profiled_steps=step.profiled if step is not None else 0,
        steps=signals.timeline.training_steps,
        stretches_ps=stretches,
        times=1 + left.steps / step.length_ps / step.profiled if step is not None else 1.0,
    )


def _usual_step(signals: Signals, left: _Stretches, rests_on: list[str]) -> UsualStep | None:
    batches_logged = any(tag.startswith("batch_") for tag in signals.logged_tags)
    step = usual_step(signals.training_steps, signals.traces, signals.host.ledger, batches_logged)
    if step is None:
        return None
    steps = signals.timeline.training_steps
    of_all = f" of {steps:,}" if steps is not None else ""
    was = "step was" if step.profiled == 1 and not of_all else "steps were"
    rests_on.append(f"{step.profiled:,}{of_all} {was} profiled.")
    step = _in_vain(_settled(step, signals, left), signals)
    if step.why:
        rests_on.append(step.why)
    return step


def _settled(step: UsualStep, signals: Signals, left: _Stretches) -> UsualStep:
    """As most steps are: by their mean length where their number is known, else by the pipeline."""
    production = _production(signals)
    steps, first = signals.timeline.training_steps, signals.timeline.first_step
    others = steps - first.steps if steps is not None and first is not None else 0
    if others < LEAST_STEPS:
        return with_production(step, production, _first_step_end(signals))
    ahead = production is not None and production.state != "in the step"
    return as_long_as_all(step, (left.steps - _came_once(signals, left)) / others, ahead)


def _in_vain(step: UsualStep, signals: Signals) -> UsualStep:
    """Of an epoch whose mean loss is no number, some step was the first that had none: any."""
    if not signals.first_loss_is_no_number:
        return step
    causes = dict(step.causes_ps)
    for cause in [cause for cause in causes if bucket_of(cause) == "compute"]:
        half = causes[cause] * IN_VAIN_SHARE
        causes[cause] -= half
        causes["numerics.nonfinite"] = causes.get("numerics.nonfinite", 0.0) + half
    return replace(step, causes_ps=causes, doubt=max(step.doubt, IN_VAIN_SHARE))


def _production(signals: Signals) -> Production | None:
    profiled_ps = sum(end - begin for begin, end in (t.covered_ps for t in signals.traces))
    return production_of(signals.pipeline, profiled_ps)


def _untraced(signals: Signals) -> _Stretches:
    timeline, window_ps = signals.timeline, signals.window_ps
    begin_ps = _first_step_end(signals)
    phases = {phase.name: phase for phase in timeline.phases}
    validation = phases.get("validation")
    end = phases.get("epoch_end")
    training_end = validation.start_ps if validation else end.start_ps if end else window_ps
    over = validation.end_ps if validation else training_end
    bounds = np.array([0, begin_ps, max(begin_ps, training_end), max(begin_ps, over), window_ps])
    untraced = time_in(signals.host.ledger.tiling, bounds[:-1], bounds[1:], np.array([UNTRACED]))
    return _Stretches(*(int(ps) for ps in untraced))


def _first_step_end(signals: Signals) -> int:
    """When the first step was surely over; 0 where nothing tells."""
    first = signals.timeline.first_step
    return first.end_ps if first is not None else 0


def _first_step(
    signals: Signals, left_ps: int, step: UsualStep | None, rests_on: list[str]
) -> Sequence[Part]:
    first = signals.timeline.first_step
    if first is None or not left_ps:
        return ()
    usual_ps = step.length_ps if step is not None else 0.0
    usual = min(first.steps * usual_ps, left_ps)
    extra = _once_at_most(signals, left_ps - usual)
    usual = left_ps - extra
    rests_on.append(f"The first step was over after {seconds(first.end_ps)}: {first.source}.")
    evidence = evidence_of(signals.traces, signals.keras, signals.pipeline, _production(signals))
    parts = [divide_first_step(extra, evidence)]
    if usual and step is not None:
        parts.append(divided(usual, step.causes_ps, False, step.doubt, *STEP_BUCKETS))
    return parts


def _once_at_most(signals: Signals, extra_ps: float) -> float:
    """Where later epochs are known, no more can have come once than they are shorter."""
    later = signals.later_epoch_ps
    if later is None or later > signals.window_ps:
        return extra_ps
    most = signals.window_ps - later * (1 - NOISE_SHARE)
    return min(extra_ps, max(most, 0.0))


def _steps(
    signals: Signals, left: _Stretches, step: UsualStep | None, rests_on: list[str]
) -> list[Part]:
    """The steps after the first one, and what of them came once."""
    once_ps = _came_once(signals, left)
    if signals.later_epoch_ps is not None:
        count = len(signals.timeline.later_epochs_ps)
        later = "later epoch" if count == 1 else "later epochs"
        rests_on.append(f"{count:,} {later} took {seconds(signals.later_epoch_ps)} in the median.")
    again_ps = left.steps - once_ps
    parts = []
    if once_ps > 0:
        cache = any("Cache" in stage.path for stage in signals.pipeline.stages)
        cause = "input.cache_fill" if cache else "compile.retracing"
        parts.append(Part({cause: once_ps}, True, 0.8, ("compile", "input")))
    if step is not None:
        parts.append(divided(again_ps, step.causes_ps, False, step.doubt, *STEP_BUCKETS))
    else:
        parts += _without_profile(signals, again_ps, rests_on)
    return parts


def _came_once(signals: Signals, left: _Stretches) -> float:
    """What the epoch took longer than later ones, its first step apart."""
    later = signals.later_epoch_ps
    if later is None:
        return 0.0
    more = signals.window_ps - _first_step_end(signals) - later
    return min(float(more), left.steps) if more > NOISE_SHARE * later else 0.0


def _without_profile(signals: Signals, left_ps: float, rests_on: list[str]) -> list[Part]:
    """No step was profiled: what came once is divided by the model, of the rest little is known."""
    rests_on.append("No step was profiled: what they spend their time on is not known.")
    evidence = evidence_of((), signals.keras, signals.pipeline, None)
    parts = []
    if signals.timeline.first_step is None:
        once = min(_expected_first(signals), left_ps / 2)
        parts.append(divide_first_step(once, evidence))
        left_ps -= once
    parts.append(divided(left_ps, STEP_SHARES, False, DOUBT_NO_PROFILE, *STEP_BUCKETS))
    return parts


def _expected_first(signals: Signals) -> float:
    """What the first step of such a model usually takes longer than others."""
    layers = len(signals.keras.layers) if signals.keras is not None else 0
    return (0.15 + 0.03 * layers) * 1e12


def _validation(left: _Stretches, step: UsualStep | None, rests_on: list[str]) -> list[Part]:
    """Like the steps, as far as it takes no longer than they do; a longer one has more data, or
    waits for them."""
    if not left.validation:
        return []
    rests_on.append(f"Validation took {seconds(left.validation)}; none of it was profiled.")
    shares = step.causes_ps if step is not None else STEP_SHARES
    alike = min(left.validation, left.steps)
    longer = left.validation - alike
    waits = longer * WAITING_VALIDATION
    parts = [
        divided(left.validation - waits, shares, False, DOUBT_VALIDATION, *STEP_BUCKETS, "compile"),
        Part({"input.wait": waits}, False, DOUBT_VALIDATION, STEP_BUCKETS),
    ]
    return parts if waits else parts[:1]
