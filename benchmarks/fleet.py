"""How a pass over thousands of runs scales: time, memory, a second pass, and a pass that is killed.

    python benchmarks/fleet.py [--workdir DIR] [--runs 500 1000 2500 5000]

The runs are copies of sample_logs with changes: some traces are cut, some are missing, some contain
garbage, some runs were started twice or have two hosts. Exits with 1 if a target is missed.

"clock" is wall time; "core" is the time of all cores together, which says more on a machine that is
busy with other work.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = sorted(path.parent for path in (ROOT / "sample_logs").glob("*/expected.json"))
MB = 1_000_000
LONG_AGO_S = 1_790_000_000  # a run that was last written to long ago is not read again
SIZES = (500, 1000, 2500, 5000)
MIN_SPEEDUP = 20  # of the second pass over the largest fleet
MAX_SLOWDOWN = 1.25  # core seconds of a run in the largest fleet, compared with the smallest
MAX_GROWTH = 40 * MB  # of the memory of all processes, from the smallest fleet to the largest
SAMPLE_EVERY_S = 0.1


# ---------------------------------------------------------------- the fleet


def make_fleet(folder: Path, count: int, seed: int = 1) -> None:
    """Creates `count` run folders; unchanged files are hard links to one copy of the sample."""
    originals = folder.with_name(f"{folder.name}-originals")
    if not originals.exists():
        for sample in SAMPLES:
            shutil.copytree(sample, originals / sample.name)
        for path in originals.rglob("*"):
            os.utime(path, (LONG_AGO_S, LONG_AGO_S))
    chance = random.Random(seed)
    for number in range(count):
        sample = originals / SAMPLES[number % len(SAMPLES)].name
        run = folder / f"2026-11-{1 + number % 28:02d}" / f"exp-{number // 28:03d}" / sample.name
        for path in sample.rglob("*"):
            target = run / path.relative_to(sample)
            if path.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            elif path.suffix not in {".json", ".md"}:
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(path, target)
        _change(run, chance)


def _change(run: Path, chance: random.Random) -> None:
    traces, events = sorted(run.rglob("*.xplane.pb")), sorted(run.rglob("*tfevents*"))
    what = chance.random()
    if what < 0.05 and traces:  # the job was killed while it wrote
        size = traces[0].stat().st_size
        _replace(traces[0], traces[0].read_bytes()[: chance.randrange(size // 2, size)])
    elif what < 0.07 and traces:  # it never got to write one
        traces[0].unlink()
    elif what < 0.08 and traces:
        _replace(traces[0], chance.randbytes(10_000))
    elif what < 0.11 and events:  # it was started again
        _, _, _, start, rest = events[0].name.split(".", 4)
        os.link(events[0], events[0].with_name(f"events.out.tfevents.{int(start) + 600}.{rest}"))
    elif what < 0.16 and traces:
        os.link(traces[0], traces[0].with_name("host2.xplane.pb"))


def _replace(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)
    os.utime(path, (LONG_AGO_S, LONG_AGO_S))


# ---------------------------------------------------------------- measuring


@dataclass(frozen=True)
class Cost:
    seconds: float
    core_seconds: float
    parent_bytes: int
    all_bytes: int  # for all its processes together
    said: str


def measured(arguments: list[str], kill_after: Path | None = None, results: int = 0) -> Cost:
    """Runs the program once; with `kill_after`, kills it when that store has `results` results."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "stall_analyzer", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        peaks = _Peaks(process.pid)
        if kill_after is not None:
            while len(list(kill_after.glob("*/[0-9a-f]*.result"))) < results:
                time.sleep(0.2)
            process.send_signal(signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = code = os.waitstatus_to_exitcode(status)
        peaks.stop()
        said.seek(0)
        text = said.read()
    expected = {-signal.SIGKILL} if kill_after else {0, 4}
    if code not in expected:
        raise RuntimeError(f"exit code {code}:\n{text[-2000:]}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, peaks.parent, peaks.together, text)


class _Peaks(threading.Thread):
    """Samples the memory of a process and its children ten times a second."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._ended = threading.Event()
        self.parent = self.together = 0
        self.start()

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_EVERY_S):
            parent = _resident(self._pid)
            children = sum(_resident(pid) for pid in _children(self._pid))
            self.parent = max(self.parent, parent)
            self.together = max(self.together, parent + children)

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):  # it has just ended
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _children(pid: int) -> list[int]:
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


# ---------------------------------------------------------------- the figures


def growth(workdir: Path, sizes: list[int]) -> list[str]:
    """Prints a line for each size; returns the targets that are missed."""
    print("          first pass                   second pass       with outputs    memory")
    print("  runs     clock      core   a run     clock   times         clock    parent     all")
    outputs = ["--jsonl", str(workdir / "all.jsonl"), "--parquet", str(workdir / "tables")]
    first_of: dict[int, Cost] = {}
    speedup = 0.0
    for size in sizes:
        fleet, store = workdir / f"fleet-{size}", workdir / f"store-{size}"
        if not fleet.exists():
            make_fleet(fleet, size)
        shutil.rmtree(store, ignore_errors=True)
        arguments = [str(fleet), "--store", str(store)]
        first, second = measured(arguments), measured(arguments)
        third = measured([*arguments, *outputs])
        first_of[size], speedup = first, first.seconds / second.seconds
        print(f"{size:6}{first.seconds:8.1f} s{first.core_seconds:8.1f} s"
              f"{1000 * first.core_seconds / size:5.1f} ms{second.seconds:8.2f} s{speedup:8.0f}"
              f"{third.seconds:12.2f} s{first.parent_bytes / MB:7.0f} MB"
              f"{first.all_bytes / MB:5.0f} MB", flush=True)  # fmt: skip
    return _missed(first_of, speedup)


def _missed(first_of: dict[int, Cost], speedup: float) -> list[str]:
    small, large = min(first_of), max(first_of)
    slowdown = first_of[large].core_seconds / large / (first_of[small].core_seconds / small)
    growth = first_of[large].all_bytes - first_of[small].all_bytes
    targets = {
        f"the second pass is only {speedup:.1f} times faster": speedup >= MIN_SPEEDUP,
        f"a run takes {slowdown:.2f} times as long in the large fleet": slowdown <= MAX_SLOWDOWN,
        f"memory grows by {growth / MB:.0f} MB": growth <= MAX_GROWTH,
    }
    return [miss for miss, is_met in targets.items() if not is_met]


def killed(workdir: Path, size: int) -> list[str]:
    """Killed halfway and started again: nothing may be lost, and nothing appear twice."""
    fleet, store, output = workdir / f"fleet-{size}", workdir / "store-killed", workdir / "k.jsonl"
    shutil.rmtree(store, ignore_errors=True)
    arguments = [str(fleet), "--store", str(store), "--jsonl", str(output)]
    measured(arguments, kill_after=store, results=size // 2)
    kept = {path: path.stat().st_mtime_ns for path in store.glob("*/[0-9a-f]*.result")}
    resumed = measured(arguments)
    print(f"\nkilled with {len(kept):,} results kept, then: {resumed.said.splitlines()[0]}")
    entries = [json.loads(line) for line in output.open()]
    names = Counter((entry["run"], entry["attempt"]) for entry in entries)
    whole = [json.loads(line) for line in (workdir / "all.jsonl").open()]
    final = sum(path.stat().st_mtime_ns == before for path, before in kept.items())
    print(f"{len(entries):,} runs in the result, {sum(n > 1 for n in names.values())} twice, "
          f"{len(whole) - len(entries)} lost; {len(kept) - final:,} of those kept were made again; "
          f"the same as without the kill: {entries == whole}")  # fmt: skip
    return [] if entries == whole else ["the result after a kill is different"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workdir", type=Path, help="where to create and keep the fleets")
    parser.add_argument("--runs", type=int, nargs="+", default=list(SIZES))
    options = parser.parse_args()
    compileall.compile_dir(ROOT / "analyzer", quiet=1)  # as pip does when it installs
    with tempfile.TemporaryDirectory() as temporary:
        workdir = (options.workdir or Path(temporary)).resolve()
        workdir.mkdir(parents=True, exist_ok=True)
        missed = growth(workdir, options.runs) + killed(workdir, max(options.runs))
    for miss in missed:
        print(f"MISSED {miss}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
