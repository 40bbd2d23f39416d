"""A process that hangs, fails or is killed leaves evidence, and ends as it would without us."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

from tests.capture.capture_logs import records, run, start, until

posix = pytest.mark.skipif(os.name != "posix", reason="signals")

PREAMBLE = """
    import ctypes, os, signal, sys, threading, time
    from tb_stall_plugin.capture.process import guard as guards, recorder, signal_listener
    from tb_stall_plugin.capture.process.guard import guard
    # How long a training may wait for its last words: on a busy machine, it may take longer.
    for module, names in {
        guards: ("END_AFTER_SIGTERM_S", "END_AT_EXIT_S", "WRITE_S", "LAST_WORDS_S"),
        recorder: ("WAIT_FOR_WRITER_S", "WAIT_AT_THE_END_S"),
        signal_listener: (
            "SAME_SIGNAL_S", "HEARD_WITHIN_S", "ENDS_WITHIN_S", "WAIT_FOR_EVIDENCE_S"
        ),
    }.items():
        for name in names:
            assert hasattr(module, name)
            setattr(module, name, 300.0)
"""
BEGIN = """
    g = guard(sys.argv[1], hang_after_s=600)
    g.pulse.begin("train_batch")
    g.pulse.step_done()
    g.recorder.flush()
"""
# Signals do not interrupt it, and the main thread no longer runs Python code.
HANG_IN_NATIVE_CODE = """
    libc = ctypes.CDLL(None)
    mutex = ctypes.create_string_buffer(256)
    libc.pthread_mutex_init(mutex, None)
    libc.pthread_mutex_lock(mutex)
    locked = mutex.raw
    def tell():
        while mutex.raw == locked:  # it changes when somebody waits for it
            time.sleep(0.01)
        print("hangs", flush=True)
    threading.Thread(target=tell).start()
    libc.pthread_mutex_lock(mutex)
"""


def program(*parts: str) -> str:
    return "".join(dedent(part) for part in (PREAMBLE, *parts))


# ---------------------------------------------------------------- ends


@posix
def test_a_hang_is_recorded_before_a_kill_and_there_is_no_end_record(tmp_path: Path) -> None:
    begin = BEGIN.replace("600", "1")
    child = start(program(begin, HANG_IN_NATIVE_CODE), tmp_path)
    until(lambda: tmp_path.exists() and records(tmp_path, "dump"))
    child.kill()
    child.communicate()
    dump, *_ = records(tmp_path, "dump", was_killed=True)
    assert (dump["reason"], dump["limit_s"]) == ("no_step", 1)
    assert records(tmp_path, "end", was_killed=True) == []


def test_an_exit_is_recorded(tmp_path: Path) -> None:
    assert run(program(BEGIN), tmp_path) == (0, "")
    assert [record["kind"] for record in records(tmp_path)] == ["start", "end"]
    assert records(tmp_path)[-1]["reason"] == "exit"


def test_an_exit_handler_that_takes_a_long_time_is_seen_and_so_is_its_end(tmp_path: Path) -> None:
    """Our handler runs before those that were registered earlier."""
    waits = """
        import atexit, pathlib

        def wait_until_seen():
            (log,) = pathlib.Path(sys.argv[1]).glob("*.stall")
            while b"stall/record/beat" not in log.read_bytes():
                time.sleep(0.1)

        atexit.register(wait_until_seen)
    """
    assert run(program(waits, BEGIN), tmp_path) == (0, "")
    kinds = [record["kind"] for record in records(tmp_path)]
    assert kinds == ["start", "end", *["beat"] * kinds.count("beat"), "end"]
    beat = records(tmp_path, "beat")[0]
    assert beat["phase"] == "exit"
    assert any("wait_until_seen" in frame for frame in beat["threads"][0]["frames"])


def test_an_exception_is_recorded_and_shown_as_without_us(tmp_path: Path) -> None:
    fail = """
        def train():
            raise MemoryError("OOM when allocating tensor")
        train()
    """
    code, said = run(program(BEGIN, fail), tmp_path)
    assert code == 1 and said.endswith("MemoryError: OOM when allocating tensor\n")
    (dump,) = records(tmp_path, "dump")
    assert dump["error"]["type"] == "MemoryError" and "OOM" in dump["error"]["text"]
    assert dump["error"]["frames"][0].endswith("train")
    assert dump["threads"][0]["frames"] == []
    assert records(tmp_path)[-1]["reason"] == "exception"


def test_an_exception_hook_of_the_user_is_called(tmp_path: Path) -> None:
    hook = """
        sys.excepthook = lambda *_: print("theirs", file=sys.stderr)
    """
    assert run(program(hook, BEGIN, "1 / 0\n"), tmp_path) == (1, "theirs\n")
    assert len(records(tmp_path, "dump")) == 1


def test_an_exception_that_was_recorded_is_recorded_again_if_it_ends_the_program(
    tmp_path: Path,
) -> None:
    fail = """
        try:
            1 / 0
        except ZeroDivisionError as error:
            g.exception(error)
            raise
    """
    run(program(BEGIN, fail), tmp_path)
    errors = [dump["error"]["uncaught"] for dump in records(tmp_path, "dump")]
    assert errors == [False, True]


def test_the_end_of_a_long_error_is_kept_because_tensorflow_says_why_there(tmp_path: Path) -> None:
    fail = """
        g.exception(ValueError("first" + "." * 9000 + "last"))
    """
    run(program(BEGIN, fail), tmp_path)
    (dump,) = records(tmp_path, "dump")
    text = dump["error"]["text"]
    assert (text[:5], text[-4:]) == ("first", "last")
    assert len(text) < 5000


def test_a_disk_that_hangs_stops_neither_a_program_that_survives_an_exception_nor_its_exit(
    tmp_path: Path,
) -> None:
    hanging = """
        guards.WRITE_S = guards.END_AT_EXIT_S = 0.2
        g.recorder.flush = lambda urgent=False: time.sleep(600)
        g.exception(KeyError("label"))
    """
    assert run(program(BEGIN, hanging), tmp_path) == (0, "")


@posix
def test_ctrl_c_in_a_hang_leaves_a_dump_though_python_does_not_see_it(tmp_path: Path) -> None:
    quiet = """
        guards.QUIET_S = 0.0
    """
    child = start(program(BEGIN, quiet, HANG_IN_NATIVE_CODE), tmp_path)
    assert child.stdout is not None and child.stdout.readline() == "hangs\n"
    child.send_signal(signal.SIGINT)
    until(lambda: records(tmp_path, "dump"))
    child.kill()
    child.communicate()
    assert [d["reason"] for d in records(tmp_path, "dump", was_killed=True)] == ["sigint"]


@posix
def test_a_forked_child_neither_writes_nor_speaks_for_its_parent(tmp_path: Path) -> None:
    """Terminating an input worker must end only that worker."""
    fork = """
        reads, writes = os.pipe()
        child = os.fork()
        if not child:
            os.write(writes, b"begun")
            time.sleep(600)
        os.read(reads, 5)
        os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGTERM
        time.sleep(0.2)
    """
    assert run(program(BEGIN, fork), tmp_path) == (0, "")
    assert [record["kind"] for record in records(tmp_path)] == ["start", "end"]


@posix
def test_a_forked_child_that_trains_has_its_own_guard(tmp_path: Path) -> None:
    fork = """
        child = os.fork()
        if not child:
            assert not g.is_open
            mine = guard(sys.argv[1])
            assert mine is not g and mine.is_open
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert g.is_open and guard(sys.argv[1]) is g
    """
    assert run(program(BEGIN, fork), tmp_path) == (0, "")
    starts = records(tmp_path, "start")
    assert len({start["pid"] for start in starts}) == 2
    assert len(records(tmp_path, "end")) == 2


# ---------------------------------------------------------------- one at a time


@posix
def test_a_closed_guard_keeps_nothing_in_memory(tmp_path: Path) -> None:
    script = program("""
        import gc, weakref
        class Model: pass
        def train(folder):
            model = Model()
            g = guard(folder)
            g.pulse.begin("train_batch")
            g.on_end = lambda: model
            return weakref.ref(model)
        model = train(sys.argv[1] + "/a")
        train(sys.argv[1] + "/b")
        gc.collect()
        assert model() is None
    """)
    assert run(script, tmp_path) == (0, "")


@posix
def test_the_same_logdir_has_one_guard_and_another_takes_over(tmp_path: Path) -> None:
    script = program("""
        first = guard(sys.argv[1] + "/a", hang_after_s=60)
        first.pulse.begin("train_batch")
        assert guard(sys.argv[1] + "/a") is first
        second = guard(sys.argv[1] + "/b")
        second.pulse.begin("train_batch")
        assert second is not first and not first.is_open
        second.close("exit")
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.signal.__module__ == signal.getsignal.__module__ == "signal"
        assert signal.set_wakeup_fd(-1) == -1
        assert sys.excepthook is sys.__excepthook__
    """)
    assert run(script, tmp_path) == (0, "")
    for name in ("a", "b"):
        assert [record["kind"] for record in records(tmp_path / name)] == ["start", "end"]


def test_a_script_that_changes_its_working_directory_is_handled(tmp_path: Path) -> None:
    script = program("""
        os.chdir(sys.argv[1])
        g = guard("logs")
        os.chdir("/")
    """)
    assert run(script, tmp_path) == (0, "")
    assert len(records(tmp_path / "logs")) == 2


def test_the_start_record_says_what_runs_here(tmp_path: Path) -> None:
    config = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'
    assert run(program(BEGIN), tmp_path, TF_CONFIG=config) == (0, "")
    (first,) = records(tmp_path, "start")
    assert first["format"] == 1 and first["hang_after_s"] == 600
    assert first["task"] == {"type": "worker", "index": 1}
    assert first["python"] == ".".join(map(str, sys.version_info[:3]))
    assert first["devices"] is None  # asking for them too early would freeze the user's settings


def test_an_unwritable_logdir_causes_only_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, said = run(program(BEGIN, indent("print('trained')", "    ")), tmp_path / "file")
    assert code == 0 and said.count("Training continues") == 1
