"""Lines of the user's own code, and what they cost."""

from __future__ import annotations

from stall_analyzer.captures.stack_frames import Frame
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.records import dataclass


@dataclass(frozen=True)
class CodeStack:
    """Python code that was seen running, the user's or a library's, and what it cost."""

    bucket: Bucket
    cause: str
    frames: tuple[Frame, ...]  # innermost first
    ps: int
    name: str = ""
    background: bool = False


@dataclass(frozen=True)
class CodeLine:
    """`ps` is part of the cause's time: measured for `name`, divided among lines by samples."""

    bucket: Bucket
    cause: str
    path: str
    line: int
    function: str
    ps: int
    source: str = ""  # as it was when it ran; empty if that was not recorded
    name: str = ""  # the callback's hook or the traced function that it is part of
    background: bool = False  # it ran in another thread while training waited
