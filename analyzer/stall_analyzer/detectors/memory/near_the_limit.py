"""The step uses nearly all of the available memory.

What it finds
A limited pool of memory that was at least 95% full at some point in the first epoch, although
nothing has waited or failed so far.

Why it stalls
It does not stall yet. A longer sequence, a larger batch or validation alongside training is enough
to make the allocator wait or the step fail. Little free memory also keeps cuDNN and XLA from
choosing their fast algorithms, which need working space.

How it is measured
The bytes requested and held at the same time, compared with the limit, from the allocator's events.
Blocks that the pool made larger than requested are counted at the size that was requested.

Example
522 MB of 524 MB was in use in every step; the largest single request was 495 MB.

What to do
Leave some room: a slightly smaller batch, mixed precision, gradient checkpointing.

Blind spots
A pool that grows on demand (allow_growth) reports a limit that other programs on the same device
may have used up already. oneDNN's allocator on CPUs has no limit and is not considered.
"""

from __future__ import annotations

from stall_analyzer.model.findings import Change, Finding, Turn
from stall_analyzer.model.format import percent, size
from stall_analyzer.signals.signals import Signals

ID = "ST203"
BUCKET = "memory"

# The last twentieth of a pool is rarely in one piece: the next larger request may already wait.
FULL_SHARE = 0.95


def check(signals: Signals) -> Finding | None:
    limited = [a for a in signals.allocators if a.limit_bytes]
    full = [a for a in limited if a.peak_bytes >= FULL_SHARE * (a.limit_bytes or 0)]
    if not full or signals.memory_waits:
        return None
    pool = max(full, key=lambda allocator: allocator.peak_bytes)
    limit = pool.limit_bytes or 0
    return Finding(
        severity="consider",
        title=f"{pool.name} was {percent(pool.peak_bytes, limit)} full",
        explanation=(
            f"At its peak, the run had {size(pool.peak_bytes)} of {size(limit)} in use; "
            f"{_left(limit - pool.peak_bytes)} was left, while individual requests went up "
            f"to {size(pool.largest_request_bytes)}. Nothing has had to wait for memory yet, but "
            f"with a slightly larger batch or sequence, something will."
        ),
        change=Change(
            "Leave room: a slightly smaller batch, mixed precision or, for deep models, "
            "recomputing activations in the backward pass.",
            "data = data.batch(size)",
            'keras.mixed_precision.set_global_policy("mixed_float16")\n'
            "# or\n"
            "data = data.batch(int(size * 0.8))",
            turns=(Turn("batch size", "down"), Turn("precision", "down")),
        ),
        confidence=0.8,
    )


def _left(count: int) -> str:
    return size(count) if count > 0 else "nothing"
