"""The first run of the graph takes much longer than the later ones.

What it finds
A first training step that computed for much longer than a typical one; the difference is a
noticeable part of the epoch.

Why it stalls
On first use, kernels are created and choose their algorithms, thread pools start, and the memory of
all tensors is touched for the first time.

How it is measured
The ledger's warm-up: how much longer the first run of each graph took to compute than the median of
its later runs.

Example
The first step computed for 270 ms, later ones for 34 ms: its 400 MB of memory was touched for the
first time.

What to do
Nothing: it happens once. Leave the first step out when you compare step times, and train long
enough for it not to matter.

Blind spots
A trace does not show whether the time went to creating kernels or to touching memory for the first
time.
"""

from __future__ import annotations

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "ST110"
BUCKET = "compute"

# Every run has some warm-up; below a tenth of the epoch it does not mislead.
WARM_UP_SHARE = 0.10


def check(signals: Signals) -> Finding | None:
    lost = signals.causes_ps["compute.warm_up"]
    if signals.share(lost) < WARM_UP_SHARE:
        return None
    return Finding(
        severity="note",
        title=f"The first run of the graph takes {seconds(lost)} longer than the later ones",
        explanation=(
            f"{signals.with_share(lost)} went to work that only the graph's first run needs: "
            f"kernels were created, and memory was touched for the first time. The model's steps "
            f"are faster than this epoch suggests."
        ),
        change=Change("Do nothing: it happens once. Leave the first step out of comparisons."),
        lost_ps=lost,
        confidence=0.8,
        evidence=signals.evidence_of("compute.warm_up", "first run"),
    )
