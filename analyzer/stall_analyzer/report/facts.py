"""A run's entry of the JSON document in short: what lists, tables and sums over many runs show.

A few kilobytes, whatever the run: thousands of them fit where one entry with all its steps would
fill the page. tb_stall_plugin/http_api.md describes the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]
Facts: TypeAlias = dict[str, Any]

OF_A_FINDING = (
    "id", "name", "bucket", "severity", "title", "lost_ps", "gain_ps", "later_gain_ps",
    "confidence",
)  # fmt: skip
# Buckets that a faster program would not have; the others are work, measuring, or not known.
LOST_BUCKETS = ("input", "compile", "memory", "numerics", "communication", "host")
ERRORS_KEPT = 3


def facts_of(entry: Json) -> Facts:
    window, verdict, later = entry["window"], entry["verdict"], entry["later_epochs"]
    return {
        "run": entry["run"],
        "attempt": entry["attempt"],
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
        "later_epochs": later["count"],
        "later_epoch_ps": later["median_ps"],
        "hosts": entry["hosts"],
        "sessions": entry["sessions"],
        "steps": len(entry["steps"]),
        "findings": [{name: found[name] for name in OF_A_FINDING} for found in entry["findings"]],
        "errors": [note["text"] for note in entry["notes"] if note["level"] == "error"][
            :ERRORS_KEPT
        ],
    }


def machines(facts: Json) -> int:
    """How many wait when the run waits; a run without a trace was at least one."""
    return max(1, len(facts["hosts"]))


def lost_in(buckets_ps: Mapping[str, int]) -> int:
    return sum(buckets_ps[bucket] for bucket in LOST_BUCKETS)


def lost_ps(facts: Json) -> int:
    """What the first epoch lost, on one machine."""
    return lost_in(facts["buckets_ps"])


def machine_loss_ps(facts: Json) -> int:
    """What it lost on all of them."""
    return machines(facts) * lost_ps(facts)


def shown_name(facts: Json) -> str:
    """With its attempt, where there were several."""
    name, attempt = facts["run"], facts["attempt"]
    return f"{name} (attempt {attempt})" if attempt > 1 else str(name)
