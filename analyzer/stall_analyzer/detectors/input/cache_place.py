"""Where a cache would fit."""

from __future__ import annotations

from stall_analyzer.model.findings import Turn
from stall_analyzer.signals.host.machine import PAGING_FAULTS
from stall_analyzer.signals.signals import Signals

# Of the memory that the process may use: with this much in use, a dataset may not fit.
TIGHT_SHARE = 0.25


def cache_call(signals: Signals) -> tuple[str, tuple[Turn, ...]]:
    """`cache()` or, where a capture saw that memory is short, a cache in a file; as code and as a
    turn."""
    if _is_tight(signals):
        return 'cache("/local/cache")', (Turn("cache", "in a file"),)
    return "cache()", (Turn("cache", "in memory"),)


def _is_tight(signals: Signals) -> bool:
    machine = signals.machine
    if machine is None:
        return False
    used, limit = machine.peak_bytes or 0, machine.limit_bytes or 0
    return (machine.major_faults or 0) >= PAGING_FAULTS or 0 < TIGHT_SHARE * limit <= used
