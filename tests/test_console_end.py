"""How a console next to the logs changes a verdict, and when it is not believed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import fsspec
import pytest

from stall_analyzer.api import Analysis, analyze
from stall_analyzer.consoles.console_reader import read_consoles
from stall_analyzer.files.tfrecord import framed
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.runs import ConsoleFile, Run
from stall_analyzer.model.timeline import Timeline, Window
from stall_analyzer.signals.ending.console_end import console_signals
from stall_analyzer.signals.ending.process_end import KILLED, Ending
from tests import console_texts as said
from tests.event_files import START_S, file_name, file_version, model, record, scalar
from tests.patience import PATIENCE_S

DAY_S = 86_400
MODEL = '{"class_name": "Sequential", "config": {"layers": []}}'


def log_run(folder: Path, *more: bytes) -> None:
    """A run that began to train; what else it logged comes after."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = framed(file_version()) + record(model(MODEL), at_s=START_S + 1)
    (folder / file_name()).write_bytes(begin + b"".join(more))


def write_console(path: Path, text: str, at_s: float = START_S + 100) -> None:
    path.write_text(text)
    os.utime(path, (at_s, at_s))


def analyzed(folder: Path, text: str, *more: bytes, at_s: float = START_S + 100) -> Analysis:
    log_run(folder, *more)
    write_console(folder / "job.out", text, at_s)
    return analyze(folder)


def epochs(count: int) -> bytes:
    """The ends of that many epochs."""
    return b"".join(
        record(scalar("epoch_loss", 0.5), at_s=START_S + 10 * (i + 1), step=i) for i in range(count)
    )


def ids(analysis: Analysis) -> set[str]:
    return {finding.id for finding in analysis.findings}


# ---------------------------------------------------------------- dead


def test_a_run_that_died_of_memory_says_so_with_the_line_that_matters(tmp_path: Path) -> None:
    analysis = analyzed(tmp_path, said.OUT_OF_MEMORY)
    verdict = analysis.verdict
    assert (verdict.status, verdict.primary) == ("dead", "memory")
    assert verdict.sentence == (
        "Dead (no epoch was finished): ResourceExhaustedError: OOM when allocating tensor with "
        "shape[256,512] and type float on /device:GPU:0 by allocator GPU_0_bfc at layers.py:12 "
        "(job.out:2)."
    )
    assert analysis.findings[0].id == "ST211"
    assert "ST510" not in ids(analysis)  # it would only suspect what is known


def test_a_job_that_reached_its_time_limit_says_so_and_where_it_was(tmp_path: Path) -> None:
    verdict = analyzed(tmp_path, f"{said.KERAS_2}\n{said.TIME_LIMIT}").verdict
    assert (verdict.status, verdict.primary) == ("dead", "unknown")
    assert verdict.sentence.startswith(
        "Dead (at step 12 of 100 in epoch 1): the scheduler ended the job at its time limit ("
    )


def test_the_scheduler_knows_better_than_the_error_it_caused(tmp_path: Path) -> None:
    verdict = analyzed(tmp_path, said.PLAIN_ERROR + said.OOM_KILL).verdict
    assert (verdict.status, verdict.primary) == ("dead", "memory")


def test_any_other_error_is_named_with_its_place(tmp_path: Path) -> None:
    verdict = analyzed(tmp_path, said.PLAIN_ERROR).verdict
    assert verdict.status == "dead"
    assert "'data.csv' at train.py:5 (job.out:1)" in verdict.sentence


def test_a_run_that_was_interrupted_by_hand_did_not_fail(tmp_path: Path) -> None:
    interrupted = "\n".join([*said.PLAIN_ERROR.splitlines()[:-1], "KeyboardInterrupt", ""])
    sentence = analyzed(tmp_path, interrupted).verdict.sentence
    assert "it was interrupted (KeyboardInterrupt) at train.py:5 (job.out:1)" in sentence


def test_it_is_the_same_at_a_url(tmp_path: Path) -> None:
    log_run(tmp_path)
    store = fsspec.filesystem("memory")
    store.pipe_file(f"/dead/run/{file_name()}", (tmp_path / file_name()).read_bytes())
    store.pipe_file("/dead/run/job.err", said.OUT_OF_MEMORY.encode())
    assert analyze("memory://dead").verdict.status == "dead"


# ---------------------------------------------------------------- not dead


def test_a_run_that_finished_an_epoch_is_judged_by_it_and_the_end_is_a_finding(
    tmp_path: Path,
) -> None:
    analysis = analyzed(tmp_path, said.TIME_LIMIT, epochs(2))
    assert analysis.verdict.status != "dead"
    assert "ST511" in ids(analysis)


def test_an_error_after_which_training_continued_is_a_note(tmp_path: Path) -> None:
    analysis = analyzed(tmp_path, said.PLAIN_ERROR + said.KERAS_QUIET)
    assert analysis.verdict.status != "dead"
    (finding,) = (f for f in analysis.findings if f.id == "ST511")
    assert (finding.severity, finding.title[:26]) == ("note", "An error was printed, and ")


@pytest.mark.parametrize("at_s", [START_S - DAY_S, START_S + 200])
def test_a_console_that_ends_before_the_run_does_not_tell_its_end(
    tmp_path: Path, at_s: float
) -> None:
    later = record(scalar("batch_loss", 0.5), at_s=START_S + 1000, step=9)
    assert analyzed(tmp_path, said.PLAIN_ERROR, later, at_s=at_s).verdict.status != "dead"


def test_a_console_that_begins_after_the_run_belongs_to_another(tmp_path: Path) -> None:
    later = said.OUT_OF_MEMORY.replace("1700000060", str(int(START_S) + 2 * DAY_S))
    analysis = analyzed(tmp_path, later, at_s=START_S + 2 * DAY_S + 5)
    assert analysis.verdict.status != "dead"


def test_a_console_above_the_run_counts_only_if_it_has_lines_from_tensorflow(
    tmp_path: Path,
) -> None:
    log_run(tmp_path / "logs")
    write_console(tmp_path / "server.log", said.PLAIN_ERROR)
    assert analyze(tmp_path / "logs").verdict.status != "dead"
    write_console(tmp_path / "server.log", said.KERAS_QUIET + said.PLAIN_ERROR)
    assert analyze(tmp_path / "logs").verdict.status == "dead"


def test_a_console_above_the_run_that_begins_after_it_is_that_of_a_later_job(
    tmp_path: Path,
) -> None:
    log_run(tmp_path / "logs")
    later = said.OUT_OF_MEMORY.replace("1700000060", "1700003600")
    write_console(tmp_path / "train.log", later, START_S + 3700)
    assert analyze(tmp_path / "logs").verdict.status != "dead"
    write_console(tmp_path / "train.log", said.ALLOCATION + later, START_S + 3700)
    assert analyze(tmp_path / "logs").verdict.status == "dead"


def test_consoles_that_disagree_are_not_believed(tmp_path: Path) -> None:
    log_run(tmp_path)
    write_console(tmp_path / "one.out", said.OUT_OF_MEMORY)
    write_console(tmp_path / "two.out", said.KERAS_QUIET)
    assert analyze(tmp_path).verdict.status != "dead"


def test_the_console_that_was_written_last_is_believed(tmp_path: Path) -> None:
    log_run(tmp_path)
    write_console(tmp_path / "one.out", said.KERAS_QUIET, START_S + 30)
    write_console(tmp_path / "two.out", said.OUT_OF_MEMORY, START_S + 500)
    assert analyze(tmp_path).verdict.status == "dead"


def test_a_console_that_the_user_names_is_believed_whatever_its_time(tmp_path: Path) -> None:
    log_run(tmp_path / "logs")
    write_console(tmp_path / "console.txt", said.PLAIN_ERROR, START_S - DAY_S)
    assert analyze(tmp_path / "logs", console=tmp_path / "console.txt").verdict.status == "dead"


def test_a_capture_that_saw_the_end_knows_better(tmp_path: Path) -> None:
    path = tmp_path / "job.out"
    path.write_text(said.PLAIN_ERROR)
    console = ConsoleFile(str(path), path.stat().st_size, is_own=True)
    logs = read_consoles(Run(".", ".", (), (), consoles=(console,)), [])
    timeline = Timeline(Window(0, 0, "", ""), (), (), (), (), None, consoles=logs)
    assert console_signals(timeline).end is not None
    assert console_signals(timeline, Capture(), Ending("exit", 0)).end is None
    assert console_signals(timeline, Capture(), Ending(KILLED, 0)).end is not None


def test_a_run_that_was_just_written_and_has_died_does_not_still_run(tmp_path: Path) -> None:
    now_s = time.time()
    begin = framed(file_version(now_s - 9)) + record(model(MODEL), at_s=now_s - 8)
    (tmp_path / file_name(now_s - 9)).write_bytes(begin)
    assert analyze(tmp_path).verdict.status == "running"
    write_console(tmp_path / "job.out", said.PLAIN_ERROR, now_s)
    assert analyze(tmp_path).verdict.status == "dead"


# ---------------------------------------------------------------- warnings


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (said.RAN_OUT, "ST018"),
        (said.PARTIAL_CACHE, "ST019"),
        (said.SHUFFLE, "ST020"),
        (said.PTX, "ST111"),
        (said.SLOW_COMPILE, "ST112"),
        (said.RETRACING, "ST113"),
        (said.ALLOCATION, "ST212"),
        (said.NO_GRADIENTS, "ST314"),
        (said.KERAS_3, "ST315"),
        (said.NO_LIBRARIES, "ST413"),
        (said.NCCL, "ST509"),
    ],
)
def test_a_warning_becomes_a_finding(tmp_path: Path, text: str, finding: str) -> None:
    assert finding in ids(analyzed(tmp_path, text))


def test_a_loss_that_was_logged_is_not_judged_by_the_progress_bar(tmp_path: Path) -> None:
    assert "ST315" not in ids(analyzed(tmp_path, said.KERAS_3, epochs(2)))


# ---------------------------------------------------------------- a real training


FAILING_FIT = """
    import sys
    import tensorflow as tf

    def too_large(batch):
        return batch + tf.reduce_sum(tf.ones([tf.cast(batch[0, 0], tf.int32) + 10**7, 10**7]))

    model = tf.keras.Sequential(
        [tf.keras.Input((4,)), tf.keras.layers.Lambda(too_large), tf.keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse")
    logs = tf.keras.callbacks.TensorBoard(sys.argv[1])
    model.fit(tf.zeros([64, 4]), tf.zeros([64, 1]), callbacks=[logs])
"""


def test_a_real_fit_that_runs_out_of_memory_in_its_first_step(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    script = tmp_path / "train.py"
    script.write_text(dedent(FAILING_FIT))
    with (tmp_path / "nohup.out").open("w") as console:
        finished = subprocess.run(
            [sys.executable, str(script), str(tmp_path / "logs")],
            stdout=console,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
        )
    assert finished.returncode == 1
    verdict = analyze(tmp_path / "logs").verdict
    assert (verdict.status, verdict.primary) == ("dead", "memory")
    assert "OOM when allocating tensor with shape[10000000,10000000]" in verdict.sentence
    assert "at train.py:6" in verdict.sentence
