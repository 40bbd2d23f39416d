"""Hears SIGTERM and Ctrl-C even while the main thread hangs in native code.

Python runs signal handlers in the main thread, between two bytecodes. A thread that waits inside
TensorFlow never gets there. But the C half of every Python handler writes the signal's number to
the wakeup descriptor at once, and a thread of ours reads the other end.

With our handler in place, SIGTERM no longer ends the process, so our thread must; and if C code
lets no Python run, the kernel does (_deadline.c). What was there before us keeps working: a handler
of the user's is called as before, and if native code listens, we step aside. A handler that is
installed later must not mistake ours for the program's own and leave it to us to end the process:
if the program had none, `signal.getsignal` and `signal.signal` say so.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any

from tb_stall_plugin.capture.process import thread_stacks

try:
    _deadline: Any = import_module("tb_stall_plugin.capture.process._deadline")
except ImportError:  # no compiler, or no Linux
    _deadline = None

logger = logging.getLogger("stall")

HEARD = (signal.SIGTERM, signal.SIGINT)
STOP = 0  # written to the pipe: stop listening
SETTLE = 255  # written to the pipe: say when all signals before it have been reported
SAME_SIGNAL_S = 2.0  # both halves of our handler report the same signal
HEARD_WITHIN_S = 5.0  # by our thread: otherwise no Python runs anymore, and the process ends
ENDS_WITHIN_S = 25.0  # if it was heard; clusters send SIGKILL after half a minute
WAIT_FOR_EVIDENCE_S = 3.0  # before the user's own handler may end the process

ONLY_MAIN_THREAD = (
    "The capture was not started from the main thread, so it cannot receive SIGTERM: a run that is "
    "terminated leaves only what had been recorded by then."
)
NATIVE_HANDLER = (
    "A native library handles SIGTERM, as TensorFlow's preemption notifier does. The capture does "
    "not interfere with it, so it writes no final record on SIGTERM."
)
WAKEUP_TAKEN = (
    "Another library listens for signals, as asyncio does: SIGTERM leaves a final record only if "
    "the main thread is running Python code at that time."
)

# Python's own functions, without our replacements.
_set_signal: Callable[..., Any] = signal.signal
_get_signal: Callable[..., Any] = signal.getsignal
# They are never closed, since somebody may have kept the number of one to set it again; but they
# are reused.
_free_pipes: list[tuple[int, int]] = []


class SignalListener:
    """Calls `heard(signal, ends)` in our thread; if `ends`, the process dies when it returns."""

    def __init__(self, heard: Callable[[int, bool], None]) -> None:
        self._heard = heard
        self._previous: Callable[[int, FrameType | None], object] | int | None = None
        self._installed = False
        self._address = 0  # of Python's C handler, to see whether it is still in place
        self._reader = self._writer = -1
        self._evidence = threading.Event()
        self._settled = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="stall-signals", daemon=True)

    def install(self) -> str | None:
        """Returns what keeps it from hearing everything, in words for a note; None if nothing."""
        if os.name != "posix":
            return None
        if threading.current_thread() is not threading.main_thread():
            return ONLY_MAIN_THREAD
        self._previous = _get_signal(signal.SIGTERM)
        if self._previous is signal.SIG_IGN:
            return None
        native = self._previous is signal.SIG_DFL and _handler_address(signal.SIGTERM) != 0
        if self._previous is None or native:
            return NATIVE_HANDLER
        self._reader, self._writer = _free_pipes.pop() if _free_pipes else _new_pipe()
        self._thread.start()
        other = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        if other != -1:
            signal.set_wakeup_fd(other)
        _set_signal(signal.SIGTERM, self._handle)
        if self._previous is signal.SIG_DFL and _deadline is not None:
            _deadline.put_in(signal.SIGTERM, HEARD_WITHIN_S)
        self._address = _handler_address(signal.SIGTERM)
        self._installed = True
        if self._previous is signal.SIG_DFL:
            _replace_functions(self._set_by_script, self._seen_by_script)
        _installed.add(self)
        return WAKEUP_TAKEN if other != -1 else None

    def remove(self) -> None:
        """Puts back what was there, unless ours has been replaced since."""
        if not self._installed or threading.current_thread() is not threading.main_thread():
            return
        self._installed = False
        if signal.signal == self._set_by_script:
            _replace_functions(_set_signal, _get_signal)
        if self._is_ours():
            _set_signal(signal.SIGTERM, self._previous)
        descriptor = signal.set_wakeup_fd(-1)
        if descriptor not in (-1, self._writer):
            signal.set_wakeup_fd(descriptor)
        if self._thread.is_alive():  # not in a forked child: the pipe is its parent's
            self._tell(STOP)

    def settle(self, within_s: float) -> None:
        """Waits until all signals that have arrived so far are reported."""
        if self._installed and self._thread.is_alive():
            self._settled.clear()
            self._tell(SETTLE)
            self._settled.wait(within_s)

    def _is_ours(self) -> bool:
        # Python does not know whether native code has taken over the signal.
        in_place = _handler_address(signal.SIGTERM) == self._address
        return in_place and _get_signal(signal.SIGTERM) == self._handle

    def _set_by_script(self, *arguments: Any, **named: Any) -> Any:
        return self._as_without_us(_set_signal(*arguments, **named))

    def _seen_by_script(self, *arguments: Any, **named: Any) -> Any:
        return self._as_without_us(_get_signal(*arguments, **named))

    def _as_without_us(self, handler: Any) -> Any:
        return self._previous if handler == self._handle else handler

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """Called in the main thread, when it next runs Python code."""
        self._tell(number)  # the wakeup descriptor may belong to another library by now
        if callable(self._previous):
            self._evidence.wait(WAIT_FOR_EVIDENCE_S)
            self._previous(number, frame)
        elif not self._thread.is_alive():
            _die_of(number)

    def _tell(self, number: int) -> None:
        with suppress(OSError):  # the pipe is full: there are enough signals in it
            os.write(self._writer, bytes((number,)))

    # ------------------------------------------------------------ our thread

    def _listen(self) -> None:
        last: dict[int, float] = {}
        while True:
            for number in os.read(self._reader, 64):
                if number == STOP:
                    _free_pipes.append((self._reader, self._writer))
                    return
                if number == SETTLE:
                    self._settled.set()
                since_s = time.monotonic() - last.get(number, -SAME_SIGNAL_S)
                if number in HEARD and since_s >= SAME_SIGNAL_S:
                    self._report(number)
                    last[number] = time.monotonic()  # the other half may have waited until now

    def _report(self, number: int) -> None:
        ends = number == signal.SIGTERM and self._previous is signal.SIG_DFL and self._is_ours()
        try:
            if number == signal.SIGTERM and _deadline is not None:
                _deadline.put_off(ENDS_WITHIN_S if ends else 0.0)
            self._heard(number, ends)
        except Exception:
            logger.warning("The capture could not write its final record.", exc_info=True)
        finally:
            if number == signal.SIGTERM:
                self._evidence.set()
            if ends:
                _die_of(number)


# It makes the main thread wait while the evidence is written, which is not what training was doing.
thread_stacks.HIDDEN.add(SignalListener._handle.__code__)


_installed: weakref.WeakSet[SignalListener] = weakref.WeakSet()


def _remove_in_child() -> None:
    """After a fork: the handlers and the pipes belong to the parent."""
    _free_pipes.clear()
    if _deadline is not None:
        _deadline.forget()
    for listener in tuple(_installed):
        listener.remove()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_remove_in_child)


def _new_pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    return reader, writer


def _replace_functions(set_signal: Callable[..., Any], get_signal: Callable[..., Any]) -> None:
    setattr(signal, "signal", set_signal)  # noqa: B010 (mypy would object)
    setattr(signal, "getsignal", get_signal)  # noqa: B010


def _handler_address(number: int) -> int:
    """The address of the C function that handles a signal; 0 is the default action.

    `struct sigaction` begins with it in glibc, musl and macOS, and is far smaller than the buffer.
    """
    place = ctypes.create_string_buffer(512)
    ctypes.CDLL(None).sigaction(number, None, place)
    return int.from_bytes(place.raw[: ctypes.sizeof(ctypes.c_void_p)], sys.byteorder)


def _die_of(number: int) -> None:
    """Ends the process as it would end without us. Not with `signal.signal`, which works only in
    the main thread."""
    ctypes.CDLL(None).signal(number, None)
    os.kill(os.getpid(), number)
