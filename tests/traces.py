"""Small traces of training, written in milliseconds and read by the real decoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stall_analyzer.align.align import align
from stall_analyzer.attribute.attribute import attribute
from stall_analyzer.decode.decode import read_trace
from stall_analyzer.model.event_log import EventLog, KerasConfig
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.runs import HostFile, ProfileSession
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.units import PS_PER_MS
from tests.xspace import Event, Line, Plane, Value, space

GRAPH = "__inference_train_step_7"


def event(name: str, start_ms: float, end_ms: float, **stats: Value) -> Event:
    return Event(name, start_ms * 1e6, (end_ms - start_ms) * 1e6, stats)


def call(
    start_ms: float,
    end_ms: float,
    run: int,
    *,
    traced_ms: float = 0,
    instantiated_ms: float = 0,
    count: int = 1,
    graph: str = GRAPH,
) -> list[Event]:
    """One call of a train function: traced for a while, prepared for a while, then run."""
    begin = start_ms + traced_ms
    ready = begin + instantiated_ms
    how = "traced-nonXla" if traced_ms else "notTraced-nonXla"
    building = [event("tf.function-graph_building", start_ms, begin)] if traced_ms else []
    return [
        event("train_step", start_ms, end_ms, tf_function_call=how, tracing_count=count),
        *building,
        event(f"EagerLocalExecute: {graph}", begin, end_ms),
        event("EagerKernelExecute", ready, end_ms),
        event("KernelAndDeviceFunc::Run", ready, end_ms),
        event("FunctionRun", ready, ready + 0.01, id=run, _r=1, _p=run),
    ]


def ops(start_ms: float, end_ms: float, run: int, *names: str) -> list[Event]:
    """An executor at work for a run; the ops share the time."""
    width = (end_ms - start_ms) / max(len(names), 1)
    inner = [
        event(name, start_ms + i * width, start_ms + (i + 1) * width)
        for i, name in enumerate(names)
    ]
    return [event("ExecutorState::Process", start_ms, end_ms, id=run), *inner]


def wait(start_ms: float, end_ms: float, run: int) -> list[Event]:
    """The consumer of the input pipeline, waiting for a batch."""
    return [event("IteratorGetNextOp::DoCompute", start_ms, end_ms, id=run)]


TRAIN_OPS = (
    "dense/MatMul:MatMul",
    "gradient_tape/dense/MatMul:MatMul",
    "sgd/Sub:AssignSubVariableOp",
)


def steps(
    start_ms: float,
    count: int,
    *,
    first_run: int = 1,
    length_ms: float = 10,
    pause_ms: float = 0,
    busy: float = 1,
    graph: str = GRAPH,
    names: Sequence[str] = TRAIN_OPS,
    traced: int = 1,
) -> tuple[list[Event], list[Event]]:
    """Calls one after another, and their ops, which take the last part of each call."""
    python: list[Event] = []
    work: list[Event] = []
    for number in range(count):
        begin = start_ms + number * (length_ms + pause_ms)
        run = first_run + number
        python += call(begin, begin + length_ms, run=run, graph=graph, count=traced)
        work += ops(begin + (1 - busy) * length_ms, begin + length_ms, run, *names)
    return python, work


def host(*lines: tuple[str, Sequence[Event]]) -> bytes:
    """The host's plane; a line is a thread's name and its events."""
    return Plane("/host:CPU").to_bytes(
        [Line(name, sorted(events, key=_order), id=i) for i, (name, events) in enumerate(lines)]
    )


def trainer(
    python: Sequence[Event], work: Sequence[Event], *lines: tuple[str, Sequence[Event]]
) -> bytes:
    """A host, given what its training thread, its executor and other threads do."""
    return host(("python", python), ("tf_Compute", work), *lines)


def device(name: str, *lines: tuple[str, Sequence[Event]]) -> bytes:
    return Plane(name).to_bytes(
        [Line(line, events, id=i) for i, (line, events) in enumerate(lines)]
    )


def clock(start_unix_ns: int, seconds: float) -> bytes:
    """The plane in which newer profilers write when they began and ended."""
    stop = start_unix_ns + round(seconds * 1e9)
    stats = {"profile_start_time": start_unix_ns, "profile_stop_time": stop}
    return Plane("Task Environment").to_bytes([], stats)


def _order(event: Event) -> tuple[float, float]:
    return event.start_ns, -event.duration_ns


def keras_log(keras: KerasConfig) -> EventLog:
    """An event log with nothing but a model in it."""
    return EventLog({}, {}, keras, None, None, None, 0)


def trace_of(folder: Path, *planes: bytes, errors: Sequence[str] = ()) -> Trace:
    path = folder / "host.xplane.pb"
    path.write_bytes(space(*planes, errors=errors))
    return read_trace(HostFile("host", str(path), "xplane", path.stat().st_size))


def timeline_of(folder: Path, *planes: bytes, events: EventLog | None = None) -> Timeline:
    return align([(ProfileSession("session", str(folder), ()), trace_of(folder, *planes))], events)


def ledger_of(folder: Path, *planes: bytes, events: EventLog | None = None) -> Ledger:
    (only,) = attribute(timeline_of(folder, *planes, events=events))
    return only.ledger


def causes_ms(ledger: Ledger) -> dict[str, float]:
    return {cause: round(ps / PS_PER_MS, 3) for cause, ps in ledger.causes_ps.items()}


def buckets_ms(ledger: Ledger) -> dict[str, float]:
    return {b: round(ps / PS_PER_MS, 3) for b, ps in ledger.buckets_ps.items() if ps}
