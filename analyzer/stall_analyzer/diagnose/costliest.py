"""The thing that costs the most and can be changed, if no bucket to act on covers it.

Most of what can be changed belongs to a bucket: waiting to input, tracing to compile. But
validation takes time from every bucket, and the optimizer's updates are computation like the
model's own. The verdict is about such a finding when it costs more than any bucket does without it,
unless most of its own time belongs to one bucket. Checks for NaN are another example: they make
everything around them take longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from stall_analyzer.model.findings import Finding
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.signals.input.input_pipeline import Spans
from stall_analyzer.signals.signals import Signals

COMPUTING: Bucket = "compute"  # which by itself is no reason to act


def costliest_change(
    signals: Signals,
    findings: Iterable[Finding],
    costs_ps: Mapping[Bucket, int],
    enough_ps: float,
) -> Finding | None:
    """The finding that is worth more than any bucket to act on, and surely worth something.

    `costs_ps`: what the buckets to act on cost. `enough_ps`: what a change must save, at the middle
    of its range.
    """
    candidates = [
        finding
        for finding in findings
        if _bucket_is_silent(signals, finding)
        and finding.severity != "note"
        and finding.gain.low_ps > 0
        and (finding.gain.low_ps + finding.gain.high_ps) / 2 >= enough_ps
    ]
    costliest = max(candidates, key=lambda finding: finding.lost_ps, default=None)
    if costliest is None:
        return None
    inside = {bucket: _inside_ps(signals, costliest, bucket) for bucket in costs_ps}
    if max(inside.values()) > costliest.lost_ps / 2:
        return None  # such as a validation that waits for its input: the bucket says more
    most = max(ps - inside[bucket] for bucket, ps in costs_ps.items())
    return costliest if costliest.lost_ps > most else None


def _bucket_is_silent(signals: Signals, finding: Finding) -> bool:
    """Whether its bucket does not cover it, because it surely saves more than the bucket holds."""
    return finding.bucket == COMPUTING or finding.gain.low_ps > signals.buckets_ps[finding.bucket]


def _inside_ps(signals: Signals, finding: Finding, bucket: Bucket) -> int:
    """How much of a bucket would go away with the finding, because the finding blames it."""
    if bucket not in finding.blames or not finding.evidence:
        return 0
    return signals.time_of_buckets(_spans(finding), bucket)


def _spans(finding: Finding) -> Spans:
    return (
        np.array([piece.start_ps for piece in finding.evidence], np.int64),
        np.array([piece.end_ps for piece in finding.evidence], np.int64),
    )
