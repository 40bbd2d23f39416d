"""The wait for a batch that ended with an error, in the books.

Clocks in the graph record the time when a batch arrives. If it never arrives, its whole wait stays
with the step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from stall_analyzer.captures.capture_format import Account, StopReason
from stall_analyzer.captures.look_records import DumpRecord
from stall_analyzer.model.books import Books
from stall_analyzer.model.columns import median
from stall_analyzer.model.tensorflow_error import read_error


def with_failed_waits(books: Books, dumps: Iterable[DumpRecord]) -> Books:
    """If the input raised an error, the last call of a step had waited for it."""
    step, wait = books.spent(Account.STEP).copy(), books.spent(Account.WAIT).copy()
    for dump in dumps:
        if dump.reason == StopReason.EXCEPTION and read_error(dump.error.text).of_input:
            for row in np.flatnonzero((books.begin_ns <= dump.ns) & (step > 0))[-1:]:
                waited_ns = max(int(step[row]) - _usual_ns(books, row), 0)
                step[row] -= waited_ns
                wait[row] += waited_ns
    return replace(books, spent_ns={**books.spent_ns, Account.STEP: step, Account.WAIT: wait})


def _usual_ns(books: Books, row: int) -> int:
    """How long as many calls as the row has usually take, in rows like it: they may have computed
    before."""
    same = np.array([phase == books.phase[row] for phase in books.phase]) & (books.calls > 0)
    same[row] = False
    if not same.any():
        return 0
    each_ns = median(books.spent(Account.STEP)[same] / books.calls[same])
    return round(each_ns * int(books.calls[row]))
