"""Samples of the lines that run, with what the books say the training thread is in."""

from __future__ import annotations

import functools

from tb_stall_plugin.capture.process.recorder import Recorder
from tb_stall_plugin.capture.process.stack_sampler import Doing, StackSampler
from tb_stall_plugin.capture.training.books import Books
from tb_stall_plugin.capture.training.circuit_breaker import CircuitBreaker

LINES = "looking at the lines that run"


def sampler_of(
    books: Books, recorder: Recorder, breaker: CircuitBreaker, source: bool
) -> StackSampler:
    def doing() -> Doing:
        top = books.top
        return Doing(books.thread, top.account, top.name)

    failed = functools.partial(breaker.switch_off, LINES)
    return StackSampler(doing, recorder.record, failed, source)
