"""Native code that waits without letting Python run still leaves the stacks."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import threading
from pathlib import Path

import pytest

from stall_analyzer.captures.capture_format import STACKS_HEADER_BYTES
from stall_analyzer.captures.capture_records import Environment
from stall_analyzer.captures.held_stacks import parse, read_dump, stacks_file_of
from stall_analyzer.captures.look_records import Look, ThreadStack
from stall_analyzer.events.event_files import read_events
from stall_analyzer.model.runs import EventFile, Run
from tb_stall_plugin.capture.process.held_interpreter import HeldInterpreter
from tb_stall_plugin.capture.process.recorder import Recorder
from tests.capture.capture_logs import records, run, start, until
from tests.capture.test_guard import program
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and forks")

BEGIN = """
    import faulthandler
    import tb_stall_plugin.capture.process.held_interpreter as module
    module.LATE_S = 0.5
    put_off, has_looked = module.HeldInterpreter.put_off, threading.Event()
    def put_off_and_tell(*arguments):
        put_off(*arguments)
        has_looked.set()
    module.HeldInterpreter.put_off = put_off_and_tell
    g = guard(sys.argv[1], hang_after_s=5)
"""
# Unlike CDLL, PyDLL does not release the interpreter lock.
HOLD = """
    libc = ctypes.PyDLL(None)
    sys.setswitchinterval(1000)  # after it has looked, no other thread may run
    def wait_for_the_other_workers():
        while not has_looked.is_set():
            time.sleep(0.01)
        libc.write(1, b"holds\\n", 6)
        libc.read(0, ctypes.create_string_buffer(1), 1)  # until the test says something
    wait_for_the_other_workers()
    sys.setswitchinterval(0.005)
    os.read(0, 1)
"""


def event_file(folder: Path) -> str:
    (path,) = folder.glob("events.out.tfevents.*")
    return str(path)


def test_a_held_interpreter_leaves_its_stacks_although_no_python_runs(tmp_path: Path) -> None:
    child = start(program(BEGIN, HOLD), tmp_path)
    until(lambda: any(tmp_path.glob("events.*")) and read_dump(event_file(tmp_path)))
    child.kill()
    child.communicate()
    dump = read_dump(event_file(tmp_path))
    assert dump is not None and dump.interpreter_held
    assert (dump.reason, dump.phase, dump.step) == ("no_step", "startup", 0)
    assert dump.limit_s == 5 and dump.idle_s > 5
    (thread,) = dump.threads  # our threads are left out
    assert thread.main and thread.frames[0].endswith("wait_for_the_other_workers")
    assert records(tmp_path, "dump", was_killed=True) == []


def test_when_python_runs_again_the_dump_is_recorded(tmp_path: Path) -> None:
    child = start(program(BEGIN, HOLD), tmp_path)
    assert child.stdin is not None
    until(lambda: any(tmp_path.glob("events.*")) and read_dump(event_file(tmp_path)))
    child.stdin.write("!")
    child.stdin.flush()
    until(lambda: records(tmp_path, "dump"))
    child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0
    first, *_ = records(tmp_path, "dump")
    assert first["interpreter_held"] and first["ns"] < records(tmp_path, "end")[0]["ns"]
    assert len(list(tmp_path.iterdir())) == 1  # the file with the stacks is gone


def test_a_dump_that_was_not_yet_taken_keeps_its_time(tmp_path: Path) -> None:
    """The thread that looks may be held between asking for a dump and putting the next one off."""
    path = tmp_path / "stacks.txt"
    held = HeldInterpreter(path)
    held.begin()
    try:
        held.put_off(1000.0, Look(ns=1, step=0, idle_s=0.0, phase="startup", cpu_s=0.0))
        with path.open("ab") as file:
            file.write(b"Thread 0x1 (most recent call first):\n")
        before = path.read_bytes()
        held.put_off(2000.0, Look(ns=2, step=0, idle_s=0.0, phase="startup", cpu_s=0.0))
        assert path.read_bytes() == before
    finally:
        held.end()


def test_a_second_one_does_not_wait_for_the_first(tmp_path: Path) -> None:
    look = Look(ns=1, step=0, idle_s=0.0, phase="startup", cpu_s=0.0)
    before = faulthandler.dump_traceback_later
    first, second = HeldInterpreter(tmp_path / "first"), HeldInterpreter(tmp_path / "second")
    first.begin()
    second.begin()
    for held in (first, second):
        looks = threading.Thread(target=held.put_off, args=(1000.0, look), daemon=True)
        looks.start()
        looks.join(PATIENCE_S)
        assert not looks.is_alive()
    first.end()
    second.end()
    assert faulthandler.dump_traceback_later == before


def test_sigterm_ends_such_a_process_before_training_begins(tmp_path: Path) -> None:
    child = start(program(BEGIN, HOLD), tmp_path)
    assert child.stdout is not None and child.stdout.readline() == "holds\n"
    child.terminate()
    child.communicate(timeout=PATIENCE_S)
    assert child.returncode == -signal.SIGTERM


def test_a_forked_child_ends_although_the_timer_runs(tmp_path: Path) -> None:
    fork = """
        time.sleep(0.2)
        for _ in range(3):
            child = os.fork()
            if not child:
                sys.exit(3)  # faulthandler would wait here for the thread of its timer
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        time.sleep(1.2)
    """
    assert run(program(BEGIN, fork), tmp_path) == (0, "")
    assert len(records(tmp_path, "end")) == 1


def test_whoever_forks_does_not_wait_for_a_disk_that_hangs(tmp_path: Path) -> None:
    fork = """
        hangs = threading.Event()
        def pwrite(*_):
            hangs.set()
            time.sleep(600)
        os.pwrite = pwrite
        hangs.wait()
        child = os.fork()
        if not child:
            sys.exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    """
    assert run(program(BEGIN, fork), tmp_path) == (0, "")


def test_a_script_that_sets_the_timer_itself_keeps_it(tmp_path: Path) -> None:
    # Python's timer sometimes crashes if it looks at a running thread, so our two threads
    # stand still meanwhile: the one that looks, and the one that writes.
    own = """
        has_looked.wait()
        stand_still, may_go_on = threading.Semaphore(0), threading.Event()
        def stand(*_):
            stand_still.release()
            may_go_on.wait()
        module.HeldInterpreter.put_off = stand
        g.recorder.on_flush.append(stand)
        stand_still.acquire()
        stand_still.acquire()
        faulthandler.dump_traceback_later(0.2, file=sys.stderr)
        os.read(0, 1)
        may_go_on.set()
        g.close("exit")
        assert faulthandler.dump_traceback_later.__module__ == "faulthandler"
    """
    child = start(program(BEGIN, own), tmp_path)
    assert child.stderr is not None and child.stderr.readline().startswith("Timeout (0:00:00.2")
    # It looks at the main thread last, which must not continue before that.
    assert any("<module>" in line for line in iter(child.stderr.readline, ""))
    child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0


def test_a_process_that_ends_leaves_no_file(tmp_path: Path) -> None:
    assert run(program(BEGIN), tmp_path) == (0, "")
    assert [path.suffix for path in tmp_path.iterdir()] == [".stall"]


# ---------------------------------------------------------------- the file

KNOWN = {
    "ns": 1_000_000_000, "due_s": 18.0, "main": 0x10, "ours": [0x30], "step": 4, "idle_s": 2.0,
    "limit_s": 10.0, "phase": "startup", "cpu_s": 7.5,
}  # fmt: skip
TEXT = """\
Timeout (0:00:18)!
Thread 0x0000000000000030 (most recent call first):
  File "/lib/watchdog.py", line 5 in look

Thread 0x0000000000000020 (most recent call first):
  File "/home/a b/data.py", line 12 in read

Thread 0x0000000000000010 (most recent call first):
  File "/tf/context.py", line 632 in ensure_initialized
  File "/home/train.py", line 3 in <module>
"""


def as_file(known: object, text: str) -> bytes:
    return json.dumps(known).encode().ljust(STACKS_HEADER_BYTES) + text.encode()


def test_the_text_becomes_a_dump() -> None:
    dump = parse(as_file(KNOWN, TEXT))
    assert dump is not None
    assert (dump.ns, dump.idle_s, dump.step) == (19_000_000_000, 20.0, 4)
    main = "/tf/context.py:632 ensure_initialized", "/home/train.py:3 <module>"
    assert dump.threads == (
        ThreadStack("MainThread", main=True, frames=main),
        ThreadStack(frames=("/home/a b/data.py:12 read",)),
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        as_file(KNOWN, ""),
        as_file({}, TEXT),
        as_file([], TEXT),
        as_file({**KNOWN, "ns": "now"}, TEXT),
        as_file({**KNOWN, "due_s": 1e300}, TEXT),
        as_file(KNOWN, "nonsense"),
        TEXT.encode(),
    ],
)
def test_a_file_that_says_nothing_is_not_a_dump(data: bytes) -> None:
    assert parse(data) is None


def test_only_a_capture_has_such_a_file(tmp_path: Path) -> None:
    assert stacks_file_of("logs/events.out.tfevents.1.host.2.v2") is None
    ours = "logs/events.out.tfevents.1.host.name.2.0.stall"
    assert stacks_file_of(ours) == "logs/stall_stacks.1.host.name.2.txt"
    assert read_dump(str(tmp_path / "events.out.tfevents.1.host.2.0.stall")) is None


def test_the_analyzer_reads_it_as_a_dump_of_the_capture(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    recorder.record(Environment(format=1, host="a", pid=1))
    recorder.flush()
    path = stacks_file_of(event_file(tmp_path))
    assert path is not None
    Path(path).write_bytes(as_file(KNOWN, TEXT))
    run = Run("run", str(tmp_path), (), (EventFile(event_file(tmp_path), "run", 0),))
    (capture,) = read_events(run).captures
    (dump,) = capture.dumps
    assert (dump.reason, dump.step, dump.limit_s) == ("no_step", 4, 10.0)
