"""Keras's own progress on a console: how far training got."""

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
# In every state of a bar, and quickly found when searching backward.
HINTS = ("/step", "ETA: ", " - loss: ")
LOOK_BACK = 64 << 10  # characters before such a hint; one state of the bar is a few dozen


def printed_progress(console: ConsoleText) -> tuple[PrintedProgress | None, int]:
    """The last state, and where it is; -1 if there is none."""
    text = console.text
    step = _last(STEP, text, max(text.rfind(hint) for hint in HINTS))
    epoch = _last(EPOCH, text, text.rfind("Epoch "))
    at = max(step.start() if step else -1, epoch.start() if epoch else -1)
    number, epochs = (int(epoch["epoch"]), int(epoch["epochs"])) if epoch else (None, None)
    if step is None or (epoch is not None and epoch.start() > step.start()):
        return (PrintedProgress(number, epochs, 0, None) if epoch else None), at
    steps = int(step["steps"]) if step["steps"].isdecimal() else None
    is_nan = NAN.search(step["rest"]) is not None
    return PrintedProgress(number, epochs, int(step["step"]), steps, is_nan), at


def _last(pattern: re.Pattern[str], text: str, hint: int) -> re.Match[str] | None:
    found = None
    if hint >= 0:
        for match in pattern.finditer(text, max(hint - LOOK_BACK, 0)):
            found = match
    return found
