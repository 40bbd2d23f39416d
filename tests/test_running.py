"""A run in progress is called running, with how far it is; one that ended is not."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.align.align import align
from stall_analyzer.attribute.attribute import attribute
from stall_analyzer.captures.capture_format import MarkName
from stall_analyzer.captures.machine import this_machine
from stall_analyzer.diagnose.diagnose import diagnose
from stall_analyzer.discover.discover import discover
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.runs import Run
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.outcome import Outcome, analyze_one
from stall_analyzer.signals.ending.process_end import KILLED, ending_of
from stall_analyzer.signals.ending.still_running import StillRunning, still_running
from tests import captures
from tests import event_files as write
from tests.captures import NS, START_NS, START_S

MODEL = json.dumps({"class_name": "Sequential", "config": {"layers": []}})


def read_after(events: EventLog, seconds: float) -> EventLog:
    """The same files, read that long after the run began."""
    return replace(events, read_ns=START_NS + round(seconds * NS))


def batches(count: int, each_s: float, start_s: float = START_S) -> bytes:
    return b"".join(
        write.record(write.scalar("batch_loss", 1.0), at_s=start_s + (n + 1) * each_s, step=n)
        for n in range(count)
    )


def keras_log(folder: Path, *records: bytes) -> EventLog:
    return write.read(folder, write.record(write.model(MODEL)) + b"".join(records))


def epoch_end(at_s: float) -> bytes:
    return write.record(write.scalar("epoch_loss", 1.0), at_s=START_S + at_s)


# ------------------------------------------------------------------ ordinary logs


def test_a_run_whose_last_record_is_new_is_running(tmp_path: Path) -> None:
    found = still_running(read_after(keras_log(tmp_path, batches(37, 5)), 185 + 40))
    assert found == StillRunning(
        step=37, lasted_ps=185 * PS_PER_S, step_ps=5 * PS_PER_S, silent_ps=40 * PS_PER_S,
        surely=False,
    )  # fmt: skip


def test_a_run_whose_records_ended_long_ago_does_not(tmp_path: Path) -> None:
    assert still_running(read_after(keras_log(tmp_path, batches(37, 5)), 185 + 400)) is None


def test_long_ago_is_measured_by_the_runs_own_pauses(tmp_path: Path) -> None:
    slow = keras_log(tmp_path, batches(3, 600))
    assert still_running(read_after(slow, 1800 + 1500)) is not None
    assert still_running(read_after(slow, 1800 + 2000)) is None


def test_a_run_with_a_finished_epoch_is_judged_by_that_epoch(tmp_path: Path) -> None:
    assert still_running(read_after(keras_log(tmp_path, batches(3, 1), epoch_end(4)), 5)) is None


def test_a_log_from_the_future_says_nothing(tmp_path: Path) -> None:
    assert still_running(read_after(keras_log(tmp_path, batches(3, 1)), -1000)) is None


def test_records_of_some_steps_tell_how_long_one_takes(tmp_path: Path) -> None:
    """As with update_freq=100."""
    records = [
        write.record(write.scalar("batch_loss", 1.0), at_s=START_S + 20 * n, step=100 * n)
        for n in range(4)
    ]
    found = still_running(read_after(keras_log(tmp_path, b"".join(records)), 70))
    assert found is not None
    assert (found.step, found.step_ps) == (300, PS_PER_S // 5)


def test_a_custom_loop_has_no_epoch_to_finish(tmp_path: Path) -> None:
    """What it has logged so far is all there is, so it is judged by that."""
    records = [write.record(write.scalar("loss", 1.0), at_s=START_S + n, step=n) for n in range(4)]
    assert still_running(read_after(write.read(tmp_path, b"".join(records)), 5)) is None


def test_without_any_step_the_time_until_now_counts(tmp_path: Path) -> None:
    """As Keras logs by default: the model, and then nothing until the epoch is over."""
    found = still_running(read_after(keras_log(tmp_path), 90))
    assert found is not None
    assert (found.step, found.lasted_ps) == (0, 90 * PS_PER_S)


def test_an_event_file_without_a_sign_of_training_is_not_a_running_one(tmp_path: Path) -> None:
    events = write.read(tmp_path, write.framed(write.file_version()))
    assert still_running(read_after(events, 1)) is None


# ------------------------------------------------------------------ captures


def captured(folder: Path, *records: bytes, **process: Any) -> EventLog:
    begin = [
        captures.start(**process),
        captures.record("mark", what=MarkName.FIT_BEGIN, step=0, steps=50),
    ]
    begin += [captures.mark(MarkName.EPOCH_BEGIN, 0), captures.steps(0, 5, 2)]
    return captures.read(folder, [*begin, *records])


def test_a_capture_that_is_alive_is_certainly_running(tmp_path: Path) -> None:
    found = still_running(read_after(captured(tmp_path), 11))
    assert found is not None
    assert (found.step, found.lasted_ps, found.surely) == (5, 10 * PS_PER_S, True)


def test_a_capture_knows_how_many_steps_an_epoch_has(tmp_path: Path) -> None:
    found = still_running(read_after(captured(tmp_path), 11))
    assert found is not None
    assert found.steps == 50


def test_a_capture_that_fell_silent_is_not_running(tmp_path: Path) -> None:
    assert still_running(read_after(captured(tmp_path), 200)) is None


@pytest.mark.skipif(this_machine() is None, reason="needs Linux")
def test_a_capture_whose_process_is_gone_from_this_machine_was_killed(tmp_path: Path) -> None:
    """On other machines, it must have been silent for long: its pid may be another process."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    here, elsewhere = this_machine(), "another boot pid:[1]"
    for number, (machine, pid, goes_on) in enumerate(
        [(here, process.pid, False), (here, os.getpid(), True), (elsewhere, process.pid, True)]
    ):
        (folder := tmp_path / str(number)).mkdir()
        events = read_after(captured(folder, pid=pid, machine=machine), 15)
        assert (still_running(events) is not None) == goes_on
        ending = ending_of(events.captures[0], events.read_ns)
        assert (ending is None) == goes_on
        assert goes_on or (ending is not None and ending.reason == KILLED)


@pytest.mark.parametrize("mark", [MarkName.EPOCH_END, MarkName.FIT_END])
def test_a_capture_with_a_finished_epoch_is_judged_by_it(tmp_path: Path, mark: str) -> None:
    assert still_running(read_after(captured(tmp_path, captures.mark(mark, 10)), 11)) is None


def test_a_capture_with_a_last_word_is_over(tmp_path: Path) -> None:
    over = captures.record("end", 10, reason="exit")
    assert still_running(read_after(captured(tmp_path, over), 11)) is None


# ------------------------------------------------------------------ the verdict


def analyzed(folder: Path, begin_s: float, *records: bytes) -> Outcome:
    model = write.record(write.model(MODEL), at_s=begin_s)
    (folder / write.file_name(begin_s)).write_bytes(model + b"".join(records))
    (run,) = discover([str(folder)]).runs
    return analyze_one(run)


def test_the_verdict_says_how_far_it_is_and_never_how_long_the_epoch_took(tmp_path: Path) -> None:
    begin_s = time.time() - 200
    entry = analyzed(tmp_path, begin_s, batches(37, 5, begin_s)).entry
    verdict = entry["verdict"]
    assert (verdict["status"], verdict["primary"]) == ("running", "unknown")
    assert verdict["sentence"].startswith(
        "Still running, it seems: step 37 after 3 min 05 s (about 5.00 s a step); its last record"
    )
    assert entry["plan"] is None
    assert entry["findings"] == []  # least of all that it may be stuck or dead


def test_without_a_step_the_verdict_says_that_no_epoch_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ns = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now_ns)
    sentence = analyzed(tmp_path, now_ns / NS - 90).entry["verdict"]["sentence"]
    assert "no epoch has finished after 1 min 30 s" in sentence


def test_a_running_run_is_read_again_although_its_files_stay_the_same(tmp_path: Path) -> None:
    assert not analyzed(tmp_path, time.time() - 90).final


def test_a_live_capture_tells_its_share_and_what_it_waits_for(tmp_path: Path) -> None:
    """Five steps of two seconds, and then nothing for six: it waits for its generator."""
    waits = [
        captures.thread(*captures.IN_THE_STEP, main=True),
        captures.thread(*captures.GENERATOR),
    ]
    beats = [
        captures.record("beat", 10.0 + n, step=5, idle_s=float(n), limit_s=60.0, cpu_s=0.5 * n,
                        phase="train_batch", threads=waits)
        for n in range(5, 12)
    ]  # fmt: skip
    events = read_after(captured(tmp_path, *beats), 22)
    timeline = align([], events)
    verdict = diagnose(Run(".", str(tmp_path), (), ()), timeline, attribute(timeline)).verdict
    assert verdict.status == "running"
    assert verdict.sentence.startswith("Still running: step 5 of 50 (10%) after 21.0 s")


def test_the_result_of_a_run_that_ended_is_kept(tmp_path: Path) -> None:
    assert analyzed(tmp_path, time.time() - 9000).final
