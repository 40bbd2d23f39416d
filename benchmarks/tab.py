"""How long the tab waits for its data, compared with XProf's overview page in the same TensorBoard.

    python benchmarks/tab.py LOGDIR [ROUNDS]

Works on copies of LOGDIR, because XProf writes to log directories. Cold: the first request to a new
TensorBoard, with empty caches. Warm: the first request to another one, with the caches that the
first one filled. Our time begins with the page's script and ends with the report and the timeline
of a run, which the page only has to draw; `verdict` is when the report is there. The median counts.

Then it moves through the timeline like a user: windows of all sizes and places, none of which may
take longer than a frame or two. Exits with 1 if one does.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

SCREEN_PIXELS = 1600
ASK_EVERY_S = 0.02
START_WITHIN_S = 120
# A browser takes this long to show TensorBoard's own page, before anyone can open a tab.
PAGE_S = 2.0
ROUNDS = 3
STATES = ("cold", "warm")
WINDOWS = 40
ZOOMS = (1, 4, 20, 100, 1000)  # how many times shorter than the whole
MOST_MS = 30.0


def main(logdir: str, rounds: int = ROUNDS) -> int:
    windows_ms: list[float] = []
    times: dict[str, list[tuple[float, float, float]]] = {state: [] for state in STATES}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            logs = shutil.copytree(logdir, Path(folder) / "logs")
            for state in STATES:
                with _tensorboard(logs, Path(folder) / "cache") as board:
                    verdict, ours, run, report = _stall(board)
                    windows_ms += _windows(board, run, report)
                    theirs = _xprof(board, report)
                times[state].append((verdict, ours, theirs))
    print(f"{'':6}{'verdict':>10}{'Stall':>10}{'XProf':>10}{'ratio':>8}")
    for state, measured in times.items():
        verdict, ours, theirs = (statistics.median(side) for side in zip(*measured, strict=True))
        print(f"{state:6}{verdict:8.2f} s{ours:8.2f} s{theirs:8.2f} s{theirs / ours:8.1f}")
    middle, most = statistics.median(windows_ms), max(windows_ms)
    print(f"{len(windows_ms)} timeline windows: median {middle:.1f} ms, at most {most:.1f} ms")
    print(f"run {run}: {report['verdict']['sentence']}")
    if most > MOST_MS:
        print(f"MISSED a window took {most:.1f} ms, not {MOST_MS:g}")
    return int(most > MOST_MS)


def _stall(board: str) -> tuple[float, float, str, dict[str, Any]]:
    """Seconds until the report is there, and until the timeline is; the run's name, its report."""
    begin = time.perf_counter()
    _fetch(f"{board}/stall/index.js")
    runs = _ask(f"{board}/stall/runs")["runs"]
    run = runs[0]["run"]
    answer = _ask(f"{board}/stall/report", run=run)
    while answer["state"] in {"waiting", "running"}:
        time.sleep(ASK_EVERY_S)
        answer = _ask(f"{board}/stall/report", run=run)
    verdict_s = time.perf_counter() - begin
    window = {"start_ps": 0, "end_ps": answer["report"]["window"]["duration_ps"]}
    while "state" in _ask(f"{board}/stall/timeline", run=run, **window, pixels=SCREEN_PIXELS):
        time.sleep(ASK_EVERY_S)
    return verdict_s, time.perf_counter() - begin, run, answer["report"]


def _windows(board: str, run: str, report: dict[str, Any]) -> list[float]:
    """Milliseconds for each window: the whole, and smaller and smaller ones all over it."""
    chance = random.Random(1)
    whole_ps = report["window"]["duration_ps"]
    taken_ms = []
    for number in range(WINDOWS):
        size_ps = whole_ps // ZOOMS[number % len(ZOOMS)]
        start_ps = chance.randrange(whole_ps - size_ps + 1)
        begin = time.perf_counter()
        _ask(f"{board}/stall/timeline", run=run, start_ps=start_ps, end_ps=start_ps + size_ps,
             pixels=SCREEN_PIXELS)  # fmt: skip
        taken_ms.append(1000 * (time.perf_counter() - begin))
    return taken_ms


def _xprof(board: str, report: dict[str, Any]) -> float:
    begin = time.perf_counter()
    session, host = report["sessions"][0], report["hosts"][0]
    _fetch(f"{board}/profile/data", run=session, tag="overview_page", host=host)
    return time.perf_counter() - begin


def _ask(url: str, **arguments: object) -> Any:
    return json.loads(_fetch(url, **arguments))


def _fetch(url: str, **arguments: object) -> bytes:
    with urlopen(f"{url}?{urlencode(arguments)}") as answer:
        return bytes(answer.read())


@contextmanager
def _tensorboard(logs: Path, cache: Path) -> Iterator[str]:
    """Its address, including the path to the plugins."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logs), "--port", str(port)]
    process = subprocess.Popen(
        command,
        env={**os.environ, "STALL_CACHE_DIR": str(cache)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://localhost:{port}/data"
    try:
        until = time.monotonic() + START_WITHIN_S
        while True:
            try:
                _ask(f"{address}/plugins_listing")
                break
            except URLError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
        time.sleep(PAGE_S)
        yield f"{address}/plugin"
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
