"""The books of a fit or loop: opened with it, moved from phase to phase, written, and closed.

It also handles the samples of lines that run in the first epoch, and the line printed after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stall_analyzer.captures.capture_format import BookPhase, MarkName
from tb_stall_plugin.capture.process.about import is_one_of_several
from tb_stall_plugin.capture.process.recorder import Recorder
from tb_stall_plugin.capture.training import timed_calls
from tb_stall_plugin.capture.training.books import Books
from tb_stall_plugin.capture.training.circuit_breaker import CircuitBreaker
from tb_stall_plugin.capture.training.first_epoch_line import FirstEpochLine
from tb_stall_plugin.capture.training.hook import Hook
from tb_stall_plugin.capture.training.line_sampling import LINES, LineSampling

# Parts that can be turned off separately, in words for the user.
BOOKS, REPORT = "keeping the books", "the line about the first epoch"
PHASES = {
    MarkName.FIT_BEGIN: BookPhase.START,
    MarkName.EPOCH_BEGIN: BookPhase.TRAIN,
    MarkName.VALIDATION_BEGIN: BookPhase.VALIDATION,
    MarkName.VALIDATION_END: BookPhase.EPOCH_END,
    MarkName.EPOCH_END: BookPhase.BETWEEN,
    MarkName.FIT_END: BookPhase.BETWEEN,
}


class Bookkeeping:
    """Nothing in here raises."""

    def __init__(
        self, logdir: str, recorder: Recorder, breaker: CircuitBreaker, report: bool, source: bool
    ) -> None:
        self.books = Books()
        self._recorder, self._breaker = recorder, breaker
        self._hooks: list[Hook] = []
        self._lines = LineSampling(self.books, recorder, breaker, source)
        self._first_epoch_line = FirstEpochLine(logdir, self.books, report)

    @property
    def python_runs_beside(self) -> bool:
        return self._lines.python_runs_beside

    def open(self, callbacks: Sequence[Any] | None) -> None:
        """`callbacks`: those of a fit, without ours; None in a loop."""
        self._breaker.run(BOOKS, self._open, callbacks)
        self._breaker.run(LINES, self._lines.begin)

    def marked(self, what: str) -> int:
        """Returns the Unix time of the mark; 0 if the books are turned off."""
        at_ns = self._breaker.run(BOOKS, self._next_phase, what) or 0
        self._breaker.run(REPORT, self._first_epoch_line.marked, what)
        return at_ns

    def epoch_begins(self, before: int) -> None:
        """`before`: how many epochs came before this one."""
        self._breaker.run(LINES, self._lines.epoch_begins, before)

    def training_failed(self) -> None:
        self._first_epoch_line.training_failed()

    def close(self) -> None:
        self._breaker.run(LINES, self._lines.end)
        self._breaker.run(BOOKS, self._close)

    def _open(self, callbacks: Sequence[Any] | None) -> None:
        books = self.books
        timed_calls.taken_in_steps()  # drops what others measured before
        books.in_steps = timed_calls.taken_in_steps
        books.is_loop = callbacks is None
        books.meets_others = is_one_of_several()
        if callbacks is not None:  # in a loop, it may be too early for TensorFlow to set up devices
            timed_calls.input_wait.prepare()
        books.begin()
        timed_calls.keep(books)
        self._hooks = timed_calls.time_callbacks(books, callbacks or ())
        self._recorder.on_flush.append(self._write)

    def _next_phase(self, mark: str) -> int:
        return self.books.phase_begins(PHASES[mark], epoch_began=mark == MarkName.EPOCH_BEGIN)

    def _close(self) -> None:
        timed_calls.no_longer_keep(self.books)
        while self._hooks:
            self._hooks.pop().take_out()
        self.books.end()
        self._write()
        if self._write in self._recorder.on_flush:
            self._recorder.on_flush.remove(self._write)

    def _write(self) -> None:
        for record in self.books.records():
            self._recorder.record(record)
