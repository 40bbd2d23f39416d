"""What all detectors share: the form of their manual pages, and how a finding is made.

The docstring of a detector begins with one line that says what it finds, and then has the headings
of manual.py, in that order, each followed by text. The command line, docs/ and the tab show it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import getdoc
from types import ModuleType

from stall_analyzer.detectors.gains import less_beside
from stall_analyzer.model.findings import Finding, Gain
from stall_analyzer.model.format import percent, seconds, size
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.input.culprit import Culprit, waited_ps
from stall_analyzer.signals.signals import Signals

# XProf calls a run input-bound from 5 % and highly so from 20 % of its time: the same steps here,
# so that people can compare.
CONSIDER_SHARE = 0.05
ACT_SHARE = 0.20
# Nobody need act on less that comes only once, be the epoch ever so short.
ACT_ONCE_PS = 5 * PS_PER_S
# Half of what the pool could hold is advised, and only from twice the batch on.
LARGER_BATCH_LEAST = 4
BESIDE_SHARE = 0.1  # of the wait: what is lost besides it is mentioned from here on


@dataclass(frozen=True)
class Detector:
    id: str
    name: str
    bucket: str
    check: Callable[[Signals], Finding | None]
    page: str

    @property
    def summary(self) -> str:
        return self.page.partition("\n")[0]


def detector_of(module: ModuleType) -> Detector:
    return Detector(
        id=module.ID,
        name=module.NAME,
        bucket=module.BUCKET,
        check=module.check,
        page=getdoc(module) or "",
    )


def severity_of(share: float, once_ps: int | None = None) -> str | None:
    """How loudly to say that this share of the first epoch is lost; None: not at all.

    `once_ps`: what a change would win, where it wins that only once.
    """
    if share >= ACT_SHARE and (once_ps is None or once_ps >= ACT_ONCE_PS):
        return "act"
    return "consider" if share >= CONSIDER_SHARE else None


def room_text(signals: Signals) -> str:
    """A sentence on how much larger a batch would fit; empty where no pool has a limit."""
    pools = [pool for pool in signals.allocators if pool.limit_bytes]
    if not pools or (times := min(pool.times_larger for pool in pools)) < LARGER_BATCH_LEAST:
        return ""
    tightest = min(pools, key=lambda pool: pool.times_larger)
    return (
        f" There is room for larger batches: {tightest.name} held at most "
        f"{size(tightest.peak_bytes)} of {size(tightest.limit_bytes or 0)}, so one {times // 2} "
        "times as large fits."
    )


@dataclass(frozen=True)
class Blame:
    """A stage of the pipeline that keeps training waiting, and how much that matters."""

    culprit: Culprit
    window_ps: int
    waited_ps: int
    beside: Gain  # what training might do faster without that work beside it
    severity: str

    @property
    def lost_ps(self) -> int:
        return self.waited_ps + self.beside.high_ps

    def told_of(self, stage: str) -> str:
        """The beginning of an explanation; the sentence goes on."""
        return (
            f"Training waited {seconds(self.waited_ps)} for input, "
            f"{percent(self.waited_ps, self.window_ps)} of the first epoch. For "
            f"{percent(self.culprit.share, 1)} of the waiting, {stage} was at work"
        )

    @property
    def beside_text(self) -> str:
        """A sentence for the explanation; empty where it is not worth one."""
        if self.beside.high_ps < BESIDE_SHARE * self.waited_ps:
            return ""
        return (
            f" Training's own work beside it was slower, too: up to {seconds(self.beside.high_ps)} "
            "more may go with it."
        )


def blame(signals: Signals, reason: str) -> Blame | None:
    """The stage that holds the pipeline up, if it does so for this reason and enough is lost."""
    culprit = signals.input_culprit
    if culprit is None or culprit.reason != reason:
        return None
    waited = waited_ps(signals.causes_ps, culprit)
    severity = severity_of(signals.share(waited))
    if severity is None:
        return None
    beside = less_beside(signals, in_python=culprit.is_python)
    return Blame(culprit, signals.window_ps, waited, beside, severity)
