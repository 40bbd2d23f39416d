"""Reports and documents for the tests of the views: real analyses, at most with a field changed."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from stall_analyzer.discover.discover import discover
from stall_analyzer.model.causes import BUCKETS, bucket_of
from stall_analyzer.model.findings import Report
from stall_analyzer.pipeline import analyze
from stall_analyzer.report import document as written

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = json.loads((ROOT / "analyzer/stall_analyzer/report/schema.json").read_text("utf-8"))
SAMPLES = sorted(path.parent for path in (ROOT / "sample_logs").glob("*/expected.json"))
MS = 1_000_000_000


def analyzed(folder: Path | str) -> Report:
    (run,) = discover([str(folder)]).runs
    return analyze(run)


@cache
def report_of(sample: str) -> Report:
    return analyzed(ROOT / "sample_logs" / sample)


@cache
def _entry_of(sample: str) -> Any:
    return written.run_document(report_of(sample))


def sample(name: str, **changes: Any) -> Any:
    """The entry of a sample log, under its name."""
    return deepcopy(_entry_of(name)) | {"run": name} | changes


def every_sample() -> Any:
    return written.document([sample(folder.name) for folder in SAMPLES])


def document(*entries: Any, **changes: Any) -> Any:
    return written.document(list(entries)) | changes


def divided(
    name: str,
    causes_ms: dict[str, int],
    *,
    status: str = "slow_always",
    primary: str = "input",
    later_ms: int | None = None,
    **changes: Any,
) -> Any:
    """A sample's entry with other times."""
    entry = sample("input_py_function", run=name, findings=[])
    buckets_ps = dict.fromkeys(BUCKETS, 0)
    for cause, ms in causes_ms.items():
        buckets_ps[bucket_of(cause)] += ms * MS
    entry["window"]["duration_ps"] = sum(buckets_ps.values())
    entry["verdict"] |= {"status": status, "primary": primary}
    entry["buckets_ps"] = buckets_ps
    entry["causes_ps"] = {cause: ms * MS for cause, ms in causes_ms.items()}
    entry["later_epochs"]["median_ps"] = later_ms and later_ms * MS
    return entry | changes


def finding(**changes: Any) -> Any:
    return sample("input_py_function")["findings"][0] | changes
