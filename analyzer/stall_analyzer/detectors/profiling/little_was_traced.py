"""The profile covers less than half of the first epoch.

What it finds
Profiles of only a few batches, or profiles that began late or ended early.

Why it stalls
It does not. But what makes a first epoch slow (tracing, the first batch, buffers that fill) happens
at its beginning, which such a profile usually misses. The missing part is estimated from the steps
that the profile shows and from what was logged. If several causes fit, only a longer profile can
show which one it was.

How it is measured
The part of the window in which the profiler was recording.

Example
profile_batch=(20, 22) covered 2% of the epoch; the 3.9 s before batch 20 is only estimated.

What to do
Capture the first epoch with StallCallback, which profiles its beginning and samples of the rest, or
profile all of it with TensorFlow's own profiler.

Blind spots
Very long epochs make very large traces; in that case let StallCallback take samples, or profile the
first few hundred batches. An epoch whose samples are sufficient is not reported.
"""

from __future__ import annotations

from stall_analyzer.captures.how_to_capture import HOW_TO_CAPTURE
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.signals.signals import Signals

ID = "ST411"
BUCKET = "unknown"

# With less than half of it, most of an answer would be a guess.
ENOUGH_SHARE = 0.5


_CAPTURE = Change("Capture the whole first epoch, once.", "", HOW_TO_CAPTURE)
_LARGER_BUDGET = Change(
    "Let the capture profile more of the first epoch, once; this costs more time.",
    'StallCallback("logs/run1")',
    'StallCallback("logs/run1", budget=0.5)',
)


def check(signals: Signals) -> Finding | None:
    window = signals.timeline.window
    if not signals.traces or window.epoch is None or signals.covered_share >= ENOUGH_SHARE:
        return None
    if signals.sample is not None or signals.stall is not None:
        return None
    if signals.still_running is not None:  # what share of the epoch that is, is not known yet
        return None
    missing = signals.window_ps - signals.host.covered_ps
    first = min(aligned.covered_ps[0] for aligned in signals.traces)
    known = "is not known"
    if signals.estimate is not None:
        known = "is only estimated; a longer profile would show it"
    return Finding(
        severity="note",
        title=f"{_share(signals)} of the epoch was traced",
        explanation=(
            f"The profile covers {seconds(signals.host.covered_ps)} of the first epoch's "
            f"{seconds(signals.window_ps)}{f', from {seconds(first)} on' if first else ''}. Where "
            f"the other {seconds(missing)} went {known}. Tracing, the first batch and filling "
            f"buffers all happen at the start of an epoch."
        ),
        change=_LARGER_BUDGET if signals.capture is not None else _CAPTURE,
        lost_ps=signals.likely_ledger.buckets_ps["unknown"],
        confidence=0.95,
    )


def _share(signals: Signals) -> str:
    share = percent(signals.host.covered_ps, signals.window_ps)
    return f"Less than {share[1:]}" if share.startswith("<") else f"Only {share}"
