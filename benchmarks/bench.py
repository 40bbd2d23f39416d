"""How long the analyzer takes, as ratios to other times: those of an empty Python, of reading the
bytes, of XProf, of TensorBoard's own loaders, and of a first look.

    python benchmarks/bench.py [--workdir DIR] [--rounds N] [--only NAME...] [--skip-huge]

It creates its own logs (kept and reused with --workdir): two traces by training under the
TensorFlow profiler, one of more than 2 GiB by repeating real events (repeat.py), and event files
(events.py). Each measurement is a fresh process. All programs take turns, round by round, and the
median counts, so that a busy moment does not affect one program alone. Exits with 1 if a target is
missed.

XProf does more work on each event than we do: the ratio compares two waits, not equal work.
"""

from __future__ import annotations

import argparse
import compileall
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import events
from repeat import repeat

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MB = 1_000_000
ROUNDS = 5
XPROF_ROUNDS = 3  # it takes half a minute
MEMORY_BASE, MEMORY_SHARE = 150 * MB, 3  # 150 MB + file / 3
REAL_TRACES = {"20 MB": 200, "100 MB": 1150}  # steps to train
HUGE, HUGE_BYTES = "2 GiB", (2 << 30) + 50 * MB
GROWN_BY = 0.01

PYTHON = sys.executable
NOTHING = [PYTHON, "-c", "pass"]
STALL = [PYTHON, "-m", "stall_analyzer"]
READ = [
    PYTHON, "-c",
    "import sys\nwith open(sys.argv[1], 'rb', buffering=0) as f:\n"
    "    while f.read(1 << 20): pass",
]  # fmt: skip
DECODE = [
    PYTHON, "-c",
    "import os, sys\n"
    "if len(sys.argv) > 2: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    "from stall_analyzer.decode.decode import read_trace\n"
    "from stall_analyzer.model.runs import HostFile\n"
    "read_trace(HostFile('host', sys.argv[1], 'xplane', 0))",
]  # fmt: skip
XPROF = [
    PYTHON, "-c",
    "import sys; from xprof.convert.raw_to_tool_data import xspace_to_tool_data; "
    "data, _ = xspace_to_tool_data([sys.argv[1]], 'overview_page', {}); "
    "sys.exit(not data)",
]  # fmt: skip


@dataclass(frozen=True)
class Cost:
    seconds: float
    peak_bytes: int


@dataclass
class Program:
    """`run` returns the cost of one fresh process."""

    run: Callable[[], Cost]
    rounds: int
    costs: list[Cost] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return statistics.median(cost.seconds for cost in self.costs)

    @property
    def peak_bytes(self) -> int:
        return max(cost.peak_bytes for cost in self.costs)


@dataclass(frozen=True)
class Ratio:
    """How many times as long `slow` takes as `quick`, with a target: at least or at most."""

    name: str
    slow: str
    quick: str
    least: float | None = None
    most: float | None = None


RATIOS = (
    Ratio("--help / an empty Python", "help", "nothing", most=4),
    Ratio("a tiny run / an empty Python", "tiny", "nothing", most=9),
    Ratio("100 MB: XProf / ours", "xprof", "100 MB", least=70),
    Ratio("100 MB: ours / reading the bytes", "100 MB", "read 100 MB", most=12),
    Ratio("2 GiB: ours / the decoding alone", HUGE, "decode 2 GiB", most=1.8),
    Ratio("2 GiB: decoding on one core / on all", "on one core", "decode 2 GiB", least=1.6),
    Ratio("a million scalars: TensorBoard / ours", "scalars, tb", "scalars", least=1),
    Ratio("a million scalars: its data server / ours", "scalars, server", "scalars", least=1),
    Ratio("300 MB of summaries: TensorBoard / ours", "summaries, tb", "summaries", least=1),
    Ratio("300 MB of summaries: data server / ours", "summaries, server", "summaries", least=1),
    Ratio("summaries that grew by 1%: first / second look", "first", "second", least=10),
    Ratio("the same, whole processes", "whole first", "whole second"),
)


def run(command: list[str], environment: dict[str, str] | None = None) -> tuple[Cost, str]:
    """Wall time and peak memory of a fresh process, and what it printed."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=errors, env={**os.environ, **(environment or {})}
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            message = errors.read().decode("utf-8", "replace")
            raise RuntimeError(f"{' '.join(command[:3])} failed:\n{message[-2000:]}")
        output.seek(0)
        unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kibibytes
        return Cost(seconds, usage.ru_maxrss * unit), output.read().decode()


# ---------------------------------------------------------------- the logs


def real_trace(workdir: Path, name: str) -> Path:
    logdir = workdir / name.replace(" ", "").lower()
    found = sorted(logdir.glob("plugins/profile/*/*.xplane.pb"))
    if not found:
        steps = REAL_TRACES[name]
        print(f"training {steps:,} steps for the {name} trace …", flush=True)
        command = [PYTHON, str(HERE / "profiled_training.py"), str(logdir), str(steps)]
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


# ---------------------------------------------------------------- programs


class Programs:
    def __init__(self, workdir: Path, rounds: int) -> None:
        self._workdir, self._rounds = workdir, rounds
        self.made: dict[str, Program] = {}

    def add(self, name: str, command: list[str], rounds: int | None = None) -> None:
        self.made[name] = Program(lambda: run(command)[0], rounds or self._rounds)

    def add_stall(self, name: str, logdir: Path) -> None:
        report = self._workdir / "report.json"
        self.add(name, [*STALL, str(logdir), "--fresh", "--json", "-o", str(report)])

    def add_xprof(self, name: str, trace: Path) -> None:
        """It leaves caches next to the file, so it gets a new copy each time."""

        def measured() -> Cost:
            with tempfile.TemporaryDirectory(dir=self._workdir) as scratch:
                copy = shutil.copyfile(trace, Path(scratch, trace.name))
                return run([*XPROF, str(copy)])[0]

        self.made[name] = Program(measured, min(self._rounds, XPROF_ROUNDS))

    def add_loading(self, name: str, loader: str, path: Path) -> None:
        """Only the loading counts: the time of the imports says nothing about a loader."""

        def measured() -> Cost:
            cost, output = run(events.command(loader, path))
            return Cost(float(output.split()[-1]), cost.peak_bytes)

        self.made[name] = Program(measured, self._rounds)

    def add_growing(self, path: Path) -> None:
        """A run is analyzed, grows, and is analyzed again: measures reading, and whole
        processes."""
        log = self._workdir / "growing" / "train"
        log.mkdir(parents=True, exist_ok=True)
        grown = log / "events.out.tfevents.1700000000.host.1.0.v2"
        store = self._workdir / "growing-store"
        end = events.cut_at(path, 1 - GROWN_BY)

        def looked(whole: bool, again: bool) -> Cost:
            if not again:
                shutil.rmtree(store, ignore_errors=True)
                shutil.copyfile(path, grown)
                os.truncate(grown, end)
            else:
                with path.open("rb") as source, grown.open("ab") as target:
                    source.seek(end)
                    shutil.copyfileobj(source, target)
            if whole:
                report = self._workdir / "report.json"
                options = ["--store", str(store), "--json", "-o", str(report)]
                return run([*STALL, str(log.parent), *options])[0]
            cost, output = run(events.command("stall, kept", grown), {"KEPT": str(store)})
            return Cost(float(output.split()[-1]), cost.peak_bytes)

        self.made["first"] = Program(lambda: looked(False, False), self._rounds)
        self.made["second"] = Program(lambda: looked(False, True), self._rounds)
        self.made["whole first"] = Program(lambda: looked(True, False), self._rounds)
        self.made["whole second"] = Program(lambda: looked(True, True), self._rounds)


def programs(workdir: Path, rounds: int, skip_huge: bool) -> dict[str, Program]:
    found = Programs(workdir, rounds)
    found.add("nothing", NOTHING)
    found.add("help", [*STALL, "--help"])
    found.add("tiny", [*STALL, str(ROOT / "sample_logs" / "healthy"), "--fresh"])
    small, large = (real_trace(workdir, name) for name in REAL_TRACES)
    found.add_stall("20 MB", small.parents[3])
    found.add_stall("100 MB", large.parents[3])
    found.add("read 100 MB", [*READ, str(large)])
    found.add_xprof("xprof", large)
    if not skip_huge:
        trace = huge_trace(workdir, small)
        found.add_stall(HUGE, trace.parents[3])
        found.add("decode 2 GiB", [*DECODE, str(trace)])
        found.add("on one core", [*DECODE, str(trace), "one"])
    for name, kind in (("scalars", "a million scalars"), ("summaries", "histograms and images")):
        path = events.made(workdir, kind)
        found.add_loading(name, "stall", path)
        found.add_loading(f"{name}, tb", "RawEventFileLoader", path)
        found.add_loading(f"{name}, server", "data server", path)
    found.add_growing(events.made(workdir, "histograms and images"))
    return found.made


# ---------------------------------------------------------------- the figures


def show(ratio: Ratio, made: dict[str, Program]) -> str | None:
    """Prints one line; returns the target if it is missed."""
    slow, quick = made[ratio.slow], made[ratio.quick]
    times = slow.seconds / quick.seconds
    target = f"≥ {ratio.least:g}" if ratio.least else f"≤ {ratio.most:g}" if ratio.most else ""
    print(f"{ratio.name:<50}{times:8.2f}  {target:<7}"
          f"{slow.seconds:8.3f} s {slow.peak_bytes / MB:6,.0f} MB  /"
          f"{quick.seconds:8.3f} s {quick.peak_bytes / MB:6,.0f} MB")  # fmt: skip
    is_met = times >= (ratio.least or 0) and times <= (ratio.most or times)
    return None if is_met else f"{ratio.name}: {times:.2f}, not {target}"


def over_budget(made: dict[str, Program], sizes: dict[str, int]) -> list[str]:
    budgets = {name: MEMORY_BASE + size // MEMORY_SHARE for name, size in sizes.items()}
    return [
        f"{name}: {made[name].peak_bytes / MB:,.0f} MB of memory, not {budget / MB:,.0f}"
        for name, budget in budgets.items()
        if name in made and made[name].peak_bytes > budget
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workdir", type=Path, help="where to create and keep the logs")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--only", nargs="+", default=[], help="ratios whose names contain one of these"
    )
    parser.add_argument("--skip-huge", action="store_true", help="skip the 2 GiB trace")
    options = parser.parse_args()
    compileall.compile_dir(ROOT / "analyzer", quiet=1)  # as pip does when it installs
    with tempfile.TemporaryDirectory() as temporary:
        workdir = (options.workdir or Path(temporary)).resolve()
        workdir.mkdir(parents=True, exist_ok=True)
        made = programs(workdir, options.rounds, options.skip_huge)
        ratios = [
            ratio
            for ratio in RATIOS
            if ratio.slow in made and ratio.quick in made
            and (not options.only or any(word in ratio.name for word in options.only))
        ]  # fmt: skip
        wanted = {name for ratio in ratios for name in (ratio.slow, ratio.quick)}
        for number in range(options.rounds):
            for name, program in made.items():
                if name in wanted and number < program.rounds:
                    program.costs.append(program.run())
        missed = [miss for ratio in ratios if (miss := show(ratio, made))]
        sizes = {name: real_trace(workdir, name).stat().st_size for name in REAL_TRACES}
        sizes[HUGE] = HUGE_BYTES
        missed += over_budget({name: made[name] for name in wanted}, sizes)
    for miss in missed:
        print(f"MISSED {miss}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
