"""What the reader of a report must know besides the answer."""

from __future__ import annotations

from dataclasses import dataclass

from stall_analyzer.model.kinds import Level


@dataclass(frozen=True)
class Note:
    """Something the reader of a report must know: what was missing, cut or assumed."""

    level: Level
    text: str
    where: str = ""  # a file, host or tag; never needed to understand `text`
    may_pass: bool = False  # reading the same files again may give another result
