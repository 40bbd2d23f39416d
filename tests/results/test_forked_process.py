"""A worker that begins as a copy of the process that needs it: it behaves like one that was started
anew, and nothing of the original goes on in it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stall_analyzer.results.forked_process import can_be_copied
from tests.patience import happens

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="only on Linux are processes copied"
)
PREPARED = (
    "import os, signal, sys\n"
    "from stall_analyzer.results.forked_process import can_be_copied\n"
    "from tests.results.test_worker_process import *\n"
    "assert can_be_copied()\n"
    "worker = WorkerProcess()\n"
)


def said_by(*lines: str, code: int = 0) -> list[str]:
    """What a program prints. It has a process of its own, since that of the tests has threads."""
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"
    }  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-c", PREPARED + "\n".join(lines)],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (code, "")
    return ended.stdout.splitlines()


def test_a_process_with_threads_is_not_copied() -> None:
    end = threading.Event()
    other = threading.Thread(target=end.wait)
    other.start()
    assert not can_be_copied()
    end.set()
    other.join()


def test_it_answers_and_prints_nothing_that_was_already_printed() -> None:
    said = said_by(
        "sys.stdout.write('once')",
        "worker.fork()",
        "first = worker.do(tell_pid, fake_run('a'))",
        "print(first == worker.do(tell_pid, fake_run('b')) != os.getpid())",
    )
    assert said == ["onceTrue"]


def test_it_has_the_analysis_loaded_and_the_limit_of_a_worker() -> None:
    said = said_by(
        "import resource",
        "worker = WorkerProcess(memory_bytes=3 << 30)",
        "def tell(run, progress):",
        "    loaded = 'stall_analyzer.outcome' in sys.modules",
        "    return loaded, resource.getrlimit(resource.RLIMIT_DATA)[0] >> 30, gc.get_threshold()",
        "worker.fork()",
        "print(*worker.do(tell, fake_run('a')))",
    )
    assert said == ["True 3 (100000, 10, 10)"]


def test_when_it_has_crashed_a_new_process_takes_its_place() -> None:
    said = said_by(
        "from stall_analyzer.results.worker_process import ProcessDied",
        "def crash(run, progress):",
        "    os.kill(os.getpid(), signal.SIGSEGV)",
        "worker.fork()",
        "try:",
        "    worker.do(crash, fake_run('a'))",
        "except ProcessDied as error:",
        "    print(error)",
        "print(worker.do(tell_pid, fake_run('a')) != os.getpid())",
    )
    assert said == ["its process crashed (Segmentation fault)", "True"]


def test_it_ends_when_it_is_closed() -> None:
    said = said_by(
        "worker.fork()",
        "pid = worker.do(tell_pid, fake_run('a'))",
        "worker.close()",
        "print(Path(f'/proc/{pid}').exists())",
    )
    assert said == ["False"]


@pytest.mark.parametrize("is_at_work", [False, True])
def test_all_copies_end_by_themselves_when_the_original_is_killed(is_at_work: bool) -> None:
    said = said_by(
        "others = [WorkerProcess() for _ in range(3)]",
        "for each in (*others, worker): each.fork()",
        "print(*(each.do(tell_pid, fake_run('a')) for each in (*others, worker)), flush=True)",
        "die = lambda *_: os.kill(os.getpid(), 9)",
        f"worker.do(speak_for_ever, fake_run('a'), die) if {is_at_work} else die()",
        code=-9,
    )
    copies = [Path(f"/proc/{pid}") for pid in said[0].split()]
    assert happens(lambda: not any(copy.exists() for copy in copies))
