"""The console says how long the shuffle buffer took to fill.

What it finds
A shuffle buffer that took more than ten seconds to fill for the first time.

Why it stalls
There is no first batch until the buffer is full, so every element in it is read before the first
step.

How it is measured
When filling takes longer than ten seconds, tf.data prints its progress every ten seconds and, at
the end, that the buffer is filled. The timestamps of these lines show how long it took.

Example
"Filling up shuffle buffer (this may take a while): 940 of 3000" and so on: 32 s for 3,000 elements.

What to do
Make the buffer smaller, shuffle file names instead of records, or shuffle before the elements are
read or decoded.

Blind spots
Buffers that fill in less than ten seconds print nothing. If two buffers fill at the same time, only
the first is tracked. Later epochs fill the buffer again, which is not counted here.
"""

from __future__ import annotations

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.signals import Signals

ID = "ST020"
BUCKET = "input"


def check(signals: Signals) -> Finding | None:
    fill = signals.console.fill
    if fill is None:
        return None
    took = seconds(int(fill.seconds * PS_PER_S))
    so_far = "" if fill.is_filled else "; when it last reported, the buffer was not yet full"
    return Finding(
        severity="consider",
        title=f"Filling the shuffle buffer took {took} before the first step"
        if fill.is_filled
        else f"The shuffle buffer was not full after {took}, so no step could start",
        explanation=(
            f"According to the console ({fill.line.place}), tf.data read {fill.elements:,} of "
            f"{fill.size:,} elements into the shuffle buffer in {took}{so_far}."
        ),
        change=Change(
            "Make the buffer smaller, or shuffle something cheap, such as file names.",
            f"data = data.map(read).shuffle({fill.size})",
            f"data = data.shuffle({fill.size}).map(read)",
        ),
        confidence=0.9,
    )
