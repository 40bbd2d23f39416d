"""The report as Markdown, for issues and chat: what went wrong, what it costs, what to change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stall_analyzer.model.format import percent, seconds
from stall_analyzer.report.facts import by_size, figures, shown_name
from stall_analyzer.report.words import (
    bucket_range,
    causes_in,
    code_cost,
    code_place,
    costly_lines,
    epoch_times,
    first_epoch,
    forecast,
    main_cost,
    traced_share,
    undecided,
    worth,
)

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import (
        CodeLineEntry,
        Document,
        EstimateEntry,
        FindingEntry,
        NoteEntry,
        PlanEntry,
        ReportEntry,
    )

SHOWN_IN_FULL = 3  # the other findings get one line each
CAUSES_SHOWN = 3
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
        status = run["verdict"]["status"].replace("_", " ")
        yield f"| {_name(run)} | {status} | {first_epoch(run)} | {main_cost(run)} |"


def _run(run: ReportEntry) -> Iterator[str]:
    yield f"## {_name(run)}"
    yield ""
    yield f"**{plain(run['verdict']['sentence'])}**"
    if undecided(run):
        yield ""
        yield f"Undecided: {undecided(run)}"
    if run["window"]["duration_ps"]:
        yield ""
        yield _window(run)
        yield ""
        yield from _buckets(run)
        if run["estimate"]:
            yield ""
            yield from _estimate(run, run["estimate"])
    for finding in run["findings"][:SHOWN_IN_FULL]:
        yield ""
        yield from _finding(finding)
    rest = run["findings"][SHOWN_IN_FULL:]
    if rest:
        yield ""
        yield from (f"- {f['severity']} `{f['id']}` {plain(f['title'])}" for f in rest)
    if costly_lines(run):
        yield ""
        yield from _lines(costly_lines(run))
    if run["plan"]:
        yield ""
        yield _plan(run["plan"])
    if run["notes"]:
        yield ""
        yield from _notes(run["notes"])


def _name(run: ReportEntry) -> str:
    return plain(shown_name(run["run"], run["attempt"], run["folder"]))


def _window(run: ReportEntry) -> str:
    window = run["window"]
    parts = [
        *epoch_times(run),
        f"traced {percent(window['covered_ps'], window['duration_ps'])}",
        f"confidence {100 * run['verdict']['confidence']:.0f}%",
    ]
    line = " · ".join(parts)
    return line[0].upper() + line[1:]


def _buckets(run: ReportEntry) -> Iterator[str]:
    window_ps = run["window"]["duration_ps"]
    time = "time, estimated" if run["estimate"] else "time"
    yield f"| bucket | {time} | share | | mostly |"
    yield "|---|---:|---:|---|---|"
    for bucket, ps in by_size(figures(run)["buckets_ps"]):
        causes = causes_in(run, bucket)[:CAUSES_SHOWN]
        mostly = ", ".join(f"{cause} {seconds(cause_ps)}" for cause, cause_ps in causes)
        bar = "█" * max(round(BAR_CELLS * ps / window_ps), 0)
        share, between = percent(ps, window_ps), bucket_range(run, bucket)
        known = f"{seconds(ps)} ({between})" if between else seconds(ps)
        yield f"| {bucket} | {known} | {share} | {bar} | {mostly} |"


def _estimate(run: ReportEntry, estimate: EstimateEntry) -> Iterator[str]:
    yield f"This is an estimate: {traced_share(run)}. It is based on:"
    yield ""
    yield from (f"- {plain(sentence)}" for sentence in estimate["rests_on"])


def _finding(finding: FindingEntry) -> Iterator[str]:
    change = finding["change"]
    yield f"### {finding['severity']} `{finding['id']}` {plain(finding['title'])}"
    yield ""
    if worth(finding):
        yield f"*{worth(finding)}*"
        yield ""
    yield plain(finding["explanation"])
    yield ""
    yield plain(change["text"])
    if change["before"] or change["after"] or finding["lines"]:
        yield ""
        yield from _code(change["before"], change["after"], finding["lines"])


def _lines(lines: Sequence[CodeLineEntry]) -> Iterator[str]:
    yield "Where in your code:"
    yield ""
    for line in lines:
        yield f"- {line['cause']}: {plain(code_place(line))}, {code_cost(line)}"


def _code(before: str, after: str, yours: Sequence[CodeLineEntry]) -> Iterator[str]:
    """A diff below the user's own lines, in a fence that nothing inside can close."""
    lines = []
    for line in yours:
        lines.append(f"@@ {code_place(line)}: {code_cost(line)} @@")
        lines += [f"  {line['source']}"] if line["source"] else []
    lines += [f"- {line}" for line in before.splitlines()]
    lines += [f"+ {line}" for line in after.splitlines()]
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}diff", *lines, fence)


def _plan(plan: PlanEntry) -> str:
    first, later = plan["first_epoch_ps"], plan["later_epoch_ps"]
    line = f"With {', '.join(plan['findings'])} done: first epoch {forecast(first, '→')}"
    return f"**{line}, later epochs {forecast(later, '→')}**" if later else f"**{line}**"


def _notes(notes: Sequence[NoteEntry]) -> Iterator[str]:
    for note in notes:
        where = f" ({plain(note['where'])})" if note["where"] else ""
        yield f"- {note['level']}: {plain(note['text'])}{where}"


def plain(text: str) -> str:
    """Text that Markdown and HTML leave alone, on one line: names come from log files."""
    one_line = " ".join(text.split())
    escaped = re.sub(r"[\\`*\[\]|~#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\\g<0>", one_line)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
