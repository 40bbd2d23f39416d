"""The machine runs short of memory: pages are read back from disk while training waits.

What it finds
Time in which threads waited for host memory (not a GPU's), pages that had to be fetched again, and
processes close to the limit at which the kernel kills them.

Why it stalls
When the RAM is used up or the container's limit is reached, the kernel drops or swaps out pages
that are still in use. Touching one of them then takes as long as reading from a disk, which is
thousands of times slower than reading from memory, no matter which op does it.

How it is measured
In a capture: the kernel's own count of the time in which something waited for memory (pressure
stall information of the container or the machine), the process's major page faults, swap, and its
resident size compared with the limit. The finding is rated "act" only if that time is at least a
fifth of the epoch and the process itself had page faults: other programs on the machine may also
wait for memory.

Example
A shuffle buffer of 12 GB under a limit of 12.5 GB: 31 s of the first epoch's 80 s went to waiting
for memory, with 210,000 major page faults.

What to do
Keep less in memory: a smaller shuffle buffer, cache("file") instead of cache(), fewer prefetched
elements, and no NumPy arrays that hold an entire dataset. Or give the container more memory.

Blind spots
A trace does not show this; only a capture does. The kernel counts all threads, including those that
training did not wait for, so the loss is an upper bound. Linux kernels built without pressure stall
information show only the page faults.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.findings import Change, Finding, Turn
from stall_analyzer.model.format import percent, seconds, size
from stall_analyzer.signals.host.machine import PAGING_FAULTS, MachineSignals
from stall_analyzer.signals.signals import Signals

ID = "ST207"
BUCKET = "memory"

# If this much is swapped out while the process has page faults, its own memory is short.
SWAPPED_BYTES = 64_000_000
# Beyond this share, the next large request takes what is left.
FULL_SHARE = 0.95
# Of the time that threads waited: training may have been held up by none of it, or by all of it.
LEAST_SAVED, MOST_SAVED = 0.0, 1.0


def check(signals: Signals) -> Finding | None:
    machine = signals.machine
    if machine is None:
        return None
    faults = machine.major_faults or 0
    stalled = min(machine.memory_stalled_ps or 0, signals.window_ps)
    paging = faults >= PAGING_FAULTS
    severity = severity_of(signals.share(stalled)) if paging else None
    swapping = paging and (machine.swapped_bytes or 0) >= SWAPPED_BYTES
    full = _is_full(machine)
    if severity is None and not swapping and not full:
        return None
    lost = stalled if severity is not None else 0
    gain = partly(lost, LEAST_SAVED, MOST_SAVED)
    return Finding(
        severity=severity or "consider",
        title=_title(machine, lost, swapping),
        explanation=_explanation(signals, machine, lost, faults),
        change=Change(
            "Keep less in memory: a smaller shuffle buffer, a cache in a file, a pipeline instead "
            "of whole arrays. Or give the container more memory.",
            "ds = ds.cache().shuffle(100_000)",
            'ds = ds.cache("/local/cache").shuffle(1_000)',
            turns=(Turn("cache", "in a file"),),
        ),
        lost_ps=lost,
        blames=BUCKETS,  # any thread may have been the one that waited
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.85 if lost else 0.8,
    )


def _is_full(machine: MachineSignals) -> bool:
    # A peak above the limit includes pages of files that are charged to another process.
    limit, peak = machine.limit_bytes, machine.peak_bytes
    return bool(limit and peak and FULL_SHARE * limit <= peak <= limit)


def _title(machine: MachineSignals, lost: int, swapping: bool) -> str:
    if lost:
        return f"Memory is short: threads waited {seconds(lost)} for it"
    if swapping:
        return f"Memory is short: {size(machine.swapped_bytes or 0)} was swapped out"
    peak, limit = machine.peak_bytes or 0, machine.limit_bytes or 0
    return f"The process used {size(peak)} of the {size(limit)} of memory that it may use"


def _explanation(signals: Signals, machine: MachineSignals, lost: int, faults: int) -> str:
    parts = []
    if lost:
        share = percent(lost, signals.window_ps)
        parts.append(
            f"For {seconds(lost)} of the first epoch ({share}), one or more threads waited for "
            f"memory."
        )
    if faults >= PAGING_FAULTS:
        parts.append(f"{faults:,} pages had to be read back from disk.")
    if machine.peak_bytes and machine.limit_bytes:
        parts.append(
            f"At its largest, the process used {size(machine.peak_bytes)} of the "
            f"{size(machine.limit_bytes)} that it may use; if it needs more, the kernel kills it."
        )
    return " ".join(parts)
