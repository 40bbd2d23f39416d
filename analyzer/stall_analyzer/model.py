"""The data that flows between the stages: frozen dataclasses over numpy columns.

Times are integers of picoseconds, intervals are half-open, and names carry the unit.
Floats appear only in views and in confidences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from stall_analyzer.capture_log import CaptureLog

Int64s: TypeAlias = npt.NDArray[np.int64]
Int32s: TypeAlias = npt.NDArray[np.int32]
UInt8s: TypeAlias = npt.NDArray[np.uint8]
UInt32s: TypeAlias = npt.NDArray[np.uint32]
Float64s: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

PS_PER_NS = 1_000
PS_PER_US = 1_000_000
PS_PER_MS = 1_000_000_000
PS_PER_S = 1_000_000_000_000

NEVER = -(1 << 62)  # a time at which something would have happened, but did not


@dataclass(frozen=True)
class Note:
    """Something the reader of a report must know: what was missing, cut or assumed."""

    level: str  # "info" | "warning" | "error"
    text: str
    where: str = ""  # a file, host or tag; never needed to understand `text`
    may_pass: bool = False  # reading the same files again may give another result


# ---------------------------------------------------------------- discover


@dataclass(frozen=True)
class HostFile:
    """One host's trace inside a session."""

    host: str
    path: str
    format: str  # "xplane" | "trace_json"
    size: int
    stamp: str = ""  # changes whenever the file does; empty where nothing tells


@dataclass(frozen=True)
class Session:
    """One profile capture. `id` is the string that the Profile plugin shows."""

    id: str
    path: str
    hosts: tuple[HostFile, ...]
    exported_unix_s: int | None = None  # from its name, where the writer's time zone is known


@dataclass(frozen=True)
class EventFile:
    path: str
    role: str  # "train" | "validation" | "run" (neither folder name)
    size: int
    task: str = ""  # of the process, where it is a capture in a cluster
    stamp: str = ""
    parent: int | None = None  # pid of the process that started it, where it is a capture


@dataclass(frozen=True)
class DumpFiles:
    """One file set of the debugger (tfdbg2): `<prefix>.<part>` for each part that exists."""

    prefix: str
    parts: tuple[str, ...]  # "execution", "graphs" …
    start_unix_s: int
    size: int
    stamp: str = ""


@dataclass(frozen=True)
class Run:
    """One training attempt: a run directory with its train/ and validation/ children.

    `attempt` counts restarts that wrote into the same directory, from 1.
    """

    name: str  # as TensorBoard names it, "." for the logdir itself
    path: str
    sessions: tuple[Session, ...]
    event_files: tuple[EventFile, ...]
    attempt: int = 1
    notes: tuple[Note, ...] = ()
    dumps: tuple[DumpFiles, ...] = ()
    changed_unix_s: float | None = None  # the newest of its files; None where nothing tells

    @property
    def size(self) -> int:
        """Bytes to be read."""
        traces = sum(host.size for session in self.sessions for host in session.hosts)
        dumps = sum(dump.size for dump in self.dumps)
        return traces + dumps + sum(file.size for file in self.event_files)


# ---------------------------------------------------------------- decode

StatValue: TypeAlias = "int | float | str | bytes"


@dataclass(frozen=True)
class OpCost:
    """What one execution of a device's op costs, by the compiler's account."""

    memory_bytes: int  # read from and written to the device's main memory


@dataclass(frozen=True)
class Plane:
    name: str
    stats: Mapping[str, StatValue]
    op_costs: Mapping[str, OpCost] = field(default_factory=dict)  # by name of the event


@dataclass(frozen=True)
class Line:
    plane: int  # index into Trace.planes
    id: int
    name: str  # display name where there is one
    first_event: int  # its rows in Events are [first_event, last_event)
    last_event: int


@dataclass(frozen=True)
class Events:
    """Kept events, ordered by line, then start, then longest first.

    `parent` is the row of the innermost kept event on the same line that contains this one, or
    -1. Short or uninteresting events are folded: they have no row, but `folded` of the innermost
    kept event around them carries the bits of what was folded into it (see vocabulary.py), and
    the totals in `Trace.totals` count them.
    """

    start_ps: Int64s
    duration_ps: Int64s
    line: Int32s
    name: Int32s  # index into Trace.names
    parent: Int32s
    folded: UInt32s

    @property
    def end_ps(self) -> Int64s:
        return self.start_ps + self.duration_ps

    def __len__(self) -> int:
        return len(self.start_ps)


@dataclass(frozen=True)
class StatColumn:
    """One kind of stat over the kept events that carry it, ordered by event row.

    Integers are stored as they are (unsigned ones wrapped to int64); for text, `values` are
    indices into Trace.strings; for doubles, `values` hold the IEEE bits.
    """

    event: Int32s
    values: Int64s
    kind: str  # "int" | "text" | "double"


@dataclass(frozen=True)
class NameTotals:
    """Per event name, over all events of the file, kept or folded (not dropped)."""

    count: Int64s
    total_ps: Int64s
    self_ps: Int64s


@dataclass(frozen=True)
class Trace:
    """One host's trace. `start_ps` of its events count from `base_unix_ns` or, where the trace
    has no absolute clock, from its own beginning (`base_unix_ns` is None)."""

    host: str
    path: str
    planes: tuple[Plane, ...]
    lines: tuple[Line, ...]
    names: tuple[str, ...]
    strings: tuple[str, ...]
    events: Events
    stats: Mapping[str, StatColumn]
    totals: NameTotals
    base_unix_ns: int | None
    stop_unix_ns: int | None  # when profiling ended, where the trace says so
    errors: tuple[str, ...] = ()  # XSpace.errors: what the profiler itself complained about
    notes: tuple[Note, ...] = ()
    is_cut: bool = False  # the file ends early

    def read(self) -> Trace:
        return self


class TraceSource(Protocol):
    """A trace that may have to be read first: of a large cluster not all fit into memory."""

    @property
    def host(self) -> str: ...

    @property
    def path(self) -> str: ...

    def read(self) -> Trace: ...


# ---------------------------------------------------------------- events


@dataclass(frozen=True)
class Series:
    """A scalar tag over time, in the order written."""

    step: Int64s
    wall_ns: Int64s
    value: Float64s

    def __len__(self) -> int:
        return len(self.step)


@dataclass(frozen=True)
class KerasConfig:
    """What the TensorBoard callback stored of the model; None where it did not say."""

    wall_ns: int
    model_class: str
    layers: tuple[Mapping[str, object], ...]  # class_name, name, activation, units, dtype …
    optimizer: str | None = None
    learning_rate: float | None = None
    loss: str | None = None
    run_eagerly: bool | None = None
    jit_compile: bool | str | None = None
    steps_per_execution: int | None = None
    optimizer_config: Mapping[str, object] = field(default_factory=dict)
    compile_config: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class HistogramSums:
    """What the histograms of one tag come to."""

    records: int = 0
    zero_run: int = 0  # of the last records so many hold nothing but zeros
    same_run: int = 0  # … are the same to the last bit


@dataclass(frozen=True)
class Capture(CaptureLog):
    """What StallCallback or watch recorded of one process: records, and scalars of its own."""

    series: Mapping[str, Series] = field(default_factory=dict)  # by tag, without "stall/"


@dataclass(frozen=True)
class EventLog:
    """Scalars and wall times of a run's event files."""

    train: Mapping[str, Series]
    validation: Mapping[str, Series]
    keras: KerasConfig | None
    first_wall_ns: int | None  # earliest and latest record of any kind
    last_wall_ns: int | None
    graph_wall_ns: int | None  # when a graph was written
    records: int
    notes: tuple[Note, ...] = ()
    histograms: Mapping[str, HistogramSums] = field(default_factory=dict)  # of training
    captures: tuple[Capture, ...] = ()  # one per process, the leader of a cluster first
    read_ns: int | None = None  # when the files were read

    @property
    def capture(self) -> Capture | None:
        """The one that stands for the run."""
        return self.captures[0] if self.captures else None


# ---------------------------------------------------------------- tfdbg

OpKey: TypeAlias = tuple[str, str]  # id of the graph, name of the op
TensorKey: TypeAlias = tuple[str, str, int]  # and which of its outputs


@dataclass(frozen=True)
class CodeLine:
    """A line of the user's own code."""

    path: str
    line: int
    function: str
    text: str = ""  # the line itself, where the dump holds its file


@dataclass(frozen=True)
class DumpedOp:
    """An op as it was put into its graph, or one eager execution of it (then `graph` is "")."""

    type: str
    graph: str  # name of the graph
    inputs: tuple[str, ...]  # "name:output"
    line: CodeLine | None = None


@dataclass(frozen=True)
class DumpedTensor:
    """All that was dumped of one output of an op."""

    records: int
    first_ns: int  # its first record
    bad_ns: int | None = None  # when it first was not finite
    after_bad_ns: int | None = None  # its next record
    has_nan: bool = False  # then; both are True where the dump does not tell them apart
    has_inf: bool = False
    zero_share: float | None = None  # of its elements, over all records; None: not dumped
    all_zero_run: int = 0  # of its last records so many hold nothing but zeros
    nearly_zero_run: int = 0  # … hardly anything but zeros


@dataclass(frozen=True)
class DebugDump:
    """What the debugger saw of a run's tensors."""

    mode: str  # how much was dumped of each tensor, as TensorFlow calls it
    looked_at: int  # records that tell whether a tensor was finite
    start_ns: int
    tensors: Mapping[TensorKey, DumpedTensor]
    ops: Mapping[OpKey, DumpedOp]
    call_ends_ns: Int64s  # when calls of tf.functions returned
    notes: tuple[Note, ...] = ()


# ---------------------------------------------------------------- align


@dataclass(frozen=True)
class FunctionRuns:
    """Runs of graph functions that the training thread waited for, ordered by id.

    `id` is the executor's step id: every event that worked for the run carries it, on any thread.
    """

    id: Int64s
    row: Int64s  # the event in which the training thread waits
    start_ps: Int64s
    end_ps: Int64s
    launch_ps: Int64s  # when the executor was started
    bits: UInt32s  # what its ops were (vocabulary.BIT_*)
    call: Int32s  # index into Calls, -1 outside of any tf.function call


@dataclass(frozen=True)
class Calls:
    """Outermost tf.function calls on the training thread, in order."""

    row: Int64s
    start_ps: Int64s
    end_ps: Int64s
    concrete: Int32s  # name index of the graph that ran, -1 where none did
    traced: Bools
    bits: UInt32s


@dataclass(frozen=True)
class TrainingThread:
    line: int  # index into Trace.lines
    calls: Calls
    runs: FunctionRuns


@dataclass(frozen=True)
class Step:
    """One call of the training step (or of several, with steps_per_execution)."""

    index: int
    start_ps: int
    end_ps: int
    phase: str  # "training" | "validation"
    source: str  # "marker" | "function" | "device" | "events"


@dataclass(frozen=True)
class Phase:
    name: str  # "startup" | "training" | "validation" | "epoch_end"
    start_ps: int
    end_ps: int


@dataclass(frozen=True)
class Window:
    """The first epoch. Its own times count from `start_ps` of the timeline's clock."""

    start_unix_ns: int | None
    duration_ps: int
    start_source: str  # how each end was found, in words
    end_source: str
    epoch: int | None = 0  # None: no training was found, the window is the whole trace


@dataclass(frozen=True)
class HostClock:
    """How a trace found its place beside those of the other hosts."""

    source: str  # "own clock" | "collectives" | "steps" | "session name" | "none"
    shared: int = 0  # collectives or steps that it was set by
    ahead_ps: int | None = None  # of the common clock; None where it has no clock of its own
    error_ps: int | None = None  # by how much what is shared still disagrees, in the median


@dataclass(frozen=True)
class TracedSteps:
    count: int
    last_start_ps: int  # of the last one, in window time


@dataclass(frozen=True)
class AlignedTrace:
    """A trace on the window's clock: window time = event time + shift_ps."""

    source: TraceSource
    session: str
    shift_ps: int
    covered_ps: tuple[int, int]  # what the profiler recorded, clipped to the window
    training: TrainingThread | None
    eager: bool = False  # it trains op by op, without tf.function
    clock: HostClock = HostClock("own clock")
    steps: TracedSteps | None = None  # that train, and lie in the window
    cluster_hosts: int | None = None  # that its collectives need, itself among them
    is_cut: bool = False  # the file ends early

    @property
    def host(self) -> str:
        return self.source.host

    @property
    def path(self) -> str:
        return self.source.path

    @property
    def trace(self) -> Trace:
        return self.source.read()


@dataclass(frozen=True)
class Meetings:
    """Collectives in which several of the traced hosts took part, in order of time.

    A row is a meeting, a column a host; NEVER where the host was not seen in it.
    """

    hosts: tuple[str, ...]
    arrived_ps: Int64s  # when the host was ready for it, in window time
    ended_ps: Int64s

    def __len__(self) -> int:
        return len(self.arrived_ps)


@dataclass(frozen=True)
class Timeline:
    window: Window
    traces: tuple[AlignedTrace, ...]
    steps: tuple[Step, ...]
    phases: tuple[Phase, ...]
    later_epochs_ps: tuple[int, ...]
    events: EventLog | None
    notes: tuple[Note, ...] = ()
    dump: DebugDump | None = None
    training_steps: int | None = None  # how many the epoch had; `steps` need not be all of them
    meetings: Meetings | None = None  # None where no two hosts were seen to meet
    unread_hosts: tuple[str, ...] = ()  # whose traces could not be read


# ---------------------------------------------------------------- attribute


@dataclass(frozen=True)
class Ledger:
    """Segments that tile the window: segment i is [bounds_ps[i], bounds_ps[i + 1]).

    `cause` indexes causes.CAUSES; `one_time` says whether the segment belongs to the first epoch
    alone. The sums below are exact because they are sums of the tiles.
    """

    bounds_ps: Int64s
    cause: UInt8s
    one_time: Bools


@dataclass(frozen=True)
class HostLedger:
    """One host's ledger, from all sessions that saw a part of the window."""

    host: str
    ledger: Ledger
    covered_ps: int
    training_thread: str | None
    evidence: Mapping[str, str]  # per subject one sentence on what could be seen
    notes: tuple[Note, ...] = ()
