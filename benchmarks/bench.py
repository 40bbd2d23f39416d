"""How long the analyzer takes, beside XProf and beside reading the bytes.

    python benchmarks/bench.py [--workdir DIR] [--skip-huge]

Makes three traces (kept and reused with --workdir): two by training under the TensorFlow profiler,
one of more than 2 GiB by repeating real events (repeat.py). Every figure is a fresh process;
programs take turns, and the median counts. Exits with 1 when a target is missed.

XProf does more work on each event than we need: the ratio compares two waits, not equal work.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from repeat import repeat

HERE = Path(__file__).resolve().parent
MB = 1_000_000
ROUNDS = 3
MIN_RATIO = 40  # XProf's time over ours, on the trace of 100 MB
MEMORY_BASE, MEMORY_SHARE = 150 * MB, 3  # 150 MB + file / 3
REAL_TRACES = {"20 MB": 200, "100 MB": 1150}  # steps to train
HUGE, HUGE_BYTES = "2 GiB", (2 << 30) + 50 * MB

ANALYZE = [sys.executable, "-m", "stall_analyzer", "{logdir}", "--fresh", "--json", "-o", "{out}"]
DECODE = [
    sys.executable, "-c",
    "import sys; from stall_analyzer.decode.decode import read_trace; "
    "from stall_analyzer.model.runs import HostFile; "
    "read_trace(HostFile('host', sys.argv[1], 'xplane', 0))", "{trace}",
]  # fmt: skip
READ = [
    sys.executable, "-c",
    "import sys\nwith open(sys.argv[1], 'rb', buffering=0) as f:\n"
    "    while f.read(1 << 20): pass", "{trace}",
]  # fmt: skip
XPROF = [
    sys.executable, "-c",
    "import sys; from xprof.convert.raw_to_tool_data import xspace_to_tool_data; "
    "data, _ = xspace_to_tool_data([sys.argv[1]], 'overview_page', {}); "
    "sys.exit(not data)", "{trace}",
]  # fmt: skip
HELP = [sys.executable, "-m", "stall_analyzer", "--help"]
NOTHING = [sys.executable, "-c", "pass"]
HELP_SECONDS, HELP_FACTOR = 0.4, 4  # whichever is larger
HELP_ROUNDS = 9
PROGRAMS = {"stall": ANALYZE, "decode only": DECODE, "read bytes": READ, "xprof": XPROF}


@dataclass(frozen=True)
class Cost:
    seconds: float
    peak_bytes: int


def run(command: list[str]) -> Cost:
    """Wall time and peak memory of a fresh process."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    message = process.stderr.read().decode("utf-8", "replace")
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[:3])} failed:\n{message[-2000:]}")
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kibibytes
    return Cost(seconds, usage.ru_maxrss * unit)


def measure(program: str, trace: Path) -> Cost:
    """XProf leaves caches beside the file, so it gets a copy that it has never seen."""
    with tempfile.TemporaryDirectory(dir=trace.parents[4]) as scratch:
        if program == "xprof":
            copy = Path(scratch, trace.name)
            shutil.copyfile(trace, copy)
            trace = copy
        places = {
            "{trace}": str(trace),
            "{logdir}": str(trace.parents[3]),
            "{out}": str(Path(scratch, "report.json")),
        }
        return run([places.get(part, part) for part in PROGRAMS[program]])


def real_trace(workdir: Path, name: str) -> Path:
    logdir = workdir / name.replace(" ", "").lower()
    found = sorted(logdir.glob("plugins/profile/*/*.xplane.pb"))
    if not found:
        steps = REAL_TRACES[name]
        print(f"training {steps} steps for the trace of {name} …", flush=True)
        command = [sys.executable, str(HERE / "profiled_training.py"), str(logdir), str(steps)]
        subprocess.run(command, check=True, capture_output=True)
        found = sorted(logdir.glob("plugins/profile/*/*.xplane.pb"))
    return found[0]


def huge_trace(workdir: Path, source: Path) -> Path:
    target = workdir / "huge" / "plugins" / "profile" / "repeated" / source.name
    if not target.exists():
        print(f"repeating the events of {source.name} up to {HUGE} …", flush=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(".part")
        repeat(source, part, HUGE_BYTES)
        part.rename(target)
    return target


def figures(trace: Path, programs: list[str], rounds: int) -> dict[str, Cost]:
    costs: dict[str, list[Cost]] = {program: [] for program in programs}
    for _ in range(rounds):
        for program in programs:  # in turns: a busy moment must not hit one program alone
            costs[program].append(measure(program, trace))
    return {
        program: Cost(
            statistics.median(cost.seconds for cost in of_program),
            max(cost.peak_bytes for cost in of_program),
        )
        for program, of_program in costs.items()
    }


def report(name: str, trace: Path, found: dict[str, Cost]) -> list[str]:
    """Print one file's figures; returns the targets it misses."""
    size = trace.stat().st_size
    budget = MEMORY_BASE + size // MEMORY_SHARE
    print(f"\n{name}: {size / MB:,.0f} MB, memory budget {budget / MB:,.0f} MB")
    for program, cost in found.items():
        print(
            f"  {program:<12}{cost.seconds:9.3f} s {cost.seconds / size * 1e9:9.2f} s/GB "
            f"{cost.peak_bytes / MB:9,.0f} MB"
        )
    missed = []
    if found["stall"].peak_bytes > budget:
        missed.append(f"{name}: {found['stall'].peak_bytes / MB:,.0f} MB exceed the budget")
    if "xprof" in found:
        ratio = found["xprof"].seconds / found["stall"].seconds
        print(f"  XProf takes {ratio:.1f} times as long")
        if name == "100 MB":
            print(f"xprof_ratio_100mb: {ratio:.1f}")
            if ratio < MIN_RATIO:
                missed.append(f"{name}: XProf takes {ratio:.1f} times as long, not {MIN_RATIO}")
    return missed


def help_answers() -> list[str]:
    """Print how soon --help answers; returns the target if it misses it."""
    turns = [(run(HELP).seconds, run(NOTHING).seconds) for _ in range(HELP_ROUNDS)]
    ours, bare = (statistics.median(times) for times in zip(*turns, strict=True))
    print(f"help_seconds: {ours:.3f} ({ours / bare:.1f} times an empty Python)")
    limit = max(HELP_SECONDS, HELP_FACTOR * bare)
    return [f"--help takes {ours:.3f} s, not {limit:.3f}"] if ours > limit else []


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workdir", type=Path, help="where the traces are made and kept")
    parser.add_argument("--skip-huge", action="store_true", help="not the trace of 2 GiB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        workdir = (options.workdir or Path(temporary)).resolve()
        workdir.mkdir(parents=True, exist_ok=True)
        missed = help_answers()
        traces = {name: real_trace(workdir, name) for name in REAL_TRACES}
        for name, trace in traces.items():
            missed += report(name, trace, figures(trace, list(PROGRAMS), ROUNDS))
        if not options.skip_huge:
            trace = huge_trace(workdir, traces["20 MB"])
            ours = [program for program in PROGRAMS if program != "xprof"]
            missed += report(HUGE, trace, figures(trace, ours, 1))
    for miss in missed:
        print(f"MISSED {miss}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
