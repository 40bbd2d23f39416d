from __future__ import annotations

from pathlib import Path

import pytest

from stall_analyzer.decode.decode import read_trace
from tests import event_files as write
from tests.event_files import START_S, record, scalar
from tests.scenarios.partial.cut import Batches, LeftOut, Run, batches_of, cut_logs, cut_trace
from tests.xspace import Event, Line, Plane, host_file, space

pytest.importorskip("tensorflow.tsl.profiler.protobuf.xplane_pb2")

MS = 10**6  # nanoseconds
BEGIN_NS = int(START_S) * 10**9
BATCH_MS = 100  # the first one ends after as much


def trace(*events: Event, timestamp_ns: int = 0) -> bytes:
    """Profiled from BEGIN_NS on for ten seconds."""
    bounds = {"profile_start_time": BEGIN_NS, "profile_stop_time": BEGIN_NS + 10_000 * MS}
    return space(
        Plane("/host:CPU").to_bytes([Line("python", events, timestamp_ns)]),
        Plane("Task Environment").to_bytes([], bounds),
    )


def event(name: str, start_ms: int, end_ms: int) -> Event:
    return Event(name, start_ms * MS, (end_ms - start_ms) * MS)


def event_file(*summaries: tuple[str, int, int]) -> bytes:
    """Each has a tag, a step and milliseconds after the start."""
    head = write.framed(write.file_version())
    return head + b"".join(
        record(scalar(tag, 1.0), at_s=START_S + ms / 1000, step=step) for tag, step, ms in summaries
    )


BATCHES = [("batch_loss", step, BATCH_MS * step) for step in range(1, 31)]
EPOCH = ("epoch_loss", 0, 3100)


def logs_in(folder: Path, *summaries: tuple[str, int, int], content: bytes = b"") -> Path:
    for place, data in (
        (f"train/{write.file_name()}", event_file(*summaries)),
        ("plugins/profile/2026_01_01/vm.xplane.pb", content or trace(event("step", 110, 190))),
    ):
        path = folder / "logs" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder / "logs"


def no_run() -> Run:
    raise AssertionError("the full log need not be analyzed")


def test_only_events_wholly_inside_the_interval_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(
        cut_trace(
            trace(
                event("under way", 90, 110), event("inside", 110, 190), event("ends late", 150, 201)
            ),
            (BEGIN_NS + 100 * MS, BEGIN_NS + 200 * MS),
        )
    )
    cut = read_trace(host_file(path))
    assert [cut.names[name] for name in cut.events.name] == ["inside"]
    assert (cut.base_unix_ns, cut.stop_unix_ns) == (BEGIN_NS + 100 * MS, BEGIN_NS + 200 * MS)
    assert cut.events.start_ps.tolist() == [10 * MS * 1000]


def test_a_line_that_began_later_keeps_its_times(tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    late = trace(event("inside", 60, 140), timestamp_ns=50 * MS)
    path.write_bytes(cut_trace(late, (BEGIN_NS + 100 * MS, BEGIN_NS + 200 * MS)))
    assert read_trace(host_file(path)).events.start_ps.tolist() == [10 * MS * 1000]


def test_a_trace_that_does_not_say_when_it_began_is_left_out() -> None:
    with pytest.raises(LeftOut):
        cut_trace(space(Plane("/host:CPU").to_bytes([])), (0, 1))


def test_the_profiled_batches_are_the_second_or_those_from_the_second_to_the_eleventh() -> None:
    twenty = Batches(range(100, 2100, 100))
    assert twenty.from_the_second(1) == (100, 200)
    assert twenty.from_the_second(10) == (100, 1100)


def test_an_epoch_of_few_batches_is_profiled_to_its_end() -> None:
    assert Batches([100, 200, 300]).from_the_second(10) == (100, 300)
    with pytest.raises(LeftOut):
        Batches([100]).from_the_second(1)


def test_batches_are_those_of_the_first_epoch(tmp_path: Path) -> None:
    later = ("batch_loss", 31, 3200)
    found = batches_of(logs_in(tmp_path, *BATCHES, EPOCH, later))
    assert found is not None
    assert [round((end - BEGIN_NS) / MS) for end in found.ends_ns[:2]] == [100, 200]
    assert len(found.ends_ns) == len(BATCHES)


def test_every_tenth_batch_does_not_say_when_the_second_ended(tmp_path: Path) -> None:
    assert batches_of(logs_in(tmp_path, *BATCHES[9::10], EPOCH)) is None


def test_without_logged_batches_the_steps_of_the_full_analysis_count(tmp_path: Path) -> None:
    steps = [{"phase": "training", "end_ps": ms * MS * 1000} for ms in (100, 200)]
    run = {"window": {"start_unix_ns": BEGIN_NS}, "steps": steps}
    place = cut_logs(logs_in(tmp_path, EPOCH), tmp_path / "cut", "one_batch", lambda: run)
    assert read_trace(host_file(trace_in(place))).base_unix_ns == BEGIN_NS + 100 * MS


def test_event_files_keep_what_every_callback_writes_byte_for_byte(tmp_path: Path) -> None:
    ordinary = [
        ("epoch_loss", 0, 3100),
        ("evaluation_loss_vs_iterations", 30, 3090),
    ]
    logs = logs_in(tmp_path, *BATCHES, ("weights/histogram", 0, 3000), *ordinary)
    place = cut_logs(logs, tmp_path / "cut", "events_only", no_run)
    assert (place / "train" / write.file_name()).read_bytes() == event_file(*ordinary)


def test_the_graph_and_the_model_are_kept(tmp_path: Path) -> None:
    logs = logs_in(tmp_path)
    kept = b"".join(
        [
            write.framed(write.file_version()),
            record(write.model("{}")),
            write.framed(write.graph(100_000)),
            record(scalar("epoch_loss", 1.0)),
        ]
    )
    (logs / "train" / write.file_name()).write_bytes(kept)
    place = cut_logs(logs, tmp_path / "cut", "events_only", no_run)
    assert (place / "train" / write.file_name()).read_bytes() == kept


def test_events_only_means_no_trace(tmp_path: Path) -> None:
    logs = logs_in(tmp_path, *BATCHES, EPOCH)
    assert trace_in(cut_logs(logs, tmp_path / "one", "one_batch", no_run)).exists()
    assert not trace_in(cut_logs(logs, tmp_path / "none", "events_only", no_run)).exists()


def test_a_log_without_epochs_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(LeftOut, match="no epoch"):
        cut_logs(logs_in(tmp_path, *BATCHES), tmp_path / "cut", "one_batch", no_run)


def test_a_log_of_two_hosts_is_left_out(tmp_path: Path) -> None:
    logs = logs_in(tmp_path, *BATCHES, EPOCH)
    trace_in(logs).with_name("other.xplane.pb").write_bytes(trace())
    with pytest.raises(LeftOut, match="2 XSpace traces"):
        cut_logs(logs, tmp_path / "cut", "one_batch", no_run)


def test_a_log_is_cut_again_only_when_it_has_changed(tmp_path: Path) -> None:
    logs = logs_in(tmp_path, *BATCHES, EPOCH)
    file = cut_logs(logs, tmp_path / "cut", "events_only", no_run) / "train" / write.file_name()
    file.write_bytes(b"mark")
    cut_logs(logs, tmp_path / "cut", "events_only", no_run)
    assert file.read_bytes() == b"mark"
    logs_in(tmp_path, *BATCHES, EPOCH, ("epoch_loss", 1, 6200))
    cut_logs(logs, tmp_path / "cut", "events_only", no_run)
    assert file.read_bytes() == event_file(EPOCH, ("epoch_loss", 1, 6200))


def trace_in(logs: Path) -> Path:
    """The only one; in cut logs, its session is called after the end of what was profiled."""
    sessions = sorted(logs.glob("plugins/profile/*"))
    return (sessions[0] if sessions else logs / "plugins/profile/2026_01_01") / "vm.xplane.pb"
