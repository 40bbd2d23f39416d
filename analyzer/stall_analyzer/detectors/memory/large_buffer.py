"""A shuffle buffer or a cache takes up much of the memory.

What it finds
A `shuffle(n)` or `cache()` that holds a quarter or more of the machine's or the container's memory.

Why it stalls
It does not stall yet. With slightly larger elements, or if validation fills a buffer of its own,
the kernel will swap, drop pages that are in use or kill the process.

How it is measured
How much the process grew while the buffer was filled (the trace says when, the capture how much),
compared with the memory limit. While training waits for a shuffle buffer, nothing else grows. A
cache is filled while steps run, so its size is taken to be how much the process grew from the tenth
step to the last.

Example
shuffle(50_000) of decoded images: 9.8 GB of 16 GB, or 196 kB per element.

What to do
Shuffle something small (file names, undecoded records), and decode afterward. A buffer of a few
thousand elements shuffles well when the files are read in random order. Cache before decoding, or
in a file.

Blind spots
Needs a capture, and a profile of the time in which the buffer is filled. A shuffle buffer must take
at least three seconds to fill, because memory is sampled only once a second.
"""

from __future__ import annotations

from stall_analyzer.model.findings import Change, Finding, Turn
from stall_analyzer.model.format import percent, size
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import PS_PER_NS, PS_PER_S
from stall_analyzer.signals.signals import Signals

ID = "ST208"
BUCKET = "memory"

# The rest has to hold the model, its activations and everything else on the machine.
LARGE_SHARE = 0.25
# Memory is sampled every second: a buffer that fills faster than this cannot be measured.
LEAST_FILL_PS = 3 * PS_PER_S
# The first steps create their own variables, slots and buffers.
SETTLED_AFTER = 10


@dataclass(frozen=True)
class _Buffer:
    """A stage that holds elements in memory."""

    call: str
    bytes: int
    elements: int | None
    advice: Change


def check(signals: Signals) -> Finding | None:
    machine = signals.machine
    if machine is None or not machine.limit_bytes:
        return None
    found = [buffer for buffer in (_shuffle(signals), _cache(signals)) if buffer is not None]
    buffer = max(found, key=lambda buffer: buffer.bytes, default=None)
    if buffer is None or buffer.bytes < LARGE_SHARE * machine.limit_bytes:
        return None
    held, limit = size(buffer.bytes), size(machine.limit_bytes)
    each = f" ({size(buffer.bytes // buffer.elements)} per element)" if buffer.elements else ""
    return Finding(
        severity="consider",
        title=f"{buffer.call} holds {held} of the {limit} of memory",
        explanation=(
            f"While {buffer.call} was being filled, the process grew by {held}{each}, which is "
            f"{percent(buffer.bytes, machine.limit_bytes)} of the memory that it may use. At its "
            f"largest, the process held {size(machine.peak_bytes or buffer.bytes)}."
        ),
        change=buffer.advice,
        confidence=0.75,
    )


def _shuffle(signals: Signals) -> _Buffer | None:
    shuffles = signals.pipeline.of_kind("Shuffle")
    start, end = signals.intervals_of("input.shuffle_fill")
    if not shuffles or len(start) == 0 or int(end[-1] - start[0]) < LEAST_FILL_PS:
        return None
    grown = _grown_bytes(signals, int(start[0]), int(end[-1]))
    stage = max(shuffles, key=lambda s: s.parameters.get("buffer_size", 0))
    elements = stage.parameters.get("buffer_size")
    call = f"shuffle({elements})" if elements else "shuffle"
    advice = Change(
        "Shuffle before decoding, or use a smaller buffer.",
        f"ds.map(decode).{call}",
        f"ds.{call}.map(decode, num_parallel_calls=tf.data.AUTOTUNE)",
    )
    return _Buffer(call, grown, elements, advice) if grown else None


def _cache(signals: Signals) -> _Buffer | None:
    steps = signals.training_steps
    pipeline = signals.pipeline
    filled = [c for c in pipeline.of_kind("MemoryCache") if pipeline.below(c)]
    if not filled or len(steps) <= SETTLED_AFTER:
        return None
    grown = _grown_bytes(signals, steps[SETTLED_AFTER].start_ps, steps[-1].end_ps)
    advice = Change(
        "Cache in a file, or before decoding.",
        "ds.cache()",
        'ds.cache("/local/cache")',
        turns=(Turn("cache", "in a file"),),
    )
    return _Buffer("cache()", grown, None, advice) if grown else None


def _grown_bytes(signals: Signals, start_ps: int, end_ps: int) -> int:
    memory, zero_ns = signals.resident_memory, signals.timeline.window.start_unix_ns
    if memory is None or zero_ns is None:
        return 0
    before = memory.at(zero_ns + start_ps // PS_PER_NS)
    after = memory.at(zero_ns + end_ps // PS_PER_NS)
    return max(round(after - before), 0) if before is not None and after is not None else 0
