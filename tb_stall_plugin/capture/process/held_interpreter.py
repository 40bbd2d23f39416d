"""Records the stacks of a process in which no Python runs anymore, including the watchdog.

Native code may wait without releasing the interpreter lock, as MultiWorkerMirroredStrategy does
while it waits for workers that have not started. faulthandler has a timer and a writer in C that
need no lock. The watchdog puts the timer off every second, so that it fires only when the watchdog
stands still. `stall_analyzer/captures/held_stacks.py` describes the file, and reads it.
"""

from __future__ import annotations

import faulthandler
import json
import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from stall_analyzer.captures.capture_format import STACKS_HEADER_BYTES
from stall_analyzer.captures.held_stacks import MOST_BYTES, StacksTimer, parse
from stall_analyzer.captures.look_records import DumpRecord, Look
from tb_stall_plugin.capture.process.thread_stacks import OWN_THREADS

WAIT_FOR_DISK_S = 1.0
# A process has only one timer. A child forked while the timer runs would wait forever for its
# thread.
_timer = threading.Lock()
_users: weakref.WeakSet[HeldInterpreter] = weakref.WeakSet()
_set_timer: Callable[..., None] = faulthandler.dump_traceback_later
LATE_S = 10.0  # while Python runs, the watchdog is never this late, even if the machine swaps


class HeldInterpreter:
    """Writes to one file. faulthandler has only one timer: a script that sets it keeps it."""

    def __init__(self, path: Path | None) -> None:
        self._path = path  # None for a URL, which has no file descriptor
        self._process = os.getpid()
        self._file = -1
        self._is_over = False
        # Whether the file was read. Its content stays until the record of it must be on disk.
        self._is_taken = False
        # Keeps the file open. Not the timer's lock: whoever forks must not wait for a disk.
        self._using_file = threading.Lock()

    def begin(self) -> None:
        if self._path is None or not hasattr(os, "register_at_fork"):
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
        except OSError:  # the recorder will report it
            return
        _replace_timer(_set_by_script)
        _users.add(self)

    def put_off(self, seconds: float, look: Look | None = None) -> None:
        """Writes nothing for that many seconds from now. Without a look, what is written after that
        is ignored."""
        if self._file < 0:
            return
        due_s = max(seconds, 0.0) + LATE_S
        text = _header(due_s, look).ljust(STACKS_HEADER_BYTES)
        with self._using_file:
            if self._file < 0 or self._is_taken:
                return
            if os.fstat(self._file).st_size > STACKS_HEADER_BYTES:
                return  # stacks were written since the last call, and belong to the old header
            with suppress(OSError):  # if this fails, the header of a second ago must do
                os.pwrite(self._file, text[:STACKS_HEADER_BYTES], 0)
                os.lseek(self._file, STACKS_HEADER_BYTES, os.SEEK_SET)
            with _timer:
                if not self._is_over:
                    _set_timer(due_s, file=self._file)

    def taken(self) -> DumpRecord | None:
        """Returns once what was written while Python stood still. The file is emptied only later:
        Python may run just for a moment, too short for the dump to be recorded."""
        with self._using_file:
            if self._file < 0 or os.fstat(self._file).st_size <= STACKS_HEADER_BYTES:
                return None
            if self._is_taken:
                os.ftruncate(self._file, STACKS_HEADER_BYTES)
                self._is_taken = False
                return None
            self._is_taken = True
            return parse(os.pread(self._file, MOST_BYTES, 0))

    def end(self) -> None:
        if self._path is None or self._file < 0 or os.getpid() != self._process:
            return
        self._stop()
        if not self._using_file.acquire(timeout=WAIT_FOR_DISK_S):
            return  # the disk hangs: the file is closed when the process ends
        try:
            os.close(self._file)
            self._file = -1
            self._path.unlink(missing_ok=True)
        finally:
            self._using_file.release()

    def _stop(self) -> None:
        with _timer:
            if not self._is_over:
                self._is_over = True
                _users.discard(self)
                if not _users:
                    _replace_timer(_set_timer)
                faulthandler.cancel_dump_traceback_later()

    def _before_fork(self) -> None:
        if not self._is_over:
            faulthandler.cancel_dump_traceback_later()

    def _after_fork(self) -> None:
        if not self._is_over:
            self._is_over = True
            _replace_timer(_set_timer)


def _set_by_script(*arguments: object, **named: object) -> None:
    for user in tuple(_users):
        user._stop()
    _set_timer(*arguments, **named)


def _before_fork() -> None:
    _timer.acquire()
    for user in tuple(_users):
        user._before_fork()


def _after_fork() -> None:
    for user in tuple(_users):
        user._after_fork()
    _timer.release()


# Registered once, with plain functions: it cannot be undone, and must not keep a finished training
# in memory.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_timer.release, after_in_child=_after_fork
    )


def _header(due_s: float, look: Look | None) -> bytes:
    main = threading.main_thread().ident or 0
    threads = [t.ident or 0 for t in threading.enumerate() if t.name.startswith(OWN_THREADS)]
    timer = StacksTimer(due_s, main, tuple(threads))
    known = {} if look is None else {**vars(look), "ns": time.time_ns(), **vars(timer)}
    return json.dumps(known).encode()


def _replace_timer(function: Callable[..., None]) -> None:
    setattr(faulthandler, "dump_traceback_later", function)  # noqa: B010 (mypy would object)
