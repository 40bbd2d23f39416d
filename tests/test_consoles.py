"""What is read from a console: errors, ends, warnings and progress."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stall_analyzer.consoles import console_text
from stall_analyzer.consoles.console_reader import read_consoles
from stall_analyzer.model.console_log import ConsoleLog, PythonError
from stall_analyzer.model.error_text import LONGEST_ERROR, essential_line
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import ConsoleFile, Run
from tests import console_texts as said


def run_with(*paths: Path) -> Run:
    consoles = (ConsoleFile(str(p), p.stat().st_size, "", p.stat().st_mtime, True) for p in paths)
    return Run(".", ".", (), (), consoles=tuple(consoles))


def console(folder: Path, text: str | bytes, name: str = "job.out") -> ConsoleLog:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    (log,) = read_consoles(run_with(path), [])
    return log


def error_in(folder: Path, text: str) -> PythonError:
    error = console(folder, text).error
    assert error is not None
    return error


# ---------------------------------------------------------------- errors


def test_the_line_that_matters_of_a_tensorflow_error_is_kept(tmp_path: Path) -> None:
    error = error_in(tmp_path, said.OUT_OF_MEMORY)
    assert error.text == (
        "ResourceExhaustedError: OOM when allocating tensor with shape[256,512] and type float on "
        "/device:GPU:0 by allocator GPU_0_bfc"
    )
    assert (error.line.place, error.is_last) == ("job.out:2", True)
    assert "/home/me/layers.py:12 call" in error.frames


def test_a_traceback_that_an_error_quotes_is_part_of_it(tmp_path: Path) -> None:
    error = error_in(tmp_path, said.IN_A_GENERATOR)
    assert error.text == "InvalidArgumentError: ValueError: bad file 17"
    assert error.frames[0] == "/home/me/train.py:45 generate"
    assert error.line.number == 1


def test_the_last_of_several_tracebacks_counts(tmp_path: Path) -> None:
    chained = "\nDuring handling of the above exception, another exception occurred:\n\n"
    error = error_in(tmp_path, said.OUT_OF_MEMORY + chained + said.PLAIN_ERROR)
    assert error.kind == "FileNotFoundError"
    assert error.message == "[Errno 2] No such file or directory: 'data.csv'"


@pytest.mark.parametrize("prefix", ["0: ", "[1,0]<stderr>:", "2026-11-17T05:17:2{}Z "])
def test_what_a_launcher_puts_before_each_line_is_not_part_of_the_error(
    tmp_path: Path, prefix: str
) -> None:
    lines = said.PLAIN_ERROR.splitlines()
    text = "\n".join(prefix.format(i) + line for i, line in enumerate(lines))
    assert error_in(tmp_path, text).frames[0] == "/home/me/train.py:5 main"


def test_a_traceback_may_follow_a_progress_bar_on_its_line(tmp_path: Path) -> None:
    error = error_in(tmp_path, said.KERAS_3 + said.PLAIN_ERROR)
    assert (error.kind, error.is_last) == ("FileNotFoundError", True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", said.KERAS_QUIET),
        ("", "one more line of the program\n" * 100),
        ("Exception in thread Thread-1 (feed):\n", ""),
        ("Exception ignored in: <function Pool.__del__ at 0x7f>\n", ""),
    ],
)
def test_an_error_after_which_the_job_continues_is_not_its_end(
    tmp_path: Path, before: str, after: str
) -> None:
    assert not error_in(tmp_path, before + said.PLAIN_ERROR + after).is_last


@pytest.mark.parametrize(
    ("text", "essential"),
    [
        ("no such file\n and more", "no such file"),
        ("{{function_node __wrapped__}} {{node MatMul}} Incompatible: [2] [Op:MatMul]",
         "Incompatible: [2]"),
        ("2 root error(s) found.\n  (0) Resource exhausted: OOM when allocating\n\t [[{{node a}}]]"
         "\n  (1) Resource exhausted: OOM when allocating\n0 successful operations.",
         "Resource exhausted: OOM when allocating"),
        ("Graph execution error:\n\nDetected at node 'f' defined at (most recent call last):\n"
         '    File "train.py", line 5, in <module>\n      fit(x)\nNode: \'f\'\nindices[3] = 9',
         "indices[3] = 9"),
        ("Exception encountered when calling Dense.call().\n\nCould not compute.\n\n"
         "Arguments received by Dense.call():\n  • inputs=1", "Could not compute."),
        ("Graph execution error:", "Graph execution error"),
        ("", ""),
        ("x" * 300, "x" * LONGEST_ERROR + "…"),
    ],
)  # fmt: skip
def test_the_essential_line_of_an_error(text: str, essential: str) -> None:
    assert essential_line(text) == essential


# ---------------------------------------------------------------- ends


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (said.TIME_LIMIT, "time_limit"),
        (said.TIME_LIMIT.replace("TIME LIMIT", "PREEMPTION"), "preempted"),
        (said.TIME_LIMIT.replace("TIME LIMIT", "NODE FAILURE"), "node_failed"),
        (said.TIME_LIMIT.replace(" DUE TO TIME LIMIT", ""), "cancelled"),
        (said.OOM_KILL, "out_of_memory"),
        ("srun: error: node6156: task 0: Out Of Memory\n", "out_of_memory"),
        ("Memory cgroup out of memory: Killed process 12 (python)\n", "out_of_memory"),
        ("terminate called after throwing an instance of 'std::bad_alloc'\n", "out_of_memory"),
        ("  Reason: OOMKilled\n  Exit Code: 137\n", "out_of_memory"),
        ("Killed\n", "killed"),
        ("command terminated with exit code 137\n", "killed"),
        ("Segmentation fault (core dumped)\n", "crashed"),
        ("command terminated with exit code 139\n", "crashed"),
        ("2023-01-01 10:00:00.1: F tensorflow/core/tensor.cc:733] Check failed\n", "crashed"),
        ("command terminated with exit code 143\n", "told_to_end"),
        ("srun: error: node3: task 0: Exited with exit code 1\n", "exit_code"),
    ],
)  # fmt: skip
def test_the_words_of_shells_and_schedulers_say_how_a_job_ended(
    tmp_path: Path, text: str, kind: str
) -> None:
    end = console(tmp_path, f"{said.KERAS_QUIET}{text}").end
    assert end is not None
    assert end.kind == kind


@pytest.mark.parametrize(
    "text", ["Killed 3 workers of the pool\n", "exit code 0\n", f"Killed\n{said.KERAS_QUIET}"]
)
def test_not_every_such_word_is_an_end(tmp_path: Path, text: str) -> None:
    assert console(tmp_path, text).end is None


# ---------------------------------------------------------------- warnings and progress


@pytest.mark.parametrize(
    ("text", "kind", "begins"),
    [
        (said.PTX, "ptx", "TensorFlow was not built with CUDA kernel"),
        (said.SLOW_COMPILE, "slow_compile", "[Compiling module a_inference_step_9] Very slow"),
        (said.RETRACING, "retracing", "5 out of the last 5 calls to <function step"),
        (said.ALLOCATION, "large_allocation", "Allocation of 3200000000 exceeds 10%"),
        (said.KERAS_3 + said.RAN_OUT, "ran_out_of_data", "Your input ran out of data"),
        (said.NO_LIBRARIES, "gpu_libraries", "Cannot dlopen some GPU libraries"),
        (said.PARTIAL_CACHE, "partial_cache", "The calling iterator did not fully read"),
        (said.NO_GRADIENTS, "no_gradients", "Gradients do not exist for variables ['m/dense_3"),
        (said.NCCL, "nccl", "node3:376586:377443 [4] ibvwrap.c:130 NCCL WARN"),
    ],
)
def test_a_warning_is_known_by_its_words(tmp_path: Path, text: str, kind: str, begins: str) -> None:
    ((found, warning),) = console(tmp_path, text + text).warnings.items()
    assert (found, warning.count) == (kind, 2)
    assert warning.line.text.startswith(begins)


def test_how_long_xla_compiled_is_said_by_xla(tmp_path: Path) -> None:
    warning = console(tmp_path, said.SLOW_COMPILE).warnings["slow_compile"]
    assert warning.seconds == pytest.approx(132.85, abs=0.01)


def test_the_times_of_its_lines_say_how_long_a_shuffle_buffer_took_to_fill(tmp_path: Path) -> None:
    fill = console(tmp_path, said.SHUFFLE).fill
    assert fill is not None
    assert (fill.elements, fill.size, fill.is_filled) == (3000, 3000, True)
    assert fill.seconds == pytest.approx(32.0)


def test_a_buffer_that_was_never_full_is_reported_as_far_as_it_got(tmp_path: Path) -> None:
    fill = console(tmp_path, said.SHUFFLE_OF_2_9).fill
    assert fill is not None
    assert (fill.elements, fill.size, fill.is_filled) == (1000, 9000, False)
    assert fill.seconds == pytest.approx(20.5)


@pytest.mark.parametrize(
    ("text", "words", "is_nan"),
    [
        (said.KERAS_2, "step 12 of 100 in epoch 1", False),
        (said.KERAS_3, "step 7 of 20 in epoch 2", True),
        (said.KERAS_QUIET, "step 20 of 20 in epoch 3", False),
        (said.KERAS_QUIET + "Epoch 4/5\n", "step 0 in epoch 4", False),
        ("Epoch 1/2\n     12/Unknown - 3s 4ms/step - loss: 0.1", "step 12 in epoch 1", False),
    ],
)
def test_keras_progress_says_how_far_a_training_came(
    tmp_path: Path, text: str, words: str, is_nan: bool
) -> None:
    progress = console(tmp_path, text).progress
    assert progress is not None
    assert (progress.words, progress.loss_is_nan) == (words, is_nan)


# ---------------------------------------------------------------- files


def test_the_beginning_and_the_end_of_a_long_console_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_text, "HEAD_BYTES", 1000)
    monkeypatch.setattr(console_text, "TAIL_BYTES", 4000)
    log = console(tmp_path, said.PTX + "…\n" * 100_000 + said.PLAIN_ERROR)
    assert log.warnings["ptx"].line.place == "job.out:1"
    assert log.error is not None
    assert log.error.line.place == "job.out"  # its number is not known


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_a_console_may_be_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    log = console(tmp_path, f"für\n{said.PLAIN_ERROR}".encode(encoding))
    assert log.error is not None
    assert log.error.kind == "FileNotFoundError"


def test_a_file_that_is_not_text_is_not_a_console(tmp_path: Path) -> None:
    path = tmp_path / "model.out"
    path.write_bytes(b"\x89HDF\0\0" + said.PLAIN_ERROR.encode())
    assert read_consoles(run_with(path), []) == ()


def test_a_console_that_cannot_be_read_becomes_a_note(tmp_path: Path) -> None:
    notes: list[Note] = []
    gone = replace(run_with(), consoles=(ConsoleFile(str(tmp_path / "gone.out"), 10),))
    assert read_consoles(gone, notes) == ()
    assert "could not be read: it does not exist." in notes[0].text


def test_the_two_streams_of_a_job_are_one_console(tmp_path: Path) -> None:
    out, err = tmp_path / "job.out", tmp_path / "job.err"
    out.write_text(said.KERAS_QUIET)
    err.write_text(said.PLAIN_ERROR + said.RETRACING)
    (log,) = read_consoles(run_with(out, err), [])
    assert log.files == ("job.out", "job.err")
    assert log.progress and log.error and log.error.is_last and log.warnings
