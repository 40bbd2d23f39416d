"""The input ended before the epoch did.

What it finds
Keras's warning that the dataset had fewer batches than steps_per_epoch asks for.

Why it stalls
Keras either ends training at that point or treats the few batches that are left as an epoch. Later
epochs are then short or empty, and what looks like a stall is the end of the data.

How it is measured
The warning on the job's console.

Example
steps_per_epoch=20 on a dataset of 8 batches: "Your input ran out of data; interrupting training."

What to do
Repeat the dataset, or leave out steps_per_epoch, so that an epoch is one pass over it.

Blind spots
Keras 3 prints the same warning once after the first epoch if it could not know how long a generator
is; in that case, nothing is wrong.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.signals import Signals

ID = "ST018"
BUCKET = "input"


def check(signals: Signals) -> Finding | None:
    warning = signals.console.warnings.get("ran_out_of_data")
    if warning is None:
        return None
    return Finding(
        severity="consider",
        title="The input ran out of data before the epoch was over",
        explanation=(
            f"{quoted(warning)} Some of the steps that steps_per_epoch asks for never run, and "
            f"later epochs may have no data at all."
        ),
        change=Change(
            "Repeat the dataset, or leave out steps_per_epoch, so that an epoch is one pass over "
            "it.",
            "model.fit(data, steps_per_epoch=steps, epochs=epochs)",
            "model.fit(data.repeat(), steps_per_epoch=steps, epochs=epochs)",
        ),
        confidence=0.7,
    )
