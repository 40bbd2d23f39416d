"""What `stall-analyze try` tells the process of one trial run, and what the process answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tb_stall_plugin.capture.tried.changes import Knob


@dataclass(frozen=True)
class Order:
    folder: str  # a new folder for the answer, and for what callbacks write
    steps: int  # of the first epoch, at most
    seconds: float | None = None  # for these steps, at most
    knob: Knob | None = None  # the change; None for the program as it is
    value: int = 0
    logdir: str = ""  # where to write a capture, if any

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_text(text: str) -> Order:
        known = json.loads(text)
        return Order(**{**known, "knob": known["knob"] and Knob(known["knob"])})

    @property
    def answer_file(self) -> Path:
        return Path(self.folder, "answer.json")


@dataclass(frozen=True)
class Answer:
    """The answer of a trial run that reached its end, or that refused the change."""

    epoch_ps: int = 0  # from the beginning of the epoch to the last of its steps
    steps: int = 0
    loss: float | None = None
    refused: str = ""  # why the change cannot be made

    def write(self, order: Order) -> None:
        order.answer_file.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(order: Order) -> Answer | None:
        """None if the program ended before it could answer."""
        try:
            return Answer(**json.loads(order.answer_file.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None
