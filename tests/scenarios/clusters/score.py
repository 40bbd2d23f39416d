"""What the analyzer says of a job, against what was injected into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stall_analyzer.discover import discover
from stall_analyzer.pipeline import analyze
from stall_analyzer.report.json import document
from tests.scenarios.clusters.plans import Job

WITHIN = 0.10  # of what was injected


@dataclass(frozen=True)
class Recovered:
    """One worker that was made late."""

    worker: str
    bucket: str
    injected_s: float
    found_worker: str
    found_bucket: str
    found_s: float

    @property
    def error(self) -> float:
        return self.found_s / self.injected_s - 1

    @property
    def passed(self) -> bool:
        right = (self.worker, self.bucket) == (self.found_worker, self.found_bucket)
        return right and abs(self.error) <= WITHIN


@dataclass(frozen=True)
class Score:
    job: str
    late: tuple[Recovered, ...]
    acts: tuple[str, ...]  # findings to act on
    wanted: str
    verdict: str
    window_s: float

    @property
    def passed(self) -> bool:
        if not self.wanted:
            return "ST502" not in self.acts
        return self.wanted in self.acts and all(late.passed for late in self.late)


def score(job: Job, folder: Path) -> Score:
    report = document([analyze(run) for run in discover([str(folder / "logs")]).runs])
    (run,) = report["runs"]
    found = {late["host"]: late for late in (run["lateness"] or {"hosts": []})["hosts"]}
    ranked = sorted(found.values(), key=lambda late: -late["cost_ps"])
    return Score(
        job.name,
        tuple(
            _recovered(job, worker, folder, ranked[place] if place < len(ranked) else {})
            for place, worker in enumerate(job.late)
        ),
        tuple(f["id"] for f in run["findings"] if f["severity"] == "act"),
        job.finding,
        run["verdict"]["sentence"],
        run["window"]["duration_ps"] / 1e12,
    )


def _recovered(job: Job, worker: int, folder: Path, found: dict[str, Any]) -> Recovered:
    entries = (folder / f"diary-{worker}.txt").read_text().split("\n")[:-1]
    parts = [entry.split() for entry in entries]
    kinds = {"input": "input", "python": "host", "trace": "compile"}
    seconds = sum((int(end) - int(begin)) / 1e9 for _, begin, end in parts)
    return Recovered(
        f"host-worker-{worker}",
        kinds[parts[0][0]],
        seconds,
        found.get("host", ""),
        found.get("bucket") or "",
        found.get("cost_ps", 0) / 1e12,
    )


def table(scores: Sequence[Score]) -> str:
    lines = [
        f"{'job':12} {'worker':16} {'cause':8} {'injected':>9}   "
        f"{'found':16} {'cause':8} {'recovered':>9} {'error':>7}"
    ]
    for score in scores:
        mark = "" if score.passed else "  WRONG"
        lines += [
            f"{score.job:12} {late.worker:16} {late.bucket:8} {late.injected_s:8.2f}s   "
            f"{late.found_worker:16} {late.found_bucket:8} {late.found_s:8.2f}s "
            f"{100 * late.error:+6.1f}%{mark}"
            for late in score.late
        ]
        if not score.late:
            lines.append(f"{score.job:12} nobody is late; to act on: {score.acts}{mark}")
        lines.append(f"{'':12} {score.verdict}")
    return "\n".join(lines)
