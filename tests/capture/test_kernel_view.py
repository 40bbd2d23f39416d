"""What the kernel says about threads: the call that each waits in, and what it waits for."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tb_stall_plugin.capture.process.child_processes import child_processes
from tb_stall_plugin.capture.process.kernel_view import Wait, run_time, wait_of
from tb_stall_plugin.capture.process.thread_numbers import numbers_of
from tests.capture.capture_logs import until

needs_linux = pytest.mark.skipif(
    not Path("/proc/self/syscall").exists(), reason="only Linux says what threads wait in"
)
pytestmark = needs_linux


@contextmanager
def waiting(target: Callable[[], object]) -> Iterator[str]:
    """The number of a thread that is in the call; the test lets it out."""
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    yield str(thread.native_id)


def test_a_thread_that_waits_for_an_answer_names_the_other_side() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    answering, _ = server.accept()
    with waiting(lambda: client.recv(1)) as number:
        to = f"the socket to 127.0.0.1:{server.getsockname()[1]}"
        until(lambda: wait_of(number) == Wait("recvfrom", to))
    answering.close()


def test_a_thread_that_opens_a_named_pipe_names_it(tmp_path: Path) -> None:
    pipe = tmp_path / "checkpoint"
    os.mkfifo(pipe)
    with waiting(lambda: pipe.open("w").close()) as number:
        until(lambda: wait_of(number).call == "openat")
        assert wait_of(number).on.endswith(str(pipe))
    pipe.open().close()


def test_a_thread_that_waits_for_the_lock_of_a_file_names_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as held, path.open("w") as wanted:
        fcntl.flock(held, fcntl.LOCK_EX)
        with waiting(lambda: fcntl.flock(wanted, fcntl.LOCK_EX)) as number:
            until(lambda: wait_of(number) == Wait("flock", str(path)))
            fcntl.flock(held, fcntl.LOCK_UN)


def test_a_thread_that_stays_in_one_call_gets_no_core() -> None:
    event = threading.Event()

    def stays() -> bool:
        before = run_time(number)
        time.sleep(0.05)  # to get there, if it has only waited for the interpreter so far
        return wait_of(number).call == "futex" and run_time(number) == before is not None

    with waiting(event.wait) as number:
        until(stays)
    event.set()


def test_the_number_of_a_thread_is_found_in_its_record() -> None:
    """This is needed for threads that TensorFlow started, whose number Python does not know."""
    event = threading.Event()
    threads = [threading.Thread(target=event.wait, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    idents = [thread.ident or 0 for thread in threads]
    assert numbers_of(idents) == {t.ident: str(t.native_id) for t in threads}
    assert numbers_of([8]) == {}, "without a record, there is no number"
    event.set()


def test_children_are_shown_with_the_call_they_wait_in() -> None:
    code = "import sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as child:
        until(lambda: any(c.pid == child.pid and c.wait == "read" for c in child_processes()))
        child.kill()
        until(lambda: any(c.pid == child.pid and c.state == "Z" for c in child_processes()))
