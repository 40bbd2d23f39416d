"""A step waits until memory is given back.

What it finds
Ops that asked an allocator for more than was free, and waited until enough of it came back.

Why it stalls
A pool with a limit (every GPU has one) does not fail at once: it tries again for up to ten seconds,
hoping that another thread frees something. Until then the op, and what depends on it, waits.

How it is measured
The wait has no event of its own. An op that allocates only milliseconds after it began, although
less was free at its beginning than it then took, has waited. Only waits count during which no other
op of the step ran.

Example
A step asked for 300 MB while 224 MB were free, three times, for 0.7 s each: another thread held a
large tensor for its statistics.

What to do
Need less at once: a smaller batch, or the same batch in two halves. Hold less elsewhere: tensors
kept in Python, a second model, results computed on the device by another thread.

Blind spots
Waits show only where the allocator writes events: on GPUs, and on CPUs with
TF_CPU_ALLOCATOR_USE_BFC. Who held the memory is not in a trace.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import OFTEN, every_epoch, removed
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding, Gain, Turn
from stall_analyzer.model.format import percent, seconds, size
from stall_analyzer.signals.memory.allocators import MemoryWait
from stall_analyzer.signals.signals import Signals

ID = "ST201"
BUCKET = "memory"


def check(signals: Signals) -> Finding | None:
    lost = signals.causes_ps["memory.allocator_wait"]
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    waits = [wait for wait in signals.memory_waits if not wait.failed]
    longest = max(waits, key=lambda wait: wait.end_ps - wait.start_ps)
    gain = removed(lost)
    return Finding(
        severity=severity,
        title=f"{_short(longest.op)} waits for memory: {seconds(lost)} in {_times(len(waits))}",
        explanation=(
            f"{_asked(longest)} Such waits held up the first epoch for {seconds(lost)}, "
            f"{percent(lost, signals.window_ps)} of it. The memory came back later, so something "
            f"else had been holding it for a while: another thread, or tensors kept in Python."
        ),
        change=Change(
            "Make the step need less at once, or let go of what else is held: a smaller batch, "
            "no second model on the same device, results turned into NumPy arrays before they are "
            "kept.",
            "kept = layer(sample)  # stays in the pool for as long as it is kept",
            "kept = layer(sample).numpy()  # or: data.batch(size // 2)",
            turns=(Turn("batch size", "down"),),
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals) if len(waits) >= OFTEN else Gain(),
        confidence=0.85,
        evidence=signals.evidence_of("memory.allocator_wait", f"{_short(longest.op)} waits"),
    )


def _short(op: str) -> str:
    """The last two parts of a node's name: enough to find its layer."""
    return "/".join(op.split("/")[-2:])


def _times(count: int) -> str:
    return "one wait" if count == 1 else f"{count} waits"


def _asked(wait: MemoryWait) -> str:
    waited = seconds(wait.end_ps - wait.start_ps)
    if wait.asked_bytes is None or wait.available_bytes is None:
        return f"{_short(wait.op)} waited {waited} for memory."
    return (
        f"{_short(wait.op)} asked for {size(wait.asked_bytes)} while {size(wait.available_bytes)} "
        f"were free in {wait.allocator}, and waited {waited}."
    )
