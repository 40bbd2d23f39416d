"""The findings in a terminal: what to change, what it saves, and what all changes save together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stall_analyzer.model.format import seconds
from stall_analyzer.report.palette import BUCKET_COLORS
from stall_analyzer.report.terminal import Terminal
from stall_analyzer.report.words import code_cost, code_place, forecast, may_enjoy, worth

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import (
        CodeLineEntry,
        FindingEntry,
        PlanEntry,
        ReportEntry,
    )

# More code than this would hide the plan; the rest is in the JSON document and in the tab.
SHOWN_IN_FULL = 2
SEVERITY_STYLES = {"act": "bold", "consider": "", "note": "dim"}


def show_findings(terminal: Terminal, run: ReportEntry) -> None:
    findings = run["findings"]
    if not findings:
        if may_enjoy(run):
            terminal.gap()
            terminal.line(terminal.text("Nothing to change: no findings. Enjoy your training."))
        return
    terminal.gap()
    terminal.line(terminal.text("findings", "bold"))
    for finding in findings[:SHOWN_IN_FULL]:
        _in_full(terminal, finding)
    plan = run["plan"]
    _in_short(terminal, findings[SHOWN_IN_FULL:], plan["findings"] if plan else ())
    if plan:
        _plan(terminal, plan)
    more = f"stall-analyze --explain {findings[0]['id']} explains how this is found and measured"
    terminal.line(terminal.text(more, "dim"), indent=2)


def _in_full(terminal: Terminal, finding: FindingEntry) -> None:
    change = finding["change"]
    _title(terminal, finding)
    if worth(finding):
        terminal.line(terminal.text(worth(finding), "dim"), indent=4)
    for yours in finding["lines"]:
        show_line(terminal, yours, indent=4)
    for frame in finding["stack"]:
        terminal.frame(frame, indent=6)
    terminal.line(terminal.text(change["text"]), indent=4)
    for sign, code in (("-", change["before"]), ("+", change["after"])):
        for line in code.splitlines():
            terminal.code(line.expandtabs(4), sign, indent=6)


def show_line(terminal: Terminal, line: CodeLineEntry, indent: int) -> None:
    """A line of the user's code: where it is, how long it took, and its text."""
    place = terminal.text(code_place(line), "bold")
    terminal.line(place, terminal.text(f": {code_cost(line)}"), indent=indent)
    if line["source"]:
        terminal.code(line["source"].expandtabs(4), " ", indent=indent + 2)


def _title(terminal: Terminal, finding: FindingEntry, more: str = "") -> None:
    severity = finding["severity"]
    terminal.rows(
        [
            [
                terminal.text(f"{severity:8}", SEVERITY_STYLES[severity]),
                terminal.text(finding["id"], BUCKET_COLORS[finding["bucket"]]),
                terminal.text(finding["title"] + more, SEVERITY_STYLES[severity]),
            ]
        ],
        indent=2,
    )


def _in_short(terminal: Terminal, findings: Sequence[FindingEntry], planned: Sequence[str]) -> None:
    """In one line; with the change to make if it is in the plan."""
    for finding in findings:
        lost = finding["lost_ps"]
        _title(terminal, finding, f" (costs {seconds(lost)})" if lost else "")
        if finding["id"] in planned:
            terminal.line(terminal.text(finding["change"]["text"]), indent=4)


def _plan(terminal: Terminal, plan: PlanEntry) -> None:
    ids = plan["findings"]
    done = f"with {', '.join(ids)} done" + (", in this order" if len(ids) > 1 else "")
    line = f"{done}: first epoch {forecast(plan['first_epoch_ps'], '->')}"
    later = plan["later_epoch_ps"]
    if later:
        line += f", later epochs {forecast(later, '->')}"
    terminal.line(terminal.text(line, "bold"), indent=2)
