"""There is no profile of this run, only event files.

What it finds
Runs in which only event files show what happened in the first epoch.

Why it stalls
It does not. Event files say how long the epochs took and, at best, when the first step and
validation ended. Where the time went can only be roughly estimated from that. A first epoch that is
much slower than the later ones has a one-time cost; a profile would show which one.

How it is measured
The times at which epochs were logged; a first epoch counts as slower if it took at least 1.5 times
as long as a typical later one.

Example
The first epoch took 14.2 s, later ones 1.3 s: 12.9 s was a one-time cost.

What to do
Capture the first epoch with StallCallback, or profile it with TensorFlow's own profiler.

Blind spots
Without later epochs there is nothing to compare the first one with.
"""

from __future__ import annotations

from stall_analyzer.captures.how_to_capture import HOW_TO_CAPTURE
from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "ST412"
BUCKET = "unknown"

# Epochs of one run differ by a fifth or so; one that is 1.5 times as long has a reason.
SLOWER_FACTOR = 1.5


_CAPTURE = Change(
    "Capture the first epoch. The trace shows tracing, compiling and waiting for input by "
    "name; the callback also records memory, gradients and hangs.",
    "",
    HOW_TO_CAPTURE,
)
_PROFILE_TOO = Change(
    "Let the capture profile the first epoch: leave its profile option on, and run no other "
    "profiler at the same time. The trace shows tracing, compiling and waiting for input by name."
)


def check(signals: Signals) -> Finding | None:
    if signals.traces or signals.window_ps == 0 or signals.timeline.window.epoch is None:
        return None
    if signals.covered_share > 0:  # the capture's books say where the time went
        return None
    progress = signals.progress
    if progress is None or (progress.marks_epochs and not progress.finished):
        return None
    first, later = signals.window_ps, signals.later_epoch_ps
    slower = later is not None and later > 0 and first >= SLOWER_FACTOR * later
    once = first - later if later is not None and slower else 0
    return Finding(
        severity="note",
        title=_title(first, later if slower else None),
        explanation=_explanation(first, later, once),
        change=_PROFILE_TOO if signals.capture is not None else _CAPTURE,
        lost_ps=once,
        blames=BUCKETS,
        confidence=0.9,
    )


def _title(first: int, later: int | None) -> str:
    if later is None:
        return "No profile: the event files do not say where the time went"
    times = f"{first / later:.1f} times"
    return f"The first epoch took {times} as long as later ones, and was not profiled"


def _explanation(first: int, later: int | None, once: int) -> str:
    if later is None:
        return (
            f"The first epoch took {seconds(first)}, and no later one was logged to compare it "
            f"with. Event files say how long it took, not why."
        )
    if once:
        return (
            f"The first epoch took {seconds(first)}, later ones {seconds(later)}: "
            f"{seconds(once)} was a one-time cost. The usual reasons are tracing, compiling, a "
            f"late first batch and filling buffers; only a profile can tell which of them it was."
        )
    return (
        f"The first epoch took {seconds(first)} and later ones {seconds(later)}: there was no "
        f"large one-time cost. Event files do not say how any epoch spent its time."
    )
