"""Compares the analyzer's answers with the truth of the scenarios.

Misattributed time is half the sum over buckets of |truth - recovered|: a second that moved from one
bucket to another counts once. A window that is too long or too short counts as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from tests.contradictions import contradictions, report
from tests.scenarios.runner import ROOT

PS_PER_S = 1e12
NS_PER_MS = 1e6
ANALYZER_TIMEOUT_S = 120

LIMIT = {"graph": 0.02, "eager": 0.05, "memory": 0.05}  # of the epoch, for every scenario
MEDIAN_LIMIT = 0.01  # of the epoch, over all scenarios


ACTIONABLE = ("input", "compile", "memory", "numerics", "communication", "host")
TIE = 0.02  # of the epoch: what the truth itself cannot tell apart
# Of the epoch: from here on a run is not "as fast as its model". What happens once must be more.
ENOUGH, ENOUGH_ONCE = 0.20, 0.25

# Older truths have no clocks around the logging; what the tracer takes of each op, and a capture
# between the steps, has none.
CLOCKED_AS = {
    "profiler.logging": "host",
    "profiler.tracing": "compute",
    "profiler.capture": "host",
}


@dataclass(frozen=True)
class Score:
    name: str
    mode: str
    epoch_s: float
    truth_s: dict[str, float]
    recovered_s: dict[str, float]
    misattributed: float  # share of the epoch
    begin_error_ms: float
    end_error_ms: float
    expected_primary: str
    primary: str
    ledger_exact: bool
    problem: str = ""  # why there is no answer at all
    contradictions: tuple[str, ...] = ()  # of its page with itself

    @property
    def passed(self) -> bool:
        right = self.primary == self.expected_primary and self.ledger_exact
        return right and self.misattributed <= LIMIT[self.mode] and not self.problem


def score(folder: Path) -> Score:
    """Runs the analyzer on one captured scenario."""
    truth = json.loads((folder / "truth.json").read_text())
    try:
        run = analyze(folder / "logs")
        return replace(compare(truth, run), contradictions=tuple(contradictions(run)))
    except (KeyError, IndexError, ValueError, OSError, subprocess.SubprocessError) as error:
        return _unanswered(truth, f"{type(error).__name__}: {error}")


def as_clocked(entry: Mapping[str, Any], logging_is_clocked: bool = False) -> dict[str, float]:
    """Seconds per bucket as the clocks of a program see them: they lie around what it does, traced
    as it is, and logged, where the logging has no clocks of its own."""
    recovered = {bucket: ps / PS_PER_S for bucket, ps in entry["buckets_ps"].items()}
    causes_ps = entry.get("causes_ps", {})
    for cause, around in CLOCKED_AS.items():
        if cause in causes_ps and not (logging_is_clocked and cause == "profiler.logging"):
            recovered["profiler"] -= causes_ps[cause] / PS_PER_S
            recovered[around] += causes_ps[cause] / PS_PER_S
    return recovered


def compare(truth: Mapping[str, Any], run: Mapping[str, Any]) -> Score:
    """The truth of a scenario against one run of the analyzer's JSON document."""
    begin_ns, end_ns = truth["epoch_start_unix_ns"], truth["epoch_end_unix_ns"]
    epoch_s = (end_ns - begin_ns) / 1e9
    window = run["window"]
    recovered = as_clocked(run, logging_is_clocked="logging_ns" in truth)
    known = truth["buckets_s"]
    # Whatever one side has and the other lacks is an error too, so both names count.
    differences = [abs(known.get(b, 0.0) - recovered.get(b, 0.0)) for b in {*known, *recovered}]
    start_ns = window["start_unix_ns"] or 0
    stop_ns = start_ns + window["duration_ps"] // 1000
    return Score(
        name=truth["name"],
        mode=truth["mode"],
        epoch_s=epoch_s,
        truth_s=dict(known),
        recovered_s=recovered,
        misattributed=sum(differences) / 2 / epoch_s,
        begin_error_ms=(start_ns - begin_ns) / NS_PER_MS,
        end_error_ms=(stop_ns - end_ns) / NS_PER_MS,
        expected_primary=right_primary(truth),
        primary=str(run["verdict"]["primary"]),
        ledger_exact=_ledger_exact(run),
    )


def right_primary(truth: Mapping[str, Any]) -> str:
    """The bucket that the verdict must name, by the clocks of the run itself.

    Usually the one that the scenario was made for. But other load on the machine stretches tracing
    and computing and leaves sleeps alone, and then another bucket may really cost most.
    """
    meant, seconds = str(truth["expected_primary"]), truth["buckets_s"]
    if meant == "numerics":
        return meant  # a run that learns nothing is that, whatever its time went to
    epoch_s = (truth["epoch_end_unix_ns"] - truth["epoch_start_unix_ns"]) / 1e9
    costliest = max(ACTIONABLE, key=lambda bucket: float(seconds.get(bucket, 0.0)))
    lead = seconds[costliest] - seconds.get(meant, 0.0)
    if meant == "compute":
        enough = ENOUGH_ONCE if costliest == "compile" else ENOUGH
        return costliest if seconds[costliest] >= enough * epoch_s else meant
    return costliest if lead > TIE * epoch_s else meant


def _ledger_exact(run: Mapping[str, Any]) -> bool:
    """The buckets sum to the window and the causes to the buckets, to the picosecond."""
    whole = run["window"]["duration_ps"]
    exact = sum(run["buckets_ps"].values()) == whole
    causes = run.get("causes_ps")
    return exact and (not causes or sum(causes.values()) == whole)


def analyze(logdir: Path) -> Mapping[str, Any]:
    """The first run of what the command line prints for a log directory."""
    finished = subprocess.run(
        [sys.executable, "-m", "stall_analyzer", str(logdir), "--json"],
        capture_output=True,
        check=False,  # the exit code may carry the verdict
        env={**os.environ, "PYTHONPATH": str(ROOT / "analyzer")},
        text=True,
        timeout=ANALYZER_TIMEOUT_S,
    )
    try:
        runs: list[Mapping[str, Any]] = json.loads(finished.stdout)["runs"]
    except ValueError as error:
        last = finished.stderr.strip().splitlines()[-1:] or ["no output"]
        raise ValueError(last[0]) from error
    return runs[0]


def _unanswered(truth: Mapping[str, Any], problem: str) -> Score:
    epoch_s = (truth["epoch_end_unix_ns"] - truth["epoch_start_unix_ns"]) / 1e9
    return Score(
        truth["name"], truth["mode"], epoch_s, dict(truth["buckets_s"]), {}, 1.0, 0.0, 0.0,
        truth["expected_primary"], "none", False, problem,
    )  # fmt: skip


def table(scores: Sequence[Score]) -> str:
    """One line per scenario: what was injected, what was recovered, and how far off it was."""
    lines = [
        f"{'scenario':32}{'epoch s':>8}{'wrong':>7}  {'begin, end ms':>15}  primary        "
        "truth/recovered s"
    ]
    for s in scores:
        if s.problem:
            lines.append(f"{s.name:32}{s.epoch_s:8.2f}   FAIL  {s.problem}")
            continue
        main = [b for b in {**s.truth_s, **s.recovered_s} if _matters(s, b)]
        pairs = ", ".join(
            f"{b} {s.truth_s.get(b, 0):.3f}/{s.recovered_s.get(b, 0):.3f}" for b in main
        )
        verdict = s.primary if s.primary == s.expected_primary else (
            f"{s.primary} (not {s.expected_primary})"
        )  # fmt: skip
        marks = "" if s.ledger_exact else "  LEDGER NOT EXACT"
        mark = " " if s.passed else "!"
        lines.append(
            f"{s.name:32}{s.epoch_s:8.2f}{s.misattributed:7.1%}{mark} "
            f"{s.begin_error_ms:+7.1f},{s.end_error_ms:+7.1f}  {verdict:14} {pairs}{marks}"
        )
    return "\n".join([*lines, "", *summary(scores)])


def _matters(score: Score, bucket: str) -> bool:
    most = max(score.truth_s.get(bucket, 0.0), score.recovered_s.get(bucket, 0.0))
    return most > 0.01 * score.epoch_s


def summary(scores: Sequence[Score]) -> list[str]:
    right = sum(s.primary == s.expected_primary for s in scores)
    lines = [f"primary right: {right}/{len(scores)}"]
    for mode in sorted({s.mode for s in scores}):
        shares = [s.misattributed for s in scores if s.mode == mode]
        lines.append(
            f"misattributed, {mode}: median {median(shares):.2%}, max {max(shares):.2%}"
            f" (limit {LIMIT[mode]:.0%}, {len(shares)} scenarios)"
        )
    lines.append(
        f"misattributed, all: median {_median_share(scores):.2%} (limit {MEDIAN_LIMIT:.0%})"
    )
    lines.append(report({s.name: s.contradictions for s in scores}))
    lines.append("PASS" if passed(scores) else "FAIL")
    return lines


def passed(scores: Sequence[Score]) -> bool:
    if any(s.contradictions for s in scores):
        return False
    return all(s.passed for s in scores) and _median_share(scores) <= MEDIAN_LIMIT


def _median_share(scores: Sequence[Score]) -> float:
    return median(s.misattributed for s in scores) if scores else 1.0


def as_json(scores: Sequence[Score]) -> str:
    rows = [{**asdict(s), "passed": s.passed} for s in scores]
    return json.dumps({"passed": passed(scores), "scenarios": rows}, indent=1) + "\n"
