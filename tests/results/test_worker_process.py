"""The process that does the work: whatever it does, whoever waits for it gets an answer."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stall_analyzer.garbage import COLLECT_AFTER
from stall_analyzer.model.runs import Run
from stall_analyzer.progress import Progress
from stall_analyzer.results.worker_process import TookTooLong, WorkerProcess, WorkFailed
from tests.batch.fleets import fake_run
from tests.patience import happens

LONG_S = 600


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    made = WorkerProcess()
    yield made
    made.close()


def tell_pid(run: Run, progress: Progress) -> int:
    progress(0.5, run.name)
    return os.getpid()


def tell_how_often_garbage_is_collected(run: Run, progress: Progress) -> int:
    return gc.get_threshold()[0]


def be_silent(run: Run, progress: Progress) -> None:
    time.sleep(LONG_S)


def speak_for_ever(run: Run, progress: Progress) -> None:
    while True:
        progress(0.5, "still there")
        time.sleep(0.05)


def print_and_fail(run: Run, progress: Progress) -> None:
    os.write(1, b"a library says this\n" * 1000)
    raise RuntimeError("cursed")


def test_one_process_answers_one_question_after_the_other(worker: WorkerProcess) -> None:
    heard: list[tuple[float, str]] = []
    worker.start()
    first = worker.do(tell_pid, fake_run("a"), lambda *said: heard.append(said))
    assert worker.do(tell_pid, fake_run("b")) == first != os.getpid()
    assert heard == [(0.5, "a")]


def test_garbage_is_collected_rarely(worker: WorkerProcess) -> None:
    worker.start()
    assert worker.do(tell_how_often_garbage_is_collected, fake_run("a")) == COLLECT_AFTER


def test_a_fault_is_told_whatever_is_printed_and_the_process_lives_on(
    worker: WorkerProcess,
) -> None:
    first = worker.do(tell_pid, fake_run("a"))
    with pytest.raises(WorkFailed, match="RuntimeError: cursed"):
        worker.do(print_and_fail, fake_run("a"))
    assert worker.do(tell_pid, fake_run("a")) == first


def test_a_deadline_holds_however_much_is_said(worker: WorkerProcess) -> None:
    first = worker.do(tell_pid, fake_run("a"))
    with pytest.raises(TookTooLong, match=r"it took longer than 0.5 s \(--deadline\)"):
        worker.do(speak_for_ever, fake_run("a"), deadline_s=0.5, patience_s=LONG_S)
    assert worker.do(tell_pid, fake_run("a")) != first


def test_patience_ends_where_nothing_is_said(worker: WorkerProcess) -> None:
    first = worker.do(tell_pid, fake_run("a"))
    with pytest.raises(TookTooLong, match="it had made no progress for"):
        worker.do(be_silent, fake_run("a"), deadline_s=LONG_S, patience_s=0.5)
    assert worker.do(tell_pid, fake_run("a")) != first


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("is_at_work", [False, True])
def test_it_ends_by_itself_when_its_parent_is_killed(is_at_work: bool) -> None:
    script = (
        "import os\n"
        "from tests.results.test_worker_process import *\n"
        "worker = WorkerProcess()\n"
        "print(worker.do(tell_pid, fake_run('a')), flush=True)\n"
        "die = lambda *_: os.kill(os.getpid(), 9)\n"
        f"worker.do(speak_for_ever, fake_run('a'), die) if {is_at_work} else die()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert parent.returncode == -9, parent.stderr
    pid = int(parent.stdout)
    assert happens(lambda: not Path(f"/proc/{pid}").exists())
    assert parent.stderr == ""
