"""What a callback or the loop does with the model between two steps of training.

`predict` and `evaluate` create a dataset and an iterator and call their own function, on the thread
that trains. So does a callback that loops over some batches. None of that is training input or
validation: it belongs to the Python code that runs between two calls of the train function, and
lasts as long as that.

`fit` reads its batches inside the train function, and resets its metrics when an epoch begins. So
in a pause without a reset, all iterators and calls belong to a callback. A reset comes after the
end of an epoch: there, calls of Keras's test function are the validation. In a custom loop, the
fetches are the loop's own, and only what Keras names can be told apart from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from enum import Enum, auto
from itertools import groupby, takewhile
from operator import itemgetter

import numpy as np

from stall_analyzer.align.traced_steps import (
    FETCH_OPS,
    calls_that_train,
    eager_rows,
    find_resets,
)
from stall_analyzer.decode.vocabulary import PREDICT_STEPS, TEST_STEPS, TRAIN_STEPS
from stall_analyzer.model.intervals import covered, union
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import SideWork, TrainingThread
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import name_of, rows_called, rows_inside, rows_of_line
from stall_analyzer.model.units import Int64s

PREFIX = "EagerLocalExecute: "
MAKE_OPS = 2  # create an iterator: AnonymousIterator and MakeIterator


class Kind(Enum):
    """What the training thread does in a pause."""

    DATA_SET = auto()
    MAKE = auto()
    FETCH = auto()
    DELETE = auto()
    PREDICT = auto()
    TEST = auto()
    FUNCTION = auto()  # the user's, without a backward pass


CALLS = frozenset({Kind.PREDICT, Kind.TEST, Kind.FUNCTION})
OF_PREDICT = frozenset({Kind.PREDICT})
OF_KERAS = frozenset({Kind.PREDICT, Kind.TEST})
OF_CALLBACKS = frozenset({Kind.PREDICT, Kind.FUNCTION, Kind.FETCH})


@dataclass(frozen=True)
class _Item:
    kind: Kind
    start_ps: int
    end_ps: int
    remakes: bool = False  # Keras 3 creates the next iterator as soon as one is exhausted


def with_side_work(trace: Trace, training: TrainingThread) -> TrainingThread:
    """The thread, and what it did besides training."""
    calls, trains = training.calls, calls_that_train(trace, training)
    names = [name_of(trace, int(row)) for row in calls.row]
    trained = [name for name, is_training in zip(names, trains, strict=True) if is_training]
    by_fit = sum(name in TRAIN_STEPS for name in trained) * 2 > len(trained)
    items = sorted(_items(trace, training, names, trains.tolist()), key=lambda i: i.start_ps)
    resets, _ = find_resets(trace, training)
    pauses = list(_pauses(items, resets, calls.start_ps[trains]))
    found = list(_beside_fit(pauses) if by_fit else _beside_loop(pauses))
    start, end = np.array(found, dtype=np.int64).reshape(-1, 2).T
    start, end = union(start, end)
    return replace(
        training, side=SideWork(start, end, covered(calls.start_ps, start, end) & ~trains)
    )


@dataclass(frozen=True)
class _Pause:
    """Between two calls that train, before the first or after the last."""

    items: Sequence[_Item]
    resets_ps: Int64s
    begins: bool
    ends: bool

    @property
    def last_call_ps(self) -> int:
        return max((i.end_ps for i in self.items if i.kind in CALLS), default=-1)

    @property
    def next_epoch_ps(self) -> int | None:
        """When Keras resets its metrics for another epoch; evaluate() does so before it calls."""
        after = self.resets_ps[self.resets_ps > self.last_call_ps]
        return int(after[0]) if len(after) else None


def _pauses(items: Sequence[_Item], resets: Int64s, began: Int64s) -> Iterator[_Pause]:
    """The pauses in which anything was done. `began`: when the calls that train began."""
    of_item = np.searchsorted(began, [item.start_ps for item in items]).tolist()
    of_reset = np.searchsorted(began, resets)
    for number, members in groupby(zip(of_item, items, strict=True), key=itemgetter(0)):
        yield _Pause(
            items=[item for _, item in members],
            resets_ps=resets[of_reset == number],
            begins=number == 0,
            ends=number == len(began),
        )


def _items(
    trace: Trace, training: TrainingThread, names: Sequence[str], trains: Sequence[bool]
) -> Iterator[_Item]:
    events, calls = trace.events, training.calls
    for row in eager_rows(trace, training, _is_of_input):
        kind = _kind_of_op(name_of(trace, int(row)).removeprefix(PREFIX))
        yield _Item(kind, int(events.start_ps[row]), int(events.end_ps[row]))
    span = rows_of_line(trace, training.line)
    for row in rows_inside(span, rows_called(trace, "TFE_DeleteTensorHandle")):
        yield _Item(Kind.DELETE, int(events.start_ps[row]), int(events.end_ps[row]))
    for call, name in enumerate(names):
        if not trains[call] and calls.concrete[call] >= 0:
            start, end = int(calls.start_ps[call]), int(calls.end_ps[call])
            yield _Item(_kind_of_call(name), start, end, not name.endswith("_function"))


def _is_of_input(op: str) -> bool:
    return "Iterator" in op or op.endswith(("Dataset", "DatasetV2", "DatasetV3"))


def _kind_of_op(op: str) -> Kind:
    if op in FETCH_OPS:
        return Kind.FETCH
    if "Delete" in op:
        return Kind.DELETE
    return Kind.MAKE if "Iterator" in op else Kind.DATA_SET


def _kind_of_call(name: str) -> Kind:
    if name in PREDICT_STEPS:
        return Kind.PREDICT
    return Kind.TEST if name in TEST_STEPS else Kind.FUNCTION


def _beside_fit(pauses: Sequence[_Pause]) -> Iterator[tuple[int, int]]:
    for pause in pauses:
        until = pause.next_epoch_ps
        if until is None and not pause.begins and not pause.ends:
            if any(item.kind not in (Kind.FETCH, Kind.DELETE) for item in pause.items):
                yield pause.items[0].start_ps, max(item.end_ps for item in pause.items)
            continue
        items = [i for i in pause.items if until is None or i.start_ps < until]
        anchors = OF_PREDICT if pause.begins else OF_CALLBACKS
        yield from _chains(items, anchors)


def _beside_loop(pauses: Sequence[_Pause]) -> Iterator[tuple[int, int]]:
    evaluates = False
    for pause in pauses:
        validates = pause.begins or (not evaluates if pause.ends else _loops_again(pause))
        evaluates |= not validates and any(item.kind is Kind.TEST for item in pause.items)
        anchors = OF_PREDICT if validates else OF_KERAS
        yield from _chains(pause.items, anchors)


def _loops_again(pause: _Pause) -> bool:
    """Whether the loop creates its own iterator again: then an epoch had ended."""
    calls = [number for number, item in enumerate(pause.items) if item.kind in CALLS]
    after = pause.items[calls[-1] + 1 + len(_remade(pause.items, calls[-1])) :] if calls else ()
    return any(item.kind is Kind.MAKE for item in after)


def _remade(items: Sequence[_Item], call: int) -> Sequence[_Item]:
    """The ops that create an iterator after Keras's last call, which nothing reads from."""
    after = items[call + 1 : call + 1 + MAKE_OPS] if items[call].remakes else ()
    return list(takewhile(lambda item: item.kind is Kind.MAKE, after))


def _chains(items: Sequence[_Item], anchors: Set[Kind]) -> Iterator[tuple[int, int]]:
    """From the dataset that is created for it to the last of the consecutive anchors."""
    head: int | None = None
    before: _Item | None = None
    for number, item in enumerate(items):
        if item.kind in anchors:
            head = item.start_ps if head is None else head
            ends = [item, *(_remade(items, number) if item.kind in CALLS else ())]
            yield head, ends[-1].end_ps
        elif item.kind in CALLS:
            head = None
        elif item.kind is Kind.DELETE:
            if before is not None and before.kind in anchors:
                yield item.start_ps, item.end_ps
        elif item.kind is not Kind.FETCH and _is_new(item, before):
            head = item.start_ps
        before = item


def _is_new(item: _Item, before: _Item | None) -> bool:
    """Whether a dataset or an iterator is the first op of something new."""
    goes_on = (Kind.DATA_SET, Kind.MAKE) if item.kind is Kind.MAKE else (Kind.DATA_SET,)
    return before is None or before.kind not in goes_on
