"""A process that grows as long as it trains, by the resident memory that a capture sampled."""

from __future__ import annotations

import numpy as np

from stall_analyzer.captures.capture_format import Account
from stall_analyzer.model.books import Books
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.units import PS_PER_NS, Bools, Float64s
from stall_analyzer.signals.host.machine import ResidentMemory

STEPS_LEAST = 15
# A TensorFlow process varies by tens of megabytes without leaking any.
GROWTH_LEAST_BYTES = 64_000_000
SAMPLES_LEAST = 10
# What is kept from each step shows in nearly every sample; a buffer that fills does not.
GROWING_SHARE = 0.8
# A leak is as fast in the first half as in the second; a buffer that fills is not.
EVEN_LEAST = 0.3
BUILDS = (Account.TRACE, Account.RETRACE)


@dataclass(frozen=True)
class ProcessGrowth:
    """How the process grew from one step to another."""

    first_step: int
    last_step: int
    from_bytes: int
    to_bytes: int
    graphs: int  # how many were built in the meantime
    by_graphs: bool  # they were built about as often as it grew

    @property
    def grown_bytes(self) -> int:
        return self.to_bytes - self.from_bytes

    @property
    def per_step(self) -> int:
        return self.grown_bytes // (self.last_step - self.first_step)


def process_growth(
    memory: ResidentMemory | None, books: Books | None, timeline: Timeline
) -> ProcessGrowth | None:
    """None: it does not grow all the time, or nothing shows it."""
    settled = _settled(timeline, memory) if memory is not None else None
    if memory is None or settled is None:
        return None
    step, held, wall_ns = memory.step[settled], memory.bytes[settled], memory.wall_ns[settled]
    if step[-1] - step[0] < STEPS_LEAST or not _grows_steadily(held):
        return None
    graphs = _graphs_built(books, int(wall_ns[0]), int(wall_ns[-1])) if books is not None else 0
    times = int(np.count_nonzero(np.diff(held) > 0))
    return ProcessGrowth(
        first_step=int(step[0]),
        last_step=int(step[-1]),
        from_bytes=int(held[0]),
        to_bytes=int(held[-1]),
        graphs=graphs,
        by_graphs=graphs >= GROWING_SHARE * times,
    )


def _settled(timeline: Timeline, memory: ResidentMemory) -> Bools | None:
    """The samples taken when nothing is being filled for the first time anymore."""
    zero_ns, window_ns = timeline.window.start_unix_ns, timeline.window.duration_ps // PS_PER_NS
    if zero_ns is None:
        return None
    later = memory.wall_ns > zero_ns + window_ns
    if timeline.later_epochs_ps and int(later.sum()) >= SAMPLES_LEAST:
        return later
    half = (memory.wall_ns > zero_ns + window_ns // 2) & ~later
    return half if int(half.sum()) >= SAMPLES_LEAST else None


def _grows_steadily(held: Float64s) -> bool:
    change = np.diff(held)
    growth = float(held[-1] - held[0])
    if growth < max(GROWTH_LEAST_BYTES, held[0] / 10):
        return False
    middle = float(held[len(held) // 2] - held[0])
    even = EVEN_LEAST * growth <= middle <= (1 - EVEN_LEAST) * growth
    lasting = float(-change[change < 0].sum()) <= growth / 10
    return even and lasting and float((change > 0).mean()) >= GROWING_SHARE


def _graphs_built(books: Books, begin_ns: int, end_ns: int) -> int:
    """By functions of any kind. An item that covers a longer time counts in proportion."""
    built = 0.0
    for dated in books.items:
        inside_ns = min(dated.end_ns, end_ns) - max(dated.begin_ns, begin_ns)
        if dated.item.account in BUILDS and inside_ns > 0:
            built += dated.item.count * inside_ns / (dated.end_ns - dated.begin_ns)
    return round(built)
