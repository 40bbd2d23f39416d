"""A process that begins as a copy of this one: what has been imported is already there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import IO, TypeAlias

# Answers the requests in the first file in the second, until there are no more.
Serve: TypeAlias = Callable[[IO[bytes], IO[bytes]], None]
LOOK_EVERY_S = 0.01
_REQUESTS, _ANSWERS, _OTHERS = 0, 3, 4  # file descriptors in the copy


def can_be_copied() -> bool:
    """Whether this process has no other threads: a copy would only have the current one, and wait
    forever for locks that the others held. Only Linux tells about all threads; on macOS, the
    system's own libraries do not work in a copy.
    """
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208  only their number
    except OSError:
        return False


class ForkedProcess:
    """What a worker process needs of a `subprocess.Popen`."""

    def __init__(self, serve: Serve) -> None:
        requests, requests_end = os.pipe()
        answers_end, answers = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # closed, or there is none
                stream.flush()  # or the copy might write it once more
        try:
            self._pid = os.fork()
        except OSError:
            for end in (requests, requests_end, answers_end, answers):
                os.close(end)
            raise
        if self._pid == 0:
            _become(serve, requests, answers)
        os.close(requests)
        os.close(answers)
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = os.fdopen(requests_end, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(answers_end, "rb")

    def kill(self) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Its exit code, negative for a signal. Raises TimeoutExpired."""
        until_s = time.monotonic() + timeout
        while self.returncode is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until_s:
                raise subprocess.TimeoutExpired(f"process {self._pid}", timeout)
            else:
                time.sleep(LOOK_EVERY_S)
        return self.returncode


def _become(serve: Serve, requests: int, answers: int) -> None:
    """Never returns: what called the original must not go on in the copy, too."""
    code = 1
    try:
        os.dup2(requests, _REQUESTS)
        os.dup2(answers, _ANSWERS)
        os.closerange(_OTHERS, os.sysconf("SC_OPEN_MAX"))  # as long as one is open, no input ends
        serve(os.fdopen(_REQUESTS, "rb"), os.fdopen(_ANSWERS, "wb"))
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(code)
