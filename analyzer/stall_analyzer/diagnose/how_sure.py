"""How certain a verdict is that is based on an estimate.

The estimate gives each bucket a range. If the costliest bucket would still be the costliest at the
low end of its range, the verdict is probable. If not, the evidence cannot decide, and the buckets
that could cost the most are named instead, with what would decide between them.
"""

from __future__ import annotations

from dataclasses import replace

from stall_analyzer.align.logged_epoch import LOOP_END
from stall_analyzer.model.estimate import Estimate
from stall_analyzer.model.findings import Verdict
from stall_analyzer.model.format import between, percent, seconds
from stall_analyzer.model.kinds import LAST_RECORD, Bucket, Status
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.signals.signals import Signals

MOST_CANDIDATES = 3  # more would say nothing
LEAST_SURE, MOST_SURE, UNSURE = 0.5, 0.9, 0.4
# A validation of this share of the epoch is worth mentioning, whatever its time went to.
VALIDATION_SHARE = 0.25
FIRST_STEP_SHARE = 0.25  # likewise: it happens once
# If later epochs are shorter by this factor, there is a one-time cost, even without a trace.
SLOWER_FIRST = 1.5
HEALTHY: Bucket = "compute"


def noun_of(timeline: Timeline) -> str:
    """What to call the window: not every loop or fit() finishes an epoch."""
    if timeline.window.epoch is None:
        return "trace"
    return "logged part" if timeline.window.end_source in (LAST_RECORD, LOOP_END) else "first epoch"


def weighed(
    verdict: Verdict, signals: Signals, actionable: tuple[Bucket, ...], act_share: float
) -> Verdict:
    """The verdict on the likely values, as certain as their ranges allow."""
    estimate = signals.estimate
    if estimate is None:
        return verdict
    candidates = _candidates(estimate, verdict.primary, actionable, act_share * signals.window_ps)
    if len(candidates) > 1:
        return _undecided(verdict, signals, estimate, candidates)
    sentence = f"Probably {verdict.sentence[0].lower()}{verdict.sentence[1:]}"
    known = estimate.ranges[verdict.primary]
    doubt = (known.high_ps - known.low_ps) / (2 * signals.window_ps)
    sure = round(min(max(1 - doubt, LEAST_SURE), MOST_SURE), 2)
    return replace(
        verdict, sentence=f"{sentence}{_validation(signals)}", confidence=min(sure, MOST_SURE)
    )


def _candidates(
    estimate: Estimate, primary: Bucket, actionable: tuple[Bucket, ...], enough_ps: float
) -> tuple[Bucket, ...]:
    """What may cost the most, most likely first: the primary, and what could overtake it."""
    likely = estimate.ledger.buckets_ps
    if primary == "unknown":
        ordered = sorted((*actionable, HEALTHY), key=lambda bucket: -likely[bucket])
        return tuple(ordered[:MOST_CANDIDATES])
    low = estimate.ranges[primary].low_ps
    lost = likely[primary] - low
    rivals = []
    for bucket in (*actionable, HEALTHY):
        reached = min(likely[bucket] + lost, estimate.ranges[bucket].high_ps)
        if bucket == primary:
            continue
        if bucket == HEALTHY:
            wins = low < enough_ps
        else:
            wins = reached >= enough_ps and (primary == HEALTHY or reached > low)
        if wins:
            rivals.append(bucket)
    rivals.sort(key=lambda bucket: -likely[bucket])
    return (primary, *rivals)[:MOST_CANDIDATES]


def _undecided(
    verdict: Verdict, signals: Signals, estimate: Estimate, candidates: tuple[Bucket, ...]
) -> Verdict:
    ranges = [estimate.ranges[bucket] for bucket in candidates]
    each = ", ".join(
        f"{bucket} {between(known.low_ps, known.high_ps)}"
        for bucket, known in zip(candidates, ranges, strict=True)
    )
    names = f"{', '.join(candidates[:-1])} or {candidates[-1]}"
    later = signals.later_epoch_ps
    beside = f" (later ones {seconds(later)})" if later is not None else ""
    sentence = (
        f"{names[0].upper()}{names[1:]} cost the most: the {noun_of(signals.timeline)} took "
        f"{seconds(signals.window_ps)}{beside}. Possible times: "
        f"{each}.{_first_step(signals)}{_validation(signals)} "
        f"A profile of the whole first epoch would settle it: {_who_takes_one(signals)} takes one."
    )
    once = later is not None and signals.window_ps > SLOWER_FIRST * later
    status: Status = "slow_once" if once or verdict.status == "slow_once" else "unknown"
    return Verdict(status, candidates[0], sentence, UNSURE, candidates=candidates)


def _who_takes_one(signals: Signals) -> str:
    return (
        "StallCallback"
        if signals.keras is not None
        else "StallCallback (or watch(), in a custom loop)"
    )


def _first_step(signals: Signals) -> str:
    first = signals.timeline.first_step
    if first is None or not first.exact or first.end_ps < FIRST_STEP_SHARE * signals.window_ps:
        return ""
    share = percent(first.end_ps, signals.window_ps)
    return f" The first step alone took {seconds(first.end_ps)} ({share})."


def _validation(signals: Signals) -> str:
    spent = sum(
        phase.end_ps - phase.start_ps
        for phase in signals.timeline.phases
        if phase.name == "validation"
    )
    if spent < VALIDATION_SHARE * signals.window_ps:
        return ""
    return f" Validation alone took {seconds(spent)} ({percent(spent, signals.window_ps)})."
