"""What is said about a run: its findings, the plan, the verdict, and the report of it all."""

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
    """What to do about a finding. `before` and `after` are code, empty where no code says it."""

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
    once_an_epoch: bool = False  # by the training's own plan: once is enough to expect it again
    later_at_least: bool = False  # or more: later epochs are slower, for reasons not recorded
    confidence: float = 0.5
    fatal: bool = False  # training could not go on: nothing else matters
    evidence: tuple[Evidence, ...] = ()
    blames: tuple[Bucket, ...] = ()  # whose time is lost; its own bucket's where it says none
    estimated: bool = False  # its seconds are scaled from samples to the whole epoch
    by_clocks: bool = False  # they were taken by clocks of a capture, in all of the epoch
    lines: tuple[CodeLine, ...] = ()  # of the user's code that it is about, costliest first
    stack: tuple[str, ...] = ()  # lines of a thread's stack that prove it, innermost first
    # Who found it: not said by the detector but put in around it (detectors/registry.py).
    id: str = ""  # "ST104"
    name: str = ""  # "retracing"
    bucket: Bucket = "unknown"


@dataclass(frozen=True)
class Forecast:
    """How long an epoch takes now, and between what and what it will take."""

    now_ps: int
    low_ps: int
    high_ps: int


@dataclass(frozen=True)
class Plan:
    """All changes worth making, in order, and what they come to together."""

    findings: tuple[str, ...]  # their ids, most seconds first
    first_epoch: Forecast
    later_epoch: Forecast | None  # None where none is known, or all are slower than the first


@dataclass(frozen=True)
class Verdict:
    """What holds the run up, and whether to act, in one sentence."""

    status: Status
    primary: Bucket  # the bucket to act on, "compute" where there is nothing to act on
    sentence: str
    confidence: float
    host: str = ""  # the one that holds up the others, where it does
    # Buckets among which the evidence cannot decide, most likely first; empty where it can.
    candidates: tuple[Bucket, ...] = ()


@dataclass(frozen=True)
class LateReason:
    """What a host does longer than the others; no bucket where its ledger does not say."""

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
    cause: str  # what it did longer than the others; empty where its ledger does not say


@dataclass(frozen=True)
class Lateness:
    """Who made whom wait where several hosts meet."""

    meetings: int = 0
    waited_ps: Mapping[str, int] = field(default_factory=dict)  # how long each waited for others
    hosts: tuple[LateHost, ...] = ()  # all that ever came last, costliest first
    steps: tuple[LateStep, ...] = ()  # in order of time


@dataclass(frozen=True)
class SeenThread:
    """Threads that were all in the same place when a capture last looked."""

    name: str
    count: int
    main: bool
    blamed: bool  # it holds the training up
    does: str  # "waits in queue.Queue.get()"; empty where nothing says
    place: str  # "train.py:41": of the user's own code, or else of a library's
    frames: tuple[str, ...]  # "path:line function", innermost first


@dataclass(frozen=True)
class Report:
    """All that is known about one run's first epoch."""

    run: Run
    timeline: Timeline
    hosts: tuple[HostLedger, ...]
    ledger: Ledger  # of the host that trains; it stands for the run
    findings: tuple[Finding, ...]  # most worth first
    plan: Plan | None  # None where there is nothing to save
    verdict: Verdict
    notes: tuple[Note, ...]
    estimate: Estimate | None = None  # where not all of the epoch was traced
    lateness: Lateness = Lateness()
    cluster: Cluster | None = None  # None where one process trains
    stacks: tuple[CodeStack, ...] = ()  # of all Python that was seen to run, costliest first
    lines: tuple[CodeLine, ...] = ()  # of the user's code that time went to, costliest first
    threads: tuple[SeenThread, ...] = ()  # as a capture last saw them; the culprit first
    computing: Computing | None = None  # only of a healthy run
    learning: LearningCurves | None = None  # None where no loss was logged
