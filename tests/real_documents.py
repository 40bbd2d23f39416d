"""Reports and documents for tests of the views: real analyses, at most with a field changed."""

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


def estimated(entry: Any, causes_ms: dict[str, int], *, traced: float = 0.03) -> Any:
    """The same run as if only a part had been traced: the whole was probably divided like this,
    give or take a fifth."""
    buckets_ps = dict.fromkeys(BUCKETS, 0)
    for cause, ms in causes_ms.items():
        buckets_ps[bucket_of(cause)] += ms * MS
    whole_ps = sum(buckets_ps.values())
    covered_ps = round(traced * whole_ps)
    untraced_ps = whole_ps - covered_ps
    exact_ps = dict.fromkeys(BUCKETS, 0) | {"compute": covered_ps, "unknown": untraced_ps}
    estimate = {
        "buckets_ps": buckets_ps,
        "causes_ps": {cause: ms * MS for cause, ms in causes_ms.items()},
        "one_time_ps": buckets_ps["compile"],
        "recurring_ps": whole_ps - buckets_ps["compile"],
        "ranges_ps": {
            bucket: {"low": ps * 4 // 5, "high": ps * 6 // 5} for bucket, ps in buckets_ps.items()
        },
        "rests_on": ["First step: its bounds are known.", "Steps: 1 profiled of 296."],
        "estimated_ps": untraced_ps,
        "profiled_steps": 1,
        "steps": 296,
    }
    return entry | {
        "window": entry["window"] | {"duration_ps": whole_ps, "covered_ps": covered_ps},
        "buckets_ps": exact_ps,
        "causes_ps": {"compute.step": covered_ps, "unknown.not_traced": untraced_ps},
        "one_time_ps": 0,
        "recurring_ps": whole_ps,
        "estimate": estimate,
    }


def finding(**changes: Any) -> Any:
    return sample("input_py_function")["findings"][0] | changes
