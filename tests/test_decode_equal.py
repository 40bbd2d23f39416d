"""The native decoder and the pure one give equal traces, whatever the bytes."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stall_analyzer.decode import plane_reader
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.model.trace import Trace
from tests.corpus import CORPUS
from tests.xspace import Event, Line, Plane, Ref, host_space, read_pure, read_with, space

native = pytest.importorskip("stall_analyzer.decode._xplane", reason="not built: no C compiler?")

NAMES = ["ExecutorState::Process", "ExecutorState::Process", "EagerExecute", "FunctionRun",
         "a/b:MatMul", "gradient_tape/x:Mul", "c:PyFunc",
         "ThreadpoolListener::Record", "Iterator::Root", "$x.py:1 f", "TFE_Py_Execute"]  # fmt: skip
STATS = ["id", "_r", "step_num", "eager_op", "name", "not kept", "fragmentation"]

values = st.one_of(
    st.integers(0, 1), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=5),
    st.binary(max_size=5), st.sampled_from(["a", "b"]).map(Ref),
)  # fmt: skip
times = st.one_of(st.integers(0, 60), st.integers(0, 60).map(lambda t: t * 100_000),
                  st.just(2**62 / 1000), st.just(-1))  # fmt: skip
events = st.builds(
    Event, st.sampled_from(NAMES), times, times,
    st.dictionaries(st.sampled_from(STATS), values, max_size=3),
)  # fmt: skip
lines = st.builds(
    Line, st.sampled_from(["python", "Steps", "TensorFlow Ops"]), st.lists(events, max_size=20),
    st.sampled_from([0, 5259, 1_700_000_000_000_000_000]), st.integers(-(2**63), 2**63 - 1),
    st.sampled_from(["", "shown"]),
)  # fmt: skip
planes = st.tuples(
    st.sampled_from(["/host:CPU", "/device:GPU:0"]), st.sampled_from([0, 3, 20_000, -(2**40)]),
    st.lists(lines, max_size=3),
)  # fmt: skip
spaces = st.lists(planes, min_size=1, max_size=3).map(
    lambda made: space(*(Plane(name, first).to_bytes(of_plane) for name, first, of_plane in made))
)


def plain(trace: Trace) -> dict[str, object]:
    """A trace in a form that == can compare."""
    return {
        "planes": repr(trace.planes),  # repr: a NaN equals itself
        "lines": trace.lines,
        "names": trace.names,
        "strings": trace.strings,
        "rows": [column.tolist() for column in vars(trace.events).values()],
        "stats": {name: (column.kind, column.event.tolist(), column.values.tolist())
                  for name, column in trace.stats.items()},
        "totals": [column.tolist() for column in vars(trace.totals).values()],
        "clock": (trace.base_unix_ns, trace.stop_unix_ns),
        "errors": trace.errors,
        "notes": trace.notes,
    }  # fmt: skip


def result(read: Callable[[str], Trace], path: str) -> object:
    try:
        trace = read(path)
    except UnreadableFile as error:
        return str(error)
    check_invariants(trace)
    return plain(trace)


def check_invariants(trace: Trace) -> None:
    events = trace.events
    children = np.flatnonzero(events.parent >= 0)
    parents = events.parent[children]
    assert (parents < children).all()
    assert (events.line[parents] == events.line[children]).all()
    assert (events.start_ps[parents] <= events.start_ps[children]).all()
    assert (events.end_ps[children] <= events.end_ps[parents]).all()
    assert (events.duration_ps >= 0).all()
    assert (events.start_ps >= 0).all()
    assert (np.bincount(events.name, minlength=len(trace.names)) <= trace.totals.count).all()
    assert [line.last_event for line in trace.lines[:-1]] == [
        line.first_event for line in trace.lines[1:]
    ]


def assert_equal(data: bytes) -> object:
    with tempfile.NamedTemporaryFile(suffix=".xplane.pb", delete=False) as file:
        file.write(data)
    try:
        fast = result(lambda path: read_with(native.read_plane, path), file.name)
        assert fast == result(read_pure, file.name)
        return fast
    finally:
        os.unlink(file.name)  # noqa: PTH108


@settings(max_examples=150, deadline=None)
@given(spaces)
def test_equal_on_any_trace(data: bytes) -> None:
    assert_equal(data)


@settings(max_examples=150, deadline=None)
@given(spaces, st.data())
def test_equal_on_damaged_and_cut_traces(data: bytes, draw: st.DataObject) -> None:
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(0, 4))):
        damaged[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    assert_equal(bytes(damaged[: draw.draw(st.integers(1, len(data)))]))


def real_traces() -> Iterator[Path]:
    """Old and new traces that are small enough for the slow decoder."""
    for case in ("L04", "L05", "L14", "L15", "L17"):
        yield from sorted(CORPUS.glob(f"{case}-*/**/*.xplane.pb"))[:2]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the public logs are not beside this repository")
def test_equal_on_real_traces_whole_cut_and_damaged() -> None:
    rng = random.Random(1)
    compared = 0
    for path in real_traces():
        data = path.read_bytes()
        assert_equal(data)
        small = data[: rng.randrange(1, min(len(data), 60_000))]
        assert_equal(small)
        mutated = bytearray(small)
        for _ in range(5):
            mutated[rng.randrange(len(mutated))] ^= 1 << rng.randrange(8)
        assert_equal(bytes(mutated))
        compared += 1
    assert compared >= 5


# ---------------------------------------------------------------- several threads


def read_by_threads(path: str) -> Trace:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plane_reader, "PIECE_BYTES", 1)
        patch.setattr(plane_reader, "THREADS", 3)
        return read_with(native.read_plane, path)


@given(data=spaces)
@settings(deadline=None, max_examples=150)
def test_lines_read_by_several_threads_are_those_that_one_reads(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        assert result(read_by_threads, file.name) == result(
            lambda path: read_with(native.read_plane, path), file.name
        )


def test_giving_up_stops_the_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(host_space(*(Line("python", [Event("a", 0, 1)]) for _ in range(50))))
    monkeypatch.setattr(plane_reader, "PIECE_BYTES", 1)
    monkeypatch.setattr(plane_reader, "THREADS", 3)

    def give_up(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_with(native.read_plane, path, give_up)
