"""A process of its own for each thread that has runs analysed.

Whatever a run does to its process (memory that runs out, a crash, a file system that hangs), only
this run is lost: the process is started again for the next one. It reads jobs from its standard
input and answers on its standard output, one pickle after the other, until the input ends. Hence it
ends by itself when whoever started it has been killed.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from stall_analyzer.batch import run_result
from stall_analyzer.batch.run_result import Job, Result, Work
from stall_analyzer.progress import Progress, unseen

COMMAND = (sys.executable or "python3", "-m", "stall_analyzer.batch.worker_process")


class Lost(Exception):
    """Why there is no result, in words that can follow a colon."""


class Killed(Lost):
    """The process ended without an answer."""


class TookTooLong(Lost):
    """The process was ended at the deadline."""


class Failed(Lost):
    """The process said what went wrong, and lives."""


class Apart:
    """Started for the first job, and again after it was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def analyze(
        self,
        job: Job,
        deadline_s: float | None,
        progress: Progress = unseen,
        do: Work = run_result.analyze,
    ) -> Result:
        """Raises one of the kinds of Lost."""
        process = self._process or self._start()
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(deadline_s, stop) if deadline_s else None
        if timer:
            timer.start()
        try:
            result, why_not = self._answer(process, (do, job), progress)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            self.close()
            if late.is_set():
                raise TookTooLong(f"it took longer than {deadline_s:g} s (--deadline)") from error
            raise Killed(_why(process.returncode)) from error
        finally:
            if timer:
                timer.cancel()
        if result is None:
            raise Failed(why_not)
        return result

    def _answer(
        self, process: Any, question: object, progress: Progress
    ) -> tuple[Result | None, str]:
        """The result or why there is none."""
        pickle.dump(question, process.stdin)
        process.stdin.flush()
        while True:
            kind, answer = pickle.load(process.stdout)
            if kind == "result":
                return Result(*answer), ""
            if kind == "error":
                return None, answer
            progress(*answer)

    def close(self) -> None:
        """At once: what it may be working on is not wanted any more."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(OSError):
                process.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),  # it imports what we import
            "PYTHONSAFEPATH": "1",  # and no folder of the user's that happens to be called numpy
        }
        self._process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        return self._process


def _why(code: int) -> str:
    if code == -9:
        return "its process was killed, perhaps because memory ran out"
    if code < 0:
        return f"its process crashed ({signal.strsignal(-code)})"
    return f"its process ended unexpectedly (exit code {code})"


# ---------------------------------------------------------------- in that process


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback
    # The pipe is for answers alone; whatever a library prints goes to the terminal.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def tell(kind: str, answer: object) -> None:
        pickle.dump((kind, answer), answers)
        answers.flush()

    while True:
        try:
            do, job = pickle.load(sys.stdin.buffer)
        except EOFError:  # there is no more to do, or nobody left to do it for
            return
        try:
            result = do(job, lambda *share_and_text: tell("progress", share_and_text))
            tell("result", tuple(result))
        except BrokenPipeError:
            return
        except Exception as error:  # such as a folder that this machine cannot see
            tell("error", f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
