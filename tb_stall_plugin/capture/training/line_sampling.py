"""Samples the lines that run in the first epoch, with what the books say about that moment."""

from __future__ import annotations

import functools

from tb_stall_plugin.capture.process.recorder import Recorder
from tb_stall_plugin.capture.process.stack_sampler import Doing, StackSampler
from tb_stall_plugin.capture.training.books import Books
from tb_stall_plugin.capture.training.circuit_breaker import CircuitBreaker
from tb_stall_plugin.capture.training.python_calls import PythonCalls

LINES = "sampling the lines that run"


class LineSampling:
    def __init__(
        self, books: Books, recorder: Recorder, breaker: CircuitBreaker, source: bool
    ) -> None:
        self._books = books
        self._on_flush = recorder.on_flush
        self._write = functools.partial(breaker.run, LINES, self._write_if_due)
        self._calls = PythonCalls(self._doing)
        failed = functools.partial(breaker.switch_off, LINES)
        self._sampler = StackSampler(
            self._doing, recorder.record, failed, source, self._calls.taken
        )

    def _doing(self) -> Doing:
        top = self._books.top
        return Doing(self._books.thread, top.account, top.name)

    @property
    def python_runs_beside(self) -> bool:
        """Whether TensorFlow has called Python in other threads during this fit."""
        return self._calls.were_seen

    def begin(self) -> None:
        self._calls.put_in()
        self._sampler.begin()
        self._on_flush.append(self._write)

    def epoch_begins(self, before: int) -> None:
        """`before`: how many epochs came before this one. What was seen before the first epoch does
        not belong to it."""
        if before == 0:
            self._sampler.write()
        else:
            self.end()

    def _write_if_due(self) -> None:
        self._sampler.write_if_due()

    def end(self) -> None:
        self._calls.take_out()
        if self._write in self._on_flush:
            self._on_flush.remove(self._write)
        self._sampler.end()
