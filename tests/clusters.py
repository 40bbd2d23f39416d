"""Made-up jobs of several hosts that meet in each step, written in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stall_analyzer.align.align import align
from stall_analyzer.attribute.attribute import attribute
from stall_analyzer.decode.decode import read_trace
from stall_analyzer.diagnose.diagnose import signals_of
from stall_analyzer.model.runs import HostFile, ProfileSession
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.trace import Trace
from stall_analyzer.signals.signals import Signals
from tests.traces import TRAIN_OPS, call, clock, event, ops, trainer, wait
from tests.xspace import Event, space

UNIX_NS = 1_700_000_000 * 10**9
COMPUTE_MS = 10.0
TRANSFER_MS = 1.0


@dataclass(frozen=True)
class Way:
    """What a host does from one meeting to the next, before it computes for 10 ms."""

    pause_ms: float = 0.0  # in Python, before the step
    input_ms: float = 0.0  # waiting for a batch, in the step
    traced_ms: float = 0.0
    compute_ms: float = COMPUTE_MS

    @property
    def whole_ms(self) -> float:
        return self.pause_ms + self.input_ms + self.traced_ms + self.compute_ms


Job = Mapping[str, Sequence[Way]]  # for each host, its way to each meeting
PUNCTUAL = Way()


def steadily(way: Way, steps: int = 20) -> Sequence[Way]:
    return [way] * steps


def write_job(
    folder: Path,
    job: Job,
    ahead_s: Mapping[str, float] | None = None,
    begins_ms: Mapping[str, float] | None = None,
    clocks: bool = True,
    first_key: int = 100,
    group_size: int | None = None,
    transfer_ms: float = TRANSFER_MS,
) -> list[HostFile]:
    """One file for each host. `ahead_s`: by how much its clock is wrong; `begins_ms`: when its
    trace begins; `first_key`: of the collectives, which are never used twice in a job;
    `group_size`: how many take part in them; `transfer_ms`: what they take when all are there."""
    written = []
    for name, ways in job.items():
        begin_ms = (begins_ms or {}).get(name, 0.0)
        meetings = _meetings(job, transfer_ms)
        ends = [end - begin_ms for end in meetings]
        planes = [_host_plane(ways, ends, -begin_ms, first_key, group_size)]
        if clocks:
            ahead_ns = round((ahead_s or {}).get(name, 0.0) * 1e9 + begin_ms * 1e6)
            planes.append(clock(UNIX_NS + ahead_ns, (meetings[-1] - begin_ms) / 1e3))
        path = folder / f"{name}.xplane.pb"
        path.write_bytes(space(*planes))
        written.append(HostFile(name, str(path), "xplane", path.stat().st_size))
    return written


def _meetings(job: Job, transfer_ms: float) -> list[float]:
    """When each meeting ends: the last one to come sets the time for all."""
    ends, at = [], 0.0
    for ways in zip(*job.values(), strict=True):
        at += max(way.whole_ms for way in ways) + transfer_ms
        ends.append(at)
    return ends


def _host_plane(
    ways: Sequence[Way], ends: Sequence[float], at: float, first_key: int, group_size: int | None
) -> bytes:
    """`at`: when the first way begins, on the trace's clock."""
    python: list[Event] = [event("EagerExecute", 0, 0.01)]
    work: list[Event] = []
    reading: list[Event] = []
    met: list[Event] = []
    for number, (way, end) in enumerate(zip(ways, ends, strict=True)):
        start, run = at + way.pause_ms, number + 1
        at = end
        if start < 0:
            continue  # before the trace begins
        ready = start + way.traced_ms
        python += call(start, end, run=run, traced_ms=way.traced_ms)
        if way.input_ms:
            reading += wait(ready, ready + way.input_ms, run)
        computed = ready + way.input_ms + way.compute_ms
        work += ops(ready + way.input_ms, computed, run, *TRAIN_OPS)
        keys = {"step_id": run, "group_key": 1, "instance_key": first_key + number}
        met.append(event("CollectiveReduceV2", computed, end, **keys))
        if group_size is not None:
            sized = {"group_key": 1, "group_size": group_size}
            met.append(event("CollectiveExecutor::CompleteParams", computed, computed, **sized))
    return trainer(python, work, ("tf_data_iterator_get_next", reading), ("collective_ops", met))


def traces_of(files: Iterable[HostFile]) -> list[Trace]:
    return [read_trace(file) for file in files]


def timeline_of(folder: Path, traces: Iterable[Trace]) -> Timeline:
    return align([(ProfileSession("session", str(folder), ()), trace) for trace in traces], None)


def signals_for(folder: Path, job: Job, **how: Any) -> Signals:
    """`how`: the options of `write_job`."""
    timeline = timeline_of(folder, traces_of(write_job(folder, job, **how)))
    return signals_of(timeline, attribute(timeline))
