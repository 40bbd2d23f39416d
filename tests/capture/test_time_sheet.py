"""A time sheet: in C, and the same in Python."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest

from tb_stall_plugin.capture.training import around
from tb_stall_plugin.capture.training.around import InPython
from tb_stall_plugin.capture.training.time_sheet import (
    BasicEntry,
    BasicSheet,
    EntryInPython,
    SheetInPython,
    Span,
)

IN_C = around._Around


class Clock:
    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def wait(self, ns: int) -> None:
        self.now_ns += ns


class Form:
    """A sheet for this thread, with an entry for all that is not entered."""

    def __init__(self, sheet: Any, entry: Any, stand_in: Any) -> None:
        class Sheet(sheet):
            """As the books are: it has attributes and may be referred to."""

        self.entry, self.stand_in = entry, stand_in
        self.clock, self.rest = Clock(), entry(0)
        self.sheet = Sheet(self.clock, self.rest)
        self.sheet.thread = threading.get_ident()

    def timed(self, call: Any, entry: Any) -> Any:
        return self.stand_in(call, Span(self.sheet, entry))


@pytest.fixture(
    params=[
        pytest.param((SheetInPython, EntryInPython, InPython), id="python"),
        pytest.param(
            (BasicSheet, BasicEntry, IN_C),
            id="c",
            marks=pytest.mark.skipif(IN_C is InPython, reason="built without a C compiler"),
        ),
    ]
)
def form(request: pytest.FixtureRequest) -> Form:
    return Form(*request.param)


def test_time_belongs_to_the_entry_on_top(form: Form) -> None:
    step, save = form.entry(1), form.entry(2)
    form.clock.wait(1)
    form.sheet.enter(step)
    form.clock.wait(20)
    form.sheet.enter(save)
    form.clock.wait(300)
    form.sheet.leave()
    form.clock.wait(4000)
    form.sheet.leave("result", False)
    form.clock.wait(50_000)
    form.sheet.enter(step)
    entries = (form.rest, step, save)
    assert [entry.row_ns for entry in entries] == [50_001, 4020, 300]
    assert [entry.count for entry in entries] == [0, 2, 1]
    assert (form.sheet.top, form.sheet.below) == (step, [form.rest])


def test_what_was_not_entered_cannot_be_left(form: Form) -> None:
    with pytest.raises(IndexError):
        form.sheet.leave()
    with pytest.raises((AttributeError, TypeError)):
        form.sheet.enter("no entry")
    assert form.sheet.top is form.rest


def test_a_call_belongs_to_its_entry_however_it_ends(form: Form) -> None:
    def waited(ns: int, *, fails: bool = False) -> int:
        form.clock.wait(ns)
        if fails:
            raise ValueError("mine")
        return ns

    entry = form.entry(1)
    timed = form.timed(waited, entry)
    assert timed(30) == 30
    with pytest.raises(ValueError, match="mine"):
        timed(7, fails=True)
    assert (entry.row_ns, entry.count, form.sheet.top) == (37, 2, form.rest)


def test_a_call_belongs_to_what_is_on_top_unless_it_ranks_higher(form: Form) -> None:
    hook, step, tracing = form.entry(1), form.entry(1), form.entry(3)
    inner = form.timed(lambda: form.clock.wait(5), step)
    higher = form.timed(lambda: form.clock.wait(70), tracing)
    form.timed(lambda: (inner(), higher()), hook)()
    assert [entry.row_ns for entry in (hook, step, tracing)] == [5, 0, 70]


def test_calls_of_other_threads_are_not_timed(form: Form) -> None:
    entry = form.entry(1)
    seen: list[str] = []
    other = threading.Thread(target=form.timed(seen.append, entry), args=("called",))
    other.start()
    other.join()
    assert (seen, entry.count) == (["called"], 0)


def test_it_keeps_nothing_alive_that_refers_to_it(form: Form) -> None:
    form.sheet.itself = form.sheet
    form.sheet.own_clock = form.sheet.clock_ns
    known = weakref.ref(form.sheet)
    del form.sheet
    gc.collect()
    assert known() is None
