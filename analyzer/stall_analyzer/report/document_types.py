"""The JSON document, key by key: the one definition of what a report says.

`make schema` generates schema.json, next to this file, from it, and the page's types from that. A
docstring or the comment after a key becomes its description there; `Annotated` holds further rules
of JSON Schema. Every key is always there; a value that may be unknown may be null. Only type
checkers import it: creating this many classes would add milliseconds to every start.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, TypedDict, get_args

from stall_analyzer.model.kinds import (
    Bucket,
    ClockSource,
    Framework,
    Knob,
    Level,
    PhaseName,
    Severity,
    SizeSource,
    Status,
    StepPhase,
    StepSource,
    WindowSource,
)

Ps: TypeAlias = Annotated[int, ("minimum", 0), ("description", "Picoseconds.")]
Count: TypeAlias = Annotated[int, ("minimum", 0)]
Positive: TypeAlias = Annotated[int, ("minimum", 1)]
Share: TypeAlias = Annotated[float, ("minimum", 0), ("maximum", 1)]
FindingId: TypeAlias = Annotated[str, ("pattern", "^ST[0-9]{3}$")]
Cause: TypeAlias = Annotated[
    str,
    ("description", "A bucket, a dot and what happened in it: compile.tracing."),
    ("pattern", rf"^({'|'.join(get_args(Bucket))})\.[a-z0-9_]+$"),
]
AllBuckets: TypeAlias = Annotated[
    dict[Bucket, Ps],
    ("description", "All nine buckets; they add up to exactly the time that they divide."),
    ("required", get_args(Bucket)),
]
BucketTimes: TypeAlias = Annotated[
    dict[Bucket, Positive], ("description", "Only the buckets that are not zero.")
]
CauseTimes: TypeAlias = dict[Cause, Ps]


class NoteEntry(TypedDict):
    level: Level
    text: str
    where: str  # A file, host or tag; never needed to understand the text.


class WindowEntry(TypedDict):
    """The first epoch: what the ledger divides."""

    start_unix_ns: int | None  # Null if the trace has no absolute clock.
    duration_ps: Ps
    epoch: Count | None  # Null if no training was found: the window is the whole trace.
    covered_ps: Ps  # How much of the window there is evidence for.
    source: WindowSource
    start_source: str  # What marked the beginning.
    end_source: str  # What marked the end.


class VerdictEntry(TypedDict):
    status: Status
    primary: Bucket
    sentence: str
    confidence: Share
    host: str | None  # The host that holds up the others; null if none does.
    # The evidence cannot decide between these buckets, most likely first; empty if it can.
    candidates: list[Bucket]


class PhaseEntry(TypedDict):
    start_ps: Ps
    end_ps: Ps
    name: PhaseName
    error_ps: Ps  # How far off the phase's end may be; 0 if it is exact.
    buckets_ps: BucketTimes


class StepEntry(TypedDict):
    start_ps: Ps
    end_ps: Ps
    index: Count
    phase: StepPhase
    source: StepSource  # What marked the step.
    buckets_ps: BucketTimes


class RangeEntry(TypedDict):
    low: Ps
    high: Ps


class EstimateEntry(TypedDict):
    """The whole first epoch as it probably was, if not all of it was traced. The run's own
    buckets_ps and causes_ps stay exact; views show the values given here, which have the same
    names."""

    buckets_ps: AllBuckets  # The likely values.
    causes_ps: CauseTimes
    one_time_ps: Ps
    recurring_ps: Ps
    ranges_ps: dict[Bucket, RangeEntry]  # For all buckets; nine out of ten hold the true value.
    rests_on: list[str]  # What the estimate is based on, in sentences.
    estimated_ps: Ps  # How much of the window was not traced.
    profiled_steps: Count  # Training steps that the estimate is based on.
    steps: Positive | None  # Training steps of the epoch; null if that is not known.


class LaterEpochsEntry(TypedDict):
    count: Count
    median_ps: Ps | None  # Null when there was no later epoch.


class ForecastEntry(RangeEntry):
    """How long an epoch takes now, and how long it should take after the changes."""

    now: Ps


class ChangeEntry(TypedDict):
    text: str
    before: str  # Code; empty if there is none to show.
    after: str
    turns: dict[Knob, str]  # Settings that it changes, and how; no other change reverses them.


class EvidenceEntry(TypedDict):
    host: str
    line: str
    start_ps: Ps
    end_ps: Ps
    label: str


class CodeLineEntry(TypedDict):
    """A line of the user's own code that took time, as a capture saw it run."""

    bucket: Bucket
    cause: Cause
    path: str
    line: Count
    function: str
    ps: Ps  # A part of the cause's time.
    source: str  # The line as it was when it ran; empty if that was not recorded.
    name: str  # The callback hook or traced function that it is part of; may be empty.
    background: bool  # It ran in another thread while training waited.


class StackEntry(TypedDict):
    """Python code that was seen running, and its part of a bucket's time."""

    bucket: Bucket
    frames: list[Count]  # Indices into `frames`, outermost first.
    ps: Ps


class StacksEntry(TypedDict):
    """What flame graphs are drawn from; only with a capture."""

    frames: list[str]  # path:line function
    users: list[Count]  # Indices of those in the user's own code.
    stacks: Annotated[list[StackEntry], ("maxItems", 300)]  # Costliest first.


class FindingSummaryEntry(TypedDict):
    id: FindingId
    name: str
    bucket: Bucket
    severity: Severity
    title: str
    lost_ps: Ps
    gain_ps: RangeEntry  # What the change should save in the first epoch.
    later_gain_ps: RangeEntry  # What it should save in each later epoch.
    confidence: Share


class FindingEntry(FindingSummaryEntry):
    blames: Annotated[list[Bucket], ("minItems", 1)]  # The buckets that lost_ps is a part of.
    estimated: bool  # Its times are scaled from the profiled steps to the whole epoch.
    later_gain_at_least: bool  # Later epochs are slower than the first; the change may save more.
    lines: list[CodeLineEntry]  # Lines of the user's code that it is about, costliest first.
    stack: list[str]  # The stack of the thread that proves it: path:line function, innermost first.
    explanation: str
    change: ChangeEntry
    evidence: list[EvidenceEntry]


class PlanEntry(TypedDict):
    """The changes worth making, in order, and what they save together. Time that several
    findings blame is counted once."""

    findings: Annotated[list[FindingId], ("minItems", 1)]  # Largest saving first.
    first_epoch_ps: ForecastEntry
    later_epoch_ps: ForecastEntry | None  # Null if there are none or all are slower than the first.


class HostLedgerEntry(TypedDict):
    host: str
    buckets_ps: AllBuckets
    covered_ps: Ps
    training_thread: str | None  # Its line in the trace; null if the host has no such thread.
    evidence: dict[str, str]
    notes: list[NoteEntry]


class HostClockEntry(TypedDict):
    """How a trace was aligned with those of other hosts."""

    source: ClockSource
    shared: Count  # How many collectives or steps were used to align it.
    ahead_ps: int | None  # How far its own clock is ahead of the common one; null if it has none.
    error_ps: Ps | None  # By how much the times of shared events still differ (median).


class TraceEntry(TypedDict):
    session: str  # As the Profile plugin names it.
    host: str
    start_ps: int  # Where its own time zero is in the window; negative if that is before it.
    clock: HostClockEntry


class LateHostEntry(TypedDict):
    host: str
    times: Count  # How many times it was the last to arrive.
    late_steps: Count  # Steps in which that mattered.
    cost_ps: Ps  # How long the others waited for it, on average.
    bucket: Bucket | None  # Where it spent more time than the others; null if that is not known.
    cause: Cause | None
    cause_ps: Ps
    once: bool  # Most of what made it late will not recur.


class LateStepEntry(TypedDict):
    step: Count | None  # Its index in `steps`; null between steps.
    host: str  # The last to arrive.
    cost_ps: Ps
    end_ps: int  # When it arrived.
    cause: Cause | None


class LatenessEntry(TypedDict):
    """Which hosts the others waited for, and how long."""

    meetings: Positive
    waited_ps: dict[str, Ps]  # Per host: how long it waited for others, in all.
    hosts: list[LateHostEntry]  # All hosts that were ever last, costliest first.
    steps: Annotated[list[LateStepEntry], ("maxItems", 500)]  # The costliest, oldest first.
    steps_left_out: Count


class MemberEntry(TypedDict):
    name: str  # As in `hosts`, if it was traced.
    traced: bool
    captured: bool  # It left its own records.
    steps: Count | None  # The steps it is known to have finished.
    last_unix_ns: int | None  # Its last sign of life, on the common clock.
    ended: str | None  # How it ended, in its own words; null if it left none.


class ClusterEntry(TypedDict):
    """Which hosts should have trained together, and what is known about each."""

    size: Annotated[int, ("minimum", 2)]
    size_source: SizeSource
    members: list[MemberEntry]
    missing: list[str]  # Those that left no records here.
    ended_first: str | None  # The member without which the others could not continue.
    ended_unix_ns: int | None
    others_waited_ps: Ps  # How long the others waited for the missing one, on average.


class ThreadEntry(TypedDict):
    """Python threads that were all in the same place when a capture last looked."""

    name: str
    count: Positive
    main: bool
    blamed: bool  # It holds up training.
    does: str  # The call that it is waiting in; empty if that is not known.
    place: str  # File and line in the user's own code, or else in a library.
    frames: list[str]  # path:line function, innermost first


class ModelPartEntry(TypedDict):
    """A layer, or a kind of op."""

    name: str
    ps: Ps  # Time of all threads that ran its ops.
    ops: Count


class NextStepEntry(TypedDict):
    topic: str
    helps: bool | None  # Whether it is worth trying; null if the log cannot show that.
    text: str


class ComputingEntry(TypedDict):
    """What the model's own computation consists of, and what could make it faster."""

    ops_ps: Ps  # Time of all threads that ran ops, as far as it was traced.
    layers: Annotated[list[ModelPartEntry], ("maxItems", 20)]  # Costliest first.
    kinds: Annotated[list[ModelPartEntry], ("maxItems", 20)]
    next_steps: list[NextStepEntry]


class PointEntry(TypedDict):
    at: int  # A step or epoch.
    value: float | None  # Null if it is NaN or infinite.


class LayerGradientsEntry(TypedDict):
    layer: str
    norms: Annotated[list[PointEntry], ("maxItems", 40)]


class LearningEntry(TypedDict):
    """How the run learned, in as many points as a chart can show."""

    per: Literal["step", "epoch"]  # What each point of `loss` is: a step or an epoch.
    loss: Annotated[list[PointEntry], ("maxItems", 310)]
    baseline: float | None  # The loss of the best answer that is the same for all inputs.
    baseline_words: str  # Which answer that is; empty if there is no baseline.
    gradients: list[LayerGradientsEntry]  # In the model's order; only with a capture.


class ReportEntry(TypedDict):
    """One run."""

    run: str  # As TensorBoard names it.
    folder: str  # The name of its folder, used for a run that TensorBoard names ".".
    attempt: Positive  # Counts restarts that wrote into the same directory.
    captured: bool  # Captured by StallCallback, watch or `stall-analyze capture`.
    sessions: list[str]  # As the Profile plugin names them.
    hosts: list[str]
    host: str | None  # The host that represents the run; null if there is no trace.
    framework: Framework  # The framework of the program that was recorded.
    window: WindowEntry
    verdict: VerdictEntry
    buckets_ps: AllBuckets
    causes_ps: CauseTimes
    estimate: EstimateEntry | None  # Null if everything was traced, or nothing is known.
    one_time_ps: Ps
    recurring_ps: Ps
    phases: list[PhaseEntry]
    steps: list[StepEntry]
    outside_steps_ps: BucketTimes  # Time outside all steps.
    later_epochs: LaterEpochsEntry
    findings: list[FindingEntry]
    plan: PlanEntry | None  # Null if there is nothing to save.
    host_ledgers: list[HostLedgerEntry]
    traces: list[TraceEntry]  # Each trace that was read.
    lateness: LatenessEntry | None  # Null if no two traced hosts were seen to synchronize.
    cluster: ClusterEntry | None  # Null if one process trained alone.
    # Lines of the user's code that took time, costliest first; only with a capture.
    lines: Annotated[list[CodeLineEntry], ("maxItems", 50)]
    stacks: StacksEntry | None  # Null if no capture sampled Python.
    threads: list[ThreadEntry]  # As a capture last saw them, the blamed one first.
    computing: ComputingEntry | None  # Null if the run is not healthy, or no op was traced.
    learning: LearningEntry | None  # Null if no loss was logged.
    evidence: dict[str, str]  # For each subject, one short sentence on what could be seen.
    notes: list[NoteEntry]


class WorstRunEntry(TypedDict):
    run: str
    attempt: Positive
    machine_ps: Ps


class CostlyRunEntry(WorstRunEntry):
    hosts: Positive
    status: Status
    primary: Bucket
    duration_ps: Ps
    estimated: bool  # Its lost time is estimated, because not all of the run was traced.
    sentence: str


class FleetStatusEntry(TypedDict):
    status: Status
    runs: Positive
    machine_ps: Ps


class FleetFindingEntry(TypedDict):
    id: FindingId
    name: str
    bucket: Bucket
    runs: Positive
    machine_ps: Ps  # Machine time lost in first epochs.
    gain_ps: RangeEntry  # Machine time.
    worst: WorstRunEntry


class FleetDayEntry(TypedDict):
    day: Annotated[str, ("pattern", "^[0-9]{4,}-[0-9]{2}-[0-9]{2}$")] | None
    statuses: dict[Status, Positive]
    lost_ps: Ps
    buckets_ps: AllBuckets  # Machine time.


class FleetErrorEntry(TypedDict):
    run: str
    attempt: Positive
    text: str


class FleetEntry(TypedDict):
    """Sums over the runs. `machine_ps` counts each host of a run, since all of its hosts
    wait when the run does."""

    runs: Count
    estimated_runs: Count  # Runs that were not fully traced: their times are estimated.
    hosts: Count
    statuses: list[FleetStatusEntry]  # Most common first; with the time of their first epochs.
    primaries: dict[Bucket, Positive]  # In how many runs each bucket costs the most.
    lost_ps: Ps  # Machine time that is neither work nor measurement nor unknown.
    buckets_ps: AllBuckets  # Machine time.
    causes_ps: CauseTimes  # Machine time, largest first.
    findings: list[FleetFindingEntry]  # Two findings may claim the same time: do not add them up.
    costliest_runs: list[CostlyRunEntry]  # Those that lost the most time; at most ten.
    days: list[FleetDayEntry]  # When first epochs began, in UTC; null for runs without a clock.
    runs_with_errors: Count
    errors: list[FleetErrorEntry]  # Some of these runs, with what could not be read.


class ExcessEntry(TypedDict):
    run: str
    attempt: Positive
    limit: str  # The limit, as it was given.
    measured: str


class ChangedEntry(TypedDict):
    run: str
    attempt: Positive
    status_before: Status
    status: Status
    before_ps: Ps  # How long the first epoch took in the baseline.
    now_ps: Ps
    grown_ps: dict[str, Ps]  # What takes longer: buckets, and `later epochs`.
    sentence: str  # How much slower or faster it is, and which causes explain that.


class Document(TypedDict):
    """What `stall-analyze PATH… --json` prints. Times are integer picoseconds from the window's
    start, half-open. New keys may be added without a new schema_version."""

    schema_version: Literal[1]
    tool_version: str
    runs: list[ReportEntry]
    notes: list[NoteEntry]  # What to know about the log directory as a whole.
    fleet: FleetEntry | None  # Sums over the runs, if there are several.
    over_limit: list[ExcessEntry] | None  # With --fail-over: the runs over a limit.
    worse: list[ChangedEntry] | None  # With --baseline: the runs that are worse than before.
    better: list[ChangedEntry] | None  # With --baseline: the runs that are better.
