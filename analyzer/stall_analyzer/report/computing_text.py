"""What a healthy run computes, and what could make it faster, for terminals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stall_analyzer.model.format import percent
from stall_analyzer.report.terminal import Terminal

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import ModelPartEntry, ReportEntry

PARTS_SHOWN = 3
HELPS = {True: "worth trying", False: "saves little", None: "depends"}
LEAST_SHARE = 20  # a part is named if it takes at least 1/20 of the ops' time


def show_computing(terminal: Terminal, run: ReportEntry) -> None:
    computing = run["computing"]
    if computing is None:
        return
    terminal.gap()
    terminal.line(terminal.text("what it computes", "bold"))
    for what, parts in (("layers", computing["layers"]), ("ops", computing["kinds"])):
        listed = _largest(parts, computing["ops_ps"])
        terminal.line(terminal.text(f"{what}: {listed}"), indent=2)
    for step in computing["next_steps"]:
        helps = HELPS[step["helps"]]
        terminal.line(
            terminal.text(f"{step['topic']}: {helps}. ", "" if step["helps"] else "dim"),
            terminal.text(step["text"], "dim"),
            indent=2,
        )


def _largest(parts: Sequence[ModelPartEntry], whole_ps: int) -> str:
    shown = [part for part in parts[:PARTS_SHOWN] if part["ps"] * LEAST_SHARE >= whole_ps]
    return ", ".join(f"{part['name']} {percent(part['ps'], whole_ps)}" for part in shown)
