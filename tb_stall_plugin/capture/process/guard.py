"""Stands guard over a training process: recorder, watchdog and last words, without TensorFlow.

There is one guard at a time. Whoever asks first starts it: `stall-analyze capture` as soon as
TensorFlow is imported, or else StallCallback or `watch`. It ends with the process.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from stall_analyzer.captures.capture_format import StopReason, TrainingPhase
from stall_analyzer.captures.held_stacks import stacks_file_of
from stall_analyzer.captures.look_records import CapturedError
from tb_stall_plugin.capture.imports import LOGDIR
from tb_stall_plugin.capture.process import last_word, thread_stacks
from tb_stall_plugin.capture.process.about import environment
from tb_stall_plugin.capture.process.held_interpreter import HeldInterpreter
from tb_stall_plugin.capture.process.pulse import Pulse
from tb_stall_plugin.capture.process.recorder import Recorder
from tb_stall_plugin.capture.process.signal_listener import SignalListener
from tb_stall_plugin.capture.process.watchdog import QUIET_S, Watchdog
from tb_stall_plugin.capture.process.witness import Witness

if TYPE_CHECKING:  # it brings TensorFlow
    from tb_stall_plugin.capture.training.windows import Windows

logger = logging.getLogger("stall")

END_AFTER_SIGTERM_S = 5.0  # to save the profile: clusters send SIGKILL soon after
END_OF_A_HANG_S = 1.0  # what led to the hang has already been saved
END_AT_EXIT_S = 30.0
# A disk that hangs must keep a process neither from continuing nor from ending.
WRITE_S = 3.0
WRITE_AFTER_FIT_S = 1.0
LAST_WORDS_S = 15.0
MOST_ERROR_CHARACTERS = 4000  # TensorFlow's errors quote whole graphs; the reason is at the end
ELSEWHERE = (
    "The script asked for its capture to go to {}, but the command that runs the script writes "
    "to a folder of its own."
)
REPORTED = "_reported_by_stall"

_guard: Guard | None = None
_lock = threading.Lock()


def guard(
    logdir: str | os.PathLike[str], hang_after_s: float | None = None, age_s: float = 0.0
) -> Guard:
    """The guard that writes to `logdir`: the current one if it does so, otherwise a new one.

    `age_s`: how long the program has already been running without a sign of life."""
    global _guard  # noqa: PLW0603 (signals and hooks are the process's too)
    folder = _absolute(folder_for(logdir))
    with _lock:
        if _guard is not None and _guard.is_open and _guard.logdir == folder:
            _guard.is_asked_for(logdir)
            if hang_after_s is not None:
                _guard.hang_after(hang_after_s)
            return _guard
        before = _guard
        if before is not None:
            before.close(StopReason.EXIT)
        _guard = Guard(folder, hang_after_s, age_s)
        if before is not None:
            # Fits that an exception ends later must still be noticed, or they keep their models.
            _guard.pulse.fits = before.pulse.fits
        _guard.begin()
        _guard.is_asked_for(logdir)
        return _guard


def folder_for(logdir: str | os.PathLike[str]) -> str:
    """Where the capture is really written. A command that runs the script puts all of it into its
    own folder, since two captures of one process would each miss what the other has."""
    return os.environ.get(LOGDIR) or os.fspath(logdir)


def _absolute(folder: str | os.PathLike[str]) -> str:
    """The script may change its working directory."""
    path = os.fspath(folder)
    return path if "://" in path else os.path.abspath(path)  # noqa: PTH100


def is_on_duty() -> bool:
    return _guard is not None and _guard.is_open


class Guard:
    def __init__(self, logdir: str, hang_after_s: float | None, age_s: float = 0.0) -> None:
        self.logdir = logdir
        self._asked_for = {logdir}
        self.recorder = Recorder(logdir)
        self.pulse = Pulse(age_s=age_s)
        self.on_hang: Callable[[], None] = _nothing
        self.on_end: Callable[[], None] = _nothing
        self._windows: Windows | None = None
        self._process = os.getpid()
        self._witness = Witness(self.recorder, self.pulse, hang_after_s)
        self._held = HeldInterpreter(_stacks_file(self.recorder))
        self._watchdog = Watchdog(self._witness, self._held, lambda: _quietly(self.on_hang))
        self._signals = SignalListener(
            lambda number, ends: self._told(number, ends, time.time_ns())
        )
        self._end_reason = StopReason.EXIT
        self._hook = sys.excepthook
        self._is_described = False
        self._making = threading.Lock()
        self._closing = threading.Lock()
        self._closed = threading.Event()

    @property
    def is_open(self) -> bool:
        """False in a forked child: the guard belongs to its parent."""
        return not self._closed.is_set() and os.getpid() == self._process

    def windows_made_by(self, make: Callable[[Guard], Windows]) -> Windows:
        """The same windows for all fits: what earlier fits cost counts against the budget."""
        with self._making:
            if self._windows is None:
                self._windows = make(self)
                self.on_hang, self.on_end = self._windows.hang, self._windows.finish
            return self._windows

    def is_asked_for(self, logdir: str | os.PathLike[str]) -> None:
        """Notes it if the script named a different folder."""
        folder = _absolute(logdir)
        if folder not in self._asked_for:
            self._asked_for.add(folder)
            self.recorder.note("info", ELSEWHERE.format(os.fspath(logdir)))

    def hang_after(self, seconds: float) -> None:
        self._witness.hang_after_s = seconds

    def begin(self) -> None:
        _quietly(self._begin)

    def _begin(self) -> None:
        self._write_start(initialized=False)
        self._hook = sys.excepthook
        sys.excepthook = self._uncaught
        atexit.register(self._exit)
        self.recorder.start()
        self._held.begin()
        self._watchdog.start()
        # Not earlier: strategies wait for their workers without letting any Python run, and with a
        # handler of ours, SIGTERM would no longer end such a process.
        self.pulse.on_training = lambda: _quietly(self._hear_signals)

    def _hear_signals(self) -> None:
        missing = self._signals.install()
        if missing:
            self.recorder.note("warning", missing)

    def describe(self) -> None:
        """Writes the start record again, once, after TensorFlow has set up its devices."""
        if not self._is_described:
            self._is_described = True
            _quietly(lambda: self._write_start(initialized=True))

    def _write_start(self, initialized: bool) -> None:
        self.recorder.record(environment(self._witness.hang_after_s, initialized))

    # ------------------------------------------------------------ last words

    def write_now(self) -> None:
        """Called when training has ended: what comes next may end the process without warning."""
        _within(self.recorder.flush, WRITE_AFTER_FIT_S)

    def exception(self, error: BaseException, uncaught: bool = False) -> None:
        """Writes a dump for an exception, once, whoever sees it first. An uncaught one always gets
        a dump, because it ends the program, which may hang as it exits."""
        if getattr(error, REPORTED, False) and not uncaught:
            return
        setattr(error, REPORTED, True)  # a list of errors would keep their tensors, too
        told = CapturedError(
            type(error).__name__,
            _both_ends(str(error)),
            thread_stacks.frames_of_traceback(error.__traceback__),
            uncaught,
        )
        _quietly(lambda: self._witness.dump(StopReason.EXCEPTION, told))
        _within(lambda: self.recorder.flush(urgent=True), WRITE_S)

    def _uncaught(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        _quietly(lambda: self.exception(error, uncaught=True))
        self._end_reason = StopReason.EXCEPTION
        self._hook(kind, error, traceback)

    def _told(self, number: int, ends: bool, at_ns: int) -> None:
        _within(lambda: self._heard(number, ends, at_ns), LAST_WORDS_S)

    def _heard(self, number: int, ends: bool, at_ns: int) -> None:
        """A signal was heard. `ends`: the process dies when this returns."""
        if number == signal.SIGINT:
            self._tell_if_it_hangs()
            return
        self._end_reason = StopReason.SIGTERM
        self._witness.dump(StopReason.SIGTERM, signal_ns=at_ns)
        self.recorder.flush(urgent=True)
        if ends:
            is_hang = self.pulse.idle_s() >= self._witness.limit_s()
            self._close(END_OF_A_HANG_S if is_hang else END_AFTER_SIGTERM_S)
        else:  # the user's own handler waits for this and then decides whether to continue
            _within(self.on_hang, 0.0)

    def _tell_if_it_hangs(self) -> None:
        """Called on Ctrl-C. If it does not hang, KeyboardInterrupt will show where it was."""
        rests = self.pulse.phase == TrainingPhase.IDLE and thread_stacks.main_rests()
        if self.pulse.idle_s() >= QUIET_S and not rests:
            self._witness.dump(StopReason.SIGINT)
            self.recorder.flush(urgent=True)

    def _exit(self) -> None:
        if os.getpid() != self._process:
            return
        self._let_listener_tell()
        # Exit handlers that were registered before ours run now, and may hang. A remote file, which
        # is sent when it is closed, must be closed before that.
        is_local = "://" not in self.logdir
        self._close(END_AT_EXIT_S, watches_on=is_local)

    def _is_still_there(self) -> None:
        last_word.last_word.write = self.recorder.last_word(self._end_reason)

    def _let_listener_tell(self) -> None:
        """If the program hung and exits because of Ctrl-C, waits until that has been recorded."""
        if self.pulse.idle_s() >= QUIET_S:
            self._signals.settle(WRITE_S)

    def close(self, reason: str) -> None:
        """Closes it before the process ends, for example because another guard takes over."""
        self._end_reason = reason
        self._close(END_AT_EXIT_S)

    def _close(self, seconds: float, watches_on: bool = False) -> None:
        if os.getpid() != self._process:
            return
        if not self._closing.acquire(blocking=False):
            # Another thread is closing it, for example on SIGTERM: let it finish first.
            self._closed.wait(END_AFTER_SIGTERM_S)
            return
        _within(self.on_end, seconds)
        self.on_hang = self.on_end = _nothing
        if not watches_on:
            self._watchdog.stop()
        _quietly(self._witness.sample)  # in a short program, the watchdog may not have sampled yet
        _within(self._held.end, seconds)
        end = self.recorder.end if watches_on else self.recorder.close
        _within(lambda: end(self._end_reason), seconds)
        if watches_on:
            self._watchdog.exit_begins(self._is_still_there)
        _quietly(self._restore)
        self._closed.set()

    def _restore(self) -> None:
        atexit.unregister(self._exit)
        if sys.excepthook == self._uncaught:
            sys.excepthook = self._hook
        self._signals.remove()


# These frames are ours: the exception's own traceback shows what it interrupted.
thread_stacks.HIDDEN.update((Guard.exception.__code__, Guard._uncaught.__code__))


def _stacks_file(recorder: Recorder) -> Path | None:
    if "://" in recorder.logdir:
        return None
    path = stacks_file_of(str(Path(recorder.logdir, recorder.file_name)))
    return Path(path) if path else None


def _nothing() -> None:
    """What is done at a hang, and at the end, if nothing is profiled."""


def _both_ends(text: str) -> str:
    half = MOST_ERROR_CHARACTERS // 2
    return text if len(text) <= MOST_ERROR_CHARACTERS else f"{text[:half]}\n{text[-half:]}"


def _quietly(action: Callable[[], None]) -> None:
    try:
        action()
    except Exception:
        logger.warning("The capture failed; training continues.", exc_info=True)


def _within(action: Callable[[], None], seconds: float) -> None:
    """Does it, but waits no longer than this."""
    thread = threading.Thread(
        target=_quietly, args=(action,), name="stall-save-profile", daemon=True
    )
    try:
        thread.start()
    except RuntimeError:  # no new thread while Python shuts down
        _quietly(action)
    else:
        thread.join(seconds)
