"""What a run must not exceed, for builds that should fail: `--fail-over input=20%`.

bucket or cause = share     of the first epoch: input=20%, compile.retracing=5%
bucket or cause = time      on one machine:     input=30s
epoch = time                the first epoch:    epoch=10m
status = word               never this verdict: status=stuck
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, cast

from stall_analyzer.batch.selection import parse_duration, parse_share
from stall_analyzer.errors import UsageError
from stall_analyzer.model.records import dataclass
from stall_analyzer.report.palette import BUCKET_COLORS, STATUS_COLORS

if TYPE_CHECKING:
    from stall_analyzer.model.kinds import Bucket
    from stall_analyzer.report.facts import Facts

BUCKETS, STATUSES = tuple(BUCKET_COLORS), tuple(STATUS_COLORS)  # causes.py would load numpy
EPOCH, STATUS = "epoch", "status"


@dataclass(frozen=True)
class Limit:
    """What a run must not exceed."""

    text: str  # as it was given
    what: str
    share: float | None = None
    seconds: float | None = None
    status: str = ""


@dataclass(frozen=True)
class Excess:
    """A run over a limit."""

    run: str
    attempt: int
    limit: str
    measured: str


@dataclass
class Limits:
    """All limits, and the runs that exceed them."""

    limits: Sequence[Limit]
    exceeded: list[Excess] = field(default_factory=list)

    def check(self, facts: Facts) -> None:
        for limit in self.limits:
            measured = over(limit, facts)
            if measured:
                excess = Excess(facts["run"], facts["attempt"], limit.text, measured)
                self.exceeded.append(excess)

    def in_order(self) -> list[Excess]:
        return sorted(self.exceeded, key=lambda one: (one.run, one.attempt, one.limit))


def parse(text: str) -> Limit:
    """Raises ValueError with a message for the command line."""
    what, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not a limit such as input=20%, epoch=10m or status=dead")
    if what == STATUS:
        if value not in STATUSES:
            raise ValueError(f"{value!r} is not a verdict; use one of {', '.join(STATUSES)}")
        return Limit(text, what, status=value)
    if what != EPOCH and what.partition(".")[0] not in BUCKETS:
        known = ", ".join((*BUCKETS, EPOCH, STATUS))
        raise ValueError(
            f"{what!r} cannot be limited; you can limit {known}, and causes such as compile.xla"
        )
    if value.endswith("%") and what != EPOCH:
        return Limit(text, what, share=_share_to_exceed(value))
    try:
        return Limit(text, what, seconds=parse_duration(value))
    except ValueError as error:
        share = "" if what == EPOCH else ", nor a share such as 20%"
        raise ValueError(f"{error}{share}") from None


def _share_to_exceed(value: str) -> float:
    """A share that no run can exceed would never fail a build."""
    share = parse_share(value)
    if share >= 1:
        raise ValueError(
            f"no run can spend more than {value} of its first epoch: use less than 100%"
        )
    return share


def check_causes(limits: Sequence[Limit]) -> None:
    """A cause that does not exist would never be over its limit, and the build would never fail."""
    of_causes = [limit for limit in limits if "." in limit.what]
    if not of_causes:
        return
    from stall_analyzer.model.causes import CAUSES  # noqa: PLC0415  numpy

    for limit in of_causes:
        if limit.what not in CAUSES:
            bucket = limit.what.partition(".")[0]
            there_are = ", ".join(cause for cause in CAUSES if cause.startswith(f"{bucket}."))
            raise UsageError(f"--fail-over: there is no cause {limit.what}; use one of {there_are}")


def over(limit: Limit, facts: Facts) -> str:
    """What was measured, if that is more than the limit; else empty."""
    from stall_analyzer.model.format import percent, seconds  # noqa: PLC0415  numpy
    from stall_analyzer.model.units import PS_PER_S  # noqa: PLC0415

    window_ps = facts["duration_ps"]
    if limit.what == STATUS:
        return limit.status if facts["status"] == limit.status else ""
    if limit.what == EPOCH:
        ps = window_ps
    elif "." in limit.what:
        ps = facts["causes_ps"].get(limit.what, 0)
    else:
        ps = facts["buckets_ps"][cast("Bucket", limit.what)]
    how = ", estimated" if facts["estimated"] and limit.what != EPOCH else ""
    if limit.share is not None:
        over_share = ps > limit.share * window_ps
        return f"{percent(ps, window_ps)}, {seconds(ps)}{how}" if over_share else ""
    over_time = limit.seconds is not None and ps > limit.seconds * PS_PER_S
    return f"{seconds(ps)}{how}" if over_time else ""
