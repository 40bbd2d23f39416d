"""The report in a notebook cell: verdict, where the time went, what to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from stall_analyzer.model.format import between, percent, seconds
from stall_analyzer.report.palette import BUCKET_COLOURS, STATUS_COLOURS

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import AllBuckets, FindingEntry, ReportEntry

MOST_FINDINGS = 5


def render(runs: Sequence[ReportEntry]) -> str:
    return "".join(piece for run in runs for piece in _run(run))


def _run(run: ReportEntry) -> Iterator[str]:
    verdict = run["verdict"]
    color = STATUS_COLOURS[verdict["status"]]
    yield f'<div style="border-left:4px solid {color};padding:2px 12px;margin:8px 0">'
    yield f"<b>{escape(run['run'])}</b><br>{escape(verdict['sentence'])}"
    yield from _bar(run["buckets_ps"], run["window"]["duration_ps"])
    shown = [found for found in run["findings"] if found["severity"] != "note"][:MOST_FINDINGS]
    if shown:
        yield f"<ul>{''.join(map(_finding, shown))}</ul>"
    yield "</div>"


def _bar(buckets_ps: AllBuckets, whole_ps: int) -> Iterator[str]:
    spent = [(bucket, ps) for bucket, ps in buckets_ps.items() if ps]
    yield '<div style="display:flex;height:14px;max-width:640px;margin:6px 0">'
    for bucket, ps in spent:
        label = f"{bucket} {seconds(ps)} ({percent(ps, whole_ps)})"
        style = f"flex:{ps / whole_ps:.6f};background:{BUCKET_COLOURS[bucket]}"
        yield f'<span title="{label}" style="{style}"></span>'
    yield "</div>"
    yield ", ".join(f"{bucket} {seconds(ps)}" for bucket, ps in spent)


def _finding(found: FindingEntry) -> str:
    gain = found["gain_ps"]
    saved = f" Saves {between(gain['low'], gain['high'])}." if gain["high"] else ""
    change = escape(found["change"]["text"])
    return f"<li><b>{found['id']}</b> {escape(found['title'])}. {change}{saved}</li>"
