"""The plan: which changes are worth making, and what they save together."""

from __future__ import annotations

from collections.abc import Sequence

from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.findings import Finding, Forecast, Gain, Plan
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.signals.signals import Signals


def plan(signals: Signals, findings: Sequence[Finding]) -> Plan | None:
    """The changes worth making, largest saving first, and what they save together.

    Of findings that blame the same time, only the one that saves the most is in the plan: the
    others would save the same time again. Waiting for another host goes away when its reason does:
    a finding that explains half of the wait says more than the wait itself.
    """
    chosen: list[Finding] = []
    for finding in sorted(findings, key=_reasons_first):
        if not _worth_doing(finding):
            continue
        if not any(_blame_the_same_time(finding, other) for other in chosen):
            chosen.append(finding)
    chosen.sort(key=_most_seconds_first)
    if not any(f.gain.high_ps or f.later_gain.high_ps for f in chosen):
        return None
    slower = signals.timeline.later_epochs_are_slower  # then no forecast would mean anything
    later_ps = None if slower else signals.later_epoch_ps
    compute_ps = _spent_ps(signals)["compute"]
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
    """The run learns nothing: until that is fixed, saving time is pointless."""
    return finding.bucket == "numerics" and finding.severity == "act"


def _most_seconds_first(finding: Finding) -> tuple[bool, int, int]:
    return not _hopeless(finding), -finding.gain.high_ps, -finding.later_gain.high_ps


def _reasons_first(finding: Finding) -> tuple[bool, int, int]:
    hopeful, first_ps, later_ps = _most_seconds_first(finding)
    half = 2 if finding.bucket == "communication" else 1
    return hopeful, first_ps // half, later_ps // half


def _blame_the_same_time(one: Finding, other: Finding) -> bool:
    """Whether their evidence overlaps; without evidence they cannot be told apart.

    Buckets never overlap; but some findings blame several, such as a validation that is too long,
    whatever its time went to.
    """
    if set(one.blames).isdisjoint(other.blames):
        return False
    if not one.evidence or not other.evidence:
        return True
    return any(
        a.start_ps < b.end_ps and b.start_ps < a.end_ps
        for a in one.evidence
        for b in other.evidence
    )


def _spent_ps(signals: Signals) -> dict[Bucket, int]:
    """Per bucket; estimated if the epoch was sampled."""
    return signals.likely_ledger.buckets_ps


def _forecast(
    now_ps: int, compute_ps: int, signals: Signals, gains: Sequence[tuple[Finding, Gain]]
) -> Forecast:
    """An epoch after all gains: not below its compute time, minus what gains claim of it."""
    low = high = claimed = 0
    spent_ps = _spent_ps(signals)
    for bucket in BUCKETS:
        mine = [gain for finding, gain in gains if finding.bucket == bucket]
        spent = spent_ps[bucket]
        largest = max((gain.high_ps for gain in mine), default=0)
        # Evidence is only a sample: even separate gains cannot save more time than there was.
        most = max(spent, largest)
        low += min(sum(gain.low_ps for gain in mine), most)
        high += min(sum(gain.high_ps for gain in mine), most)
        # What a finding saves beyond its bucket is saved by computing less.
        claimed += largest if bucket == "compute" else max(largest - spent, 0)
    floor = min(max(compute_ps - claimed, 0), now_ps)
    return Forecast(now_ps, max(now_ps - high, floor), max(now_ps - low, floor))
