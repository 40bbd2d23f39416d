"""What is said about a run: its findings, the plan, the verdict, and the report of it all."""

from __future__ import annotations

from dataclasses import dataclass

from stall_analyzer.model import HostLedger, Ledger, Note, Run, Timeline
from stall_analyzer.sampling import Sample


@dataclass(frozen=True)
class Evidence:
    """A stretch of a line that proves a finding, in window time."""

    host: str
    line: str
    start_ps: int
    end_ps: int
    label: str


@dataclass(frozen=True)
class Change:
    """What to do about a finding. `before` and `after` are code, empty where no code says it."""

    text: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Gain:
    """Picoseconds that the change should win, as a range."""

    low_ps: int = 0
    high_ps: int = 0


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong (or, as a note, worth knowing), the change to make, and its worth."""

    id: str  # "ST104"
    name: str  # "retracing"
    bucket: str
    severity: str  # "act" | "consider" | "note"
    title: str
    explanation: str
    change: Change
    lost_ps: int = 0
    gain: Gain = Gain()  # in the first epoch
    later_gain: Gain = Gain()  # in each later epoch
    confidence: float = 0.5
    evidence: tuple[Evidence, ...] = ()
    estimated: bool = False  # its seconds are scaled from samples to the whole epoch


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
    later_epoch: Forecast | None  # None where no later epoch is known


@dataclass(frozen=True)
class Verdict:
    status: str  # healthy | slow_once | slow_always | learning_nothing | stuck | dead | unknown
    primary: str  # the bucket to act on, "compute" where there is nothing to act on
    sentence: str
    confidence: float


@dataclass(frozen=True)
class Report:
    """All that is known about one run's first epoch."""

    run: Run
    timeline: Timeline
    hosts: tuple[HostLedger, ...]
    ledger: Ledger  # of the host that trains; it stands for the run
    findings: tuple[Finding, ...]  # most worth first
    plan: Plan | None  # None where there is nothing to win
    verdict: Verdict
    notes: tuple[Note, ...]
    sample: Sample | None = None  # of an epoch that was profiled in samples
