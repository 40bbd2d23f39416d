"""The report in a notebook cell: verdict, where the time went, what to change.

One piece of HTML without its own scripts, style sheets or fonts: Jupyter, VS Code and Colab show it
as it is. Text has the color of the notebook, light or dark; only bars have their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from stall_analyzer.model.format import counted, percent, seconds
from stall_analyzer.report.facts import figures, shown_name
from stall_analyzer.report.palette import BUCKET_COLORS, STATUS_COLORS
from stall_analyzer.report.words import (
    bucket_range,
    code_cost,
    code_place,
    epoch_times,
    traced_share,
    undecided,
    worth,
)

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import EstimateEntry, FindingEntry, ReportEntry

MOST_FINDINGS = 5
MOST_RUNS = 10  # a cell has no room for more
MOST_LINES = 3  # of the user's code, for each finding
_RUN = "padding:2px 12px;margin:8px 0;max-width:60em"
# Semitransparent gray is visible on any background.
_CODE = "margin:4px 0;padding:6px 8px;background:rgba(128,128,128,.15);overflow-x:auto"
_SWATCH = "display:inline-block;width:.7em;height:.7em;margin-right:.3em"


def render(runs: Sequence[ReportEntry]) -> str:
    pieces = [piece for run in runs[:MOST_RUNS] for piece in _run(run)]
    left_out = len(runs) - MOST_RUNS
    if left_out > 0:
        pieces.append(f"<p>Not shown: {counted(left_out, 'more run')}. Choose one by name.</p>")
    return "".join(pieces)


def _run(run: ReportEntry) -> Iterator[str]:
    verdict = run["verdict"]
    color = STATUS_COLORS[verdict["status"]]
    yield f'<div style="{_RUN};border-left:4px solid {color}">'
    name = shown_name(run["run"], run["attempt"], run["folder"])
    yield f"<b>{escape(name)}</b><br>{escape(verdict['sentence'])}"
    yield f" <b>{undecided(run)}</b>" if undecided(run) else ""
    yield from _bar(run)
    if run["estimate"]:
        yield from _estimate(run, run["estimate"])
    shown = [found for found in run["findings"] if found["severity"] != "note"][:MOST_FINDINGS]
    for found in shown:
        yield from _finding(found, is_open=found is shown[0])
    yield "</div>"


def _bar(run: ReportEntry) -> Iterator[str]:
    whole_ps = run["window"]["duration_ps"]
    spent = [(bucket, ps) for bucket, ps in figures(run)["buckets_ps"].items() if ps]
    words = [f"{bucket} {seconds(ps)} ({percent(ps, whole_ps)})" for bucket, ps in spent]
    yield f'<div role="img" aria-label="{escape(", ".join(words))}"'
    yield ' style="display:flex;height:14px;margin:6px 0">'
    for (bucket, ps), label in zip(spent, words, strict=True):
        style = f"flex:{ps / whole_ps:.6f};background:{BUCKET_COLORS[bucket]}"
        yield f'<span title="{label}" style="{style}"></span>'
    yield "</div>"
    for bucket, ps in spent:
        between = bucket_range(run, bucket)
        yield f'<span style="white-space:nowrap;margin-right:1em"><span style="{_SWATCH};'
        yield f'background:{BUCKET_COLORS[bucket]}"></span>{bucket} {seconds(ps)}'
        yield f" ({between})</span> " if between else "</span> "
    yield f"<br>{escape(', '.join(epoch_times(run)))}" if whole_ps else ""


def _estimate(run: ReportEntry, estimate: EstimateEntry) -> Iterator[str]:
    yield f"<br>This is an estimate: {traced_share(run)}. It is based on:"
    yield f"<ul>{''.join(f'<li>{escape(said)}</li>' for said in estimate['rests_on'])}</ul>"


def _finding(found: FindingEntry, is_open: bool) -> Iterator[str]:
    yield f'<details style="margin:6px 0"{" open" if is_open else ""}>'
    yield f"<summary><b>{found['id']}</b> {escape(found['title'])}</summary>"
    yield f"<div>{escape(found['change']['text'])}</div>"
    yield f"<div>{escape(_sentence(worth(found)))}</div>" if worth(found) else ""
    for line in found["lines"][:MOST_LINES]:
        yield f"<div><code>{escape(code_place(line))}</code>: {escape(code_cost(line))}</div>"
    change = found["change"]
    for sign, code in (("−", change["before"]), ("+", change["after"])):
        if code:
            lines = "\n".join(f"{sign} {line}" for line in code.splitlines())
            yield f'<pre style="{_CODE}">{escape(lines)}</pre>'
    yield "</details>"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
