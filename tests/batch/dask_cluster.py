"""A Dask cluster of separate processes on loopback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def variables() -> dict[str, str]:
    paths = (os.environ.get("PYTHONPATH"), str(ROOT / "analyzer"), str(ROOT))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@contextmanager
def process(*command: str, says: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Starts a process of Dask and waits until it prints this; returns it with that line."""
    started = subprocess.Popen(
        [sys.executable, "-m", *command], stderr=subprocess.PIPE, text=True, env=variables()
    )
    try:
        assert started.stderr is not None
        for line in started.stderr:
            if re.search(says, line):
                break
        else:
            raise AssertionError(f"{command[0]} ended with {started.wait()}")
        # A pipe that nobody empties would block it.
        threading.Thread(target=started.stderr.read, daemon=True).start()
        yield started, line
    finally:
        started.kill()
        started.wait()


@contextmanager
def cluster(workers: int) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    """A scheduler on loopback: its address, and its workers."""
    with ExitStack() as stack:
        scheduler = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
                   "--no-dashboard")  # fmt: skip
        _, line = stack.enter_context(process(*scheduler, says=r"Scheduler at:\s+tcp://"))
        address = line.split()[-1]
        worker = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny",
                   "--no-dashboard", "--host", "127.0.0.1")  # fmt: skip
        started = [
            stack.enter_context(process(*worker, says=r"Registered to:"))[0] for _ in range(workers)
        ]
        yield address, started
