"""The worker process as seen from TensorBoard."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from stall_analyzer.model.runs import Run

COMMAND = (sys.executable or "python3", "-m", "tb_stall_plugin.worker")
# A folder of the user's that happens to be called numpy must not be imported.
ENVIRONMENT = {"PYTHONSAFEPATH": "1"}

# How long a worker may say nothing before it is given up. It speaks while it reads, so silence
# means a disk or a network that hangs, or a fault of ours. What follows the reading is silent and
# grows with the run, but takes seconds where this allows for many minutes.
PATIENCE_S = 300.0
PATIENCE_S_PER_BYTE = 1e-6
ENDED = b""


class WorkFailed(Exception):
    """Why there is no result, in words for the page."""


class Worker:
    """Started ahead or for the first job, started again when it was killed, closed at the end."""

    def __init__(self) -> None:
        self._process: _Process | None = None

    def start(self) -> None:
        """Ahead of the first job: it takes longer than a small run. Raises WorkFailed."""
        if self._process is None:
            try:
                self._process = _Process()
            except OSError as error:
                raise WorkFailed(
                    f"No process could be started for the analysis: {error}."
                ) from error

    def analyze(self, run: Run, folder: Path, progress: Callable[[float, str], None]) -> None:
        """Until the analysis is in `folder`. Raises WorkFailed."""
        self.start()
        process = self._process
        assert process is not None
        process.tell((run, folder))
        while (line := self._next_line(process, run)) != ENDED:
            answer: dict[str, Any] = json.loads(line)
            if "failed" in answer:
                raise WorkFailed(answer["failed"])
            if "done" in answer:
                return
            progress(answer["share"], answer["text"])
        self._process = None
        raise WorkFailed(_why(process.close()))

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None

    def _next_line(self, process: _Process, run: Run) -> bytes:
        patience_s = PATIENCE_S + PATIENCE_S_PER_BYTE * run.size
        try:
            return process.hear(patience_s)
        except Empty:
            process.give_up()
            self._process = None
            raise WorkFailed(
                f"The analysis was stopped because it had not moved for {patience_s / 60:.0f} "
                "minutes. A disk or a network that hangs can be the reason."
            ) from None


class _Process:
    """One process, and what it says. A thread listens, because a pipe cannot be asked for a
    while."""

    def __init__(self) -> None:
        environment = {**os.environ, **ENVIRONMENT}
        self._process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        threading.Thread(target=self._listen, name="stall-worker", daemon=True).start()

    def tell(self, job: object) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it has ended; why is heard next
            pickle.dump(job, self._process.stdin)
            self._process.stdin.flush()

    def hear(self, within_s: float) -> bytes:
        """Its next line, or ENDED. Raises Empty when it says nothing for so long."""
        return self._lines.get(timeout=within_s)

    def close(self) -> int:
        """Lets it end, and gives its exit code."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        return self._process.wait()

    def give_up(self) -> None:
        """Does not wait: a process that hangs in a file system may not even be killed."""
        self._process.kill()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(ENDED)


def _why(code: int) -> str:
    if code < 0:
        return (
            f"The process that analysed this run was killed (signal {-code}), perhaps because "
            "memory ran out."
        )
    return (
        f"The process that analysed this run ended unexpectedly (exit code {code}). TensorBoard's "
        "terminal shows more."
    )
