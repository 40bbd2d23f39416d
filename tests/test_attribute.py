"""Which cause each kind of evidence in a trace counts for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stall_analyzer.attribute.attribute import attribute
from stall_analyzer.model.event_log import EventLog, KerasConfig, Series
from stall_analyzer.model.ledger import Ledger
from tests.traces import (
    GRAPH,
    TRAIN_OPS,
    buckets_ms,
    call,
    causes_ms,
    clock,
    device,
    event,
    host,
    ledger_of,
    ops,
    steps,
    timeline_of,
    trainer,
    wait,
)
from tests.xspace import Event, Value

Lane = Sequence[Event]


def traced(folder: Path, calls: Lane, work: Lane = (), *planes: bytes, **threads: Lane) -> Ledger:
    """The ledger of a host, given what its training thread, its executor and other threads do."""
    return ledger_of(folder, trainer(calls, work, *threads.items()), *planes)


def test_a_step_waits_for_input_and_then_computes(tmp_path: Path) -> None:
    ledger = traced(
        tmp_path,
        call(0, 100, run=1),
        ops(70, 100, 1, *TRAIN_OPS),
        tf_data_iterator_get_next=wait(10, 70, 1),
    )
    assert causes_ms(ledger) == {"input.wait": 60, "compute.step": 30, "host.dispatch": 10}


def test_where_profiling_stops_inside_the_epoch_a_gap_is_not_pythons(tmp_path: Path) -> None:
    """A call that has begun but not ended is not in the trace, as in a run that hangs."""
    start_ns = 1_700_000_000 * 10**9
    walls = np.array([start_ns + 500 * 10**6, start_ns + 10**9], dtype=np.int64)
    losses = Series(np.array([0, 1]), walls, np.array([1.0, 0.9]))
    keras = KerasConfig(start_ns, "Sequential", ())
    log = EventLog({"epoch_loss": losses}, {}, keras, int(walls[0]), int(walls[1]), None, 2)
    lines = trainer(call(0, 100, run=1), ops(0, 100, 1, *TRAIN_OPS))
    until_300_ms = clock(start_ns, 0.3)
    causes = causes_ms(ledger_of(tmp_path, lines, until_300_ms, events=log))
    assert causes == {
        "compute.step": 100, "unknown.no_evidence": 200, "unknown.not_traced": 200,
    }  # fmt: skip


def test_input_at_work_in_the_background_is_not_a_stall(tmp_path: Path) -> None:
    ledger = traced(
        tmp_path,
        call(0, 100, run=1),
        ops(0, 100, 1, *TRAIN_OPS),
        tf_data_private_threadpool=ops(0, 100, 99, "map/PyFunc:PyFunc"),
    )
    assert causes_ms(ledger) == {"compute.step": 100}


def test_python_on_threads_of_the_pipeline_is_python_in_the_pipeline(tmp_path: Path) -> None:
    reading = ("tf_data_private_threadpool", ops(0, 60, 99, "map/PyFunc:PyFunc"))
    lines = trainer(call(0, 100, run=1), ops(0, 100, 1, *TRAIN_OPS), reading)
    seen = attribute(timeline_of(tmp_path, lines))[0].evidence["input"]
    assert seen.startswith("Python code in the input pipeline ran for 60% of the traced time")


def test_while_the_step_computes_it_does_not_wait(tmp_path: Path) -> None:
    ledger = traced(
        tmp_path,
        call(0, 100, run=1),
        ops(0, 80, 1, *TRAIN_OPS),
        tf_data_iterator_get_next=wait(0, 100, 1),
    )
    assert causes_ms(ledger) == {"input.wait": 20, "compute.step": 80}


def test_an_async_wait_lasts_from_its_start_to_its_done_event(tmp_path: Path) -> None:
    kind: dict[str, Value] = {"kernel_type": "IteratorGetNext", "step_id": 1}
    ledger = traced(
        tmp_path,
        call(0, 100, run=1),
        [
            event("ExecutorState::ProcessAsync::Start", 0, 1, **kind, _p=5),
            *ops(60, 100, 1, *TRAIN_OPS),
        ],
        tf_data_iterator_get_next=[
            event("ExecutorState::ProcessAsync::Done", 60, 61, **kind, _c=5)
        ],
    )
    assert causes_ms(ledger) == {"input.wait": 60, "compute.step": 40}


def test_a_lost_done_event_ends_the_wait_where_the_next_op_begins(tmp_path: Path) -> None:
    start = event(
        "ExecutorState::ProcessAsync::Start", 0, 1, kernel_type="IteratorGetNext", step_id=1, _p=5
    )
    ledger = traced(tmp_path, call(0, 100, run=1), [start, *ops(60, 100, 1, *TRAIN_OPS)])
    assert causes_ms(ledger) == {"input.wait": 60, "compute.step": 40}


def test_a_run_whose_id_was_lost_is_unknown_and_not_the_hosts(tmp_path: Path) -> None:
    """A cut file loses the names of stats, and with them the ids."""
    nameless = [e for e in call(0, 100, run=1) if e.name != "FunctionRun"]
    ledger = traced(tmp_path, nameless)
    assert causes_ms(ledger) == {"unknown.no_evidence": 100}


def test_a_first_call_is_traced_and_instantiated(tmp_path: Path) -> None:
    ledger = traced(
        tmp_path, call(0, 100, run=1, traced_ms=50, instantiated_ms=20), ops(70, 100, 1, *TRAIN_OPS)
    )
    assert causes_ms(ledger) == {
        "compile.tracing": 50,
        "compile.instantiate": 20,
        "compute.step": 30,
    }
    assert np.diff(ledger.bounds_ps)[ledger.one_time].sum() == 70 * 10**9


def test_a_function_that_is_traced_again_is_retraced(tmp_path: Path) -> None:
    ledger = traced(
        tmp_path,
        [
            *call(0, 40, run=1, traced_ms=30),
            *call(40, 80, run=2, traced_ms=20, count=2, graph=GRAPH + "1"),
        ],
        [*ops(30, 40, 1, *TRAIN_OPS), *ops(60, 80, 2, *TRAIN_OPS)],
    )
    assert causes_ms(ledger) == {"compile.tracing": 30, "compile.retracing": 20, "compute.step": 30}


def test_python_between_the_steps_is_the_hosts(tmp_path: Path) -> None:
    ledger = traced(
        tmp_path,
        [*call(0, 10, run=1), *call(60, 70, run=2)],
        [*ops(0, 10, 1, *TRAIN_OPS), *ops(60, 70, 2, *TRAIN_OPS)],
    )
    assert causes_ms(ledger) == {"compute.step": 20, "host.python": 50}


def test_python_inside_the_graph_is_the_hosts(tmp_path: Path) -> None:
    ledger = traced(
        tmp_path, call(0, 40, run=1), ops(0, 40, 1, "dense:MatMul", "log/PyFunc:EagerPyFunc")
    )
    assert causes_ms(ledger) == {"compute.step": 20, "host.py_func": 20}


def test_summaries_and_checkpoints_name_themselves(tmp_path: Path) -> None:
    ledger = traced(
        tmp_path,
        [
            *call(0, 10, run=1),
            event("EagerLocalExecute: WriteSummary", 10, 15),
            event("EagerLocalExecute: SaveV2", 15, 25),
            *call(25, 30, run=2),
        ],
        [*ops(0, 10, 1, *TRAIN_OPS), *ops(25, 30, 2, *TRAIN_OPS)],
    )
    assert causes_ms(ledger) == {"compute.step": 15, "host.summary": 5, "host.checkpoint": 10}


def test_xla_compiles_from_the_call_to_the_first_run_of_its_code(tmp_path: Path) -> None:
    work = [
        event("ExecutorState::Process", 0, 100, id=1),
        event(
            "ExecutorState::ProcessAsync::Start",
            10,
            100,
            kernel_type="StatefulPartitionedCall",
            step_id=1,
        ),
        event("CpuCompiler::RunBackend", 40, 70),
        event("CpuExecutable::ExecuteAsyncOnStream", 80, 100),
    ]
    ledger = traced(tmp_path, call(0, 100, run=1), work)
    assert causes_ms(ledger) == {"compile.xla": 70, "compute.step": 30}


def test_what_new_code_takes_longer_in_its_first_run_is_part_of_compiling(tmp_path: Path) -> None:
    compiling: dict[str, Value] = {"kernel_type": "StatefulPartitionedCall", "step_id": 1}
    work = [
        event("ExecutorState::Process", 0, 100, id=1),
        event("ExecutorState::ProcessAsync::Start", 0, 100, **compiling),
        event("CpuCompiler::RunBackend", 10, 60),
        event("CpuExecutable::ExecuteAsyncOnStream", 80, 100),
    ]
    later = range(4)
    for n in later:  # they take 5 ms each
        begin = 100 + 10 * n
        work += [
            event("ExecutorState::Process", begin, begin + 5, id=2 + n),
            event("CpuExecutable::ExecuteAsyncOnStream", begin, begin + 5),
        ]
    calls = call(0, 100, run=1) + [
        one for n in later for one in call(100 + 10 * n, 105 + 10 * n, run=2 + n)
    ]
    ledger = traced(tmp_path, calls, work)
    assert causes_ms(ledger)["compile.xla"] == 95


def allocation(at_ms: float, available: int, requested: int | None = None) -> Event:
    stats = {"bytes_available": available}
    if requested is not None:
        return event("MemoryAllocation", at_ms, at_ms, **stats, requested_bytes=requested)
    return event("MemoryDeallocation", at_ms, at_ms, **stats)


def test_an_op_that_asks_for_more_than_is_free_waits_for_memory(tmp_path: Path) -> None:
    work = ops(10, 100, 1, "big:Fill")
    ledger = traced(
        tmp_path,
        call(0, 100, run=1),
        [*work, allocation(70, 200, 500)],
        other=[allocation(5, 300), allocation(69, 700)],
    )
    assert causes_ms(ledger)["memory.allocator_wait"] == 60
    assert causes_ms(ledger)["compute.step"] == 30


def test_an_op_that_has_room_and_is_slow_only_computes(tmp_path: Path) -> None:
    ledger = traced(
        tmp_path,
        call(0, 100, run=1),
        [*ops(10, 100, 1, "big:Fill"), allocation(70, 200, 500)],
        other=[allocation(5, 900)],
    )
    assert "memory" not in buckets_ms(ledger)


def test_a_step_that_loss_scaling_skipped_taught_nothing(tmp_path: Path) -> None:
    scaled = ("gradient_tape/dense:MatMul", "isfinite:IsFinite")
    ledger = traced(
        tmp_path,
        [*call(0, 10, run=1), *call(10, 30, run=2)],
        [*ops(0, 10, 1, *scaled, "sgd:AssignSubVariableOp"), *ops(10, 30, 2, *scaled)],
    )
    assert causes_ms(ledger) == {"compute.step": 10, "numerics.skipped_update": 20}


def test_the_first_batch_waits_for_the_shuffle_buffer(tmp_path: Path) -> None:
    calls = [*call(0, 500, run=1)]
    waits = wait(0, 490, 1)
    work = ops(490, 500, 1, *TRAIN_OPS)
    for nth in range(1, 4):
        at = 500 + nth * 10
        calls += call(at, at + 10, run=nth + 1)
        waits += wait(at, at + 1, nth + 1)
        work += ops(at + 1, at + 10, nth + 1, *TRAIN_OPS)
    fill = [event("Iterator::Root::Prefetch::Batch::Shuffle", 0, 480, buffer_size=1000)]
    ledger = traced(
        tmp_path, calls, work, tf_data_iterator_get_next=waits, tf_data_iterator_resource=fill
    )
    assert causes_ms(ledger)["input.shuffle_fill"] == pytest.approx(489)
    assert causes_ms(ledger)["input.wait"] == pytest.approx(4)


def test_waiting_while_a_cache_fills_comes_once(tmp_path: Path) -> None:
    behind = "Iterator::Root::Prefetch::BatchV2::MemoryCacheImpl::Map"
    ledger = traced(
        tmp_path,
        [*call(0, 50, run=1), *call(50, 100, run=2)],
        [*ops(40, 50, 1, *TRAIN_OPS), *ops(90, 100, 2, *TRAIN_OPS)],
        tf_data_iterator_get_next=[*wait(0, 40, 1), *wait(50, 90, 2)],
        tf_data_iterator_resource=[event(behind, 0, 40), event(behind, 50, 90)],
    )
    assert causes_ms(ledger) == {"input.cache_fill": 80, "compute.step": 20}
    assert np.diff(ledger.bounds_ps)[ledger.one_time].sum() == 80 * 10**9


def test_background_input_takes_cores_that_the_step_needs(tmp_path: Path) -> None:
    """Two cores, two busy threads of the step, two of the pipeline: each gets half."""
    pipeline = [
        ("tf_data_private_threadpool", ops(0, 100, run, "decode:DecodeJpeg")) for run in (8, 9)
    ]
    ledger = ledger_of(
        tmp_path,
        trainer(
            call(0, 100, run=1),
            ops(0, 100, 1, *TRAIN_OPS),
            ("tf_Compute", ops(0, 100, 1, *TRAIN_OPS)),
            ("tf_data_iterator_get_next", [event("Iterator::Root", 0, 1, cpu_budget=2)]),
            *pipeline,
        ),
    )
    assert causes_ms(ledger) == {"input.contention": 50, "compute.step": 50}


def test_background_input_on_a_spare_core_costs_nothing(tmp_path: Path) -> None:
    ledger = traced(
        tmp_path,
        call(0, 100, run=1),
        ops(0, 100, 1, *TRAIN_OPS),
        tf_data_iterator_get_next=[event("Iterator::Root", 0, 1, cpu_budget=2)],
        tf_data_private_threadpool=ops(0, 100, 9, "decode:DecodeJpeg"),
    )
    assert causes_ms(ledger) == {"compute.step": 100}


def kernels(*names_and_times: tuple[str, float, float]) -> tuple[str, list[Event]]:
    return ("Stream #1(Compute)", [event(*spec) for spec in names_and_times])


def test_a_gpu_that_computes_makes_it_compute_whatever_the_host_does(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        trainer(call(0, 100, run=1), ops(0, 100, 1, *TRAIN_OPS)),
        device(
            "/device:GPU:0",
            kernels(
                ("MemcpyH2D", 0, 10),
                ("volta_sgemm", 10, 50),
                ("ncclAllReduceKernel", 50, 70),
                ("MemcpyD2H", 70, 75),
            ),
        ),
    )
    assert causes_ms(ledger) == {
        "input.host_to_device_copy": 10,
        "compute.device": 40,
        "communication.collective": 20,
        "memory.transfer": 5,
        "host.dispatch": 25,  # the device idles while the host launches the next kernels
    }


def test_a_gpu_that_idles_idles_for_the_hosts_reason(tmp_path: Path) -> None:
    ledger = traced(
        tmp_path,
        call(0, 100, run=1),
        ops(60, 100, 1, *TRAIN_OPS),
        device("/device:GPU:0", kernels(("volta_sgemm", 60, 100))),
        tf_data_iterator_get_next=wait(0, 60, 1),
    )
    assert causes_ms(ledger) == {"input.wait": 60, "compute.device": 40}


def evidence(folder: Path, *planes: bytes) -> str:
    return attribute(timeline_of(folder, *planes))[0].evidence["device"]


def test_a_listed_gpu_is_not_a_gpu_run(tmp_path: Path) -> None:
    lines = (("python", call(0, 100, run=1)), ("tf_Compute", ops(0, 100, 1, *TRAIN_OPS)))
    empty = device("/device:GPU:0")
    assert evidence(tmp_path, host(*lines), empty).startswith("GPU not used")
    manager = ("tf_GPU_Event_Manager/7", [event("ExecutorDoneCallback", 0, 0.001)])
    assert evidence(tmp_path, host(*lines, manager), empty).startswith("Device not traced")


def test_time_of_a_gpu_that_was_not_traced_is_unknown(tmp_path: Path) -> None:
    manager = ("tf_GPU_Event_Manager/7", [event("Wait", 0, 1)])
    work = [*ops(0, 10, 1, *TRAIN_OPS), *ops(90, 100, 1, "loss:Sum")]
    ledger = ledger_of(
        tmp_path, trainer(call(0, 100, run=1), work, manager), device("/device:GPU:0")
    )
    assert causes_ms(ledger) == {"compute.step": 20, "unknown.no_evidence": 80}


def test_a_trace_in_which_nobody_trains_is_unknown(tmp_path: Path) -> None:
    ledger = traced(tmp_path, [event("something", 0, 10)])
    assert buckets_ms(ledger) == {"unknown": 10}


def losses(values: list[float], wall_ms: list[float]) -> EventLog:
    series = Series(
        step=np.arange(len(values), dtype=np.int64),
        wall_ns=np.array([10**18 + round(ms * 1e6) for ms in wall_ms], dtype=np.int64),
        value=np.array(values),
    )
    return EventLog({"batch_loss": series}, {}, None, None, None, None, len(values))


@pytest.mark.parametrize(
    ("values", "wasted_ms"),
    [
        ([2.0, 1.0, 0.5], 0.0),
        ([2.0, float("nan"), float("nan")], 20.0),
        ([float("inf"), float("inf"), float("inf")], 30.0),
    ],
)
def test_computing_after_a_nan_loss_is_wasted(
    tmp_path: Path, values: list[float], wasted_ms: float
) -> None:
    calls, work = steps(0, 3)
    lines = trainer(calls, work)
    log = losses(values, [9, 19, 29.999])
    ledger = ledger_of(tmp_path, lines, clock(10**18, 1), events=log)
    assert causes_ms(ledger).get("numerics.nonfinite", 0.0) == wasted_ms


def test_a_batch_that_is_logged_late_after_the_profile_waited_for_the_profiler(
    tmp_path: Path,
) -> None:
    """The trace ends at 100 ms; the next batch would be due 20 ms later and comes after 220."""
    log = losses([3.0, 2.0, 1.0, 1.0, 1.0], [50, 320, 340, 360, 380])
    scalars = {**log.train, "epoch_loss": losses([1.0], [400]).train["batch_loss"]}
    ledger = ledger_of(
        tmp_path,
        trainer(call(0, 100, run=1), ops(0, 100, 1, *TRAIN_OPS)),
        clock(10**18, 0.1),
        events=replace(log, train=scalars, first_wall_ns=10**18),
    )
    assert causes_ms(ledger)["profiler.stop"] == 200
