"""A worker process, so that no run harms another, and the caller stays responsive.

Whatever a run does to its process (out of memory, a crash, a hanging file system), only this run is
lost: the process is started again for the next one. It reads what to do from one pipe and answers
on another, one pickle after the other, until the input ends. So it ends by itself when the process
that started it has been killed.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any, TypeAlias, TypeVar

from stall_analyzer.garbage import collect_rarely
from stall_analyzer.model.runs import Run
from stall_analyzer.progress import Progress, ignore_progress
from stall_analyzer.results.forked_process import ForkedProcess
from stall_analyzer.results.memory_limit import VARIABLE, limit_memory, memory_limit

Answer = TypeVar("Answer")
# A function that can be sent to a process by name.
Work: TypeAlias = Callable[[Run, Progress], Answer]
Message: TypeAlias = tuple[str, Any]

# Not with -m: before Python 3.11, that would import from the user's current folder, where something
# may happen to be called numpy.
PROGRAM = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; "
    "from stall_analyzer.results.worker_process import main; main()"
)
COMMAND = (sys.executable or "python3", "-c", PROGRAM)
LOADED_AHEAD = ("stall_analyzer.outcome", "stall_analyzer.diagnose.diagnose")
FOREVER_S = threading.TIMEOUT_MAX
ENDS_WITHIN_S = 5.0  # a process that hangs in a file system may be impossible to kill
_SILENT = "it had made no progress for {:.0f} minutes; a hung disk or network may be the reason"
STDOUT, STDERR = 1, 2
PROGRESS, RESULT, ERROR, ENDED = "progress", "result", "error", "ended"
TELL_EVERY_S = 0.05  # more often is not visible, and each time wakes another process


class NoResult(Exception):
    """Why the result is missing, in words that can follow a colon."""


class ProcessDied(NoResult):
    """It ended without an answer, or could not be started."""


class TookTooLong(NoResult):
    """The process was ended."""


class WorkFailed(NoResult):
    """The process said what went wrong, and is still alive."""


class WorkerProcess:
    """Started ahead of time or for the first run, and again after it was killed."""

    def __init__(self, memory_bytes: int | None = None) -> None:
        """`memory_bytes` is what it may use: by default, a good part of the machine's memory."""
        self._memory_bytes = memory_limit() if memory_bytes is None else memory_bytes
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self._heard: SimpleQueue[Message] | None = None  # None until someone listens

    def fork(self) -> None:
        """Starts it as a copy of this process, if that `can_be_copied`: then nothing needs to be
        imported again. Raises ProcessDied."""
        load_ahead()
        try:
            self._process = ForkedProcess(self._serve_in_copy)
        except OSError as error:
            raise ProcessDied(f"no process could be started ({error})") from error

    def _serve_in_copy(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        _begin(self._memory_bytes)
        _serve(requests, answers)

    def start(self) -> None:
        """Starts it ahead of the first run, since starting takes longer than a small run. Raises
        ProcessDied."""
        if self._process is None:
            self._process = self._executed()
        if self._heard is None:
            self._heard = SimpleQueue()
            # A thread listens, because a pipe has no read with a timeout.
            listener = (self._process.stdout, self._heard)
            threading.Thread(
                target=_listen, args=listener, name="stall-worker", daemon=True
            ).start()

    def _executed(self) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(_import_paths()),  # it imports what we import
            "PYTHONSAFEPATH": "1",  # and nothing from the user's current folder
            VARIABLE: str(self._memory_bytes),
        }
        try:
            return subprocess.Popen(
                COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
        except OSError as error:
            raise ProcessDied(f"no process could be started ({error})") from error

    def do(
        self,
        work: Work[Answer],
        run: Run,
        progress: Progress = ignore_progress,
        *,
        deadline_s: float = FOREVER_S,
        patience_s: float = FOREVER_S,
    ) -> Answer:
        """Gives up after `deadline_s`, or when it reports nothing for `patience_s`. Raises a kind
        of NoResult."""
        self.start()
        process, heard = self._process, self._heard
        assert process is not None and process.stdin is not None and heard is not None
        with suppress(OSError):  # it has ended, which is noticed next
            pickle.dump((work, run), process.stdin)
            process.stdin.flush()
        until_s = time.monotonic() + deadline_s
        while (left_s := until_s - time.monotonic()) > 0:
            try:
                kind, content = heard.get(timeout=min(left_s, patience_s))
            except Empty:
                if patience_s <= left_s:
                    self.close()
                    raise TookTooLong(_SILENT.format(patience_s / 60)) from None
                continue
            if kind == RESULT:
                result: Answer = content
                return result
            if kind == ERROR:
                raise WorkFailed(content)
            if kind == ENDED:
                raise self._died(process)
            progress(*content)
        self.close()
        raise TookTooLong(f"it took longer than {deadline_s:g} s (--deadline)")

    def _died(self, process: subprocess.Popen[bytes] | ForkedProcess) -> ProcessDied:
        with suppress(subprocess.TimeoutExpired):  # its exit code comes after its last message
            process.wait(ENDS_WITHIN_S)
        self.close()
        return ProcessDied(_why(process.returncode))

    def close(self) -> None:
        """Ends it at once: what it may be working on is no longer wanted."""
        process, self._process, self._heard = self._process, None, None
        if process is None:
            return
        process.kill()
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(ENDS_WITHIN_S)


def _listen(stream: IO[bytes], heard: SimpleQueue[Message]) -> None:
    with stream, suppress(Exception):  # the end of the stream, perhaps inside a message
        while True:
            heard.put(pickle.load(stream))
    heard.put((ENDED, None))


def _import_paths() -> list[str]:
    return [str(Path(path).absolute()) for path in sys.path if path]


def _why(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return "its process was killed, perhaps because memory ran out"
    if code is not None and code < 0:
        return f"its process crashed ({signal.strsignal(-code)})"
    return f"its process ended unexpectedly (exit code {code})"


# ---------------------------------------------------------------- in that process


def main() -> None:
    _begin(memory_limit())
    answers = os.fdopen(os.dup(STDOUT), "wb")
    load_ahead()
    _serve(sys.stdin.buffer, answers)


def _begin(memory_bytes: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback
    limit_memory(memory_bytes)


def load_ahead() -> None:
    for name in LOADED_AHEAD:
        import_module(name)
    gc.freeze()  # what was imported stays


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    # The pipe is for answers alone; whatever a library prints goes to the terminal.
    os.dup2(STDERR, STDOUT)

    def tell(kind: str, content: object) -> None:
        try:
            pickle.dump((kind, content), answers)
            answers.flush()
        except BrokenPipeError:  # nobody is left to read it
            with suppress(OSError):
                answers.close()
            sys.exit(1)

    last_told_s = 0.0

    def tell_progress(share: float, text: str) -> None:
        nonlocal last_told_s
        now_s = time.monotonic()
        if now_s - last_told_s > TELL_EVERY_S:
            last_told_s = now_s
            tell(PROGRESS, (share, text))

    collect_rarely()
    while True:
        try:
            work, run = pickle.load(requests)
        except EOFError:  # there is no more to do, or nobody left to do it for
            return
        try:
            answer = (RESULT, work(run, tell_progress))
        except Exception as error:  # such as a full disk; the next run may still succeed
            answer = (ERROR, f"{type(error).__name__}: {error}")
        tell(*answer)
