"""From records of sampled stacks to the stacks. What refers to a lost record is left out."""

from __future__ import annotations

from collections.abc import Sequence

from stall_analyzer.captures.capture_records import StackSamples, StacksRecord
from stall_analyzer.captures.stack_frames import Frame, frame_of
from stall_analyzer.model.books import DatedItem
from stall_analyzer.model.sampled_stacks import SampledStacks, SeenStack

MOST_NS = 1 << 62  # no clock shows a later time


def read_stacks(records: Sequence[StacksRecord]) -> SampledStacks | None:
    """None if nothing was sampled."""
    if not records:
        return None
    frames: dict[int, Frame | None] = {}
    stacks: dict[int, tuple[Frame, ...]] = {}
    source: dict[str, str] = {}
    seen: list[SeenStack] = []
    for record in sorted(records, key=lambda record: record.ns):
        source |= record.source
        frames |= {int(n): frame_of(text) for n, text in record.frames.items() if n.isdecimal()}
        for number, parts in record.stacks.items():
            if number.isdecimal() and all(part in frames for part in parts):
                read = (frames[part] for part in parts)
                stacks[int(number)] = tuple(frame for frame in read if frame is not None)
        seen += (
            SeenStack(record.began_ns, record.ns, samples, stacks[samples.stack])
            for samples in record.samples
            if samples.stack in stacks and _is_possible(samples)
        )
    calls = (
        DatedItem(record.began_ns, record.ns, "", item)
        for record in records
        for item in record.calls
        if 0 <= item.spent_ns < MOST_NS
    )
    return SampledStacks(tuple(seen), tuple(calls), source)


def _is_possible(samples: StackSamples) -> bool:
    return 0 < samples.count < MOST_NS and 0 <= samples.seen_ns < MOST_NS
