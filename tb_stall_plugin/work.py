"""The worker process as seen from TensorBoard."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stall_analyzer.model import Run

COMMAND = (sys.executable or "python3", "-m", "tb_stall_plugin.worker")
# A folder of the user's that happens to be called numpy must not be imported.
ENVIRONMENT = {"PYTHONSAFEPATH": "1"}


class WorkFailed(Exception):
    """Why there is no result, in words for the page."""


class Worker:
    """Started for the first job, started again when it was killed, closed when nothing is left."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def analyze(self, run: Run, folder: Path, progress: Callable[[float, str], None]) -> None:
        """Until the analysis is in `folder`. Raises WorkFailed."""
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump((run, folder), process.stdin)
            process.stdin.flush()
        except OSError:  # it has ended; why is told below
            pass
        for line in process.stdout:
            answer: dict[str, Any] = json.loads(line)
            if "failed" in answer:
                raise WorkFailed(answer["failed"])
            if "done" in answer:
                return
            progress(answer["share"], answer["text"])
        self.close()
        raise WorkFailed(_why(process.returncode))

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **ENVIRONMENT}
        try:
            self._process = subprocess.Popen(
                COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
        except OSError as error:
            raise WorkFailed(f"No process could be started for the analysis: {error}.") from error
        return self._process


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
