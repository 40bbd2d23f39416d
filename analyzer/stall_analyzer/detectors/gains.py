"""What a change would save: the ledger without a cause and what depends on it.

A wait is time in which nothing else of the step ran, so taking it out shortens the step by as much,
down to the next thing that holds up the step. For input, that is the pipeline itself: a faster
pipeline still needs its time, and training waits for what does not fit behind the step.

The low end is what is certain to go. The high end includes what may go with it: steps that are no
longer interrupted, Python that waits for the interpreter's lock, hooks and logs of calls that are
no longer made. Such shares are measured on faulty programs and their fixed versions
(docs/explanation/accuracy.md).
"""

from __future__ import annotations

from stall_analyzer.model.findings import Gain
from stall_analyzer.signals.signals import Signals

# What a prediction cannot know: noise, and effects on what was not changed.
SURE_SHARE = 0.8
# Python on the training thread waits for the interpreter's lock while Python in the pipeline holds
# it: in our runs, 60 to 85% of that time went away with it.
LOCK_SHARE = 0.85
# Python between or inside the steps cools caches and lets threads fall asleep: without it, starting
# the steps and their ops took up to 30% less time in our runs.
WARM_SHARE = 0.3
# Of two traces, the first takes longer, partly because any first trace does.
SPARE_TRACE_LEAST = 0.6
# Once or twice may be an accident: what is that rare says nothing about later epochs.
OFTEN = 3


def removed(ps: int, *, surely: float = SURE_SHARE) -> Gain:
    """A cost that goes away entirely: at least this share of it."""
    return Gain(round(ps * surely), ps)


def partly(ps: int, least: float, most: float) -> Gain:
    """A cost that goes away in part: between `least` and `most` of it."""
    return Gain(round(ps * least), round(ps * most))


def at_pace_of_input(signals: Signals, gain: Gain) -> Gain:
    """What the training thread itself can save if batches arrive only as fast as they do now.

    What is produced while the steps run becomes a wait as soon as they take less time. A pipeline
    in Python may itself get faster once training's Python frees the interpreter's lock.
    """
    steps, pipeline = signals.training_steps, signals.pipeline
    if len(steps) < 2 or not pipeline.works_ahead:
        return gain
    after_first = signals.window_ps - steps[0].end_ps  # the first step compiles
    room = max(after_first - (len(steps) - 1) * signals.produce_ps(), 0)
    beside = signals.time_of_buckets(pipeline.busy_spans, "host") if pipeline.python_ps else 0
    return Gain(min(gain.low_ps, room), min(gain.high_ps, room + round(LOCK_SHARE * beside)))


def warmer_steps(signals: Signals, interrupted: int | None = None) -> Gain:
    """Saved by steps that are no longer interrupted: caches and threads are still warm.

    `interrupted`: how many steps were interrupted; all of them, if not given.
    """
    steps = max(len(signals.training_steps), 1)
    share = 1.0 if interrupted is None else min(interrupted / steps, 1.0)
    causes = signals.causes_ps
    return partly(causes["compute.step"] + causes["host.dispatch"], 0, share * WARM_SHARE)


def measuring_ps(signals: Signals) -> int:
    """What measuring took besides the steps; fewer calls save part of it."""
    causes = signals.causes_ps
    own = signals.buckets_ps["profiler"] - causes["profiler.start"] - causes["profiler.stop"]
    return own + causes["host.summary"]


def spare_trace(ps: int) -> Gain:
    """Saved by tracing a function once instead of twice."""
    return partly(ps, SPARE_TRACE_LEAST, 1)


def every_epoch(gain: Gain, signals: Signals) -> Gain:
    """The same gain in a later epoch, never more than such an epoch takes.

    Where none was seen, that is the first epoch without its one-time costs.
    """
    later = signals.later_epoch_ps
    if later is None:
        later = signals.window_ps - signals.likely_ledger.one_time_ps()
    return Gain(min(gain.low_ps, later), min(gain.high_ps, later))
