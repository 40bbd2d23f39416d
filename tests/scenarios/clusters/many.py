"""A session of many hosts, from the traces of a real job: is the answer right, what does it cost?

python -m tests.scenarios.clusters.many JOB_FOLDER [--hosts 8 64] [--workdir DIR]

The late worker's trace stays one host's, those of the others are copied under new names. Clocks
are wrong by seconds, one host in a hundred is cut short and one is missing. Time and memory are
those of `stall-analyze` in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stall_analyzer.decode.scan import scan
from stall_analyzer.decode.xplane import ENVIRONMENT_PLANE
from stall_analyzer.files import wire
from stall_analyzer.report.document_types import ReportEntry
from tests.scenarios.clusters.plans import JOBS
from tests.xspace import Plane, block

SESSION = Path("plugins/profile/2026_01_01_00_00_00")
CLOCKS_WRONG_S = 5.0
LOST_SHARE = 0.01  # of the hosts are cut, and as many missing
TIMES = ("profile_start_time", "profile_stop_time")


@dataclass(frozen=True)
class Made:
    late: str
    ahead_s: dict[str, float]
    cut: tuple[str, ...]
    missing: tuple[str, ...]
    bytes: int


def make(traces: Sequence[Path], late: int, hosts: int, target: Path, seed: int = 1) -> Made:
    """A session in `target`; `traces[late]` is the late worker's."""
    chance = random.Random(seed)
    names = [f"host-worker-{index}" for index in range(hosts)]
    late_name = chance.choice(names)
    lost = max(1, round(LOST_SHARE * hosts))
    unlucky = chance.sample([name for name in names if name != late_name], 2 * lost)
    cut, missing = tuple(unlucky[:lost]), tuple(unlucky[lost:])
    ahead = {name: chance.uniform(-CLOCKS_WRONG_S, CLOCKS_WRONG_S) for name in names}
    others = [trace for index, trace in enumerate(traces) if index != late]
    folder = target / SESSION
    folder.mkdir(parents=True)
    size = 0
    for number, name in enumerate(names):
        if name in missing:
            continue
        trace = traces[late] if name == late_name else others[number % len(others)]
        content = with_clock_ahead(trace, round(ahead[name] * 1e9))
        if name in cut:
            content = content[: chance.randrange(len(content) // 10, len(content))]
        (folder / f"{name}.xplane.pb").write_bytes(content)
        size += len(content)
    return Made(late_name, ahead, cut, missing, size)


def with_clock_ahead(trace: Path, ahead_ns: int) -> bytes:
    """The same trace from a host whose clock is wrong."""
    data = trace.read_bytes()
    with trace.open("rb", buffering=0) as file:
        scanned = scan(file.fileno(), len(data))
    (times,) = (plane.stats for plane in scanned.planes if plane.name == ENVIRONMENT_PLANE)
    moved = {name: int(times[name]) + ahead_ns for name in TIMES}
    kept = [
        block(number, data[begin:end])
        for number, _, begin, end in wire.fields(data, 0, len(data))
        if ENVIRONMENT_PLANE.encode() not in data[begin : begin + 64]
    ]
    return b"".join(kept) + block(1, Plane(ENVIRONMENT_PLANE).to_bytes([], moved))


@dataclass(frozen=True)
class Cost:
    seconds: float
    peak_mb: float


def analyze(logs: Path, out: Path) -> Cost:
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "stall_analyzer", str(logs), "--json", "-o", str(out)]
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(time.perf_counter() - begin, usage.ru_maxrss / 1024)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.clusters.many")
    parser.add_argument("job", type=Path, help="a folder that clusters.run left")
    parser.add_argument("--hosts", type=int, nargs="+", default=[8, 16, 32, 64])
    parser.add_argument("--workdir", type=Path)
    options = parser.parse_args(arguments)
    job = next(job for job in JOBS if job.name == options.job.name)
    traces = sorted((options.job / "logs").rglob("*.xplane.pb"))
    workdir = options.workdir or Path(tempfile.mkdtemp(prefix="stall-many-"))
    wrong = 0
    print(
        "hosts   size MB   time s   peak MB   late            found           cost s  clocks off ms"
    )
    for hosts in options.hosts:
        target = workdir / f"{hosts}-hosts"
        shutil.rmtree(target, ignore_errors=True)
        made = make(traces, job.late[0], hosts, target)
        cost = analyze(target, workdir / "out.json")
        (run,) = json.loads((workdir / "out.json").read_text())["runs"]
        late = run["lateness"]["hosts"][0] if run["lateness"] else None
        found, cost_s = (late["host"], late["cost_ps"] / 1e12) if late else ("-", 0.0)
        print(
            f"{hosts:5} {made.bytes / 1e6:8.1f} {cost.seconds:7.2f} {cost.peak_mb:8.0f}  "
            f"{made.late:15} {found:15} {cost_s:6.2f}  "
            f"{clock_error_ms(run, made):10.3f}"
        )
        wrong += found != made.late
    return 1 if wrong else 0


def clock_error_ms(run: ReportEntry, made: Made) -> float:
    """How far the recovered differences of the clocks are from the true ones, at worst."""
    found = {t["host"]: t["clock"]["ahead_ps"] for t in run["traces"] if t["clock"]["ahead_ps"]}
    leader = next(t["host"] for t in run["traces"] if t["clock"]["source"] == "own clock")
    errors = [
        abs(ps / 1e9 - 1e3 * (made.ahead_s[host] - made.ahead_s[leader]))
        for host, ps in found.items()
    ]
    return max(errors, default=0.0)


if __name__ == "__main__":
    sys.exit(main())
