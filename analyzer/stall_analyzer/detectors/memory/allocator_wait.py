"""A step waits for memory to be freed.

What it finds
Ops that asked an allocator for more memory than was free and waited until enough was freed.

Why it stalls
A pool with a limit (every GPU has one) does not fail at once: it keeps trying for up to ten
seconds, hoping that another thread frees something. Until then the op waits, and so does everything
that depends on it.

How it is measured
The wait has no event of its own. An op counts as having waited if it did not allocate its memory at
once but milliseconds after it started, and took more than was free when it started. A wait counts
only if no other op of the step ran during it.

Example
Three times, a step asked for 300 MB while 224 MB was free, and waited 0.7 s: another thread was
holding a large tensor for its statistics.

What to do
Use less memory at once: a smaller batch, or the same batch in two halves. Hold less elsewhere, such
as in tensors kept in Python, in a second model, or in results that another thread computes on the
device.

Blind spots
Waits are visible only where the allocator records events: on GPUs, and on CPUs with
TF_CPU_ALLOCATOR_USE_BFC. A trace does not show what held the memory.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import OFTEN, every_epoch, removed
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding, Gain, Turn
from stall_analyzer.model.format import seconds, size
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
            f"{_asked(longest)} {'This wait' if len(waits) == 1 else 'Such waits'} held up "
            f"training for {signals.with_share(lost)}. The memory was freed later, so something "
            f"else had been holding it for a while: another thread, or tensors kept in Python."
        ),
        change=Change(
            "Make the step need less memory at once, or hold less elsewhere: use a smaller batch, "
            "keep no second model on the same device, and convert results to NumPy arrays before "
            "keeping them.",
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
        f"was free in {wait.allocator}, and waited {waited}."
    )
