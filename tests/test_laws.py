"""The laws of ARCHITECTURE.md, on traces that no program would write."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import jsonschema
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stall_analyzer.chart.chart_window import timeline
from stall_analyzer.chart.lanes import charts_of
from stall_analyzer.discover.discover import discover
from stall_analyzer.model.findings import Report
from stall_analyzer.pipeline import analyze
from stall_analyzer.report.document import document, run_document
from stall_analyzer.report.document_types import PhaseEntry, StepEntry
from tests.real_documents import SCHEMA
from tests.timelines import unpacked
from tests.traces import GRAPH, clock, device, event, host
from tests.xspace import Event, Value, space

NAMES = (
    "train_step", "tf.function-graph_building", f"EagerLocalExecute: {GRAPH}",
    "EagerLocalExecute: IteratorGetNext", "EagerLocalExecute: MakeIterator",
    "EagerLocalExecute: AssignVariableOp", "EagerLocalExecute: WriteSummary",
    "EagerExecute", "EagerKernelExecute", "KernelAndDeviceFunc::Run", "FunctionRun",
    "ExecutorState::Process", "ExecutorState::ProcessAsync::Start",
    "ExecutorState::ProcessAsync::Done", "IteratorGetNextOp::DoCompute",
    "dense/MatMul:MatMul", "gradient_tape/x:Mul", "sgd:AssignSubVariableOp", "f:IsFinite",
    "map/PyFunc:PyFunc", "CpuCompiler::RunBackend", "CpuExecutable::ExecuteAsyncOnStream",
    "MemoryAllocation", "MemoryDeallocation", "CollectiveReduceV2", "Iterator::Root::Shuffle",
    "TFE_DeleteTensorHandle", "MemcpyH2D", "anything else",
)  # fmt: skip
LINES = ("python", "tf_Compute/1", "tf_data_iterator_get_next/2", "tf_data_private_threadpool/3")

small = st.integers(0, 3)
stats: st.SearchStrategy[dict[str, Value]] = st.fixed_dictionaries(
    {},
    optional={
        "id": small, "step_id": small, "_p": small, "_c": small, "step_num": small,
        "epoch_num": small, "tracing_count": small, "cpu_budget": st.integers(0, 4),
        "bytes_available": small, "requested_bytes": small,
        "tf_function_call": st.sampled_from(["traced-nonXla", "notTraced-xla", "eager"]),
        "kernel_type": st.sampled_from(["IteratorGetNext", "CollectiveReduceV2", "MatMul"]),
    },
)  # fmt: skip


@st.composite
def events(draw: st.DrawFn) -> Event:
    start = draw(st.integers(0, 200))
    length = draw(st.sampled_from([0, 0.01, 1, 5, 50, 200]))
    return event(draw(st.sampled_from(NAMES)), start, start + length, **draw(stats))


lines = st.tuples(st.sampled_from(LINES), st.lists(events(), max_size=25))
traces = st.builds(
    lambda threads, kernels, known: space(
        host(*threads),
        device("/device:GPU:0", ("Stream #1(Compute)", kernels)),
        *([clock(10**18, 0.3)] if known else []),
    ),
    st.lists(lines, min_size=1, max_size=4),
    st.lists(events(), max_size=3),
    st.booleans(),
)


def report_on(trace: bytes) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "host.xplane.pb")
        path.write_bytes(trace)
        (run,) = discover([str(path)]).runs
        return analyze(run)


def sums(entries: Sequence[PhaseEntry | StepEntry]) -> int:
    return sum(ps for entry in entries for ps in entry["buckets_ps"].values())


READ: dict[str, Value] = {"id": 0, "kernel_type": "IteratorGetNext"}
STEP_WHILE_ITS_ITERATOR_IS_MADE = [
    event("EagerLocalExecute: MakeIterator", 26, 31),
    event("train_step", 0, 0.01, tf_function_call="traced-nonXla", **READ),
    event("train_step", 30, 30, step_num=0, **READ),
    event("train_step", 0, 0, tf_function_call="traced-nonXla", epoch_num=0, **READ),
]


@settings(max_examples=150, deadline=None)
@given(traces)
@example(space(host(("python", STEP_WHILE_ITS_ITERATOR_IS_MADE))))
def test_time_is_conserved_and_the_report_keeps_its_contract(trace: bytes) -> None:
    report = document([run_document(report_on(trace))])
    jsonschema.validate(report, SCHEMA)
    (run,) = report["runs"]
    duration = run["window"]["duration_ps"]
    assert sum(run["buckets_ps"].values()) == duration
    assert sum(run["causes_ps"].values()) == duration
    assert run["one_time_ps"] + run["recurring_ps"] == duration
    assert sums(run["phases"]) == duration
    assert sums(run["steps"]) + sum(run["outside_steps_ps"].values()) == duration
    assert 0 <= run["window"]["covered_ps"] <= duration
    for step in run["steps"]:
        assert sum(step["buckets_ps"].values()) == step["end_ps"] - step["start_ps"]


@settings(max_examples=100, deadline=None)
@given(traces, st.sampled_from([1, 7, 1000]))
def test_a_chart_shows_the_whole_window_at_any_width(trace: bytes, pixels: int) -> None:
    (chart,) = charts_of(report_on(trace))
    shown = unpacked(timeline(chart, 0, chart.duration_ps, pixels))
    ledger = next((lane["items"] for lane in shown["lanes"] if lane["id"] == "ledger"), ())
    held = 0
    for start, end, _, _, count, *parts in ledger:
        held += sum(ps for _, ps in parts[0]) if count > 1 else end - start
    assert held == chart.duration_ps
    for lane in shown["lanes"]:
        for row in range(lane["depth"]):
            items = [item for item in lane["items"] if item[3] == row]
            assert len(items) <= pixels + 2
            assert all(left[1] <= right[0] for left, right in pairwise(items))
