"""A thread next to the training that samples the host and records what hangs. It stops nothing."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable

from stall_analyzer.captures.capture_format import StopReason, TrainingPhase
from stall_analyzer.captures.look_records import WorkRecord
from tb_stall_plugin.capture.process import thread_stacks
from tb_stall_plugin.capture.process.fixed_loops import fixed_loop
from tb_stall_plugin.capture.process.held_interpreter import HeldInterpreter
from tb_stall_plugin.capture.process.witness import Witness

logger = logging.getLogger("stall")

TICK_S = 1.0
QUIET_S = 5.0  # after this long without a sign of life, beats show where it stands
PAUSE_AFTER_FAILURE_S = 60.0
WATCH_LOOPS_S = 3.0
A_DAY_S = 86_400.0

# The file must not keep growing at the same rate: a hang may last all weekend.
SAMPLED_EACH_SECOND_S = 3600.0  # after an hour, samples become rarer
BEATS_EACH_SECOND = 60  # after this many, or this many seconds into a hang, beats become rarer


class Watchdog:
    def __init__(
        self,
        witness: Witness,
        held: HeldInterpreter,
        on_hang: Callable[[], None],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._witness = witness
        self._held = held
        self._pulse = witness.pulse
        self._on_hang = on_hang
        self._clock_s = clock_s
        self._began_s = clock_s()
        self._stopped = threading.Event()
        self._saving: threading.Thread | None = None
        self._looking: threading.Thread | None = None
        self._looping: threading.Thread | None = None
        self._next_sample_s = self._began_s
        self._modules = len(sys.modules)
        self._beats = 0
        self._next_beat_s = self._began_s
        self._hang_ns = -1  # time of the last sign of life before the hang that is being watched
        self._still_there: Callable[[], None] = _nothing
        self._dump_after_s = 0.0  # how long that hang must last for the next dump

    def start(self) -> None:
        threading.Thread(target=self._run, name="stall-watchdog", daemon=True).start()
        # Done here: native code may hold the interpreter before the thread gets its turn.
        self._held.put_off(self._witness.limit_s() - self._pulse.idle_s(), self._witness.look())

    def stop(self) -> None:
        self._stopped.set()

    def exit_begins(self, still_there: Callable[[], None]) -> None:
        """Other exit handlers may hang. `still_there` is called if they take a long time."""
        self._still_there = still_there
        self._pulse.begin(TrainingPhase.EXIT)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.look()
            except Exception:
                logger.warning("The watchdog failed; it will try again.", exc_info=True)
                self._held.put_off(PAUSE_AFTER_FAILURE_S)
                self._stopped.wait(PAUSE_AFTER_FAILURE_S)
            self._stopped.wait(TICK_S)

    def look(self) -> None:
        """Called once a second. Nothing in here may wait, for a disk for example: if the watchdog
        is late, that must mean that no Python runs."""
        now_s = self._clock_s()
        if self._pulse.phase == TrainingPhase.EXIT and self._pulse.idle_s() < QUIET_S:
            return
        if now_s >= self._next_sample_s:
            age_s = now_s - self._began_s
            self._next_sample_s = now_s + max(TICK_S, age_s / SAMPLED_EACH_SECOND_S)
            self._witness.sample()
        self._hear_of_imports()
        held = self._held.taken()
        if held is not None:
            self._witness.recorder.record(held)
        idle_s = self._pulse.idle_s()
        if idle_s >= TICK_S and self._pulse.was_left():  # early: until then, its model is kept
            return
        if idle_s >= QUIET_S and self._nothing_is_expected():
            self._held.put_off(A_DAY_S)
            return
        if idle_s >= QUIET_S and now_s >= self._next_beat_s:
            self._beats += 1
            pause_s = max(self._beats, idle_s) / BEATS_EACH_SECOND
            self._next_beat_s = now_s + max(TICK_S, pause_s)
            self._witness.beat()
            self._still_there()
        self._dump_if_hanging(idle_s)
        self._held.put_off(self._dump_after_s - idle_s, self._witness.look())

    def _hear_of_imports(self) -> None:
        """Before training, newly imported modules are signs of life: on a busy machine, imports
        take longer than a step may. Not after a dump, for which we import some ourselves."""
        modules, self._modules = self._modules, len(sys.modules)
        is_new = self._modules != modules and self._dump_after_s <= self._witness.limit_s()
        if is_new and self._pulse.phase == TrainingPhase.STARTUP and thread_stacks.main_imports():
            self._pulse.alive()

    def _nothing_is_expected(self) -> bool:
        """Between two fits, a notebook waits for its user."""
        return self._pulse.phase == TrainingPhase.IDLE and thread_stacks.main_rests()

    def _dump_if_hanging(self, idle_s: float) -> None:
        if self._hang_ns != self._pulse.last_sign_ns:
            self._hang_ns = self._pulse.last_sign_ns
            self._dump_after_s = self._witness.limit_s()
        if idle_s >= self._dump_after_s:
            # Twice as long each time: an overnight hang leaves only a few of these large records.
            self._dump_after_s *= 2
            self._witness.dump(StopReason.NO_STEP)
            self._look_at_work()
            self._look_at_loops()
            if self._pulse.phase not in (TrainingPhase.IDLE, TrainingPhase.EXIT):
                self._save_profile()

    def _look_at_work(self) -> None:
        """In its own thread: it may wait for the very thing that hangs."""
        is_free = self._looking is None or not self._looking.is_alive()
        if is_free and _is_imported("tensorflow"):
            self._looking = threading.Thread(
                target=_look_at_work, args=(self._witness,), name="stall-look-at-work", daemon=True
            )
            self._looking.start()

    def _look_at_loops(self) -> None:
        if self._looping is None or not self._looping.is_alive():
            self._looping = threading.Thread(
                target=_look_at_loops,
                args=(self._witness,),
                name="stall-look-at-loops",
                daemon=True,
            )
            self._looping.start()

    def _save_profile(self) -> None:
        """In its own thread, for the same reason."""
        if self._saving is None or not self._saving.is_alive():
            self._saving = threading.Thread(
                target=self._on_hang, name="stall-save-profile", daemon=True
            )
            self._saving.start()


def _nothing() -> None:
    """The default for what is done when a process does not exit."""


def _is_imported(name: str) -> bool:
    """Whether its import has ended: an import may be what hangs."""
    module = sys.modules.get(name)
    return module is not None and not getattr(module.__spec__, "_initializing", False)


def _look_at_work(witness: Witness) -> None:
    try:
        from tb_stall_plugin.capture.training.work_under_way import (  # noqa: PLC0415  TensorFlow
            look_at_work,
        )

        look_at_work(witness.recorder.record)
    except Exception:
        logger.debug("The capture could not see what TensorFlow is doing.", exc_info=True)


def _look_at_loops(witness: Witness) -> None:
    try:
        found = fixed_loop(WATCH_LOOPS_S)
        if found is not None:
            witness.recorder.record(WorkRecord(fixed=found))
    except Exception:
        logger.debug("Loops could not be watched.", exc_info=True)
