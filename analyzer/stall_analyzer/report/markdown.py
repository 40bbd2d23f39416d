"""The report as Markdown, for issues and chat: what went wrong, what it costs, what to change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stall_analyzer.model.format import between, percent, seconds
from stall_analyzer.report.facts import by_size, shown_name
from stall_analyzer.report.findings_text import gain_in_words

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import (
        Document,
        FindingEntry,
        ForecastEntry,
        NoteEntry,
        PlanEntry,
        ReportEntry,
    )

SHOWN_IN_FULL = 3  # the rest of the findings get a line each
CAUSES_SHOWN = 3
CAUSE_FROM_SHARE = 200  # a cause below 1/200 of the window is not worth a word
BAR_CELLS = 20


def render(document: Document) -> str:
    runs = document["runs"]
    lines: list[str] = []
    if len(runs) > 1:
        lines += [*_overview(runs), ""]
    for run in runs:
        lines += [*_run(run), ""]
    lines += _notes(document["notes"])
    return "\n".join(lines).strip() + "\n"


def _overview(runs: list[ReportEntry]) -> Iterator[str]:
    yield f"## {len(runs)} runs"
    yield ""
    yield "| run | verdict | first epoch | main cost |"
    yield "|---|---|---:|---|"
    for run in runs:
        window_ps, primary = run["window"]["duration_ps"], run["verdict"]["primary"]
        cost = f"{primary} {percent(run['buckets_ps'][primary], window_ps)}" if window_ps else "–"
        status = run["verdict"]["status"].replace("_", " ")
        yield f"| {_name(run)} | {status} | {seconds(window_ps)} | {cost} |"


def _run(run: ReportEntry) -> Iterator[str]:
    yield f"## {_name(run)}"
    yield ""
    yield f"**{plain(run['verdict']['sentence'])}**"
    if run["window"]["duration_ps"]:
        yield ""
        yield _window(run)
        yield ""
        yield from _buckets(run)
    for finding in run["findings"][:SHOWN_IN_FULL]:
        yield ""
        yield from _finding(finding)
    rest = run["findings"][SHOWN_IN_FULL:]
    if rest:
        yield ""
        yield from (f"- {f['severity']} `{f['id']}` {plain(f['title'])}" for f in rest)
    if run["plan"]:
        yield ""
        yield _plan(run["plan"])
    if run["notes"]:
        yield ""
        yield from _notes(run["notes"])


def _name(run: ReportEntry) -> str:
    name = "the log directory" if run["run"] == "." else plain(run["run"])
    return shown_name(name, run["attempt"])


def _window(run: ReportEntry) -> str:
    window, later_ps = run["window"], run["later_epochs"]["median_ps"]
    parts = [f"First epoch {seconds(window['duration_ps'])}"]
    if later_ps is not None:
        parts.append(f"later epochs {seconds(later_ps)}")
    if window["covered_ps"]:
        parts.append(f"one-time {seconds(run['one_time_ps'])}")
        parts.append(f"recurring {seconds(run['recurring_ps'])}")
    parts.append(f"traced {percent(window['covered_ps'], window['duration_ps'])}")
    parts.append(f"confidence {100 * run['verdict']['confidence']:.0f} %")
    return " · ".join(parts)


def _buckets(run: ReportEntry) -> Iterator[str]:
    window_ps = run["window"]["duration_ps"]
    yield "| bucket | time | share | | mostly |"
    yield "|---|---:|---:|---|---|"
    for bucket, ps in by_size(run["buckets_ps"]):
        causes = [
            (cause, cause_ps)
            for cause, cause_ps in by_size(run["causes_ps"])
            if cause.startswith(f"{bucket}.") and cause_ps >= window_ps // CAUSE_FROM_SHARE
        ]
        words = (
            f"{cause.partition('.')[2].replace('_', ' ')} {seconds(cause_ps)}"
            for cause, cause_ps in causes[:CAUSES_SHOWN]
        )
        bar = "█" * max(round(BAR_CELLS * ps / window_ps), 0)
        share = percent(ps, window_ps)
        yield f"| {bucket} | {seconds(ps)} | {share} | {bar} | {', '.join(words)} |"


def _finding(finding: FindingEntry) -> Iterator[str]:
    change = finding["change"]
    yield f"### {finding['severity']} `{finding['id']}` {plain(finding['title'])}"
    yield ""
    cost = f"costs {seconds(finding['lost_ps'])}" if finding["lost_ps"] else ""
    worth = "; ".join(part for part in (cost, gain_in_words(finding)) if part)
    if worth:
        yield f"*{worth}*"
        yield ""
    yield plain(finding["explanation"])
    yield ""
    yield plain(change["text"])
    if change["before"] or change["after"]:
        yield ""
        yield from _code(change["before"], change["after"])


def _code(before: str, after: str) -> Iterator[str]:
    """As a diff, in a fence that nothing inside can close."""
    lines = [f"- {line}" for line in before.splitlines()]
    lines += [f"+ {line}" for line in after.splitlines()]
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}diff", *lines, fence)


def _plan(plan: PlanEntry) -> str:
    first, later = plan["first_epoch_ps"], plan["later_epoch_ps"]
    line = f"With {', '.join(plan['findings'])} done: first epoch {_forecast(first)}"
    return f"**{line}, later epochs {_forecast(later)}**" if later else f"**{line}**"


def _forecast(forecast: ForecastEntry) -> str:
    if forecast["low"] == forecast["now"]:
        return f"{seconds(forecast['now'])} as now"
    return f"{seconds(forecast['now'])} → {between(forecast['low'], forecast['high'])}"


def _notes(notes: Sequence[NoteEntry]) -> Iterator[str]:
    for note in notes:
        where = f" ({plain(note['where'])})" if note["where"] else ""
        yield f"- {note['level']}: {plain(note['text'])}{where}"


def plain(text: str) -> str:
    """Text that Markdown and HTML leave as it is, on one line: names come out of log files."""
    one_line = " ".join(text.split())
    escaped = re.sub(r"[\\`*\[\]|~#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\\g<0>", one_line)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
