"""Keras' own progress on a console: how far the training came."""

from __future__ import annotations

import re

from stall_analyzer.consoles.console_text import ConsoleText
from stall_analyzer.model.console_log import PrintedProgress

EPOCH = re.compile(r"(?:^|[\n\r])Epoch (?P<epoch>\d+)/(?P<epochs>\d+)[ \t]*(?=[\n\r]|$)")
# "12/20 [====>...]" of Keras 2, "12/20 ━━━" of Keras 3, "20/20 - 1s" with verbose=2.
STEP = re.compile(
    r"(?:^|[\n\r]) *(?P<step>\d+)/(?P<steps>\d+|Unknown) (?=\[[=>.]|[━ ]*\d*━|- \d|[━ ]+\d+m?s )"
    r"(?P<rest>[^\n\r]*)"
)
NAN = re.compile(r"\bloss: nan\b")
# The last states of a bar are enough: each of them is some dozens of characters.
LOOK_BACK = 256 << 10


def printed_progress(console: ConsoleText) -> tuple[PrintedProgress | None, int]:
    """The last state, and where it stands; -1 where there is none."""
    begin = max(len(console.text) - LOOK_BACK, 0)
    step = epoch = None
    for step in STEP.finditer(console.text, begin):  # noqa: B007  the last one is wanted
        pass
    if step is None:
        for step in STEP.finditer(console.text):  # noqa: B007
            pass
    for epoch in EPOCH.finditer(console.text):  # noqa: B007
        pass
    at = max(step.start() if step else -1, epoch.start() if epoch else -1)
    number, epochs = (int(epoch["epoch"]), int(epoch["epochs"])) if epoch else (None, None)
    if step is None or (epoch is not None and epoch.start() > step.start()):
        return (PrintedProgress(number, epochs, 0, None) if epoch else None), at
    steps = int(step["steps"]) if step["steps"].isdecimal() else None
    is_nan = NAN.search(step["rest"]) is not None
    return PrintedProgress(number, epochs, int(step["step"]), steps, is_nan), at
