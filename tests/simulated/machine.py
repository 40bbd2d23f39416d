"""A host and its accelerators, as CUDA works: the host launches, streams run what was launched.

Only what happens is here, and why: which thread did what, and when each stream worked. Nothing of
it knows how a profiler writes it down (forms.py) or how the analyzer reads it. Times are in
nanoseconds.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias

US = 1_000
MS = 1_000_000

Bucket: TypeAlias = str
# What the host's training thread is doing.
HostWork: TypeAlias = Literal[
    "python", "tracing", "ready", "wait for input", "launch", "xla", "kernel code",
    "wait for memory", "wait for device", "op on the CPU",
]  # fmt: skip
Stream: TypeAlias = Literal["compute", "to device", "from device"]
Kind: TypeAlias = Literal["kernel", "trial", "collective", "to device", "from device", "infeed"]

LAUNCH = 5 * US  # the host needs for one kernel
LATENCY = 4 * US  # until the kernel begins on a free stream
QUEUE = 1_000  # launches that may be ahead of the device: then the host waits

# Which bucket the time belongs to while the host is busy and the device has nothing to do.
WHOSE: dict[HostWork, Bucket] = {
    "python": "host",
    "tracing": "compile",
    "ready": "compile",
    "wait for input": "input",
    "launch": "host",
    "xla": "compile",
    "kernel code": "compile",
    "wait for memory": "memory",
    "op on the CPU": "host",
    "wait for device": "host",  # nothing runs, and nobody has noticed yet
}
OF_DEVICE: dict[Kind, Bucket] = {
    "kernel": "compute",
    "trial": "compile",  # run to be timed: its result is thrown away
    "collective": "communication",
    "to device": "input",
    "from device": "memory",
    "infeed": "input",
}


@dataclass(frozen=True)
class Span:
    start: int
    end: int


@dataclass(frozen=True)
class Activity(Span):
    """Of the training thread."""

    work: HostWork
    call: int  # of the training function; -1: between two


@dataclass(frozen=True)
class Work(Span):
    """Of a device."""

    device: int
    stream: Stream
    kind: Kind
    name: str
    moved_bytes: int = 0
    pinned: bool = True
    blocking: bool = False
    launched: int = 0


@dataclass(frozen=True)
class Call(Span):
    number: int
    traced: bool
    xla: bool


@dataclass
class Machine:
    """What has happened so far. `jitter`: how far durations scatter, as a share of them."""

    devices: int = 1
    jitter: float = 0.0
    seed: int = 0
    now: int = 0
    activities: list[Activity] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._free: dict[tuple[int, Stream], int] = defaultdict(int)
        self._ready: dict[int, int] = defaultdict(int)  # when a device has its batch
        self._call = -1
        self._began, self._traced, self._xla = 0, False, False

    def lasting(self, duration: float) -> int:
        if not self.jitter:
            return round(duration)
        scatter = self._random.gauss(-(self.jitter**2) / 2, self.jitter)
        return max(round(duration * math.exp(scatter)), 1)

    # ------------------------------------------------------------ the training thread

    def host(self, work: HostWork, duration: float) -> None:
        self._until(work, self.now + self.lasting(duration))

    def _until(self, work: HostWork, end: int) -> None:
        if end > self.now:
            self.activities.append(Activity(self.now, end, work, self._call))
            self.now = end

    def begin_call(self, *, traced: bool = False, xla: bool = False) -> None:
        self._call, self._began = len(self.calls), self.now
        self._traced, self._xla = traced, xla

    def end_call(self) -> None:
        self.calls.append(Call(self._began, self.now, self._call, self._traced, self._xla))
        self._call = -1

    def synchronize(self) -> None:
        """A value is needed: the host waits until all streams are done."""
        self._until("wait for device", max(self._free.values(), default=0))

    def synchronize_trial(self) -> None:
        """The host waits for a kernel that it times, to find out which one is quickest."""
        self._until("kernel code", max(self._free.values()))

    # ------------------------------------------------------------ what it gives to devices

    def kernel(self, name: str, duration: float, device: int = 0, kind: Kind = "kernel") -> None:
        self._throttle(device)
        self.host("kernel code" if kind == "trial" else "launch", LAUNCH)
        at_least = max(self._ready[device], self._free[device, "compute"])
        start = max(self.now + LATENCY, at_least)
        self._run(Work(start, start + self.lasting(duration), device, "compute", kind, name,
                       launched=self.now))  # fmt: skip

    def copy(
        self, kind: Literal["to device", "from device"], moved_bytes: int, duration: float,
        *, device: int = 0, pinned: bool = True, blocking: bool = False,
    ) -> None:  # fmt: skip
        """The next kernels need what is copied to the device; a copy back needs the kernels."""
        self.host("launch", LAUNCH)
        after = self._free[device, "compute"] if kind == "from device" else 0
        start = max(self.now + LATENCY, self._free[device, kind], after)
        end = start + self.lasting(duration)
        self._run(Work(start, end, device, kind, kind, kind, moved_bytes, pinned, blocking,
                       self.now))  # fmt: skip
        if kind == "to device":
            self._ready[device] = end
        if blocking:
            self._until("wait for device", end)

    def all_reduce(self, duration: float) -> None:
        """It begins on each device when that gets to it, and ends on all at once."""
        begins = []
        for device in range(self.devices):
            self.host("launch", LAUNCH)
            begins.append(max(self.now + LATENCY, self._free[device, "compute"]))
        end = max(begins) + self.lasting(duration)
        for device, start in enumerate(begins):
            self._run(Work(start, end, device, "compute", "collective", "all-reduce",
                           launched=self.now))  # fmt: skip

    def infeed(self, duration: float, device: int = 0) -> None:
        """A program on a TPU asks the host for its next batch, and waits until it comes."""
        start = max(self.now + LATENCY, self._free[device, "compute"])
        self._run(Work(start, start + self.lasting(duration), device, "compute", "infeed",
                       "infeed", launched=self.now))  # fmt: skip

    def _run(self, work: Work) -> None:
        self.work.append(work)
        self._free[work.device, work.stream] = work.end

    def _throttle(self, device: int) -> None:
        """A full queue takes no more: the host waits for the oldest launch in it."""
        mine = [w.end for w in self.work[-QUEUE * self.devices :] if w.device == device]
        if len(mine) >= QUEUE:
            self._until("wait for device", mine[-QUEUE])

    # ------------------------------------------------------------ the answer

    def truth(self, begin: int, end: int) -> dict[Bucket, int]:
        """Whose time it was, as the usual device and the training thread had it.

        While the device computes, training goes on; while it does something else, that holds it
        up; while it does nothing, what the host is at.
        """
        changes = {begin, end}
        mine = self._of_usual_device()
        for span in (*mine, *self.activities):
            changes |= {span.start, span.end}
        ordered = sorted(at for at in changes if begin <= at <= end)
        device = _Sweep(mine)
        host = _Sweep(self.activities)
        found: dict[Bucket, int] = defaultdict(int)
        for start, stop in pairwise(ordered):
            found[_whose(device.at(start), host.at(start))] += stop - start
        return dict(found)

    def _of_usual_device(self) -> list[Work]:
        """Of several, in each step the one in the middle by when it came to the collective."""
        meetings: dict[int, list[Work]] = defaultdict(list)
        for work in self.work:
            if work.kind == "collective":
                meetings[work.end].append(work)
        found, since = [], 0
        for until, met in sorted(meetings.items()):
            met.sort(key=lambda work: work.start)
            usual = met[(len(met) - 1) // 2].device
            found += [w for w in self.work if w.device == usual and since <= w.start < until]
            since = until
        return [*found, *(w for w in self.work if w.device == 0 and w.start >= since)]


class _Sweep:
    """Asked at one instant after the other."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._waiting = sorted(spans, key=lambda span: -span.start)
        self._under_way: list[Span] = []

    def at(self, time: int) -> list[Span]:
        while self._waiting and self._waiting[-1].start <= time:
            self._under_way.append(self._waiting.pop())
        self._under_way = [span for span in self._under_way if span.end > time]
        return self._under_way


def _whose(device: list[Span], host: list[Span]) -> Bucket:
    kinds = {work.kind for work in device if isinstance(work, Work)}
    for kind, bucket in OF_DEVICE.items():
        if kind in kinds:
            return bucket
    return next((WHOSE[a.work] for a in host if isinstance(a, Activity)), "host")
