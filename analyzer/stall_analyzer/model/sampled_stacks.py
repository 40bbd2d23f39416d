"""Where a captured process was seen running Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from stall_analyzer.captures.capture_records import StackSamples
from stall_analyzer.captures.stack_frames import Frame
from stall_analyzer.model.books import DatedItem
from stall_analyzer.model.records import dataclass


@dataclass(frozen=True)
class SeenStack:
    """Threads that were seen in one place, between two times."""

    begin_ns: int  # unix time
    end_ns: int
    seen: StackSamples
    frames: tuple[Frame, ...]  # innermost first


@dataclass(frozen=True)
class SampledStacks:
    stacks: tuple[SeenStack, ...] = ()
    calls: tuple[DatedItem, ...] = ()  # functions that ran in the background, by clocks
    source: Mapping[str, str] = field(default_factory=dict)  # the user's lines, by "path:line"
