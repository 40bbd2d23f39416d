"""What a change would save: the ledger without a cause and what depends on it.

A wait is time in which nothing else of the step ran, so taking it out shortens the step by as much,
down to the next thing that holds the step up. For input that thing is the pipeline itself: a faster
pipeline still needs its time, and training waits for what does not fit behind the step.

The low end is what is certain to go. The high end includes what may go with it: steps that are no
longer interrupted, Python that waits for the interpreter's lock, hooks and logs of calls that are
no longer made. Such shares are measured on faulty programs and their fixed versions
(docs/explanation/accuracy.md).
"""

from __future__ import annotations

from stall_analyzer.model.findings import Gain
from stall_analyzer.signals.signals import Signals

# What a prediction cannot know: noise of the machine, and effects on what was not changed.
SURE_SHARE = 0.8
# Python on the training thread waits for the interpreter's lock while Python in the pipeline holds
# it: in our runs, 60 to 85% of that time went away with it.
LOCK_SHARE = 0.85
# Python between or inside the steps cools caches and lets threads fall asleep: without it starting
# the steps and their ops took up to 30% less time in our runs.
WARM_SHARE = 0.3
# Of two traces the first is the longer one. A part of that is what any first trace takes.
SPARE_TRACE_LEAST = 0.6
# Once or twice may be an accident: what was seen so rarely says nothing about later epochs.
OFTEN = 3


def removed(ps: int, *, surely: float = SURE_SHARE) -> Gain:
    """A cost that goes away entirely: at least this share of it."""
    return Gain(round(ps * surely), ps)


def partly(ps: int, least: float, most: float) -> Gain:
    """A cost of which between `least` and `most` goes away."""
    return Gain(round(ps * least), round(ps * most))


def at_pace_of_input(signals: Signals, gain: Gain) -> Gain:
    """What the training thread itself can save, as far as batches arrive fast enough for it.

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

    `interrupted`: how many of them were; all, where it is not said.
    """
    steps = max(len(signals.training_steps), 1)
    share = 1.0 if interrupted is None else min(interrupted / steps, 1.0)
    causes = signals.causes_ps
    return partly(causes["compute.step"] + causes["host.dispatch"], 0, share * WARM_SHARE)


def measuring_ps(signals: Signals) -> int:
    """What the instruments took next to the steps; fewer calls save part of it."""
    causes = signals.causes_ps
    own = signals.buckets_ps["profiler"] - causes["profiler.start"] - causes["profiler.stop"]
    return own + causes["host.summary"]


def spare_trace(ps: int) -> Gain:
    """Saved by tracing once what is traced twice."""
    return partly(ps, SPARE_TRACE_LEAST, 1)


def every_epoch(gain: Gain, signals: Signals) -> Gain:
    """The same gain in a later epoch, never more than such an epoch takes.

    Where none was seen, it is the first one without what happens once.
    """
    later = signals.later_epoch_ps
    if later is None:
        later = signals.window_ps - signals.likely_ledger.one_time_ps()
    return Gain(min(gain.low_ps, later), min(gain.high_ps, later))
