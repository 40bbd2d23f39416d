"""Finds the captures that the other scenarios left, and what is known of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.scenarios.partial.cut import LeftOut
from tests.scenarios.partial.score import Truth
from tests.scenarios.score import PS_PER_S, as_clocked, right_primary

FORMS = ("faulty", "fixed")
# Their truth is not the time of one process: who was late, and what a debugger's dump shows.
OTHER_GROUPS = frozenset({"cluster", "numerics_dumps"})
ENOUGH_COVERED = 0.9  # of the window, for a ledger to count as known


@dataclass(frozen=True)
class Program:
    """One capture. `name` decides the half; both forms of a fault have the same."""

    name: str
    logs: Path
    form: str = ""
    truth: Path | None = None  # None: the analysis of the full log is the truth
    reason: str = ""  # why it is left out

    @property
    def title(self) -> str:
        return f"{self.name}.{self.form}" if self.form else self.name


def ledger_programs(folder: Path) -> Iterator[Program]:
    for truth in sorted(folder.glob("*/truth.json")):
        yield Program(truth.parent.name, truth.parent / "logs", truth=truth)


def fault_programs(folder: Path) -> Iterator[Program]:
    captures = [path for path in sorted(folder.glob("*/*/logs")) if path.parent.name in FORMS]
    groups = _groups() if captures else {}
    for logs in captures:
        name, group = logs.parent.parent.name, groups.get(logs.parent.parent.name, "none any more")
        known = group in groups.values() and group not in OTHER_GROUPS
        reason = "" if known else f"of the group {group}"
        yield Program(name, logs, logs.parent.name, reason=reason)


def _groups() -> Mapping[str, str]:
    from tests.scenarios.faults.table import all_faults  # noqa: PLC0415 (imports TensorFlow)

    return {name: group for name, (group, _) in all_faults().items()}


def known_truth(content: Mapping[str, Any]) -> Truth:
    """From the clocks that ran inside the program."""
    epoch_s = (content["epoch_end_unix_ns"] - content["epoch_start_unix_ns"]) / 1e9
    return Truth(right_primary(content), content["buckets_s"], epoch_s)


def truth_from_ledger(run: Mapping[str, Any]) -> Truth:
    """From the analysis of the full log, if it covers the epoch."""
    window, primary = run["window"], run["verdict"]["primary"]
    whole_ps = window["duration_ps"]
    if not whole_ps or window["covered_ps"] < ENOUGH_COVERED * whole_ps:
        share = window["covered_ps"] / whole_ps if whole_ps else 0.0
        raise LeftOut(f"only {share:.0%} of its epoch are in the full log's trace")
    if primary == "unknown":
        raise LeftOut("even from its full log no primary bucket is known")
    # What the full log wrote by batch is in the epoch's time, and in no ordinary log.
    return Truth(primary, as_clocked(run), whole_ps / PS_PER_S)


def truth_file(path: Path) -> Truth:
    return known_truth(json.loads(path.read_text()))
