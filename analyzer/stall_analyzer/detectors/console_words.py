"""How a finding quotes the console of the job."""

from __future__ import annotations

from stall_analyzer.model.console_log import ConsoleWarning

LONGEST_QUOTE = 200


def quoted(warning: ConsoleWarning) -> str:
    """`The console says (job.err:12, 3 times): "…"`"""
    text = warning.line.text
    if len(text) > LONGEST_QUOTE:
        text = f"{text[:LONGEST_QUOTE]}…"
    times = f", {warning.count:,} times" if warning.count > 1 else ""
    return f'The console says ({warning.line.place}{times}): "{text}"'
