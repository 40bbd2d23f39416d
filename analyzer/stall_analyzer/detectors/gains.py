"""What a change would win: the ledger with a cause taken out.

A wait is time in which nothing else of the step ran, so taking it out shortens the step by as much,
down to the next thing that holds the step up. For input that thing is the pipeline itself: a faster
pipeline still needs its time, and training waits for what does not fit behind the step.
"""

from __future__ import annotations

from collections.abc import Sequence

from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.findings import Finding, Forecast, Gain, Plan
from stall_analyzer.signals.input.culprit import Culprit
from stall_analyzer.signals.signals import Signals

# What a prediction cannot know: noise of the machine, and effects on what was not changed.
SURE_SHARE = 0.8
# Python of the training thread waits for the interpreter's lock while Python of the pipeline holds
# it: of its time beside that, 60 to 85 % went away with it in our runs.
LOCK_SHARE = 0.85
# Of the time beside a pipeline that keeps the other cores busy, at most so much goes away with it.
CORE_SHARE = 0.5
# Ops beside it lose more than the cores it takes: caches, the memory's speed, cores that are two
# halves of one. 15 to 35 % of their time in our runs.
CACHE_SHARE = 0.35
# Python between or inside the steps cools caches and lets threads fall asleep: without it the ops
# took 19 to 23 % less time in our runs.
WARM_SHARE = 0.2


def removed(ps: int, *, surely: float = SURE_SHARE) -> Gain:
    """A cost that goes away whole: at the least this share of it."""
    return Gain(round(ps * surely), ps)


def partly(ps: int, least: float, most: float) -> Gain:
    """A cost of which between `least` and `most` goes away."""
    return Gain(round(ps * least), round(ps * most))


def faster_input(signals: Signals, produce_ps: int) -> int:
    """Wait won in the first epoch if a batch took `produce_ps` to produce, in the background.

    The pipeline works while the step runs; what does not fit behind the step is still waited for.
    """
    return signals.hidden_if_ahead_ps(produce_ps)


def faster_stage(signals: Signals, culprit: Culprit, least: float, most: float) -> Gain:
    """Wait won if what holds the pipeline up ran `least` to `most` times as fast, the rest as now.

    A shuffle buffer above it would fill as much faster.
    """
    produce = signals.produce_ps(culprit.stage)
    fill = signals.causes_ps["input.shuffle_fill"] if culprit.below_shuffle else 0

    def won(times: float) -> int:
        saved = culprit.share * (1 - 1 / times)
        return faster_input(signals, round(produce * (1 - saved))) + round(fill * saved)

    most_ps = won(most)
    return Gain(min(won(least), round(most_ps * SURE_SHARE)), most_ps)


def less_beside(signals: Signals, in_python: bool) -> Gain:
    """Won besides the wait, if input had less to do: what training did beside it is faster.

    None of it is sure: a pipeline that sleeps or reads files holds neither the lock nor a core.
    """
    busy = signals.pipeline.busy_spans
    own = signals.time_of_buckets(busy, "host", "compile")
    compute = signals.time_of_buckets(busy, "compute")
    if in_python:
        return Gain(0, round(LOCK_SHARE * own + CORE_SHARE * compute))
    contention = signals.causes_ps["input.contention"]
    return Gain(0, round(CORE_SHARE * own + CACHE_SHARE * compute) + contention)


def at_pace_of_input(signals: Signals, gain: Gain) -> Gain:
    """What training's own thread can win, as far as batches come fast enough for it.

    What is produced beside the steps is waited for as soon as they take less. A pipeline in Python
    may itself get faster once training's Python leaves it the interpreter's lock.
    """
    steps, pipeline = signals.training_steps, signals.pipeline
    if len(steps) < 2 or not pipeline.works_ahead:
        return gain
    after_first = signals.window_ps - steps[0].end_ps  # the first step compiles
    room = max(after_first - (len(steps) - 1) * signals.produce_ps(), 0)
    beside = signals.time_of_buckets(pipeline.busy_spans, "host") if pipeline.python_ps else 0
    return Gain(min(gain.low_ps, room), min(gain.high_ps, room + round(LOCK_SHARE * beside)))


def warmer_steps(signals: Signals) -> Gain:
    """Won by steps that are no longer interrupted: caches and threads are still warm."""
    return partly(signals.causes_ps["compute.step"], 0, WARM_SHARE)


def both(one: Gain, other: Gain) -> Gain:
    return Gain(one.low_ps + other.low_ps, one.high_ps + other.high_ps)


def every_epoch(gain: Gain, signals: Signals) -> Gain:
    """The same gain in a later epoch, never more than such an epoch takes."""
    later = signals.later_epoch_ps
    if later is None:
        return gain
    return Gain(min(gain.low_ps, later), min(gain.high_ps, later))


def plan(signals: Signals, findings: Sequence[Finding]) -> Plan | None:
    """The changes worth making, most seconds first, and what they come to together.

    Of findings that blame the same time only the one that wins most is in the plan: the others
    would win it again. Waiting for another host goes away when its reason does: a finding that
    explains half of the wait says more than the wait.
    """
    chosen: list[Finding] = []
    for finding in sorted(findings, key=_reasons_first):
        if not _worth_doing(finding):
            continue
        if not any(_blame_the_same_time(signals, finding, other) for other in chosen):
            chosen.append(finding)
    chosen.sort(key=_most_seconds_first)
    if not any(f.gain.high_ps or f.later_gain.high_ps for f in chosen):
        return None
    later_ps, compute_ps = signals.later_epoch_ps, _spent_ps(signals)["compute"]
    return Plan(
        tuple(finding.id for finding in chosen),
        _forecast(signals.window_ps, compute_ps, signals, [(f, f.gain) for f in chosen]),
        None
        if later_ps is None
        else _forecast(
            later_ps,
            compute_ps - signals.causes_ps["compute.warm_up"],
            signals,
            [(f, f.later_gain) for f in chosen],
        ),
    )


def _worth_doing(finding: Finding) -> bool:
    if finding.severity == "note":
        return False
    return bool(_hopeless(finding) or finding.gain.high_ps or finding.later_gain.high_ps)


def _hopeless(finding: Finding) -> bool:
    """The run learns nothing: until that is mended, no second is worth winning."""
    return finding.bucket == "numerics" and finding.severity == "act"


def _most_seconds_first(finding: Finding) -> tuple[bool, int, int]:
    return not _hopeless(finding), -finding.gain.high_ps, -finding.later_gain.high_ps


def _reasons_first(finding: Finding) -> tuple[bool, int, int]:
    hopeful, first_ps, later_ps = _most_seconds_first(finding)
    half = 2 if finding.bucket == "communication" else 1
    return hopeful, first_ps // half, later_ps // half


def _blame_the_same_time(signals: Signals, one: Finding, other: Finding) -> bool:
    """Whether their evidence overlaps; without evidence they cannot be told apart.

    Buckets are apart by themselves, unless a finding blames more time than its bucket holds: a
    validation that is too long, say, whatever its time went to.
    """
    spent_ps = _spent_ps(signals)
    if one.bucket != other.bucket and not any(
        finding.lost_ps > spent_ps[finding.bucket] for finding in (one, other)
    ):
        return False
    if not one.evidence or not other.evidence:
        return True
    return any(
        a.start_ps < b.end_ps and b.start_ps < a.end_ps
        for a in one.evidence
        for b in other.evidence
    )


def _spent_ps(signals: Signals) -> dict[str, int]:
    """Per bucket; of a sampled epoch, as estimated."""
    return signals.likely_ledger.buckets_ps


def _forecast(
    now_ps: int, compute_ps: int, signals: Signals, gains: Sequence[tuple[Finding, Gain]]
) -> Forecast:
    """An epoch after all gains: not below its compute time, less what a gain claims of that."""
    low = high = claimed = 0
    spent_ps = _spent_ps(signals)
    for bucket in BUCKETS:
        mine = [gain for finding, gain in gains if finding.bucket == bucket]
        spent = spent_ps[bucket]
        largest = max((gain.high_ps for gain in mine), default=0)
        # Evidence is a sample: gains that seem apart still cannot win more than there was.
        most = max(spent, largest)
        low += min(sum(gain.low_ps for gain in mine), most)
        high += min(sum(gain.high_ps for gain in mine), most)
        # What a finding wins beyond its bucket, it wins by computing less.
        claimed += largest if bucket == "compute" else max(largest - spent, 0)
    floor = min(max(compute_ps - claimed, 0), now_ps)
    return Forecast(now_ps, max(now_ps - high, floor), max(now_ps - low, floor))
