"""What read_trace promises, on traces small enough to check by hand. It holds for both decoders."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from stall_analyzer.decode import decode, vocabulary
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.units import PS_PER_NS
from tests.xspace import (
    Event,
    Line,
    Plane,
    Ref,
    Value,
    block,
    host_file,
    host_space,
    number,
    space,
    varint,
)

Read = Callable[[bytes], Trace]
MS = 1_000_000  # nanoseconds


@pytest.fixture(params=["native", "pure python"])
def read(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    monkeypatch.setenv("STALL_PURE_PYTHON", "1" if request.param == "pure python" else "0")
    if decode.backend() != request.param:
        pytest.skip("the native decoder is not built")

    def read_bytes(data: bytes) -> Trace:
        path = tmp_path / "vm.xplane.pb"
        path.write_bytes(data)
        return decode.read_trace(host_file(path, len(data)))

    return read_bytes


def rows(trace: Trace) -> list[tuple[str, int, int, int]]:
    """The name, the start and duration in ns, and the parent of each row."""
    events = trace.events
    return [
        (trace.names[name], start // PS_PER_NS, duration // PS_PER_NS, parent)
        for name, start, duration, parent in zip(
            events.name.tolist(), events.start_ps.tolist(), events.duration_ps.tolist(),
            events.parent.tolist(), strict=True,
        )
    ]  # fmt: skip


def stat(trace: Trace, name: str) -> dict[int, object]:
    column = trace.stats[name]
    values: list[object] = list(column.values.tolist())
    if column.kind == "text":
        values = [trace.strings[value] for value in column.values.tolist()]
    return dict(zip(column.event.tolist(), values, strict=True))


def warnings(trace: Trace) -> str:
    return " ".join(note.text for note in trace.notes if note.level == "warning")


# ------------------------------------------------------------------ rows, nesting


def test_events_become_rows_nested_by_containment(read: Read) -> None:
    trace = read(host_space(Line("python", [
        Event("EagerExecute", 0, 100), Event("FunctionRun", 10, 50),
        Event("FunctionRun", 20, 10), Event("FunctionRun", 70, 30), Event("EagerExecute", 200, 5),
    ])))  # fmt: skip
    assert rows(trace) == [
        ("EagerExecute", 0, 100, -1), ("FunctionRun", 10, 50, 0), ("FunctionRun", 20, 10, 1),
        ("FunctionRun", 70, 30, 0), ("EagerExecute", 200, 5, -1),
    ]  # fmt: skip
    assert trace.events.line.tolist() == [0] * 5
    assert trace.notes == () or trace.notes[0].level == "info"


def test_a_child_may_hang_over_by_a_nanosecond_and_is_clamped(read: Read) -> None:
    trace = read(host_space(Line("python", [Event("EagerExecute", 0, 100),
                                            Event("FunctionRun", 50, 51)])))  # fmt: skip
    assert rows(trace)[1] == ("FunctionRun", 50, 50, 0)


def test_a_partial_overlap_makes_siblings(read: Read) -> None:
    trace = read(host_space(Line("python", [
        Event("EagerExecute", 0, 1000), Event("FunctionRun", 10, 50),
        Event("FunctionRun", 40, 50), Event("FunctionRun", 45, 5),
    ])))  # fmt: skip
    assert [parent for *_, parent in rows(trace)] == [-1, 0, 0, 2]


def test_an_unsorted_line_is_sorted_longest_first(read: Read) -> None:
    trace = read(host_space(Line("python", [
        Event("FunctionRun", 20, 5, {"id": 3}), Event("FunctionRun", 10, 50, {"id": 2}),
        Event("EagerExecute", 10, 90, {"id": 1}),
    ])))  # fmt: skip
    assert rows(trace) == [("EagerExecute", 10, 90, -1), ("FunctionRun", 10, 50, 0),
                           ("FunctionRun", 20, 5, 1)]  # fmt: skip
    assert stat(trace, "id") == {0: 1, 1: 2, 2: 3}
    assert trace.totals.self_ps.sum() == 90 * PS_PER_NS


def test_short_ops_are_folded_but_leave_bits_and_totals(read: Read) -> None:
    op = "gradient_tape/dense/MatMul:MatMul"
    trace = read(host_space(Line("tf_Compute", [
        Event("ExecutorState::Process", 0, 100), Event(op, 10, 20), Event("x:IsFinite", 15, 5),
    ])))  # fmt: skip
    assert rows(trace) == [("ExecutorState::Process", 0, 100, -1)]
    assert trace.events.folded.tolist() == [
        vocabulary.BIT_OP | vocabulary.BIT_GRADIENT | vocabulary.BIT_IS_FINITE
    ]
    totals = {
        name: (count, total, own)
        for name, count, total, own in zip(
            trace.names, trace.totals.count, trace.totals.total_ps, trace.totals.self_ps,
            strict=True,
        )
    }  # fmt: skip
    assert totals[op] == (1, 20_000, 15_000)
    assert totals["x:IsFinite"] == (1, 5_000, 5_000)
    assert totals["ExecutorState::Process"] == (1, 100_000, 80_000)


def test_a_kept_op_leaves_its_bits_on_itself_and_on_its_parent(read: Read) -> None:
    trace = read(host_space(Line("tf_Compute", [
        Event("ExecutorState::Process", 0, 10 * MS), Event("a:IsFinite", 0, 5 * MS),
    ])))  # fmt: skip
    bits = vocabulary.BIT_OP | vocabulary.BIT_IS_FINITE
    assert trace.events.folded.tolist() == [bits, bits]


def test_executor_events_of_one_run_that_follow_closely_share_a_row(read: Read) -> None:
    name, other = "ExecutorState::Process", "a:IsFinite"
    trace = read(host_space(Line("tf_Compute", [
        Event(name, 0, 100, {"id": 7}),
        Event(name, 2_000, 100, {"id": 7}), Event(other, 2_010, 10),
        Event(name, 2_200, 100, {"id": 8}),
        Event(name, 9_000, 100, {"id": 8}),
        Event(name, 9_200, 100),
    ])))  # fmt: skip
    assert rows(trace) == [
        (name, 0, 2_100, -1),  # two runs of 7, with a pause of 2 µs
        (name, 2_200, 100, -1),  # another run
        (name, 9_000, 100, -1),  # the same run, but too long after
        (name, 9_200, 100, -1),  # it is not known whose
    ]
    assert stat(trace, "id") == {0: 7, 1: 8, 2: 8}
    bits = vocabulary.BIT_OP | vocabulary.BIT_IS_FINITE
    assert trace.events.folded.tolist() == [bits, 0, 0, 0]
    assert trace.totals.count[trace.names.index(name)] == 5


def test_the_pool_listener_is_left_out(read: Read) -> None:
    trace = read(host_space(Line("python", [
        Event("ThreadpoolListener::Record", 0, 0), Event("EagerExecute", 0, 100),
    ])))  # fmt: skip
    assert trace.names == ("EagerExecute",)
    assert trace.totals.count.tolist() == [1]


@pytest.mark.parametrize("name", ["tf_function_call", "step_num", "_r"])
def test_steps_and_calls_are_kept_whatever_their_name_and_length(read: Read, name: str) -> None:
    trace = read(host_space(Line("python", [
        Event("a:MatMul", 0, 1, {name: 1}), Event("ThreadpoolListener::X", 5, 0, {name: 2}),
    ])))  # fmt: skip
    assert stat(trace, name) == {0: 1, 1: 2}


def test_derived_device_lines_are_dropped(read: Read) -> None:
    plane = Plane("/device:GPU:0").to_bytes(
        [Line("Stream #1(Compute)", [Event("kernel", 0, 1)]),
         Line("TensorFlow Ops", [Event("op", 0, 1)])]
    )  # fmt: skip
    assert [line.name for line in read(space(plane)).lines] == ["Stream #1(Compute)"]


def test_the_display_name_of_a_line_wins(read: Read) -> None:
    line = Line("12", [Event("EagerExecute", 0, 1)], id=-5, display_name="python")
    (found,) = read(host_space(line)).lines
    assert (found.id, found.name, found.first_event, found.last_event) == (-5, "python", 0, 1)


def test_sums_over_many_events_have_no_place_in_time(read: Read) -> None:
    aggregated = number(1, 1) + number(5, 17) + number(3, 1000)
    plane = block(2, b"/device:TPU:0") + block(3, block(4, aggregated))
    trace = read(space(plane))
    assert len(trace.events) == 0
    assert warnings(trace) == ""


# ------------------------------------------------------------------ stats


def test_stats_become_columns_ordered_by_row(read: Read) -> None:
    trace = read(host_space(Line("python", [
        Event("EagerExecute", 0, 9, {"id": -1, "eager_op": Ref("MatMul"), "unheard_of": 5}),
        Event("EagerExecute", 10, 9, {"id": 7, "eager_op": "Add", "fragmentation": 0.5}),
        Event("EagerExecute", 20, 9, {"kernel_type": b"raw \xff"}),
    ])))  # fmt: skip
    assert stat(trace, "id") == {0: -1, 1: 7}
    assert stat(trace, "eager_op") == {0: "MatMul", 1: "Add"}
    assert stat(trace, "kernel_type") == {2: "raw \ufffd"}
    assert trace.stats["fragmentation"].kind == "double"
    bits = struct.pack("<q", trace.stats["fragmentation"].values[0])
    assert struct.unpack("<d", bits) == (0.5,)
    assert "unheard_of" not in trace.stats


def test_a_stat_of_mixed_kinds_becomes_text(read: Read) -> None:
    trace = read(host_space(Line("python", [
        Event("EagerExecute", 0, 9, {"id": 5}), Event("EagerExecute", 10, 9, {"id": "five"}),
        Event("EagerExecute", 20, 9, {"id": 0.5}),
    ])))  # fmt: skip
    assert stat(trace, "id") == {0: "5", 1: "five", 2: "0.5"}


def test_the_last_value_of_a_stat_counts(read: Read) -> None:
    plane = Plane("/host:CPU")
    event = plane.event(Event("EagerExecute", 0, 9, {"id": 5}))
    twice = event + block(4, number(1, 0) + varint(4 << 3) + varint(6))
    line = block(2, b"python") + block(4, twice)
    tables = plane.to_bytes([])
    trace = read(space(tables + block(3, line)))
    assert stat(trace, "id") == {0: 6}


def test_names_and_texts_are_shared_between_planes(read: Read) -> None:
    event = Event("MemcpyH2D", 0, 9, {"memcpy_details": Ref("size:4")})
    planes = [Plane(f"/device:GPU:{i}", first_id=100 * i) for i in range(3)]
    trace = read(space(*(plane.to_bytes([Line("Stream", [event])]) for plane in planes)))
    assert trace.names == ("MemcpyH2D",)
    assert trace.strings == ("size:4",)
    assert [line.plane for line in trace.lines] == [0, 1, 2]
    assert trace.totals.count.tolist() == [3]


# ------------------------------------------------------------------ clocks


def environment(start: int, stop: int) -> bytes:
    stats: dict[str, Value] = {
        "profile_start_time": start, "profile_stop_time": stop, "profile_options": b"\x08",
    }  # fmt: skip
    return Plane("Task Environment").to_bytes([], stats)


def test_the_task_environment_gives_the_clock(read: Read) -> None:
    start = 1_794_798_303_123_272_983
    host = Plane("/host:CPU").to_bytes([Line("python", [Event("EagerExecute", 3, 9)], 5259)])
    trace = read(space(host, environment(start, start + 10)))
    assert (trace.base_unix_ns, trace.stop_unix_ns) == (start, start + 10)
    assert trace.events.start_ps.tolist() == [5_262_000]
    assert trace.planes[1].stats["profile_options"] == b"\x08"


def test_unix_timestamps_count_from_the_earliest_line(read: Read) -> None:
    base = 1_700_000_000_000_000_000
    trace = read(host_space(Line("a", [Event("EagerExecute", 1, 9)], base + 7),
                            Line("b", [Event("EagerExecute", 1, 9)], base)))  # fmt: skip
    assert trace.base_unix_ns == base
    assert trace.events.start_ps.tolist() == [8_000, 1_000]


def test_without_a_clock_times_count_from_the_first_line(read: Read) -> None:
    trace = read(host_space(Line("a", [Event("EagerExecute", 1, 9)], 500)))
    assert trace.base_unix_ns is None
    assert trace.events.start_ps.tolist() == [1_000]


def test_impossible_times_are_left_out_and_counted(read: Read) -> None:
    trace = read(host_space(Line("a", [
        Event("EagerExecute", 0, 9), Event("EagerExecute", -5, 9), Event("EagerExecute", 5, -9),
        Event("EagerExecute", (1 << 60) / 1000, 9), Event("EagerExecute", 7, 9),
        Event("EagerExecute", 8, 9), Event("EagerExecute", 9, 9),
    ])))  # fmt: skip
    assert len(trace.events) == 4
    assert "Skipped 3 damaged events" in warnings(trace)


# ------------------------------------------------------------------ cut and damaged files


def long_line() -> bytes:
    return host_space(Line("python", [
        Event("EagerExecute", 10 * i, 5, {"id": i, "eager_op": Ref("MatMul")}) for i in range(200)
    ]))  # fmt: skip


def test_a_cut_file_keeps_its_events_and_says_that_names_are_lost(read: Read) -> None:
    data = long_line()
    trace = read(data[: len(data) * 8 // 10])
    assert 100 < len(trace.events) < 200
    assert trace.names == ("event 0",)
    assert trace.events.start_ps.tolist() == [10_000 * i for i in range(len(trace.events))]
    assert "cut off" in warnings(trace)
    assert (
        "Names are missing for 1 kind of event, because a trace stores its names last"
        in warnings(trace)
    )


def test_a_cut_in_the_tables_keeps_the_names_before_it(read: Read) -> None:
    events = [Event("EagerExecute", 0, 1), Event("FunctionRun", 5, 1)]
    trace = read(host_space(Line("python", events))[:-1])
    assert trace.names == ("EagerExecute", "event 1")
    assert "cut off" in warnings(trace)


def test_every_cut_gives_a_warning_or_a_clear_refusal(read: Read) -> None:
    data = host_space(Line("python", [Event("EagerExecute", 10 * i, 5, {"id": i})
                                      for i in range(5)], 7, 3, "main"))  # fmt: skip
    refused = 0
    for size in range(1, len(data)):
        try:
            outcome = warnings(read(data[:size]))
        except UnreadableFile as error:
            outcome = str(error)
            refused += 1
        assert "cut off" in outcome, size
    assert refused < 20  # only before the first line


def test_a_damaged_event_costs_only_itself(read: Read) -> None:
    plane = Plane("/host:CPU")
    good = [block(4, plane.event(Event("EagerExecute", 10 * i, 5))) for i in range(4)]
    bad = block(4, b"\x08\xff")
    line = block(2, b"python") + b"".join([*good[:2], bad, *good[2:]])
    trace = read(space(plane.to_bytes([]) + block(3, line)))
    assert len(trace.events) == 4
    assert "Skipped 1 damaged event and kept 4" in warnings(trace)


def test_after_a_damaged_line_reading_continues_with_the_next(read: Read) -> None:
    plane = Plane("/host:CPU")
    event = block(4, plane.event(Event("EagerExecute", 10, 5)))
    broken, whole = event * 3 + b"\x07", event * 2
    trace = read(space(plane.to_bytes([]) + block(3, broken) + block(3, whole)))
    assert len(trace.events) == 5
    assert "damaged in 1 place;" in warnings(trace)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\x0a", "is not a profiler trace"),
        (b"<html>404 Not Found</html>", "is not a profiler trace"),
        (long_line().decode("utf-8", "replace").encode(), "is damaged"),
    ],
)
def test_a_file_that_is_not_a_trace_is_refused(read: Read, data: bytes, message: str) -> None:
    with pytest.raises(UnreadableFile, match=message):
        read(data)


def test_nameless_events_are_bounded(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stall_analyzer.decode.xplane.UNNAMED_ROWS", 50)
    trace = read(long_line()[:1500])
    assert len(trace.events) == 50
    assert trace.totals.count.sum() > 50
    assert "Only the first 50" in warnings(trace)


def test_the_profilers_own_errors_are_handed_on(read: Read) -> None:
    plane = Plane("/device:GPU:0").to_bytes([])
    assert read(space(plane, errors=["Failed to load libcupti"])).errors == (
        "Failed to load libcupti",
    )


# ------------------------------------------------------------------ the door


def test_a_missing_file_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"cannot be read: it does not exist$"):
        decode.read_trace(host_file(tmp_path / "none.xplane.pb"))


def test_the_slow_decoder_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALL_PURE_PYTHON", "1")
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(host_space(Line("python", [Event("EagerExecute", 0, 1)])))
    for _ in range(2):  # a note only on the first run would depend on which run is read first
        (note,) = decode.read_trace(host_file(path)).notes
        assert note.level == "info"
        assert "C compiler" in note.text
