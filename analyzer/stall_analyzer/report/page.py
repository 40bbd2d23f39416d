"""What the page asks for, as plain data: the tab gets it over HTTP, the one-file report holds it.

tb_stall_plugin/http_api.md describes every field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from stall_analyzer import __version__
from stall_analyzer.captures.how_to_capture import HOW_TO_CAPTURE
from stall_analyzer.detectors import manual
from stall_analyzer.report.fleet import Fleet

Json: TypeAlias = Mapping[str, Any]

# Of a run: nobody has asked for it, it waits for its turn, it is read, there is a result or none.
UNREAD, WAITING, RUNNING, READY, FAILED = "unread", "waiting", "running", "ready", "failed"
# What the list of runs shows of a report (report/facts.py); null until there is one.
KNOWN = (
    "attempt", "status", "primary", "sentence", "confidence", "duration_ps", "covered_ps", "source",
    "epoch", "started_unix_ns", "buckets_ps", "causes_ps", "one_time_ps", "later_epochs",
    "later_epoch_ps", "hosts", "sessions", "steps", "findings", "errors",
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
        "fleet": _sums([run for run in runs if run["state"] == READY]),
        "problems": list(problems),
        "profile_plugin": profile_plugin,
        "logdir": logdir,
        "capture": HOW_TO_CAPTURE,
        "version": __version__,
    }


def _sums(ready: Sequence[Json]) -> dict[str, Any]:
    """Over the runs with a result. They go by their names in the list, to be found there."""
    fleet = Fleet()
    for run in ready:
        fleet.add(run)
    return fleet.summary()


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
    """A line of the list of runs; `known` is what `facts_of` says once there is a report. `run` is
    its name in the list, which tells attempts apart."""
    facts = {name: known[name] if known else None for name in KNOWN}
    return {"run": run, "state": state, "progress": progress, "error": error, **facts}


def manual_answer(page: manual.Page) -> dict[str, Any]:
    sections = [{"heading": heading, "text": text} for heading, text in page.sections]
    return {
        "id": page.id,
        "name": page.name,
        "title": page.summary,
        "bucket": page.bucket,
        "sections": sections,
    }
