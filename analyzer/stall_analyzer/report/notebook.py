"""The report in a notebook cell: verdict, where the time went, what to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from stall_analyzer.model.format import between, percent, seconds
from stall_analyzer.report.facts import figures, shown_name
from stall_analyzer.report.palette import BUCKET_COLOURS, STATUS_COLOURS
from stall_analyzer.report.words import bucket_range, traced_exactly, undecided

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import EstimateEntry, FindingEntry, ReportEntry

MOST_FINDINGS = 5


def render(runs: Sequence[ReportEntry]) -> str:
    return "".join(piece for run in runs for piece in _run(run))


def _run(run: ReportEntry) -> Iterator[str]:
    verdict = run["verdict"]
    color = STATUS_COLOURS[verdict["status"]]
    yield f'<div style="border-left:4px solid {color};padding:2px 12px;margin:8px 0">'
    name = shown_name(run["run"], run["attempt"], run["folder"])
    yield f"<b>{escape(name)}</b><br>{escape(verdict['sentence'])}"
    yield f" <b>{undecided(run)}</b>" if undecided(run) else ""
    yield from _bar(run)
    if run["estimate"]:
        yield from _estimate(run, run["estimate"])
    shown = [found for found in run["findings"] if found["severity"] != "note"][:MOST_FINDINGS]
    if shown:
        yield f"<ul>{''.join(map(_finding, shown))}</ul>"
    yield "</div>"


def _bar(run: ReportEntry) -> Iterator[str]:
    whole_ps = run["window"]["duration_ps"]
    spent = [(bucket, ps) for bucket, ps in figures(run)["buckets_ps"].items() if ps]
    yield '<div style="display:flex;height:14px;max-width:640px;margin:6px 0">'
    for bucket, ps in spent:
        label = f"{bucket} {seconds(ps)} ({percent(ps, whole_ps)})"
        style = f"flex:{ps / whole_ps:.6f};background:{BUCKET_COLOURS[bucket]}"
        yield f'<span title="{label}" style="{style}"></span>'
    yield "</div>"
    ranges = {bucket: bucket_range(run, bucket) for bucket, _ in spent}
    yield ", ".join(
        f"{bucket} {seconds(ps)}" + (f" ({ranges[bucket]})" if ranges[bucket] else "")
        for bucket, ps in spent
    )


def _estimate(run: ReportEntry, estimate: EstimateEntry) -> Iterator[str]:
    yield f"<br>Estimated; {traced_exactly(run)}. What this rests on:"
    yield f"<ul>{''.join(f'<li>{escape(said)}</li>' for said in estimate['rests_on'])}</ul>"


def _finding(found: FindingEntry) -> str:
    gain = found["gain_ps"]
    saved = f" Saves {between(gain['low'], gain['high'])}." if gain["high"] else ""
    change = escape(found["change"]["text"])
    return f"<li><b>{found['id']}</b> {escape(found['title'])}. {change}{saved}</li>"
