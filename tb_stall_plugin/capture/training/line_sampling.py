"""The lines that run in the first epoch: samples, and what the books say of the same moment."""

from __future__ import annotations

import functools

from tb_stall_plugin.capture.process.recorder import Recorder
from tb_stall_plugin.capture.process.stack_sampler import Doing, StackSampler
from tb_stall_plugin.capture.training.books import Books
from tb_stall_plugin.capture.training.circuit_breaker import CircuitBreaker
from tb_stall_plugin.capture.training.python_calls import PythonCalls

LINES = "looking at the lines that run"


class LineSampling:
    def __init__(
        self, books: Books, recorder: Recorder, breaker: CircuitBreaker, source: bool
    ) -> None:
        self._books = books
        self._calls = PythonCalls(self._doing)
        failed = functools.partial(breaker.switch_off, LINES)
        self._sampler = StackSampler(
            self._doing, recorder.record, failed, source, self._calls.taken
        )

    def _doing(self) -> Doing:
        top = self._books.top
        return Doing(self._books.thread, top.account, top.name)

    def begin(self) -> None:
        self._calls.put_in()
        self._sampler.begin()

    def first_epoch_begins(self) -> None:
        """What was seen before does not belong to it."""
        self._sampler.write()

    def write_if_due(self) -> None:
        self._sampler.write_if_due()

    def end(self) -> None:
        self._calls.take_out()
        self._sampler.end()
