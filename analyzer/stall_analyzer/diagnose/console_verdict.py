"""The verdict on a run whose console says how it ended."""

from __future__ import annotations

from stall_analyzer.model.findings import Verdict
from stall_analyzer.signals.ending.console_end import ConsoleEnd
from stall_analyzer.signals.signals import Signals

CONFIDENCE = 0.85  # the console log is next to the run; that it belongs to the run is an inference


def dead_by_console(signals: Signals) -> Verdict | None:
    """None if training was seen to finish an epoch, or if a capture knows more."""
    end = signals.console.end
    if end is None or signals.capture is not None or _finished_an_epoch(signals):
        return None
    sentence = f"Dead ({_how_far(signals, end)}): {end.words}."
    return Verdict("dead", end.bucket, sentence, CONFIDENCE)


def _finished_an_epoch(signals: Signals) -> bool:
    return signals.progress is not None and signals.progress.finished


def _how_far(signals: Signals, end: ConsoleEnd) -> str:
    if end.progress is not None and end.progress.step:
        return f"at {end.progress.words}"
    batches = signals.progress.batches if signals.progress is not None else 0
    if batches:
        return f"after {batches:,} logged batch{'' if batches == 1 else 'es'}"
    return "no epoch was finished" if signals.events is not None else "according to its console"
