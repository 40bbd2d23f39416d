"""Single tensors take more than a tenth of the host's free memory.

What it finds
TensorFlow's warning that one allocation exceeds 10% of the host's free memory.

Why it stalls
A large tensor alone does not stall anything. But where memory is short, the host swaps, or the job
is killed soon after.

How it is measured
The warning on the job's console.

Example
"Allocation of 3200000000 exceeds 10% of free system memory."

What to do
If the tensor was made from a NumPy array, read the data from files or a generator instead, so that
it does not have to be in memory (and in the graph) all at once. Otherwise make the batch smaller.

Blind spots
A large batch on a large machine causes the same warning and does no harm.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.signals import Signals

ID = "ST212"
BUCKET = "memory"


def check(signals: Signals) -> Finding | None:
    warning = signals.console.warnings.get("large_allocation")
    if warning is None:
        return None
    return Finding(
        severity="note",
        title="Single tensors take more than a tenth of the host's free memory",
        explanation=quoted(warning),
        change=Change(
            "Read the data from files or a generator instead of one array.",
            "data = tf.data.Dataset.from_tensor_slices(array)",
            "data = tf.data.TFRecordDataset(files).map(parse)",
        ),
        confidence=0.5,
    )
