"""Memory: what the allocators reported, and the detectors that use it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from stall_analyzer.detectors.input import copies_to_device
from stall_analyzer.detectors.memory import (
    allocator_wait,
    copies_hold_the_device,
    device_bandwidth,
    memory_grows,
    near_the_limit,
    optimizer_traffic,
    out_of_memory,
)
from stall_analyzer.model.event_log import EventLog, KerasConfig
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.signals import Signals
from tests.detectors.training import STEP_MS, diagnosed, found, signals_for, training
from tests.traces import call, device, event, keras_log, steps, timeline_of, trace_of, trainer
from tests.xspace import Event, Line, Plane, block, number

MB = 1_000_000
LIMIT = 500 * MB
POOL = "GPU_0_bfc"


def memory(
    kind: str,
    at_ms: float,
    in_use: int,
    requested: int,
    allocator: str = POOL,
    op: str = "",
    given: int | None = None,
) -> Event:
    return event(
        f"Memory{kind}",
        at_ms,
        at_ms,
        allocator_name=allocator,
        bytes_allocated=in_use,
        bytes_available=LIMIT - in_use,
        requested_bytes=requested,
        allocation_bytes=requested if given is None else given,
        tf_op=op,
    )


# ---------------------------------------------------------------- waits and failures


def test_an_op_that_waits_for_memory_is_found_with_what_it_asked(tmp_path: Path) -> None:
    waiting = [
        event("ExecutorState::Process", 200, 300, id=99),
        event("big/Fill:Fill", 200, 300),
        memory("Allocation", 280, 300 * MB, 300 * MB, op="big/Fill"),
    ]
    python, work = steps(0, 20)
    python += [memory("Deallocation", 195, 400 * MB, MB), *call(200, 300, run=99)]
    lines = trainer(python, [*work, *waiting])
    signals = signals_for(timeline_of(tmp_path, lines))
    finding = found(allocator_wait.check(signals), "act")
    assert finding.lost_ps == 80 * PS_PER_MS
    assert "asked for 300 MB while 100 MB was free in GPU_0_bfc" in finding.explanation
    (said,) = [f for f in diagnosed(signals.timeline).findings if f.id == "ST201"]
    assert said.gain.high_ps > said.later_gain.high_ps == 0  # one wait is not every epoch's
    assert out_of_memory.check(signals) is None
    none_waits = training(
        tmp_path, between=lambda n, at: [memory("Deallocation", at, 400 * MB, MB)]
    )
    assert allocator_wait.check(none_waits) is None


def failing(folder: Path, *, asked_before: bool, seconds: float = 10) -> Signals:
    end = 200 + seconds * 1000
    python, work = steps(0, 20)
    raised = call(200, end, run=99, instantiated_ms=0.1)[1:]  # its own event says no result
    work += [event("ExecutorState::Process", 201, end, id=99), event("big/Fill:Fill", 201, end)]
    if asked_before:
        work.append(memory("Allocation", 5, 350 * MB, 300 * MB, op="big/Fill"))
    work.append(memory("Deallocation", 190, 400 * MB, MB))
    lines = trainer([*python, *raised], work)
    return signals_for(timeline_of(folder, lines))


def test_a_step_that_fails_for_memory_is_found(tmp_path: Path) -> None:
    finding = found(out_of_memory.check(failing(tmp_path, asked_before=True)), "act")
    assert finding.title == "big/Fill waited 10.0 s for memory and failed"
    assert "300 MB in earlier steps" in finding.explanation
    assert "100 MB was free in GPU_0_bfc" in finding.explanation
    unknown = found(out_of_memory.check(failing(tmp_path, asked_before=False)), "act")
    assert "asked for more memory than was available: 100 MB was free" in unknown.explanation


def test_a_step_that_fails_at_once_has_another_reason(tmp_path: Path) -> None:
    assert out_of_memory.check(failing(tmp_path, asked_before=True, seconds=0.5)) is None


# ---------------------------------------------------------------- how full, and how it grows


def using(folder: Path, peak: int, allocator: str = POOL) -> Signals:
    return training(
        folder, between=lambda n, at: [memory("Allocation", at, peak, 100 * MB, allocator)]
    )


def test_a_pool_that_is_nearly_full_is_found(tmp_path: Path) -> None:
    finding = found(near_the_limit.check(using(tmp_path, 490 * MB)), "consider")
    assert finding.title == "GPU_0_bfc was 98% full"
    assert "10 MB was left" in finding.explanation


@pytest.mark.parametrize(("peak", "allocator"), [(450 * MB, POOL), (490 * MB, "mklcpu")])
def test_a_pool_with_room_or_without_a_limit_is_not(
    tmp_path: Path, peak: int, allocator: str
) -> None:
    assert near_the_limit.check(using(tmp_path, peak, allocator)) is None


def test_a_block_larger_than_asked_for_does_not_fill_a_pool(tmp_path: Path) -> None:
    def between(number: int, at: float) -> Sequence[Event]:
        return [
            memory("Allocation", at, 490 * MB, 300 * MB, given=490 * MB),
            memory("Deallocation", at + 0.5, 0, 300 * MB, given=490 * MB),
        ]

    signals = training(tmp_path, between=between)
    assert signals.allocators[0].peak_bytes == 300 * MB
    assert near_the_limit.check(signals) is None


def test_allocators_are_measured(tmp_path: Path) -> None:
    (allocator,) = using(tmp_path, 400 * MB).allocators
    assert allocator.limit_bytes == LIMIT
    assert allocator.peak_bytes == 400 * MB
    assert allocator.largest_request_bytes == 100 * MB
    assert set(allocator.kept_bytes) == {400 * MB}


def growing(folder: Path, kept: Sequence[int]) -> Signals:
    """What is in use after each step; the step itself needs 50 MB more for a moment."""

    def between(number: int, at: float) -> Sequence[Event]:
        return [
            memory("Allocation", at - STEP_MS / 2, kept[number] + 50 * MB, 50 * MB),
            memory("Deallocation", at + 0.1, kept[number], 50 * MB),
        ]

    return training(folder, steps=len(kept), between=between)


def test_memory_that_grows_with_every_step_is_found(tmp_path: Path) -> None:
    signals = growing(tmp_path, [10 * MB + n * 4 * MB for n in range(30)])
    finding = found(memory_grows.check(signals), "consider")
    assert finding.title == "Memory in use grows by 4.0 MB with every step"
    assert "full after 94 more steps" in finding.explanation


@pytest.mark.parametrize(
    "kept",
    [
        [100 * MB] * 30,
        [100 * MB + n * 10_000 for n in range(30)],
        [100 * MB + (n % 5) * 20 * MB for n in range(30)],
        [10 * MB + min(n, 4) * 50 * MB for n in range(30)],
        [10 * MB + n * 4 * MB for n in range(12)],
    ],
    ids=["level", "immaterial", "given back", "slots of the first steps", "too few steps"],
)
def test_memory_that_does_not_leak_is_not(tmp_path: Path, kept: Sequence[int]) -> None:
    assert memory_grows.check(growing(tmp_path, kept)) is None


def test_a_cache_that_fills_is_no_leak(tmp_path: Path) -> None:
    kept = [10 * MB + n * 4 * MB for n in range(30)]
    fills = [
        e
        for n in range(30)
        for e in (
            event("Iterator::Root::MemoryCache", n * 11, n * 11 + 2),
            event("Iterator::Root::MemoryCacheImpl", n * 11, n * 11 + 1.9),
            event("Iterator::Root::MemoryCacheImpl::Map", n * 11, n * 11 + 1.8),
        )
    ]

    def between(number: int, at: float) -> Sequence[Event]:
        return [memory("Deallocation", at + 0.1, kept[number], 50 * MB)]

    plain = training(tmp_path, steps=30, between=between)
    assert memory_grows.check(plain) is not None
    cached = training(
        tmp_path, steps=30, between=between, lines=[("tf_data_iterator_resource", fills)]
    )
    assert memory_grows.check(cached) is None


# ---------------------------------------------------------------- traffic


def test_copies_that_hold_the_device_are_found(tmp_path: Path) -> None:
    def on_device(copy: str) -> Signals:
        stream = [
            e
            for n in range(20)
            for e in (event(copy, n * 11, n * 11 + 3), event("MatMul", n * 11 + 3, n * 11 + 11))
        ]
        plane = device("/device:GPU:0", ("Stream #1(Compute)", stream))
        return training(tmp_path, planes=[plane])

    to_device = found(copies_to_device.check(on_device("MemcpyH2D")), "act")
    assert "to the device" in to_device.title
    assert copies_hold_the_device.check(on_device("MemcpyH2D")) is None
    assert "uint8" in to_device.change.after
    back = found(copies_hold_the_device.check(on_device("MemcpyD2H")), "act")
    assert "from the device" in back.title
    assert copies_hold_the_device.check(on_device("Kernel")) is None


def tpu_at(folder: Path, gigabytes_moved: float, line: str = "XLA Ops") -> Signals:
    """Twenty ops of 8 ms on a TPU whose memory moves 1,000 GB a second: 8 GB is its limit."""
    ops = [event("%fusion.3 = f32[8]", n * 11, n * 11 + 8) for n in range(20)]
    plane = Plane("/device:TPU:0").to_bytes(
        [Line(line, ops)],
        {"peak_hbm_bw_gigabytes_per_second": 1000.0},
        {"%fusion.3 = f32[8]": {"flops": 7, "bytes_accessed": round(gigabytes_moved * 1e9)}},
    )
    return training(folder, planes=[plane])


def test_ops_at_the_speed_of_the_memory_are_found(tmp_path: Path) -> None:
    finding = found(device_bandwidth.check(tpu_at(tmp_path, 6)), "consider")
    assert finding.title.startswith("TPU:0 waits for its memory")
    assert "750 GB a second; its memory can deliver 1000 GB" in finding.explanation
    assert "fusion" in finding.explanation


@pytest.mark.parametrize(
    ("gigabytes_moved", "line"),
    [
        pytest.param(3, "XLA Ops", id="far from the speed of the memory"),
        pytest.param(80, "XLA Ops", id="more than the memory can move was counted elsewhere"),
        pytest.param(6, "Async XLA Ops", id="copies in the background hold nothing up"),
    ],
)
def test_other_ops_are_not(tmp_path: Path, gigabytes_moved: float, line: str) -> None:
    assert device_bandwidth.check(tpu_at(tmp_path, gigabytes_moved, line)) is None


def test_of_the_traffic_only_that_with_the_main_memory_counts(tmp_path: Path) -> None:
    def moved(*parts: tuple[int, int]) -> int:
        breakdown = b"".join(block(1, number(2, space) + number(3, size)) for space, size in parts)
        plane = Plane("/device:TPU:0").to_bytes(
            [Line("XLA Ops", [event("op", 0, 1)])],
            kinds={"op": {"bytes_accessed": 999, "memory_access_breakdown": breakdown}},
        )
        return trace_of(tmp_path, plane).planes[0].op_costs["op"].memory_bytes

    assert moved((1, 300), (3, 600)) == 300
    assert moved((3, 600)) == 0
    assert moved() == 999  # nothing says which memory


UPDATES = (
    "gradient_tape/dense/MatMul:MatMul",
    "adam_1/Mul_3:Mul",
    "adam_1/Sqrt:Sqrt",
    "adam_1/AssignSubVariableOp:AssignSubVariableOp",
)


def stored(optimizer: str, *layers: dict[str, object]) -> EventLog:
    return keras_log(KerasConfig(0, "Sequential", layers, optimizer=optimizer))


def test_an_optimizer_that_takes_most_of_the_step_is_found(tmp_path: Path) -> None:
    table: dict[str, object] = {"class_name": "Embedding", "name": "words", "input_dim": 60_000}
    embedded = training(tmp_path, names=UPDATES, events=stored("Adam", table))
    finding = found(optimizer_traffic.check(embedded), "consider")
    assert "75% of the op time" in finding.title
    assert "'words' with 60,000 rows" in finding.explanation
    assert "SGD" in finding.change.after


def test_without_an_embedding_only_a_larger_batch_is_advised(tmp_path: Path) -> None:
    finding = found(optimizer_traffic.check(training(tmp_path, names=UPDATES)), "consider")
    assert "SGD" not in finding.change.after
    assert "batch" in finding.change.after


def test_an_ordinary_optimizer_is_not_blamed(tmp_path: Path) -> None:
    assert optimizer_traffic.check(training(tmp_path)) is None


def test_a_larger_batch_is_said_to_fit_where_the_pool_has_room(tmp_path: Path) -> None:
    def explained(in_use: int) -> str:
        def between(number: int, at: float) -> Sequence[Event]:
            return [memory("Allocation", at, in_use, MB), memory("Deallocation", at, 0, MB)]

        signals = training(tmp_path, names=UPDATES, between=between)
        return found(optimizer_traffic.check(signals), "consider").explanation

    assert (
        "GPU_0_bfc used at most 50 MB of 500 MB, so a batch 5 times as large would fit"
        in explained(50 * MB)
    )
    assert "larger batches" not in explained(200 * MB)
