"""Profiled windows: the profiler runs as planned, and each profile is saved as a session.

Only one profiler can run in a process, and it may be somebody else's: then no window is opened, and
an open one is closed. Saving takes about 0.1 s per megabyte, so a thread does it.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Concatenate, ParamSpec

from stall_analyzer.captures.capture_format import WindowEnd, WindowEvent, WindowReason
from stall_analyzer.captures.capture_records import WindowRecord
from tb_stall_plugin.capture.process.pulse import Pulse
from tb_stall_plugin.capture.process.recorder import Recorder
from tb_stall_plugin.capture.training.growth import Growth
from tb_stall_plugin.capture.training.session_files import SessionFiles
from tb_stall_plugin.capture.training.tf_profiler import Profiler, a_profiler_runs
from tb_stall_plugin.capture.training.window_plan import MOST_WINDOW_BYTES, WindowPlan

RETRY_S = 10.0  # after another profiler was found running
HANG_WINDOW_S = 5.0  # long enough to see whether anything still moves
MIND_MEMORY_S = 0.5
NICE = 10  # a tenth of what other threads get, if there are too few cores for all

P = ParamSpec("P")


def _or_give_up(method: Callable[Concatenate[Windows, P], None]) -> Callable[..., None]:
    """If something here goes wrong, the profiler must not keep running and taking up memory."""

    @functools.wraps(method)
    def tried(self: Windows, *arguments: P.args, **named: P.kwargs) -> None:
        if self._given_up or os.getpid() != self._process:  # a forked child has no profiler
            return
        try:
            method(self, *arguments, **named)
        except Exception as error:
            self._give_up(error)

    return tried


class Windows:
    """For one process, over all its fits: two objects would write to the same hidden folder.

    Called by the training thread, and by the watchdog and the last words from their own threads.
    Never raises.
    """

    def __init__(
        self,
        logdir: str,
        recorder: Recorder,
        pulse: Pulse,
        plan: WindowPlan,
        on_failure: Callable[[str], None],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recorder = recorder
        self._pulse = pulse
        self.plan = plan
        self._profiler = Profiler(self._make_way)
        self._on_failure = on_failure
        self._clock_s = clock_s
        self._files = SessionFiles(logdir)
        self._growth = Growth()
        self._process = os.getpid()
        self._lock = threading.RLock()  # never held while a profile is saved
        self._open: WindowRecord | None = None
        self._saving: threading.Thread | None = None
        self._given_up = False
        self._retry_at_s = 0.0
        self._others = range(0)

    # ------------------------------------------------------------ what happens in the training

    @_or_give_up
    def fit_begins(self, steps_in_epoch: int | None, others: range) -> None:
        """`others`: the steps in which another profiler will run."""
        with self._lock:
            self._others = others
            now_s = self._clock_s()
            self.plan.fit_began(now_s, steps_in_epoch)
            self._follow_plan(now_s)

    @property
    def _step(self) -> int:
        """The number of the current step, or of the next one between two steps."""
        return self._pulse.steps_done

    @property
    def is_busy(self) -> bool:
        """While it is busy, the end of each step must be reported at once."""
        return self._open is not None

    @_or_give_up
    def steps_ended(self, seconds: Sequence[float], python_runs_beside: bool = False) -> None:
        """`seconds`: how long each step took."""
        with self._lock:
            self.plan.python_runs_beside = python_runs_beside
            now_s = self._clock_s()
            for each in seconds:
                self.plan.step_ended(now_s, each)
            self._follow_plan(now_s)

    @_or_give_up
    def validation_begins(self) -> None:
        with self._lock:
            if self.plan.opens_for_validation() and self._step not in self._others:
                self._start(WindowReason.VALIDATION)

    @_or_give_up
    def test_step_ended(self) -> None:
        with self._lock:
            now_s = self._clock_s()
            self.plan.test_step_ended(now_s)
            if self.plan.closes(now_s):
                self._stop(WindowEnd.PLAN)

    @_or_give_up
    def first_epoch_ended(self) -> None:
        with self._lock:
            self.plan.first_epoch_ended()
            self._stop(WindowEnd.PLAN)

    @_or_give_up
    def fit_ends(self) -> None:
        """Does not wait until the last profile is saved; the end of the process does."""
        with self._lock:
            self.plan.fit_ended(self._clock_s())
            self._stop(WindowEnd.PLAN)

    @_or_give_up
    def hang(self) -> None:
        """Nothing has moved for a long time: saves what led to it, and looks at what moves now."""
        self._save_now(WindowEnd.HANG)
        with self._lock:
            if not self.plan.opens_for_hang():
                return
            self._start(WindowReason.HANG)
        time.sleep(HANG_WINDOW_S)
        with self._lock:
            if self._open is not None and self._open.reason == WindowReason.HANG:
                self._stop(WindowEnd.PLAN)

    @_or_give_up
    def finish(self) -> None:
        """Called when the process ends."""
        self._save_now(WindowEnd.END)

    # ------------------------------------------------------------ the profiler

    def _follow_plan(self, now_s: float) -> None:
        is_free = self._step not in self._others
        if self._open is not None:
            if not is_free or self.plan.closes(now_s):
                self._stop(WindowEnd.PLAN)
        elif is_free and self._saving is None:
            reason = self.plan.opens(now_s)
            if reason is not None:
                self._start(reason)

    def _start(self, reason: str) -> None:
        is_idle = self._open is None and self._saving is None
        if not is_idle or self._clock_s() < self._retry_at_s:
            return
        # Asked first: a start that fails may leave TensorFlow believing that a profiler runs.
        if a_profiler_runs():
            self._retry_at_s = self._clock_s() + RETRY_S
            text = f"Another profiler was running at step {self._step}, so nothing was profiled."
            self._recorder.note("info", text)
            return
        self._growth.begin()
        self._profiler.start(self._files.staging)
        self._open = window = WindowRecord(
            what=WindowEvent.OPENED, reason=reason, first_step=self._step
        )
        threading.Thread(
            target=self._mind_memory, args=(window,), name="stall-mind-memory", daemon=True
        ).start()
        self.plan.opened(self._clock_s(), reason)
        self._recorder.record(window)

    @_or_give_up
    def _make_way(self) -> None:
        """Called when the script starts the profiler itself."""
        with self._lock:
            self._retry_at_s = self._clock_s() + RETRY_S
            if self._open is not None:
                text = (
                    f"The script started the profiler at step {self._step}, so the capture "
                    f"stopped profiling."
                )
                self._recorder.note("info", text)
                self._stop(WindowEnd.PLAN)

    @_or_give_up
    def _mind_memory(self, window: WindowRecord) -> None:
        while self._open is window:
            time.sleep(MIND_MEMORY_S)
            with self._lock:
                if self._open is window and self._growth.is_too_much():
                    self._stop(WindowEnd.MEMORY)

    def _stop(self, ended_by: str) -> None:
        window, self._open = self._open, None
        if window is not None:
            self.plan.closed(self._clock_s())
            self._saving = threading.Thread(
                target=self._save_beside,
                args=(window, self._step, ended_by),
                name="stall-save-profile",
                daemon=True,
            )
            try:
                self._saving.start()
            except RuntimeError:  # no more threads, or Python ends: giving up stops the profiler
                self._saving, self._open = None, window
                raise

    def _save_now(self, ended_by: str) -> None:
        """Saves in this thread: Python starts no new ones while it ends."""
        with self._lock:
            saving, window = self._saving, self._open
            if window is not None:
                self._open = None
                self.plan.closed(self._clock_s())
                self._saving = threading.current_thread()
        if window is not None:
            self._save(window, self._step, ended_by)
        elif saving is not None and saving is not threading.current_thread():
            saving.join()

    def _save_beside(self, window: WindowRecord, step: int, ended_by: str) -> None:
        """Runs in its own thread, on cores that the training leaves idle."""
        if sys.platform == "linux":  # on other systems, it would affect the whole process
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        self._save(window, step, ended_by)

    def _save(self, window: WindowRecord, step: int, ended_by: str) -> None:
        began_s, cpu_began_s = time.monotonic(), time.thread_time()
        size = 0
        closed = replace(window, last_step=step, ended_by=ended_by)
        try:
            self._profiler.stop()
            session, size = self._files.publish()
            if ended_by == WindowEnd.MEMORY and size < MOST_WINDOW_BYTES:
                self._growth.was_not_ours()
            seconds = round(time.monotonic() - began_s, 3)
            saved = replace(closed, what=WindowEvent.SAVED, session=session, seconds=seconds)
            self._recorder.record(saved)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            self._recorder.record(replace(closed, what=WindowEvent.FAILED, why=why))
            self._give_up(error)
        with self._lock:
            self.plan.saved(size, time.thread_time() - cpu_began_s)
            self._saving = None

    def _give_up(self, error: Exception) -> None:
        self._given_up = True
        window, self._open = self._open, None
        try:
            if window is not None:
                self._profiler.stop(save=False)
            self._files.discard()
        except Exception as another:
            error = another
        self._on_failure(f"{type(error).__name__}: {error}")
