"""What the reader of a report should know besides the answer."""

from __future__ import annotations

from stall_analyzer.model.kinds import Level
from stall_analyzer.model.records import dataclass


@dataclass(frozen=True)
class Note:
    """Something the reader of a report should know: what was missing, cut off or assumed."""

    level: Level
    text: str
    where: str = ""  # a file, host or tag; never needed to understand `text`
    may_pass: bool = False  # reading the same files again may give a different result
