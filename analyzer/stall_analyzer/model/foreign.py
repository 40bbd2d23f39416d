"""What can be said about a trace of another kind, which is not analyzed."""

from __future__ import annotations

from stall_analyzer.model.kinds import Framework
from stall_analyzer.model.records import dataclass


@dataclass(frozen=True)
class ForeignTrace:
    """A trace that was recognized and summarized while it was read."""

    framework: Framework
    host: str
    duration_ps: int  # from its first event to the end of the last
    steps: int = 0  # how many are marked in it
    step_ps: int = 0  # their median length
    device_ps: int = 0  # while a GPU worked
    loader_ps: int = 0  # how long the steps waited for a DataLoader
