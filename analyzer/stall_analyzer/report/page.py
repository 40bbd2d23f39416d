"""What the page asks for, as plain data: the tab gets it over HTTP, the one-file report holds it.

tb_stall_plugin/http_api.md describes every field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from stall_analyzer import __version__, manual
from stall_analyzer.capture import HOW_TO_CAPTURE

Json: TypeAlias = Mapping[str, Any]

WAITING, RUNNING, READY, FAILED = "waiting", "running", "ready", "failed"
# What the list of runs shows of a report; null until there is one.
KNOWN = (
    "status", "primary", "sentence", "confidence", "duration_ps", "covered_ps", "source", "epoch",
    "started_unix_ns", "buckets_ps", "causes_ps", "one_time_ps", "later_epoch_ps", "hosts",
    "sessions", "attempt", "findings",
)  # fmt: skip


def run_ids(names: Iterable[tuple[str, int]]) -> list[str]:
    """A name of its own for each run, given as name and attempt."""
    ids: dict[str, None] = {}
    for name, attempt in names:
        # A folder's name may be no text at all, and a browser could not send it back.
        text = name.encode("utf-8", "backslashreplace").decode()
        unique = text if attempt == 1 else f"{text} (attempt {attempt})"
        while unique in ids:  # a folder may be called like that
            unique += " (another)"
        ids[unique] = None
    return list(ids)


def runs_answer(
    runs: Sequence[Json], problems: Sequence[Json], logdir: str, profile_plugin: bool
) -> dict[str, Any]:
    return {
        "runs": list(runs),
        "problems": list(problems),
        "profile_plugin": profile_plugin,
        "logdir": logdir,
        "capture": HOW_TO_CAPTURE,
        "version": __version__,
    }


def report_answer(entry: Json, version: str, progress: Json | None = None) -> dict[str, Any]:
    return {
        "state": READY,
        "version": version,
        "progress": progress,
        "traces": entry.get("traces", []),
        "report": entry,
    }


def run_summary(
    run: str,
    state: str,
    known: Json | None = None,
    progress: Json | None = None,
    error: str | None = None,
) -> dict[str, Any]:
    """A line of the list of runs; `known` is what `known_of` says once there is a report."""
    blank = dict.fromkeys(KNOWN)
    return {"run": run, "state": state, "progress": progress, "error": error, **(known or blank)}


def known_of(entry: Json) -> dict[str, Any]:
    """The KNOWN of a run's entry."""
    window, verdict = entry["window"], entry["verdict"]
    findings = [
        {name: finding[name] for name in ("id", "severity", "title", "gain_ps")}
        for finding in entry["findings"]
    ]
    return {
        "status": verdict["status"],
        "primary": verdict["primary"],
        "sentence": verdict["sentence"],
        "confidence": verdict["confidence"],
        "duration_ps": window["duration_ps"],
        "covered_ps": window["covered_ps"],
        "source": window["source"],
        "epoch": window["epoch"],
        "started_unix_ns": window["start_unix_ns"],
        "buckets_ps": entry["buckets_ps"],
        "causes_ps": entry["causes_ps"],
        "one_time_ps": entry["one_time_ps"],
        "later_epoch_ps": entry["later_epochs"]["median_ps"],
        "hosts": entry["hosts"],
        "sessions": entry["sessions"],
        "attempt": entry["attempt"],
        "findings": findings,
    }


def manual_answer(page: manual.Page) -> dict[str, Any]:
    sections = [{"heading": heading, "text": text} for heading, text in page.sections]
    return {
        "id": page.id,
        "name": page.name,
        "title": page.summary,
        "bucket": page.bucket,
        "sections": sections,
    }
