"""Whole analyses of damaged logs, under a limit of memory and time.

    python -m tests.fuzz.pipeline [--cases N] [--seconds S] [--seed N] [--failures FOLDER]

Whatever the bytes, each run has an entry whose time adds up, made in time and without a fault of
ours; what was not damaged is answered as before. Cases that do harm are kept, to be looked into.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from stall_analyzer.discover.discover import find_runs
from stall_analyzer.outcome import analyze_one
from stall_analyzer.report.document_types import ReportEntry
from tests.fuzz.mutations import damaged
from tests.fuzz.seeds import Log, seeds

MEMORY_BYTES = 500 << 20
LONGEST_S = 10.0
OUR_FAULT = ("could not be analyzed", "Detector ST", "bug in stall-analyze", "memory ran out")


class TooSlow(BaseException):
    """Not an Exception: no guard may take it for a fault."""


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlow("".join(traceback.format_stack(frame)[-3:]))


@contextmanager
def limited() -> Iterator[None]:
    """Limits processor time, because others may keep the machine busy."""
    signal.signal(signal.SIGVTALRM, _too_slow)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def write(log: Log, folder: Path) -> None:
    for name, data in log.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def entries(folder: Path) -> list[ReportEntry]:
    """Raises AssertionError if an analysis broke a promise."""
    found = []
    for run in find_runs([str(folder)]).runs:
        outcome = analyze_one(run)
        assert not outcome.traceback, outcome.traceback
        said = " ".join(note["text"] for note in outcome.entry["notes"])
        assert not any(fault in said for fault in OUR_FAULT), said
        sums = outcome.entry["buckets_ps"]
        assert sum(sums.values()) == outcome.entry["window"]["duration_ps"], sums
        assert all(ps >= 0 for ps in sums.values()), sums
        found.append(outcome.entry)
    return found


class Campaign:
    def __init__(self, seed: int, failures: Path | None) -> None:
        self.rng = random.Random(seed)
        self.seeds = seeds()
        self.failures = failures
        self.cases = 0
        self.by_kind: Counter[str] = Counter()
        self.harmed: Counter[str] = Counter()
        self.slowest_s = 0.0

    def one(self, folder: Path) -> None:
        name = self.rng.choice(list(self.seeds))
        log = dict(self.seeds[name])
        for path in self.rng.sample(list(log), min(len(log), self.rng.choice((1, 1, 1, 2)))):
            log[path] = damaged(path, log[path], self.rng)
        write(log, folder)
        self.cases += 1
        self.by_kind[name] += 1
        began_s = time.process_time()
        try:
            with limited():
                entries(folder)
        except TooSlow as slow:
            self._harm(folder, f"slow {slow}")
        except AssertionError as error:
            self._harm(folder, str(error))
        except Exception:
            self._harm(folder, traceback.format_exc())
        self.slowest_s = max(self.slowest_s, time.process_time() - began_s)

    def _harm(self, folder: Path, what: str) -> None:
        lines = what.strip().splitlines()
        place = next((line.strip() for line in reversed(lines) if 'File "' in line), "")
        kind = f"{lines[-1][-300:]} {place}"
        self.harmed[kind] += 1
        if self.harmed[kind] > 1:
            return
        print(f"case {self.cases}: {what}", file=sys.stderr, flush=True)
        if self.failures:
            shutil.copytree(folder, self.failures / f"{self.cases}", dirs_exist_ok=True)

    def __str__(self) -> str:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        slow = sum(count for kind, count in self.harmed.items() if kind.startswith("slow"))
        faults = sum(self.harmed.values()) - slow
        return (
            f"{self.cases:,} cases ({', '.join(sorted(self.by_kind))}): {faults} faults, "
            f"{slow} over {LONGEST_S:g} s; slowest {self.slowest_s:.2f} s; peak {peak} MB"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=sys.maxsize)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--failures", type=Path, help="where cases that do harm are kept")
    options = parser.parse_args()
    warnings.simplefilter("error", RuntimeWarning)  # users would see them
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, resource.RLIM_INFINITY))
    campaign = Campaign(options.seed, options.failures)
    until_s = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(prefix="stall-fuzz-", dir=_in_memory()) as scratch:
        while campaign.cases < options.cases and time.monotonic() < until_s:
            folder = Path(scratch, str(campaign.cases))
            campaign.one(folder)
            shutil.rmtree(folder)
            if campaign.cases % 5_000 == 0:
                print(campaign, flush=True)
    print(campaign, flush=True)
    return 1 if campaign.harmed else 0


def _in_memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


if __name__ == "__main__":
    sys.exit(main())
