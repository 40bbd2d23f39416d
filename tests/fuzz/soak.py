"""Thousands of requests to the tab and analyses in one process: does memory stay flat?

    python -m tests.fuzz.soak [--requests 10000] [--analyses 1000]

The first tenth warms up; what comes after it may not grow by more than a few megabytes.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from stall_analyzer.discover.discover import find_runs
from stall_analyzer.outcome import analyze_one
from tb_stall_plugin import logs
from tests.plugin.boards import SAMPLES, Board

MOST_GROWTH_MB = 16.0


def resident_mb() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def grown_mb(act: Callable[[int], None], count: int, what: str) -> float:
    for number in range(count // 10):
        act(number)
    before = resident_mb()
    for number in range(count // 10, count):
        act(number)
    after = resident_mb()
    print(f"{count:,} {what}: {before:.1f} MB after a tenth, {after:.1f} MB at the end", flush=True)
    return after - before


def requests(count: int) -> float:
    logs.REMEMBERED_S = 0.0  # each request looks at the folders
    board = Board(str(SAMPLES))
    runs = sorted(board.runs())
    for run in runs:
        board.report(run)

    def ask(number: int) -> None:
        run = runs[number % len(runs)]
        board.answer("runs")
        board.answer("report", run=run)
        begin = number % 100 * 10**9
        board.answer("timeline", run=run, start_ps=begin, end_ps=begin + 10**11, pixels=500)
        board.answer("search", run=run, text="MatMul")

    return grown_mb(ask, count // 4, "rounds of four requests")


def analyses(count: int) -> float:
    runs = find_runs([str(SAMPLES)]).runs

    def analyze(number: int) -> None:
        assert not analyze_one(runs[number % len(runs)]).traceback

    return grown_mb(analyze, count, "analyses")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--analyses", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stall-soak-") as cache:
        os.environ["STALL_CACHE_DIR"] = cache
        grown = [requests(options.requests), analyses(options.analyses)]
    flat = max(grown) <= MOST_GROWTH_MB
    print(f"grown by {grown[0]:.1f} and {grown[1]:.1f} MB: {'flat' if flat else 'NOT FLAT'}")
    return 0 if flat else 1


if __name__ == "__main__":
    sys.exit(main())
