"""The line that a capture prints when the first epoch is over: how long it took, and why."""

from __future__ import annotations

import sys

from stall_analyzer.captures.capture_format import MarkName
from stall_analyzer.live.first_epoch import first_epoch
from tb_stall_plugin.capture.process.about import leads_its_cluster
from tb_stall_plugin.capture.training.books import Books, records_of

_said: set[str] = set()  # a program with many fits prints it once for each log directory


class FirstEpochLine:
    def __init__(self, logdir: str, books: Books, is_wanted: bool) -> None:
        self._logdir, self._books = logdir, books
        self._is_wanted = is_wanted and leads_its_cluster()
        self._has_epoch_ended = False

    def marked(self, what: str) -> None:
        """The line is printed when the next epoch begins, or the fit ends: by then, all callbacks
        have run, and Keras's progress bar has ended its own line."""
        if what == MarkName.FIT_BEGIN:
            self._has_epoch_ended = False
            is_due = self._is_wanted and self._logdir not in _said
            self._books.first_epoch = [] if is_due else None
        elif what == MarkName.EPOCH_END:
            self._has_epoch_ended = True
        elif what in (MarkName.EPOCH_BEGIN, MarkName.FIT_END):
            self._say_if_over(what == MarkName.FIT_END)

    def training_failed(self) -> None:
        self._books.first_epoch = None

    def _say_if_over(self, has_fit_ended: bool) -> None:
        """Says nothing about an unfinished epoch. A loop need not mark its epochs."""
        rows, books = self._books.first_epoch, self._books
        is_over = self._has_epoch_ended or (books.is_loop and has_fit_ended)
        if rows and is_over and books.is_mine and any(row.steps for row in rows):
            books.first_epoch = None
            _said.add(self._logdir)
            self._say(first_epoch(list(records_of(rows))))

    def _say(self, sentence: str) -> None:
        """Prints to stderr: another program may read stdout."""
        if sentence and sys.stderr is not None:
            print(f"{sentence}. Details: stall-analyze {self._logdir}", file=sys.stderr, flush=True)
