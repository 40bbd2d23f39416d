"""What the analyzer says of a job, against what was injected into it.

What a late worker costs is what the others wait for it. Each worker notes when it comes to the
exchange of a step, by a clock of its own program; on one machine these clocks agree. So what the
machine does to the workers besides (four of them on two cores do not come at the same time) is in
the truth, too. Jobs that are profiled have no such notes: there it is what was injected.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any, TypeAlias

import numpy as np

from stall_analyzer.discover.discover import discover
from stall_analyzer.pipeline import analyze
from stall_analyzer.report.document import document, run_document
from tests.contradictions import contradictions, report
from tests.scenarios.clusters.plans import Job

Json: TypeAlias = Mapping[str, Any]

WITHIN = 0.10  # of what was injected
WITHIN_BY_CLOCKS = 0.05  # where the capture's clocks tell it, and no profile
# A capture writes once a second, and a process that was killed does not say when.
RECORDED_TO_S = 1.0
SURELY_OVER_S = 125  # until then, a process that says nothing may still live


# What a diary may hold, the surest first, and its bucket.
WRITTEN_DOWN = {
    "waited": "input",
    "input": "input",
    "python": "host",
    "callback": "host",
    "compute": "compute",
    "traced": "compile",
}
MARKED_AS = {"waited": "input", "traced": "compile"}  # where the line says it in another word
FOLDER = Path(__file__).parent
CAUSE = re.compile(r"because of its (\w+) time")
MARK = re.compile(r"# late: (\w+)")
NOTICED_SHARE = 0.05  # of the time: a worker that cost so much may be named, whatever held it up
NO_LINE = "none"
LASTED = "lasted_s.txt"  # from the start of the first worker to the end of the last


@dataclass(frozen=True)
class Recovered:
    """One worker that was made late, killed or never started."""

    worker: int
    cause: str
    injected_s: float
    found_worker: str
    found_cause: str
    found_s: float
    at_least: bool = False  # no more can be known of the seconds
    tolerance_s: float = 0.0
    within: float = WITHIN
    cost_s: float | None = None  # what the others waited for it, if that was measured
    line: str | None = None  # that made it late; NO_LINE if it is no line of Python
    found_line: str = ""

    @property
    def true_s(self) -> float:
        return self.injected_s if self.cost_s is None else self.cost_s

    @property
    def error(self) -> float:
        return self.found_s / self.true_s - 1

    @property
    def passed(self) -> bool:
        right = self.found_worker.endswith((f"-worker-{self.worker}", f"worker {self.worker}"))
        off_s = self.found_s - self.true_s
        near = abs(off_s) <= max(self.within * self.true_s, self.tolerance_s)
        if self.at_least:
            near = 0 < self.found_s <= (1 + WITHIN) * self.injected_s
        here = self.line is None or self.line == self.found_line
        return right and self.cause == self.found_cause and near and here


@dataclass(frozen=True)
class Score:
    job: str
    workers: tuple[Recovered, ...]
    acts: tuple[str, ...]  # findings to act on
    wanted: str
    verdict: str
    window_s: float
    contradictions: tuple[str, ...] = ()  # of its page with itself
    wrongly_named: tuple[str, ...] = ()  # as late

    @property
    def passed(self) -> bool:
        if self.contradictions or self.wrongly_named:
            return False
        if not self.wanted:
            return not {"ST502", "ST504", "ST505"} & set(self.acts)
        return self.wanted in self.acts and all(worker.passed for worker in self.workers)


def score(job: Job, folder: Path) -> Score:
    if job.finding in ("ST504", "ST505"):
        _wait_until_over(folder / "logs")
    made = document([run_document(analyze(run)) for run in discover([str(folder / "logs")]).runs])
    (run,) = made["runs"]
    recovered = {"ST504": _never_came, "ST505": _ended_first}.get(
        job.finding, _late_server if job.coordinated else _late
    )
    return Score(
        job.name,
        tuple(recovered(job, folder, run)),
        tuple(f["id"] for f in run["findings"] if f["severity"] == "act"),
        job.finding,
        run["verdict"]["sentence"],
        run["window"]["duration_ps"] / 1e12,
        tuple(contradictions(run)),
        _wrongly_named(job, folder, run) if job.has_exchanges else (),
    )


def _wait_until_over(logs: Path) -> None:
    written_s = max(path.stat().st_mtime for path in logs.rglob("*") if path.is_file())
    time.sleep(max(written_s + SURELY_OVER_S - time.time(), 0))


# ---------------------------------------------------------------- late workers


def _late(job: Job, folder: Path, run: Json) -> list[Recovered]:
    """Whoever cost the others most comes first."""
    found = (run["lateness"] or {"hosts": []})["hosts"]
    costs = _costs_s(job, folder) if job.watched else {}
    recovered = []
    for place, worker in enumerate(sorted(job.late, key=lambda late: -costs.get(late, 0.0))):
        what, bucket, seconds = _injected(_diary(folder, worker))
        late = found[place] if place < len(found) else {}
        recovered.append(
            Recovered(
                worker,
                bucket,
                seconds,
                late.get("host", ""),
                late.get("bucket") or "",
                _cost_s(job, run, late.get("host", "")),
                within=WITHIN_BY_CLOCKS if job.watched else WITHIN,
                cost_s=costs.get(worker),
                line=_line_of(job, what) if job.watched else None,
                found_line=_found_line(run, late) if job.watched else "",
            )
        )
    return recovered


def _cost_s(job: Job, run: Json, host: str) -> float:
    """Without the first meeting of jobs that were captured as a whole: there the workers come from
    their own tracing, which takes as long as it takes."""
    first = 1 if job.watched else 0
    steps = (run["lateness"] or {"steps": []})["steps"][first:]
    return sum(float(step["cost_ps"]) for step in steps if step["host"] == host) / 1e12


def _costs_s(job: Job, folder: Path, first: int = 1) -> dict[int, float]:
    """How much longer than the others each worker was on its way to the exchanges at which it came
    last; by default from the second step on. Nobody comes from another exchange to the very first
    one: there it counts who came when."""
    met_ns = np.array([_exchanges(folder, worker) for worker in range(job.workers)])
    each = met_ns.shape[1] // job.steps  # in a step
    way_ns = met_ns[:, :, 0].copy()  # [worker, exchange]
    way_ns[:, 1:] -= met_ns[:, :-1, 1]
    way_ns = way_ns[:, first * each :]
    slowest = way_ns.argmax(axis=0)
    longer_ns = (way_ns.max(axis=0) - way_ns).sum(axis=0) / (job.workers - 1)
    return {w: float(longer_ns[slowest == w].sum()) / 1e9 for w in range(job.workers)}


def _exchanges(folder: Path, worker: int) -> list[tuple[int, int]]:
    """When it came, and when it left."""
    diary = _diary(folder, worker)
    return sorted(time for what in diary if what.startswith("exchange") for time in diary[what])


def _wrongly_named(job: Job, folder: Path, run: Json) -> tuple[str, ...]:
    """Workers that the report calls late, but that neither were nor cost the others much. (Each
    takes its own time to trace its first step.)"""
    titles = [f["title"] for f in run["findings"] if f["id"] == "ST502"]
    least_s = NOTICED_SHARE * run["window"]["duration_ps"] / 1e12
    costs = _costs_s(job, folder, first=0)
    return tuple(
        f"worker {worker}"
        for worker, cost_s in costs.items()
        if worker not in job.late
        and cost_s < least_s
        and any(re.search(rf"-worker-{worker}\b", title) for title in titles)
    )


def _line_of(job: Job, what: str) -> str:
    """A slow processor has no line."""
    name = "ps_worker" if job.coordinated else "fit_worker" if job.fit else "worker"
    file = FOLDER / f"{name}.py"
    for number, text in enumerate(file.read_text().splitlines(), start=1):
        mark = MARK.search(text)
        if mark is not None and mark[1] == what:
            return f"{file.name}:{number}"
    return NO_LINE


def _found_line(run: Json, late: Json) -> str:
    """The costliest line of the finding about late workers that can be this one's."""
    lines = [line for f in run["findings"] if f["id"] == "ST502" for line in f["lines"]]
    mine = [line for line in lines if line["bucket"] == late.get("bucket")]
    return f"{Path(mine[0]['path']).name}:{mine[0]['line']}" if mine else NO_LINE


def _injected(spent: Mapping[str, Sequence[tuple[int, int]]]) -> tuple[str, str, float]:
    """What the worker did beyond the others, its bucket, and how long by its own clock."""
    lengths = {what: [(end - begin) / 1e9 for begin, end in times] for what, times in spent.items()}
    for what, bucket in WRITTEN_DOWN.items():
        if what in lengths:
            return MARKED_AS.get(what, what), bucket, sum(lengths[what])
    # A call that traces takes the time of its tracing, besides what every call takes.
    usual = median(lengths["call"])
    return "compile", "compile", sum(seconds - usual for seconds in lengths["traced call"])


def _diary(folder: Path, worker: int | str) -> dict[str, list[tuple[int, int]]]:
    spent: dict[str, list[tuple[int, int]]] = {}
    for entry in (folder / f"diary-{worker}.txt").read_text().splitlines():
        what, begin_ns, end_ns = entry.split("\t")
        spent.setdefault(what, []).append((int(begin_ns), int(end_ns)))
    return spent


def _late_server(job: Job, folder: Path, run: Json) -> list[Recovered]:
    """A coordinator knows for which worker it waits while the others have nothing to do, what that
    worker takes longer for, and where it waits for its batches. It runs none of the program's
    Python, and so its computing has no line."""
    diary = _diary(folder, "chief")
    waited_ns = 0
    for number in range(job.steps):
        slow, usual = (diary.get(f"round {number} {what}", []) for what in ("slow", "usual"))
        ended_ns = [max((end for _, end in ran), default=0) for ran in (slow, usual)]
        waited_ns += max(ended_ns[0] - ended_ns[1], 0) if all(ended_ns) else 0
    found = [f for f in run["findings"] if f["id"] == "ST502"]
    lines = [f"{Path(line['path']).name}:{line['line']}" for f in found for line in f["lines"]]
    cause = CAUSE.search(run["verdict"]["sentence"])
    return [
        Recovered(
            worker,
            job.bucket,
            waited_ns / 1e9,
            found[0]["title"].partition(" is late")[0] if found else "",
            cause[1] if cause else "",
            sum(f["lost_ps"] for f in found) / 1e12,
            within=WITHIN_BY_CLOCKS,
            line=_line_of(job, job.bucket),
            found_line=lines[0] if lines else NO_LINE,
        )
        for worker in job.late
    ]


# ---------------------------------------------------------------- workers that are not there


def _ended_first(job: Job, folder: Path, run: Json) -> list[Recovered]:
    """From the death of the one to the end of the others, by their own clocks."""
    (dead,) = job.plans
    ((died_ns, _),) = _diary(folder, dead)["died"]
    others = [_diary(folder, i)["whole"][0][1] for i in range(job.workers) if i != dead]
    cluster = run["cluster"]
    return [
        Recovered(
            dead,
            "ended first",
            mean((end_ns - died_ns) / 1e9 for end_ns in others),
            cluster["ended_first"] or "",
            "ended first" if cluster["ended_first"] else "",
            cluster["others_waited_ps"] / 1e12,
            tolerance_s=RECORDED_TO_S,
        )
    ]


def _never_came(job: Job, folder: Path, run: Json) -> list[Recovered]:
    (absent,) = job.plans
    cluster = run["cluster"]
    (missing,) = cluster["missing"] or ("",)
    return [
        Recovered(
            absent,
            "never came",
            float((folder / LASTED).read_text()),
            missing,
            "never came" if missing else "",
            cluster["others_waited_ps"] / 1e12,
            at_least=True,
        )
    ]


def table(scores: Sequence[Score]) -> str:
    lines = [
        f"{'job':17} {'worker':>6} {'cause':12} {'line':17} {'injected':>9} {'cost':>9}   "
        f"{'found':16} {'cause':12} {'line':17} {'recovered':>10} {'error':>7}"
    ]
    for score in scores:
        mark = "" if score.passed else "  WRONG"
        lines += [
            f"{score.job:17} {entry.worker:6} {entry.cause:12} {entry.line or '':17} "
            f"{entry.injected_s:8.2f}s {entry.true_s:8.2f}s   "
            f"{entry.found_worker:16} {entry.found_cause:12} {entry.found_line:17} "
            f"{'≥' if entry.at_least else ' '}{entry.found_s:8.2f}s "
            f"{100 * entry.error:+6.1f}%{mark}"
            for entry in score.workers
        ]
        if not score.workers:
            lines.append(f"{score.job:17} nobody is late; to act on: {list(score.acts)}{mark}")
        if score.wrongly_named:
            lines.append(f"{'':17} named without a reason: {', '.join(score.wrongly_named)}")
        lines.append(f"{'':17} {score.verdict}")
    lines.append(report({score.job: score.contradictions for score in scores}))
    return "\n".join(lines)
