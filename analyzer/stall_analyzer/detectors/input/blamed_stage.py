"""The stage of the input pipeline that keeps training waiting: what its detectors share."""

from __future__ import annotations

from dataclasses import dataclass

from stall_analyzer.detectors.input.faster_input import faster_beside_input
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Gain
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.model.kinds import Severity
from stall_analyzer.signals.input.culprit import Culprit, waited_ps
from stall_analyzer.signals.signals import Signals

BESIDE_SHARE = 0.1  # of the wait: what is lost besides it is mentioned from here on


@dataclass(frozen=True)
class BlamedStage:
    """A stage that keeps training waiting, and how much that matters."""

    culprit: Culprit
    window_ps: int
    waited_ps: int
    beside: Gain  # what training might do faster without that work beside it
    severity: Severity

    @property
    def lost_ps(self) -> int:
        return self.waited_ps + self.beside.high_ps

    def opening(self, stage: str) -> str:
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


def blamed_stage(signals: Signals, reason: str) -> BlamedStage | None:
    """The stage that holds the pipeline up, if it does so for this reason and enough is lost."""
    culprit = signals.input_culprit
    if culprit is None or culprit.reason != reason:
        return None
    waited = waited_ps(signals.causes_ps, culprit)
    severity = severity_of(signals.share(waited))
    if severity is None:
        return None
    beside = faster_beside_input(signals, in_python=culprit.is_python)
    return BlamedStage(culprit, signals.window_ps, waited, beside, severity)
