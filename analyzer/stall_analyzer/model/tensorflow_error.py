"""What the text of a TensorFlow error says beyond its reason: the op, and lines of the program."""

from __future__ import annotations

import re

from stall_analyzer.captures.stack_frames import Frame
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass

DETECTED = pattern(r"Detected at node '?(?P<op>[^'\s]+)'? defined at")
NODE = pattern(r"\[\[\{\{node (?P<op>[^}]+)\}\}")
LINE = pattern(r'^\s*File "(?P<path>.+)", line (?P<line>\d+), in (?P<function>.+)$', re.MULTILINE)
TRACEBACK = "Traceback (most recent call last)"
# An op that takes the next element: an error in it, or in a function below it, is the input's.
TAKES_NEXT = pattern(r"(^|/)(Iterator\w*GetNext\w*|OptionalFromValue|ReduceDataset)$")
BELOW_IT = pattern(r"\[\[Iterator\w*GetNext\w*\]\]")


@dataclass(frozen=True)
class TensorFlowError:
    op: str = ""  # the op that failed
    defined_at: Frame | None = None  # the user's line that created it
    raised_at: Frame | None = None  # the user's line, in a function that TensorFlow called
    of_input: bool = False


def read_error(text: str) -> TensorFlowError:
    detected, node = DETECTED.search(text), NODE.search(text)
    op = (detected or node)["op"] if detected or node else ""  # type: ignore[index]
    before, _, after = text.partition(TRACEBACK)
    defined = _users(before) if detected else []
    raised = _users(after)
    failed = node["op"] if node else op
    return TensorFlowError(
        op,
        defined[-1] if defined else None,
        raised[-1] if raised else None,
        bool(TAKES_NEXT.search(failed) or BELOW_IT.search(text)),
    )


def _users(text: str) -> list[Frame]:
    """Outermost first, as in a traceback."""
    frames = (Frame(m["path"], int(m["line"]), m["function"]) for m in LINE.finditer(text))
    return [frame for frame in frames if frame.is_users]
