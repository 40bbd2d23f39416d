"""`stall-analyze attach`: what it says about processes that were started without a capture."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

import pytest

from stall_analyzer.captures.capture_records import NS_PER_S
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.signals.ending.scene import Blamed
from stall_analyzer.signals.ending.stall import Stall
from stall_analyzer.signals.ending.stalled import stall_of
from tb_stall_plugin.capture.attach import attach_command, py_spy
from tb_stall_plugin.capture.attach.attached_job import (
    AttachedJob,
    Member,
    attached_job,
    waited_for,
)
from tb_stall_plugin.capture.attach.job_views import as_json, as_text
from tb_stall_plugin.capture.attach.local_job import job_of
from tb_stall_plugin.capture.attach.outside_looks import HANG_S, Observer, idle_seconds
from tb_stall_plugin.capture.attach.py_spy import PythonFrame, PythonThread
from tb_stall_plugin.capture.attach.refusals import StacksRefused
from tb_stall_plugin.capture.attach.target import Target
from tests.capture import attached_hangs as hangs
from tests.capture.capture_logs import until
from tests.capture.test_kernel_view import needs_linux

pytestmark = needs_linux
SECONDS = 5.0
NOBODY = 65534


@dataclass(frozen=True)
class Hang:
    program: str
    state: str
    bucket: str
    says: str
    computes: bool = False

    @property
    def place(self) -> str:
        return f"program.py:{hangs.line_of_hang(self.program)}"


HANGS = {
    "lock": Hang(hangs.LOCK, "stuck", "host", "is waiting for a lock"),
    "callback": Hang(
        hangs.QUEUE_IN_A_CALLBACK,
        "stuck",
        "host",
        "is waiting in queue.Queue.get() and will never continue",
    ),
    "generator": Hang(hangs.GENERATOR_ON_A_SOCKET, "stuck", "input", "(the socket to 127.0.0.1:"),
    "subprocess": Hang(
        hangs.SUBPROCESS, "stuck", "host", "subprocess.Popen.communicate() (process "
    ),
    "native": Hang(hangs.NATIVE_INPUT, "stuck", "input", "is waiting to open the named pipe /"),
    "loop": Hang(hangs.ENDLESS_LOOP, "endless", "host", "is in a while loop", True),
}


@contextmanager
def started(program: str, folder: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    folder.mkdir(exist_ok=True)
    path, pipe = folder / "program.py", folder / "pipe"
    path.write_text(hangs.PRELUDE + program)
    if not pipe.exists():
        os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, str(path), str(pipe)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", **variables},
        start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # and everything it started
        process.communicate()


def until_it_says_so(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None and process.stdout.readline() == "hangs\n"


def until_it_is_there(process: subprocess.Popen[str], place: str) -> None:
    """The program said that it hangs a moment before it does."""
    until_it_says_so(process)
    until(lambda: is_there(process.pid, place))


def is_there(pid: int, place: str) -> bool:
    try:
        found = py_spy.threads_of(pid)
    except StacksRefused:  # it changed while it was read
        return False
    return any(f"{place} " in f"{text} " for thread in found for text in thread.texts)


def has_been_still(pid: int) -> bool:
    """Whether the kernel says that it has been still for long enough to call it stuck."""
    idle_s = idle_seconds(Path(f"/proc/{pid}"), pid)
    return idle_s is None or idle_s >= HANG_S


@pytest.fixture(scope="module")
def allowed(tmp_path_factory: pytest.TempPathFactory) -> None:
    with started(hangs.LOCK, tmp_path_factory.mktemp("allowed")) as process:
        until_it_says_so(process)
        try:
            py_spy.threads_of(process.pid)
        except StacksRefused as refused:
            pytest.skip(str(refused))


@pytest.fixture(scope="module")
def jobs(allowed: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, AttachedJob]:
    """All at once: each must stand still for a while before anything can be said about it."""

    def attached(name: str) -> AttachedJob:
        hang = HANGS[name]
        with started(hang.program, tmp_path_factory.mktemp(name)) as process:
            until_it_is_there(process, hang.place)
            until(lambda: hang.computes or has_been_still(process.pid))
            return attached_job(process.pid, SECONDS, all_ranks=False)

    with ThreadPoolExecutor(len(HANGS)) as pool:
        return dict(zip(HANGS, pool.map(attached, HANGS), strict=True))


@pytest.mark.parametrize("name", HANGS)
def test_a_hang_is_judged_as_if_it_had_been_captured(
    name: str, jobs: dict[str, AttachedJob]
) -> None:
    hang, stall = HANGS[name], jobs[name].shown.stall
    assert stall is not None
    assert (stall.state, stall.bucket) == (hang.state, hang.bucket), stall.sentence
    assert hang.says in stall.sentence
    assert hang.place in stall.sentence
    verdict = jobs[name].report["runs"][0]["verdict"]
    assert (verdict["status"], verdict["sentence"]) == ("stuck", f"{stall.sentence}.")


def test_the_thread_that_holds_it_up_is_shown_first(jobs: dict[str, AttachedJob]) -> None:
    shown = as_text(jobs["generator"], StringIO(), threads=True, plain=True)
    threads = jobs["generator"].report["runs"][0]["threads"]
    assert threads[0]["blamed"] and not threads[0]["main"]
    assert shown.index("which holds up training") < shown.index("MainThread")


def test_memory_children_and_native_threads_are_shown(jobs: dict[str, AttachedJob]) -> None:
    (process,) = json.loads(as_json(jobs["subprocess"]))["processes"]
    assert process["state"] == "stuck"
    assert process["memory"]["rss_bytes"] > 0
    assert [child["name"] for child in process["children"]] == ["sleep"]
    assert [thread["wait"] for thread in process["native"]] == ["wait4"]


HEALTHY = {
    "computes": (hangs.AT_WORK, "program.py:5", "was at work"),
    "sleeps": (hangs.SLEEPS, "program.py:5", "the training script at program.py:5 is sleeping"),
    "rests": (hangs.RESTS, "select", "the process is waiting for the user or for requests"),
    "trains": (hangs.TRAINS, "program.py:8", "was at work"),
}


def test_what_computes_sleeps_rests_or_trains_is_not_stuck(allowed: None, tmp_path: Path) -> None:
    def attached(name: str) -> str:
        program, place, _ = HEALTHY[name]
        with started(program, tmp_path / name) as process:
            until_it_is_there(process, place)
            stall = attached_job(process.pid, SECONDS, all_ranks=False).shown.stall
        assert stall is not None and stall.state == "slow"
        return stall.sentence

    with ThreadPoolExecutor(len(HEALTHY)) as pool:
        for name, sentence in zip(HEALTHY, pool.map(attached, HEALTHY), strict=True):
            assert sentence.startswith("Not stuck: ")
            assert HEALTHY[name][2] in sentence


def test_a_process_that_was_still_only_for_a_moment_is_not_called_stuck(
    allowed: None, tmp_path: Path
) -> None:
    with started(hangs.LOCK, tmp_path) as process:
        until_it_is_there(process, HANGS["lock"].place)
        observer = Observer(Target(process.pid))
        observer.look()
        sight = replace(observer.sights[0], idle_s=0.0)
        observer.sights = [
            replace(sight, ns=sight.ns + second * NS_PER_S, idle_s=float(second))
            for second in range(6)
        ]
        stall = stall_of(observer.capture, [observer.capture])
    assert stall is not None and stall.state == "unsure"
    assert "5 s is not long enough to tell" in stall.sentence


def test_threads_of_a_capture_inside_the_process_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frames = (PythonFrame("/home/me/train.py", 3, "wait"),)
    found = tuple(
        PythonThread(os.getpid(), name, frames) for name in ("MainThread", "stall-watchdog")
    )
    monkeypatch.setattr(py_spy, "threads_of", lambda pid, with_locals=False: found)
    observer = Observer(Target(os.getpid()))
    observer.look()
    assert [thread.name for thread in observer.sights[0].threads] == ["MainThread"]


def test_the_process_that_the_others_of_its_job_wait_for_is_named() -> None:
    waiting, culprit = attached_member(1, "communication"), attached_member(2, "input")
    assert waited_for([waiting, culprit]) is culprit
    assert waited_for([waiting, waiting]) is None
    assert waited_for([culprit, culprit]) is None


def attached_member(pid: int, bucket: Bucket) -> Member:
    blamed = Blamed(bucket, "it", "waits", ())
    stall = Stall("stuck", 0, 0, 0, "", blamed, attached=True)
    return Member(observer=None, capture=Capture(), stall=stall)  # type: ignore[arg-type]


def test_a_job_is_all_processes_that_one_launcher_started(allowed: None, tmp_path: Path) -> None:
    def ranks(index: int) -> dict[str, str]:
        return {"OMPI_COMM_WORLD_RANK": str(index), "OMPI_COMM_WORLD_SIZE": "2"}

    with (
        started(hangs.LOCK, tmp_path, **ranks(0)) as one,
        started(hangs.LOCK, tmp_path, **ranks(1)) as other,
        started(hangs.SUBPROCESS, tmp_path / "another"),
    ):
        for process in (one, other):
            until_it_says_so(process)
        job = job_of(Target(one.pid))
        assert [target.pid for target in job] == sorted((one.pid, other.pid))
        assert sorted(str(target.environment.task) for target in job) == ["worker 0", "worker 1"]


# ---------------------------------------------------------------- what cannot be looked at


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What it says, in one line."""
    assert attach_command.main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_a_process_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no process 99999999" in refused(capsys, "99999999")


def test_a_zombie_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    child = subprocess.Popen(["true"])
    until(lambda: " Z " in Path(f"/proc/{child.pid}/stat").read_text())
    assert f"process {child.pid} has ended (a zombie" in refused(capsys, str(child.pid))
    child.wait()


def test_a_process_that_is_not_python_is_refused(
    allowed: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with subprocess.Popen(["sleep", "100"]) as child:
        assert f"process {child.pid} is not a Python process" in refused(capsys, str(child.pid))
        child.kill()


def test_a_process_of_another_user_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    monkeypatch.setattr(
        Path, "stat", lambda path, **_: os.stat_result([0, 0, 0, 0, 12345] + [0] * 5)
    )
    assert "belongs to the user with ID 12345" in refused(capsys, str(os.getppid()))


def test_a_process_that_ends_while_it_is_examined_is_refused(
    allowed: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def end_it(_: float) -> None:
        """It stays a zombie, as if its parent never waited for it: `process.kill` would."""
        os.kill(process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    with started(hangs.LOCK, tmp_path) as process:
        until_it_is_there(process, HANGS["lock"].place)
        monkeypatch.setattr(time, "sleep", end_it)  # between two looks
        assert f"process {process.pid} ended while" in refused(capsys, str(process.pid))


def test_without_py_spy_it_says_so_and_what_the_kernel_knows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(py_spy, "_program", lambda: None)
    with started(hangs.LOCK, tmp_path) as process:
        until_it_says_so(process)
        assert attach_command.main([str(process.pid)]) == 2
    told = capsys.readouterr()
    assert "pip install 'tensorboard-plugin-stall[attach]'" in told.err
    assert "without Python's stacks" in told.out
    assert "  thread python" in told.out


@pytest.mark.parametrize("wrong", [["x"], ["-1"], ["0"], ["1", "--seconds", "2"]])
def test_a_wrong_command_line_is_refused(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        attach_command.main(wrong)
    assert exit.value.code == 2
