"""What belongs to the first epoch alone: decided by later epochs, or by how tf.data works."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from stall_analyzer.align.align import align
from stall_analyzer.attribute.attribute import attribute
from stall_analyzer.attribute.one_time import ledger_with_one_time
from stall_analyzer.model.causes import code
from stall_analyzer.model.intervals import Tiling
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.units import PS_PER_MS
from tests.traces import TRAIN_OPS, call, event, host, ops, timeline_of, wait
from tests.xspace import Event

SHUFFLE = "Iterator::Root::Prefetch::BatchV2::Shuffle"
GET_NEXT = "tf_data_iterator_get_next"
STAGES = "tf_data_iterator_resource"


def epoch(folder: Path, stages: Sequence[Event], after: Sequence[Event] = ()) -> Ledger:
    """Twenty steps of 10 ms; the first waits 490 ms for its batch. `after`: events at the end."""
    python = call(0, 500, run=1)
    waits, work = wait(0, 490, 1), ops(490, 500, 1, *TRAIN_OPS)
    for nth in range(1, 20):
        at = 490 + nth * 10
        python += call(at, at + 10, run=nth + 1)
        waits += wait(at, at + 1, nth + 1)
        work += ops(at + 1, at + 10, nth + 1, *TRAIN_OPS)
    makes = [e for e in after if e.name.startswith("Eager")]
    waits += [e for e in after if not e.name.startswith("Eager")]
    lines = {"python": [*python, *makes], "tf_Compute": work, GET_NEXT: waits, STAGES: stages}
    (only,) = attribute(timeline_of(folder, host(*lines.items())))
    return only.ledger


def once_ms(ledger: Ledger, cause: str) -> float:
    mine = (ledger.cause == code(cause)) & ledger.one_time
    return float(np.diff(ledger.bounds_ps)[mine].sum() / PS_PER_MS)


def made(start_ms: float, end_ms: float) -> Event:
    return event("EagerLocalExecute: MakeIterator", start_ms, end_ms)


def test_a_buffer_is_filled_again_by_the_iterator_that_keras_makes_next(tmp_path: Path) -> None:
    ledger = epoch(tmp_path, [event(SHUFFLE, 0, 480)], after=[made(690, 692)])
    assert ledger.causes_ps["input.shuffle_fill"] == 489 * PS_PER_MS
    assert once_ms(ledger, "input.shuffle_fill") == 0


def test_a_buffer_is_filled_again_after_the_end_of_the_data(tmp_path: Path) -> None:
    """Keras asks once more than there are batches if it does not know how many there are."""
    asked = event("IteratorGetNextOp::DoCompute", 690, 690.5)
    ledger = epoch(tmp_path, [event(SHUFFLE, 0, 480)], after=[asked])
    assert once_ms(ledger, "input.shuffle_fill") == 0


def test_a_buffer_stays_full_where_the_iterator_goes_on(tmp_path: Path) -> None:
    """With steps_per_epoch: neither the end of the data nor a new iterator is seen."""
    ledger = epoch(tmp_path, [event(SHUFFLE, 0, 480)])
    assert once_ms(ledger, "input.shuffle_fill") == 489


@pytest.mark.parametrize(
    "stages",
    [
        [event("Iterator::Root::Prefetch::BatchV2::ShuffleAndRepeat", 0, 480)],
        [event(SHUFFLE, 0, 480), event(f"{SHUFFLE}::ForeverRepeat[0]::Map", 0, 480)],
    ],
)
def test_a_buffer_that_endless_data_feeds_is_filled_once(
    stages: Sequence[Event], tmp_path: Path
) -> None:
    ledger = epoch(tmp_path, stages, after=[made(690, 692)])
    assert once_ms(ledger, "input.shuffle_fill") == 489


def test_a_generator_starts_over_in_each_epoch(tmp_path: Path) -> None:
    stage = event("Iterator::Root::Prefetch::FlatMap[0]::Generator", 0, 480)
    ledger = epoch(tmp_path, [stage], after=[made(690, 692)])
    assert ledger.causes_ps["input.first_element"] == 489 * PS_PER_MS
    assert once_ms(ledger, "input.first_element") == 0


def test_filling_a_buffer_through_a_cache_that_is_filled_comes_once(tmp_path: Path) -> None:
    cache = f"{SHUFFLE}::FileCache"
    stages = [event(SHUFFLE, 0, 480), event(cache, 0, 480), event(f"{cache}Impl::Map", 10, 470)]
    ledger = epoch(tmp_path, stages, after=[made(690, 692)])
    assert once_ms(ledger, "input.cache_fill") == 480


def test_a_snapshot_is_written_once(tmp_path: Path) -> None:
    snapshot = "Iterator::Root::Prefetch::Snapshot"
    stages = [event(snapshot, 0, 480), event(f"{snapshot}Writer::WriterIterator::Map", 5, 475)]
    assert once_ms(epoch(tmp_path, stages), "input.cache_fill") == 480


def test_a_dataset_is_prepared_once_and_its_iterator_each_time(tmp_path: Path) -> None:
    """Its constants are copied before the iterator itself is created."""
    ledger = iterators(tmp_path, ready_ms=[300])
    assert ledger.causes_ps["input.iterator_create"] == 310 * PS_PER_MS
    assert once_ms(ledger, "input.iterator_create") == 300


def test_datasets_that_are_created_again_are_prepared_each_time(tmp_path: Path) -> None:
    ledger = iterators(tmp_path, ready_ms=[300, 280, 290])
    assert once_ms(ledger, "input.iterator_create") == 0


def iterators(folder: Path, ready_ms: Sequence[float]) -> Ledger:
    """Iterators that take 10 ms to create, each after its dataset was prepared, and two steps."""
    python: list[Event] = []
    work: list[Event] = []
    now = 0.0
    for number, ready in enumerate(ready_ms):
        end = now + ready + 10
        python += [made(now, end), event("MakeIterator::RootDataset", now + ready, end)]
        for run in (2 * number + 1, 2 * number + 2):
            python += call(end, end + 10, run)
            work += ops(end, end + 10, run, *TRAIN_OPS)
            end += 10
        now = end
    lines = {"python": python, "tf_Compute": work}
    (only,) = attribute(timeline_of(folder, host(*lines.items())))
    return only.ledger


@pytest.mark.parametrize(("waits", "once"), [(1, True), (2, True), (3, False)])
def test_waits_for_memory_come_again_only_if_there_were_several(waits: int, once: bool) -> None:
    labels = [code("compute.step"), code("memory.allocator_wait")] * waits
    tiling = Tiling(np.arange(2 * waits + 1, dtype=np.int64), np.array(labels, dtype=np.int64))
    ledger = ledger_with_one_time(tiling, (), align([], None))
    assert ledger.one_time.tolist() == [False, once] * waits


def test_an_empty_window_has_nothing_that_comes_again() -> None:
    nothing = Tiling(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64))
    assert ledger_with_one_time(nothing, (), align([], None)).one_time.sum() == 0
