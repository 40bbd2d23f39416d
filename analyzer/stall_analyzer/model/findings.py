"""What is said about a run: its findings, the plan, the verdict, and the whole report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from stall_analyzer.model.cluster import Cluster
from stall_analyzer.model.code_lines import CodeLine, CodeStack
from stall_analyzer.model.estimate import Estimate
from stall_analyzer.model.kinds import Bucket, Knob, Severity, Status
from stall_analyzer.model.learning_curves import LearningCurves
from stall_analyzer.model.ledger import HostLedger, Ledger
from stall_analyzer.model.model_parts import Computing
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import Run
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.units import Int64s


@dataclass(frozen=True)
class Evidence:
    """A stretch of a line that proves a finding, in window time."""

    host: str
    line: str
    start_ps: int
    end_ps: int
    label: str


@dataclass(frozen=True)
class Turn:
    """A knob that a change turns: to a value, or "up" and "down", "on" and "off"."""

    knob: Knob
    to: str


@dataclass(frozen=True)
class Change:
    """What to do about a finding. `before` and `after` are code, and may be empty."""

    text: str
    before: str = ""
    after: str = ""
    turns: tuple[Turn, ...] = ()  # what another change might turn the other way


@dataclass(frozen=True)
class Gain:
    """Picoseconds that the change should save, as a range."""

    low_ps: int = 0
    high_ps: int = 0

    def __add__(self, other: Gain) -> Gain:
        return Gain(self.low_ps + other.low_ps, self.high_ps + other.high_ps)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong (or, as a note, worth knowing), the change to make, and its worth."""

    severity: Severity
    title: str
    explanation: str
    change: Change
    lost_ps: int = 0
    gain: Gain = Gain()  # in the first epoch
    later_gain: Gain = Gain()  # in each later epoch
    once_an_epoch: bool = False  # it happens in every epoch by design, so seeing it once is enough
    # It may be more: later epochs are slower, for reasons that were not recorded.
    later_at_least: bool = False
    confidence: float = 0.5
    fatal: bool = False  # training could not continue: nothing else matters
    evidence: tuple[Evidence, ...] = ()
    blames: tuple[Bucket, ...] = ()  # whose time is lost; if empty, its own bucket's
    estimated: bool = False  # its times are scaled from samples to the whole epoch
    by_clocks: bool = False  # they were measured by a capture's clocks, over the whole epoch
    lines: tuple[CodeLine, ...] = ()  # the user's lines that it is about, costliest first
    stack: tuple[str, ...] = ()  # lines of a thread's stack that prove it, innermost first
    # What found it: not set by the detector but added by detectors/registry.py.
    id: str = ""  # "ST104"
    name: str = ""  # "retracing"
    bucket: Bucket = "unknown"


@dataclass(frozen=True)
class Forecast:
    """How long an epoch takes now, and the range in which it will be."""

    now_ps: int
    low_ps: int
    high_ps: int


@dataclass(frozen=True)
class Plan:
    """All changes worth making, in order, and what they save together."""

    findings: tuple[str, ...]  # their ids, most seconds first
    first_epoch: Forecast
    later_epoch: Forecast | None  # None if there are none, or if all are slower than the first


@dataclass(frozen=True)
class Verdict:
    """What holds up the run, and whether to act, in one sentence."""

    status: Status
    primary: Bucket  # the bucket to act on, or "compute" if there is nothing to act on
    sentence: str
    confidence: float
    host: str = ""  # the one that holds up the others, if there is one
    # Buckets between which the evidence cannot decide, most likely first; empty if it can.
    candidates: tuple[Bucket, ...] = ()


@dataclass(frozen=True)
class LateReason:
    """What a host spends more time on than the others; no bucket if its ledger does not say."""

    bucket: Bucket | None = None
    cause: str = ""
    ps: int = 0


@dataclass(frozen=True)
class LateHost:
    """A host that made the others wait."""

    host: str
    times: int  # meetings to which it came last
    late_steps: int  # steps in which that was felt
    cost_ps: int  # what the others waited for it, on average
    reason: LateReason
    once: bool  # most of it will not come again
    start_ps: Int64s  # when the others waited for it
    end_ps: Int64s


@dataclass(frozen=True)
class LateStep:
    """A step in which one host made the others wait."""

    step: int  # index of the timeline's step; -1 between steps
    host: str
    cost_ps: int
    end_ps: int  # when it came
    cause: str  # what it spent more time on than the others; empty if its ledger does not say


@dataclass(frozen=True)
class Lateness:
    """Who made whom wait when several hosts meet."""

    meetings: int = 0
    waited_ps: Mapping[str, int] = field(default_factory=dict)  # how long each waited for others
    hosts: tuple[LateHost, ...] = ()  # all hosts that were ever last, costliest first
    steps: tuple[LateStep, ...] = ()  # in order of time


@dataclass(frozen=True)
class SeenThread:
    """Threads that were all in the same place when a capture last looked."""

    name: str
    count: int
    main: bool
    blamed: bool  # it holds up training
    does: str  # "is waiting in queue.Queue.get()"; empty if nothing says
    place: str  # "train.py:41", in the user's own code or else in a library
    frames: tuple[str, ...]  # "path:line function", innermost first


@dataclass(frozen=True)
class Report:
    """Everything that is known about one run's first epoch."""

    run: Run
    timeline: Timeline
    hosts: tuple[HostLedger, ...]
    ledger: Ledger  # the ledger of the host that represents the run
    findings: tuple[Finding, ...]  # most worth acting on first
    plan: Plan | None  # None if there is nothing to save
    verdict: Verdict
    notes: tuple[Note, ...]
    estimate: Estimate | None = None  # if not all of the epoch was traced
    lateness: Lateness = Lateness()
    cluster: Cluster | None = None  # None if one process trains
    stacks: tuple[CodeStack, ...] = ()  # all Python code that was seen running, costliest first
    lines: tuple[CodeLine, ...] = ()  # the user's lines that took time, costliest first
    threads: tuple[SeenThread, ...] = ()  # as a capture last saw them; the culprit first
    computing: Computing | None = None  # only for a healthy run
    learning: LearningCurves | None = None  # None if no loss was logged
