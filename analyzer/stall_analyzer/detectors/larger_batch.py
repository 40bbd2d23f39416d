"""Whether there is enough memory for larger batches."""

from __future__ import annotations

from stall_analyzer.model.format import size
from stall_analyzer.signals.signals import Signals

# Half of what the pool could hold is advised, and only if that is at least twice the batch.
LARGER_BATCH_LEAST = 4


def room_for_larger_batch(signals: Signals) -> str:
    """A sentence on how much larger a batch could be; empty if there is no room or no limit."""
    pools = [pool for pool in signals.allocators if pool.limit_bytes]
    if not pools or (times := min(pool.times_larger for pool in pools)) < LARGER_BATCH_LEAST:
        return ""
    tightest = min(pools, key=lambda pool: pool.times_larger)
    return (
        f" There is room for larger batches: {tightest.name} used at most "
        f"{size(tightest.peak_bytes)} of {size(tightest.limit_bytes or 0)}, so a batch "
        f"{times // 2} times as large would fit."
    )
