"""When samples, beats and dumps are written, on a clock that the test moves."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping

import pytest

from stall_analyzer.captures.capture_format import HostMetric, Tag
from stall_analyzer.captures.capture_records import CaptureRecord
from stall_analyzer.captures.look_records import DumpRecord, Look
from tb_stall_plugin.capture.process import thread_stacks
from tb_stall_plugin.capture.process.held_interpreter import HeldInterpreter
from tb_stall_plugin.capture.process.host_sampler import HostSampler
from tb_stall_plugin.capture.process.recorder import Recorder
from tb_stall_plugin.capture.process.watchdog import QUIET_S, Watchdog
from tb_stall_plugin.capture.process.witness import Witness
from tests.capture.capture_logs import until
from tests.capture.test_pulse import MovedClock, training
from tests.patience import PATIENCE_S

NIGHT_S = 10 * 3600


class Notebook(Recorder):
    """Keeps what is recorded, with the time on the test's clock."""

    def __init__(self, clock: MovedClock) -> None:
        super().__init__("nowhere")
        self._clock = clock
        self.records: list[tuple[float, CaptureRecord]] = []
        self.samples: list[tuple[float, dict[str, float]]] = []

    def record(self, record: CaptureRecord) -> None:
        self.records.append((self._clock.seconds(), record))

    def scalars(self, values: Mapping[str, float], step: int, wall_ns: int | None = None) -> None:
        self.samples.append((self._clock.seconds(), dict(values)))

    def flush(self, urgent: bool = False) -> None:
        pass

    def times_of(self, kind: str, since_s: float) -> list[int]:
        return [round(at_s - since_s) for at_s, record in self.records if record.kind == kind]


class QuietHost(HostSampler):
    """Only the cores are busy."""

    def __init__(self, clock: MovedClock) -> None:
        self._clock = clock

    def sample(self) -> dict[str, float]:
        return {HostMetric.CPU: self._clock.seconds(), HostMetric.LIMIT: 1 << 30}


class Watched:
    """A training with fast steps that stands still from now on."""

    def __init__(self, hang_after_s: float | None = None) -> None:
        self.clock = MovedClock()
        self.pulse = training(self.clock, 0.1, 100)
        self.notebook = Notebook(self.clock)
        self.hangs = threading.Semaphore(0)
        witness = Witness(self.notebook, self.pulse, hang_after_s, QuietHost(self.clock))
        self.watchdog = Watchdog(witness, HeldInterpreter(None), self._on_hang, self.clock.seconds)
        self.began_s = self.clock.seconds()

    def _on_hang(self) -> None:
        self.hangs.release()

    def stand_still(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.wait(1.0)
            self.watchdog.look()

    def times_of(self, kind: str) -> list[int]:
        return self.notebook.times_of(kind, self.began_s)


def test_beats_begin_when_nothing_has_finished_for_five_seconds() -> None:
    it = Watched()
    it.stand_still(10)
    assert it.times_of("beat") == [5, 6, 7, 8, 9, 10]
    _, beat = it.notebook.records[0]
    assert isinstance(beat, Look)
    assert (beat.step, beat.phase, beat.idle_s) == (100, "train_batch", QUIET_S)
    assert beat.threads[0].main


def test_a_training_that_makes_progress_leaves_neither_beats_nor_dumps() -> None:
    it = Watched()
    for _ in range(100):
        it.stand_still(4)
        it.pulse.step_done()
    assert it.notebook.records == []


def test_the_dump_comes_at_the_learned_limit_and_then_ever_later() -> None:
    it = Watched()
    it.stand_still(600)
    assert it.times_of("dump") == [60, 120, 240, 480]
    dump = next(record for _, record in it.notebook.records if isinstance(record, DumpRecord))
    assert (dump.reason, dump.limit_s) == ("no_step", 60.0)
    assert dump.memory[HostMetric.CPU] > 0


def test_the_dump_comes_at_the_limit_that_was_set() -> None:
    it = Watched(hang_after_s=8)
    it.stand_still(20)
    assert it.times_of("dump") == [8, 16]


def test_before_training_a_module_that_is_imported_is_a_sign_of_life(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Watched(hang_after_s=8)
    watched.pulse.begin("startup")
    monkeypatch.setattr(thread_stacks, "main_imports", lambda: True)
    watched.stand_still(6)
    monkeypatch.setitem(sys.modules, "a_module_that_came", threading)
    watched.stand_still(7)
    assert watched.notebook.times_of("dump", watched.began_s) == []
    watched.stand_still(2)
    assert watched.notebook.times_of("dump", watched.began_s) == [15]


def test_each_hang_gets_its_own_dump() -> None:
    it = Watched(hang_after_s=8)
    it.stand_still(10)
    it.pulse.step_done()
    it.stand_still(10)
    assert it.times_of("dump") == [8, 18]


def test_the_profile_is_saved_after_the_dump_in_its_own_thread() -> None:
    it = Watched(hang_after_s=8)
    it.stand_still(8)
    assert it.hangs.acquire(timeout=PATIENCE_S)


def test_a_profile_that_cannot_be_saved_is_not_tried_twice_at_once() -> None:
    it = Watched(hang_after_s=8)
    release = threading.Event()
    calls = []

    def block() -> None:
        calls.append(1)
        release.wait(PATIENCE_S)

    it.watchdog._on_hang = block
    it.stand_still(100)
    until(lambda: calls)
    release.set()
    assert len(calls) == 1 and len(it.times_of("dump")) == 4


def test_between_two_fits_nothing_is_expected_of_a_notebook(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(thread_stacks, "main_rests", lambda: True)
    it = Watched(hang_after_s=8)
    it.pulse.begin("idle")
    it.stand_still(1000)
    assert it.notebook.records == []


def test_a_program_that_hangs_after_fit_is_dumped_but_not_profiled() -> None:
    it = Watched(hang_after_s=8)
    it.pulse.begin("idle")
    it.stand_still(20)
    assert it.times_of("dump") == [8, 16]
    assert not it.hangs.acquire(timeout=0.1)


def test_after_fit_a_program_may_take_as_long_as_before_the_first_step() -> None:
    it = Watched()
    it.pulse.begin("idle")
    it.stand_still(310)
    assert it.times_of("dump") == [300]


def test_an_overnight_hang_leaves_few_records() -> None:
    it = Watched()
    it.stand_still(NIGHT_S)
    assert len(it.times_of("dump")) == 10
    beats = it.times_of("beat")
    assert len(beats) < 500
    # What is needed to tell slow from stuck is there, early and late.
    assert len([at for at in beats if at <= 60]) > 50 and beats[-1] > NIGHT_S - 900


def test_slow_steps_for_a_day_leave_few_beats() -> None:
    it = Watched()
    for _ in range(24 * 60):
        it.stand_still(60)
        it.pulse.step_done()
    assert len(it.times_of("beat")) < 4000
    assert it.times_of("dump") == [60]  # the first one: after that, the limit has been learned


def test_the_host_is_sampled_every_second_and_only_changes_are_written() -> None:
    it = Watched()
    it.stand_still(5)
    assert [round(at_s - it.began_s) for at_s, _ in it.notebook.samples] == [1, 2, 3, 4, 5]
    (_, first), *later = it.notebook.samples
    assert Tag.HOST + HostMetric.CPU in first
    assert all(Tag.HOST + HostMetric.LIMIT not in values for _, values in later)


def test_a_day_of_training_leaves_few_samples() -> None:
    it = Watched()
    it.pulse.begin("idle")
    it.stand_still(24 * 3600)
    assert len(it.notebook.samples) < 20_000


def test_its_thread_survives_failures(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    it = Watched()
    monkeypatch.setattr("tb_stall_plugin.capture.process.watchdog.TICK_S", 0.0)
    monkeypatch.setattr("tb_stall_plugin.capture.process.watchdog.PAUSE_AFTER_FAILURE_S", 0.0)
    looks = []

    def fail() -> None:
        looks.append(1)
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(it.watchdog, "look", fail)
    it.watchdog.start()
    until(lambda: len(looks) > 2)
    it.watchdog.stop()
    assert "a fault of ours" in caplog.text


def test_stacks_are_prepared_before_its_thread_gets_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Native code may hold the interpreter from the program's next line on."""
    put_off: list[float] = []
    monkeypatch.setattr(Watchdog, "_run", lambda self: None)
    watchdog = Watched(hang_after_s=30.0).watchdog
    monkeypatch.setattr(watchdog._held, "put_off", lambda seconds, look: put_off.append(seconds))
    watchdog.start()
    assert put_off == [pytest.approx(30.0, abs=0.2)]  # a step ended a moment ago
