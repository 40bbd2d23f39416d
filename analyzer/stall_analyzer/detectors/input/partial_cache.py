"""A cache was never completely filled, so it is thrown away.

What it finds
A cache() in the pipeline that was not read to the end, so nothing in it is kept.

Why it stalls
Every epoch reads and prepares the data again, even though the program asks for a cache.

How it is measured
tf.data's warning on the job's console.

Example
data.cache().take(100): "The calling iterator did not fully read the dataset being cached."

What to do
Put take() before cache().

Blind spots
The warning also appears once, harmlessly, when a program looks at a few elements before it trains.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.signals import Signals

ID = "ST019"
BUCKET = "input"


def check(signals: Signals) -> Finding | None:
    warning = signals.console.warnings.get("partial_cache")
    if warning is None:
        return None
    return Finding(
        severity="consider" if warning.count > 1 else "note",
        title="cache() was not read to the end, so nothing was kept",
        explanation=f"{quoted(warning)} What had been cached is discarded.",
        change=Change(
            "Call take() before cache().",
            "data = data.cache().take(count)",
            "data = data.take(count).cache()",
        ),
        confidence=0.7,
    )
