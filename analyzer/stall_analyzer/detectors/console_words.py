"""How a finding quotes the job's console."""

from __future__ import annotations

from stall_analyzer.model.console_log import ConsoleWarning
from stall_analyzer.model.format import moment

LONGEST_QUOTE = 200


def quoted(warning: ConsoleWarning) -> str:
    """`The console says (job.err:12 at 14:02:31, 3 times): "…"`"""
    text, at_ns = warning.line.text, warning.line.unix_ns
    if len(text) > LONGEST_QUOTE:
        text = f"{text[:LONGEST_QUOTE]}…"
    times = f", {warning.count:,} times" if warning.count > 1 else ""
    at = f" at {moment(at_ns)}" if at_ns is not None else ""
    return f'The console says ({warning.line.place}{at}{times}): "{text}"'
