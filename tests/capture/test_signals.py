"""SIGTERM and its handlers: evidence is left, and the process ends as it would without us."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.capture.capture_logs import records, run, start
from tests.capture.test_guard import BEGIN, HANG_IN_NATIVE_CODE, program
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")

HANG_IN_PYTHON = """
    print("hangs", flush=True)
    while True:
        time.sleep(0.01)
"""


def terminated(script: str, logdir: Path) -> tuple[int, str]:
    """A program that hangs is terminated: its exit code and what it printed."""
    child = start(script, logdir)
    assert child.stdout is not None
    assert child.stdout.readline() == "hangs\n"
    child.terminate()
    out, _ = child.communicate(timeout=PATIENCE_S)
    return child.returncode, out


@pytest.mark.parametrize("hang", [HANG_IN_NATIVE_CODE, HANG_IN_PYTHON], ids=["native", "python"])
def test_sigterm_leaves_a_dump_and_ends_the_process_as_without_us(
    tmp_path: Path, hang: str
) -> None:
    code, _ = terminated(program(BEGIN, hang), tmp_path)
    assert code == -signal.SIGTERM
    (dump,) = records(tmp_path, "dump")
    assert (dump["reason"], dump["step"], dump["phase"]) == ("sigterm", 1, "train_batch")
    main, *_ = dump["threads"]
    assert main["main"] and main["frames"][0].endswith("<module>")
    assert records(tmp_path)[-1] == {**records(tmp_path)[-1], "kind": "end", "reason": "sigterm"}


def test_the_profile_is_saved_before_the_process_ends(tmp_path: Path) -> None:
    save = """
        g.on_end = lambda: open(os.path.join(sys.argv[1], "profile"), "w").close()
    """
    terminated(program(BEGIN, save, HANG_IN_NATIVE_CODE), tmp_path)
    assert (tmp_path / "profile").exists()


def test_a_profile_that_cannot_be_saved_does_not_keep_the_process_alive(tmp_path: Path) -> None:
    save = """
        within = guards._within
        guards._within = lambda act, s: within(act, 0.2 if act is g.on_end else s)
        g.on_end = lambda: time.sleep(600)
    """
    code, _ = terminated(program(BEGIN, save, HANG_IN_NATIVE_CODE), tmp_path)
    assert code == -signal.SIGTERM
    assert records(tmp_path)[-1]["kind"] == "end"


def test_a_handler_of_the_user_is_called_and_decides(tmp_path: Path) -> None:
    handler = """
        def handler(number, frame):
            print("checkpoint", number, flush=True)
            sys.exit(7)
        signal.signal(signal.SIGTERM, handler)
    """
    code, out = terminated(program(handler, BEGIN, HANG_IN_PYTHON), tmp_path)
    assert (code, out) == (7, "checkpoint 15\n")
    (dump,) = records(tmp_path, "dump")
    assert dump["reason"] == "sigterm"
    assert not any("signals.py" in frame for frame in dump["threads"][0]["frames"])
    assert records(tmp_path)[-1]["reason"] == "sigterm"


def test_a_handler_that_is_installed_later_replaces_ours(tmp_path: Path) -> None:
    handler = """
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(8))
    """
    code, _ = terminated(program(BEGIN, handler, HANG_IN_PYTHON), tmp_path)
    assert code == 8


CHAINED = """
    if HOW == "seen":
        before = signal.getsignal(signal.SIGTERM)
    def handler(number, frame):
        if callable(before):
            before(number, frame)  # this ends the process, if it is the default
        else:
            print("theirs", flush=True)
            os._exit(8)
    if HOW == "replaced":
        before = signal.signal(signal.SIGTERM, handler)
    signal.signal(signal.SIGTERM, handler)
"""


@pytest.mark.parametrize("how", ["seen", "replaced"])
def test_a_handler_that_is_installed_later_finds_the_default_that_was_there_before_us(
    tmp_path: Path, how: str
) -> None:
    later = CHAINED.replace("HOW", repr(how))
    assert terminated(program(BEGIN, later, HANG_IN_PYTHON), tmp_path) == (8, "theirs\n")


def test_a_handler_that_is_installed_later_calls_the_users_earlier_one_through_ours(
    tmp_path: Path,
) -> None:
    earlier = """
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(7))
    """
    later = CHAINED.replace("HOW", repr("seen"))
    code, _ = terminated(program(earlier, BEGIN, later, HANG_IN_PYTHON), tmp_path)
    assert code == 7
    assert len(records(tmp_path, "dump")) == 1


def test_a_disk_that_hangs_does_not_keep_sigterm_from_ending_the_process(tmp_path: Path) -> None:
    hanging = """
        guards.LAST_WORDS_S = 0.2
        g.recorder.flush = lambda urgent=False: time.sleep(600)
    """
    code, _ = terminated(program(BEGIN, hanging, HANG_IN_NATIVE_CODE), tmp_path)
    assert code == -signal.SIGTERM


def test_an_ignored_sigterm_stays_ignored(tmp_path: Path) -> None:
    script = program(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n",
        BEGIN,
        "os.kill(os.getpid(), signal.SIGTERM); time.sleep(0.2); sys.exit(5)\n",
    )
    assert run(script, tmp_path) == (5, "")
    assert records(tmp_path, "dump") == []


def test_where_native_code_handles_sigterm_we_step_aside_and_say_so(tmp_path: Path) -> None:
    handler = """
        keep = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: os._exit(9))
        ctypes.CDLL(None).signal(signal.SIGTERM, keep)
    """
    code, _ = terminated(program(handler, BEGIN, HANG_IN_PYTHON), tmp_path)
    assert code == 9
    (note,) = records(tmp_path, "note")
    assert "native library handles SIGTERM" in note["text"]


def test_where_another_library_has_the_wakeup_descriptor_it_keeps_it(tmp_path: Path) -> None:
    theirs = """
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
    """
    check = """
        assert signal.set_wakeup_fd(writer) == writer
    """
    code, _ = terminated(program(theirs, BEGIN, check, HANG_IN_PYTHON), tmp_path)
    assert code == -signal.SIGTERM
    assert len(records(tmp_path, "dump")) == 1
    (note,) = records(tmp_path, "note")
    assert "asyncio" in note["text"]


def test_before_training_begins_sigterm_ends_the_process_at_once(tmp_path: Path) -> None:
    code, _ = terminated(program("guard(sys.argv[1])\n", HANG_IN_NATIVE_CODE), tmp_path)
    assert code == -signal.SIGTERM


def test_outside_the_main_thread_signals_are_left_alone_and_a_note_says_so(tmp_path: Path) -> None:
    script = program("""
        def train():
            guard(sys.argv[1]).pulse.begin("train_batch")
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    """)
    assert run(script, tmp_path) == (0, "")
    (note,) = records(tmp_path, "note")
    assert "main thread" in note["text"]
