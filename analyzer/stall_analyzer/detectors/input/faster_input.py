"""What less work in the input pipeline would save.

A faster pipeline still needs its time, and training waits for what does not fit behind the step.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.detectors.gains import LOCK_SHARE, SURE_SHARE
from stall_analyzer.detectors.severity import CONSIDER_SHARE
from stall_analyzer.model.findings import Gain
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.signals.input.culprit import Culprit
from stall_analyzer.signals.input.input_pipeline import ROWS_TELL
from stall_analyzer.signals.signals import Signals

# Of the time spent next to a pipeline that keeps the other cores busy, at most this much is saved.
CORE_SHARE = 0.5
# Ops that run next to such a pipeline lose more than the cores that it takes (caches, memory
# bandwidth, hyperthreads): 15 to 45% of their time in our runs.
CACHE_SHARE = 0.45
# The buckets that shrink when the pipeline has less to do.
BESIDE_INPUT: tuple[Bucket, ...] = ("input", "host", "compile", "compute")


def faster_stage(signals: Signals, culprit: Culprit, least: float, most: float) -> Gain:
    """The wait saved if what holds up the pipeline ran `least` to `most` times as fast.

    A shuffle buffer above it would fill faster by the same factor.
    """
    produce = signals.produce_ps(culprit.stage)
    fill = signals.causes_ps["input.shuffle_fill"] if culprit.below_shuffle else 0

    def saved(times: float) -> int:
        saved = culprit.share * (1 - 1 / times)
        return signals.hidden_if_ahead_ps(round(produce * (1 - saved))) + round(fill * saved)

    most_ps = saved(most)
    return Gain(min(saved(least), round(most_ps * SURE_SHARE)), most_ps)


def faster_beside_input(signals: Signals, in_python: bool) -> Gain:
    """What else is saved if input has less to do: training's own work runs faster.

    Little of it is certain: a pipeline that sleeps or reads files holds no lock and no core.
    """
    # Logging waits for the lock and the cores like any other Python on the training thread.
    own = _beside_ps(signals, "host", "compile", "profiler")
    compute = _beside_ps(signals, "compute")
    contention = signals.causes_ps["input.contention"]
    if in_python:  # what training lost shows that it holds the lock
        most = round(LOCK_SHARE * own + CORE_SHARE * compute) + contention
        return Gain(contention // 2, most)
    return Gain(0, round(CORE_SHARE * own + CACHE_SHARE * compute) + contention)


def _beside_ps(signals: Signals, *buckets: Bucket) -> int:
    """What training did while the pipeline was at work.

    Stages that take microseconds leave no rows in the trace to show it. But a pipeline that works
    ahead and still keeps training waiting never rests.
    """
    pipeline, steps = signals.pipeline, signals.training_steps
    seen = signals.time_of_buckets(pipeline.busy_spans, *buckets)
    unseen = any(stage.seen_share < ROWS_TELL for stage in pipeline.stages)
    late = signals.share(signals.causes_ps["input.wait"]) >= CONSIDER_SHARE
    if not (unseen and late and pipeline.works_ahead and steps):
        return seen
    after_first = np.array([steps[0].end_ps]), np.array([signals.window_ps])
    return max(seen, signals.time_of_buckets(after_first, *buckets))
