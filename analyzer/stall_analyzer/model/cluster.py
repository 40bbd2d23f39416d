"""Which hosts should train together, and what is known about each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from stall_analyzer.captures.capture_records import Task
from stall_analyzer.model.kinds import SizeSource
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import PS_PER_NS, PS_PER_S

# Workers of one job begin seconds apart or, if a scheduler looks for machines, minutes.
NOTICED_PS = 10 * PS_PER_S
PATIENCE_PS = 300 * PS_PER_S


@dataclass(frozen=True)
class Member:
    """A process of the cluster that left records."""

    name: str
    task: Task | None = None
    traced: bool = False
    captured: bool = False  # it left its own records
    first_ns: int = 0  # when its capture begins and ends, on the common clock
    last_ns: int = 0
    ended: str = ""  # how it ended, from its last record; empty if there is none
    error: str = ""
    blames: Task | None = None  # the peer that its error names
    steps: int | None = None  # how many it is known to have finished
    last_step_ns: int | None = None  # when a look found that its last step had ended
    epoch_steps: int | None = None  # in the first epoch, if it finished that


@dataclass(frozen=True)
class SettingsFault:
    """Something wrong with a cluster's configuration."""

    what: str  # a short title
    why: str  # the reason, and what it leads to


@dataclass(frozen=True)
class EndedFirst:
    """The member that ended before the others, which then could not continue."""

    name: str
    at_ps: int  # in window time
    at_unix_ns: int | None
    others_waited_ps: int  # until they also ended, on average
    how: str  # what is known about its end, and about theirs
    others: str


@dataclass(frozen=True)
class Cluster:
    """Who should have trained together, and what is known about each."""

    size: int = 0  # how many should train; 0 if there is no cluster
    size_source: SizeSource = "the files"
    members: tuple[Member, ...] = ()
    missing: tuple[str, ...] = ()  # tasks or hosts that left no records
    unreadable: tuple[str, ...] = ()  # hosts whose trace cannot be read
    steps: Mapping[str, int] = field(default_factory=dict)  # per host, in the first epoch
    faults: tuple[SettingsFault, ...] = ()
    still_runs: bool = False  # as far as is known
    ended_first: EndedFirst | None = None  # only if all of them had begun

    @property
    def waits_for_the_missing(self) -> bool:
        """Whether no member has made a step: otherwise all have joined, and only files are
        missing."""
        return (
            bool(self.missing)
            and all(member.captured for member in self.members)
            and not any(member.steps for member in self.members)
        )

    @property
    def in_vain(self) -> bool:
        """Whether they waited longer than workers of one job may be apart, or have given up."""
        if not self.waits_for_the_missing or self.others_waited_ps < NOTICED_PS:
            return False
        return not self.still_runs or self.others_waited_ps >= PATIENCE_PS

    @property
    def others_waited_ps(self) -> int:
        """How long the others waited for the member that ended first, or never came."""
        if self.ended_first is not None:
            return self.ended_first.others_waited_ps
        if not self.waits_for_the_missing:
            return 0
        waited = [member.last_ns - member.first_ns for member in self.members]
        return sum(waited) // len(waited) * PS_PER_NS
