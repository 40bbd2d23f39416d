"""Cuts the log of a wholly profiled training down to what ordinary trainings leave.

Keras's TensorBoard callback writes scalars of each epoch, and with `profile_batch` a trace of some
batches. Both are in the full log: nothing is made up, only left out.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.types_pb2 import DT_STRING

from stall_analyzer.files.tfrecord import RecordFile, framed

PS_PER_NS = 1000
NS_PER_S = 1_000_000_000
# What the callback writes whatever its options are.
ORDINARY_TAG = re.compile(r"keras$|epoch_|evaluation_.*_vs_iterations$")
# `batch_7` without more is not a scalar: it marks the end of a profile.
BATCH_SCALAR = re.compile(r"batch_(?!\d+$)")
# Batches that are profiled, from the second on: Keras's own default was the second alone.
KINDS = {"one_batch": 1, "ten_batches": 10, "events_only": 0}

Interval: TypeAlias = tuple[int, int]  # unix nanoseconds
Run: TypeAlias = Mapping[str, Any]  # one run of the analyzer's document


class LeftOut(Exception):
    """A program that cannot be cut or has no truth, and why."""


@dataclass(frozen=True)
class Batches:
    """When the batches of the first epoch ended, in unix nanoseconds."""

    ends_ns: Sequence[int]

    def from_the_second(self, count: int) -> Interval:
        if len(self.ends_ns) < 2:
            raise LeftOut("its first epoch has fewer than two batches that are known")
        return self.ends_ns[0], self.ends_ns[self.last_of(count) - 1]

    def last_of(self, count: int) -> int:
        """The last of that many batches from the second on, counted from 1."""
        return min(count + 1, len(self.ends_ns))


# ---------------------------------------------------------------- all of a log


def cut_logs(logs: Path, target: Path, kind: str, full_run: Callable[[], Run]) -> Path:
    """The folder with the cut log; created again if the full log or this file has changed.

    `full_run` gives the analysis of the full log; it is asked only if no batches were logged.
    """
    stamp, wanted = target / "stamp.json", _stamp(logs)
    place = target / "logs"
    if stamp.exists() and stamp.read_text() == wanted:
        return place
    shutil.rmtree(target, ignore_errors=True)
    place.mkdir(parents=True)
    trace = _only_trace(logs)
    if not sum([_cut_event_file(path, logs, place) for path in _event_files(logs)]):
        raise LeftOut("its event files hold no epoch: nothing would say how long it took")
    if KINDS[kind]:
        batches = batches_of(logs) or _batches_in(full_run())
        interval = batches.from_the_second(KINDS[kind])
        session = trace.relative_to(logs).parent.with_name(_session_name(interval))
        cut = _with_parents(place / session / trace.name)
        cut.write_bytes(cut_trace(trace.read_bytes(), interval))
        _note_profile(place, batches.last_of(KINDS[kind]), interval)
    stamp.write_text(wanted)
    return place


def _note_profile(place: Path, batch: int, interval: Interval) -> None:
    """Keras writes a record when a profile ends, called after its last batch."""
    event = Event(wall_time=interval[1] / NS_PER_S, step=batch)
    value = event.summary.value.add(tag=f"batch_{batch}")
    value.metadata.plugin_data.plugin_name = "graph_run_metadata_graph"
    value.tensor.dtype = DT_STRING
    value.tensor.string_val.append(b"")
    path = next(path for path in _event_files(place) if path.parent.name != "validation")
    with path.open("ab") as file:
        file.write(framed(event.SerializeToString()))


def _session_name(interval: Interval) -> str:
    """A session is called after the second in which its profile ended."""
    return time.strftime("%Y_%m_%d_%H_%M_%S", time.localtime(interval[1] // NS_PER_S))


def _stamp(logs: Path) -> str:
    sources = {str(path.relative_to(logs)): path.stat().st_mtime_ns for path in _files(logs)}
    return json.dumps({**sources, "cutter": sha256(Path(__file__).read_bytes()).hexdigest()})


def _only_trace(logs: Path) -> Path:
    traces = [path for path in _files(logs) if path.name.endswith(".xplane.pb")]
    if len(traces) != 1:
        raise LeftOut(f"it has {len(traces)} XSpace traces, not one")
    return traces[0]


def _event_files(logs: Path) -> list[Path]:
    return [path for path in _files(logs) if "tfevents" in path.name
            and not path.name.endswith(".profile-empty")]  # fmt: skip


def _files(logs: Path) -> list[Path]:
    return sorted(path for path in logs.rglob("*") if path.is_file())


def _with_parents(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


# ---------------------------------------------------------------- event files


def _cut_event_file(path: Path, logs: Path, place: Path) -> int:
    """How many epoch scalars were kept; a file of other summaries is not written at all."""
    kept = [(data, event) for data, event in _records(path) if is_ordinary(event)]
    if any(event.WhichOneof("what") != "file_version" for _, event in kept):
        cut = _with_parents(place / path.relative_to(logs))
        cut.write_bytes(b"".join(framed(data) for data, _ in kept))
    return sum(tag.startswith("epoch_") for _, event in kept for tag in _tags(event))


def is_ordinary(event: Event) -> bool:
    what = event.WhichOneof("what")
    if what == "summary":
        return all(ORDINARY_TAG.match(tag) for tag in _tags(event))
    return what in ("file_version", "graph_def")


def batches_of(logs: Path) -> Batches | None:
    """As the callback logged them with `update_freq=1`; None if it did not."""
    for path in _event_files(logs):
        ends = dict(_batch_ends(path))  # by optimizer step; all tags of a batch have the same
        if list(ends)[:2] == [1, 2]:
            return Batches(list(ends.values()))
    return None


def _batch_ends(path: Path) -> Iterator[tuple[int, int]]:
    """Each batch of the first epoch, until its scalars were written."""
    for _, event in _records(path):
        if any(tag.startswith("epoch_") for tag in _tags(event)):
            return
        if any(BATCH_SCALAR.match(tag) for tag in _tags(event)):
            yield event.step, round(event.wall_time * NS_PER_S)


def _batches_in(run: Run) -> Batches:
    zero_ns = run["window"]["start_unix_ns"]
    steps = [step for step in run["steps"] if step["phase"] == "training"]
    if zero_ns is None or not steps:
        raise LeftOut("neither its event files nor its full analysis say when its batches ended")
    return Batches([zero_ns + step["end_ps"] // PS_PER_NS for step in steps])


def _records(path: Path) -> Iterator[tuple[bytes, Event]]:
    with path.open("rb") as stream:
        records = RecordFile(stream)
        for head in list(records):
            record = records.whole(head)
            if record is not None:
                yield record.data, Event.FromString(record.data)


def _tags(event: Event) -> list[str]:
    return [value.tag for value in event.summary.value]


# ---------------------------------------------------------------- traces


def cut_trace(content: bytes, interval: Interval) -> bytes:
    """The trace as if profiling had lasted for this interval only.

    The profiler loses an event that is under way when it starts or stops, so only those that lie
    wholly inside are kept. Lines count from the new start, as they did from the old one.
    """
    from tensorflow.tsl.profiler.protobuf import xplane_pb2  # noqa: PLC0415 (slow to import)

    space = xplane_pb2.XSpace.FromString(content)
    shift_ns = interval[0] - _set_session(space, interval)
    length_ps = (interval[1] - interval[0]) * PS_PER_NS
    for line in (line for plane in space.planes for line in plane.lines):
        line_ps = (line.timestamp_ns - shift_ns) * PS_PER_NS
        kept = _inside(line.events, line_ps, length_ps)
        del line.events[:]
        line.events.extend(kept)
        line.timestamp_ns = 0
        line.duration_ps = 0
    return bytes(space.SerializeToString())


def _inside(events: Sequence[Any], line_ps: int, length_ps: int) -> list[Any]:
    """Those between 0 and `length_ps`, with offsets from 0 instead of from their line's start."""
    kept = []
    for event in events:
        start_ps = line_ps + event.offset_ps
        if start_ps >= 0 and start_ps + event.duration_ps <= length_ps:
            event.offset_ps = start_ps
            kept.append(event)
    return kept


def _set_session(space: Any, interval: Interval) -> int:
    """Tells the trace when it was taken; gives when it said that it began."""
    bounds = dict(zip(("profile_start_time", "profile_stop_time"), interval, strict=True))
    before: dict[str, int] = {}
    for plane in space.planes:
        for stat in plane.stats if plane.name == "Task Environment" else ():
            name = plane.stat_metadata[stat.metadata_id].name
            if name in bounds:
                before[name] = int(getattr(stat, stat.WhichOneof("value")))
                stat.uint64_value = bounds[name]
    if len(before) < len(bounds):
        raise LeftOut("its trace does not say when it began and ended")
    return before["profile_start_time"]
