"""The whole first epoch, estimated from the marks of the log and the profiled steps.

The first step is a usual one plus some extra time; the other steps are like those that were
profiled; validation and the end of the epoch are known from their marks. Later epochs show what
recurs: the time by which the first one was longer was a one-time cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stall_analyzer.model.causes import bucket_of
from stall_analyzer.model.estimate import Estimate
from stall_analyzer.model.format import counted, seconds
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.signals.estimate.first_step import divide_first_step, evidence_of, expected_ps
from stall_analyzer.signals.estimate.own_cost import untraced_capture_ps
from stall_analyzer.signals.estimate.parts import Part, divided, likely_ledger, ranges
from stall_analyzer.signals.estimate.seen import Seen
from stall_analyzer.signals.estimate.usual_steps import (
    UsualStep,
    as_long_as_all,
    usual_step,
    with_production,
)
from stall_analyzer.signals.estimate.windows import is_chosen

# With this much traced, there is nothing worth estimating.
TRACED_SHARE = 0.9
# Without any profile: steps may compute, wait for input or be held up by Python.
STEP_SHARES = {"compute.step": 0.35, "input.wait": 0.4, "host.python": 0.25}
STEP_BUCKETS: tuple[Bucket, ...] = ("input", "host", "compute")
DOUBT_NO_PROFILE = 1.0
# Validation runs another graph, and its input was not traced. If it takes longer than all the steps
# together, that is as likely to be waiting as more data.
DOUBT_VALIDATION, WAITING_SHARE = 0.6, 0.5
DOUBT_EPOCH_END = 0.2
DOUBT_CAME_ONCE = 0.8
DOUBT_STOPPING = 0.2
# Where nothing marks its end: in public logs, a first step takes at least this many times as long
# as expected.
UNMARKED_TIMES = 2.0
# Epochs differ by this much without a reason.
NOISE_SHARE = 0.15
LEAST_STEPS = 10  # with fewer, their mean length says little
# In an epoch whose mean loss is not a number: what explodes does so early, within tens of steps.
WASTED_SHARE, DOUBT_WASTED = 0.75, 0.5


def estimate_of(seen: Seen) -> Estimate | None:
    """None where all was traced, or where nothing is known about the epoch or the program."""
    timeline = seen.timeline
    if not seen.window_ps or timeline.window.epoch is None or timeline.is_foreign:
        return None
    if seen.host.covered_ps >= TRACED_SHARE * seen.window_ps:
        return None
    rests_on: list[str] = []
    step = _usual_step(seen, rests_on)
    parts = [
        *_first_step(seen, step, rests_on),
        *_steps(seen, step, rests_on),
        *_validation(seen, step, rests_on),
        Part({"host.python": seen.untraced.epoch_end}, False, DOUBT_EPOCH_END, ("compute",)),
    ]
    parts = [part for part in parts if part.length_ps > 0]
    if not parts:
        return None
    exact = seen.host.ledger
    likely = likely_ledger(exact, parts)
    return Estimate(
        ledger=likely,
        ranges=ranges(likely, exact, parts),
        rests_on=tuple(rests_on),
        estimated_ps=exact.causes_ps.get("unknown.not_traced", 0),
        profiled_steps=step.profiled if step is not None else 0,
        steps=seen.timeline.training_steps,
        stretches_ps=step.stretches_ps if step is not None else (),
        times=_times(step, seen.untraced.steps),
    )


def _times(step: UsualStep | None, untraced_ps: int) -> float:
    """How many steps there were for each one that was profiled."""
    return 1 + untraced_ps / step.length_ps / step.profiled if step is not None else 1.0


# ---------------------------------------------------------------- a usual step


def _usual_step(seen: Seen, rests_on: list[str]) -> UsualStep | None:
    traces = [trace for trace in seen.traces if not is_chosen(seen.timeline, trace)]
    step = usual_step(seen.training_steps, traces, seen.host.ledger, seen.batches_logged)
    if step is None:
        which = "typical step" if seen.traces else "step"
        rests_on.append(
            f"No {which} was profiled, so it is not known where the steps spend their time."
        )
        return None
    steps = seen.timeline.training_steps
    of_all = f" of {steps:,}" if steps is not None else ""
    was = "was" if step.profiled == 1 else "were"
    noun = "step" if step.profiled == 1 and not of_all else "steps"
    rests_on.append(f"{step.profiled:,}{of_all} {noun} {was} profiled.")
    step = _settled(step, seen)
    if step.why:
        rests_on.append(step.why)
    return _partly_wasted(step) if seen.loss_is_no_number else step


def _settled(step: UsualStep, seen: Seen) -> UsualStep:
    """A step as most are: by their mean length or, if nobody counted them, by the pipeline."""
    steps, first, production = (
        seen.timeline.training_steps,
        seen.timeline.first_step,
        seen.production,
    )
    others = steps - first.steps if steps is not None and first is not None else 0
    if others < LEAST_STEPS:
        return with_production(step, production, seen.first_step_end_ps)
    ahead = production is not None and production.state != "in the step"
    return as_long_as_all(step, (seen.untraced.steps - _came_once(seen)) / others, ahead)


def _partly_wasted(step: UsualStep) -> UsualStep:
    """A step in which some of the computing taught the model nothing."""
    causes = dict(step.causes_ps)
    wasted = WASTED_SHARE * step.spent_ps("compute")
    for cause in causes:
        if bucket_of(cause) == "compute":
            causes[cause] *= 1 - WASTED_SHARE
    causes["numerics.nonfinite"] = causes.get("numerics.nonfinite", 0.0) + wasted
    return replace(step, causes_ps=causes, doubt=max(step.doubt, DOUBT_WASTED))


def _like(step: UsualStep | None) -> tuple[Mapping[str, float], float]:
    """Shares of the causes in a step, and how much of them is in doubt."""
    if step is None:
        return STEP_SHARES, DOUBT_NO_PROFILE
    return step.causes_ps, step.doubt


# ---------------------------------------------------------------- the parts of the epoch


def _first_step(seen: Seen, step: UsualStep | None, rests_on: list[str]) -> list[Part]:
    first, left_ps = seen.timeline.first_step, seen.untraced.first_step
    evidence = evidence_of(seen.traces, seen.keras, seen.pipeline, seen.production)
    evidence = replace(evidence, starts_profiler=seen.keras_profiles)
    if first is None:
        return [divide_first_step(_unmarked_ps(seen), evidence)]
    if not left_ps:
        return []
    rests_on.append(
        f"The first step had ended {seconds(first.end_ps)} into the epoch at the latest, when "
        f"{first.source}."
    )
    usual_ps = first.steps * step.length_ps if step is not None else 0.0
    extra_ps = _once_at_most(seen, max(left_ps - usual_ps, 0.0))
    shares, doubt = _like(step)
    return [
        divide_first_step(extra_ps, evidence),
        divided(left_ps - extra_ps, shares, False, doubt, *STEP_BUCKETS),
    ]


def _unmarked_ps(seen: Seen) -> float:
    """The extra time of the first step, where nothing marks its end: it is among the steps."""
    later = seen.later_epoch_ps
    if seen.timeline.first_step is not None or seen.begin_was_traced:
        return 0.0
    if later is not None and later < seen.window_ps:
        return min(seen.window_ps - later, seen.untraced.steps)
    evidence = evidence_of(seen.traces, seen.keras, seen.pipeline, seen.production)
    return min(UNMARKED_TIMES * sum(expected_ps(evidence).values()), seen.untraced.steps / 2)


def _once_at_most(seen: Seen, extra_ps: float) -> float:
    """One-time costs cannot be more than the time by which later epochs are shorter."""
    later = seen.later_epoch_ps
    if later is None or later > seen.window_ps:
        return extra_ps
    traced_ps = seen.host.ledger.one_time_ps() if seen.traces else 0
    return max(min(extra_ps, seen.window_ps - later * (1 - NOISE_SHARE) - traced_ps), 0.0)


def _steps(seen: Seen, step: UsualStep | None, rests_on: list[str]) -> list[Part]:
    """The steps after the first one, and their one-time costs."""
    once_ps, later = _came_once(seen), seen.later_epoch_ps
    if later is not None:
        count = len(seen.timeline.later_epochs_ps)
        median_of = " (median)" if count > 1 else ""
        rests_on.append(f"{counted(count, 'later epoch')} took {seconds(later)}{median_of}.")
    shares, doubt = _like(step)
    cached = any("Cache" in stage.path for stage in seen.pipeline.stages)
    again_ps = seen.untraced.steps - once_ps - _unmarked_ps(seen)
    once = "input.cache_fill" if cached else "compile.retracing"
    stopping_ps = min(seen.stopping_ps, again_ps)
    again_ps -= stopping_ps
    capture_ps = min(untraced_capture_ps(seen.timeline, seen.host), again_ps)
    again_ps -= capture_ps
    return [
        Part({"profiler.stop": stopping_ps}, True, DOUBT_STOPPING),
        Part({"profiler.capture": capture_ps}, False, DOUBT_STOPPING),
        Part({once: once_ps}, True, DOUBT_CAME_ONCE, ("compile", "input")),
        divided(again_ps, shares, False, doubt, *STEP_BUCKETS),
    ]


def _came_once(seen: Seen) -> float:
    """How much longer the epoch took than later ones, apart from its first step."""
    later, known_ps = seen.later_epoch_ps, seen.first_step_end_ps
    if not known_ps and seen.begin_was_traced:
        known_ps = seen.host.ledger.one_time_ps()
    if later is None or not known_ps:
        return 0.0
    more = seen.window_ps - known_ps - later
    return min(float(more), seen.untraced.steps) if more > NOISE_SHARE * later else 0.0


def _validation(seen: Seen, step: UsualStep | None, rests_on: list[str]) -> list[Part]:
    left_ps = seen.untraced.validation
    if not left_ps:
        return []
    rests_on.append(f"Validation took {seconds(left_ps)}; none of it was profiled.")
    waits_ps = WAITING_SHARE * max(left_ps - seen.untraced.steps, 0)
    shares, _ = _like(step)
    return [
        divided(left_ps - waits_ps, shares, False, DOUBT_VALIDATION, *STEP_BUCKETS, "compile"),
        Part({"input.wait": waits_ps}, False, DOUBT_VALIDATION, STEP_BUCKETS),
    ]
