"""`stall-analyze attach`: what is said of processes that were started without a capture."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tb_stall_plugin.capture.attach import attach_command, py_spy
from tb_stall_plugin.capture.attach.attached_job import AttachedJob, attached_job
from tb_stall_plugin.capture.attach.outside_looks import HANG_S, idle_seconds
from tb_stall_plugin.capture.attach.refusals import StacksRefused
from tests.capture import attached_hangs as hangs
from tests.capture.capture_logs import until

SECONDS = 5.0
PATIENCE_S = 180.0  # three of them import TensorFlow at once
NOBODY = 65534


@dataclass(frozen=True)
class Hang:
    program: str
    state: str
    bucket: str
    says: str

    @property
    def place(self) -> str:
        return f"program.py:{hangs.line_of_hang(self.program)}"


HANGS = {
    "lock": Hang(hangs.LOCK, "stuck", "host", "waits for a lock"),
    "callback": Hang(
        hangs.QUEUE_IN_A_CALLBACK, "stuck", "host", "waits in queue.Queue.get() and never goes on"
    ),
    "generator": Hang(
        hangs.GENERATOR_ON_A_SOCKET, "stuck", "input", "(the socket to 127.0.0.1:"
    ),
    "subprocess": Hang(hangs.SUBPROCESS, "stuck", "host", "waits in subprocess.run()"),
    "native": Hang(hangs.NATIVE_INPUT, "stuck", "input", "waits to open the named pipe /"),
    "loop": Hang(hangs.ENDLESS_LOOP, "endless", "host", "goes round in a while loop"),
}


@contextmanager
def started(program: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    folder.mkdir(exist_ok=True)
    path = folder / "program.py"
    path.write_text(hangs.PRELUDE + program)
    os.mkfifo(folder / "pipe")
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    process = subprocess.Popen(
        [sys.executable, str(path), str(folder / "pipe")],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
    )  # fmt: skip
    try:
        yield process
    finally:
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(child), 9)
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def allowed(tmp_path_factory: pytest.TempPathFactory) -> None:
    with started(hangs.LOCK, tmp_path_factory.mktemp("allowed")) as process:
        assert process.stdout is not None and process.stdout.readline()
        try:
            py_spy.threads_of(process.pid)
        except StacksRefused as refused:
            pytest.skip(str(refused))


@pytest.fixture(scope="module")
def jobs(allowed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, AttachedJob]]:
    """All six at once: each has to stand still for a while before anything is said of it."""
    running = {n: started(h.program, tmp_path_factory.mktemp(n)) for n, h in HANGS.items()}
    processes = {name: process.__enter__() for name, process in running.items()}
    try:
        with ThreadPoolExecutor(len(processes)) as pool:
            yield dict(zip(processes, pool.map(_attached, processes.values()), strict=True))
    finally:
        for process in running.values():
            process.__exit__(None, None, None)


def _attached(process: subprocess.Popen[str]) -> AttachedJob:
    assert process.stdout is not None and process.stdout.readline() == "hangs\n"
    began_s = time.monotonic()
    loops = HANGS["loop"].place.rpartition(":")[0] in "" or _is_loop(process)
    while not loops and time.monotonic() - began_s < PATIENCE_S:
        if (idle_seconds(Path(f"/proc/{process.pid}"), process.pid) or 0.0) >= HANG_S:
            break
        time.sleep(0.5)
    return attached_job(process.pid, SECONDS, all_ranks=False)
