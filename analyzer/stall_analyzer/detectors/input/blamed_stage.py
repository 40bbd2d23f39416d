"""The stage of the input pipeline that keeps training waiting: what its detectors share."""

from __future__ import annotations

from dataclasses import replace

from stall_analyzer.detectors.gains import every_epoch
from stall_analyzer.detectors.input.faster_input import (
    BESIDE_INPUT,
    faster_beside_input,
    faster_stage,
)
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding, Gain
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.model.kinds import Severity
from stall_analyzer.model.records import dataclass
from stall_analyzer.signals.input.culprit import Culprit, waited_ps
from stall_analyzer.signals.input.input_pipeline import Stage
from stall_analyzer.signals.signals import Signals

BESIDE_SHARE = 0.1  # of the wait: from here on, other losses are mentioned


@dataclass(frozen=True)
class BlamedStage:
    """A stage that keeps training waiting, and how much that matters."""

    signals: Signals
    culprit: Culprit
    waited_ps: int
    beside: Gain  # what training's own work might save without the stage running beside it
    severity: Severity

    @property
    def stage(self) -> Stage:
        return self.culprit.stage

    @property
    def locked_out_ps(self) -> int:
        """What the pipeline's Python takes from training without a wait: the interpreter."""
        return locked_out_ps(self.signals, self.culprit)

    @property
    def per_batch(self) -> str:
        return seconds(self.culprit.per_batch_ps)

    def opening(self, stage: str) -> str:
        """The beginning of an explanation; the caller finishes the sentence."""
        lost, window = self.waited_ps + self.locked_out_ps, self.signals.window_ps
        beside = (
            f" and lost another {seconds(self.locked_out_ps)} to Python running in the pipeline"
            if self.locked_out_ps
            else ""
        )
        if self.locked_out_ps > self.waited_ps:  # then the wait proves little
            at_work = f"Meanwhile, {stage} was at work"
        else:
            at_work = f"For {percent(self.culprit.share, 1)} of the wait, {stage} was at work"
        return (
            f"Training waited {seconds(self.waited_ps)} for input{beside} "
            f"({percent(lost, window)} of the first epoch). {at_work}"
        )

    def if_faster(self, least: float, most: float) -> Gain:
        """What is saved if the stage runs `least` to `most` times as fast."""
        return faster_stage(self.signals, self.culprit, least, most) + self.beside

    def finding(
        self,
        title: str,
        explanation: str,
        change: Change,
        gain: Gain,
        sureness: float,  # the confidence if only this stage had been at work
        later_gain: Gain | None = None,  # where it differs from the first epoch's
    ) -> Finding:
        return Finding(
            severity=self.severity,
            title=title,
            explanation=f"{explanation}{self._beside_text}",
            change=replace(change, text=f"{change.text}{self._next_text}"),
            lost_ps=self.waited_ps + self.locked_out_ps,
            gain=gain,
            later_gain=every_epoch(self._again(later_gain or gain), self.signals),
            confidence=round(sureness * self.culprit.share, 2),
            blames=BESIDE_INPUT if self.beside.high_ps else (),
            evidence=self.signals.evidence_at(
                *self.signals.intervals_of(*self._waits), f"waits for {self.stage.label}"
            ),
        )

    @property
    def _next_text(self) -> str:
        """The stage to look at next, if the rest of the wait would be worth a finding."""
        rest = self.signals.share(round((1 - self.culprit.share) * self.waited_ps))
        stage = self.culprit.next
        if stage is None or severity_of(rest) is None:
            return ""
        return f" After that, look at {stage.label}, which causes most of the remaining wait."

    @property
    def _waits(self) -> tuple[str, ...]:
        fills = self.culprit.below_shuffle
        return ("input.wait", "input.shuffle_fill") if fills else ("input.wait",)

    def _again(self, gain: Gain) -> Gain:
        """The gain in a later epoch: without the time to fill a buffer, which happens once."""
        most = self.signals.causes_ps["input.wait"] + self.beside.high_ps
        return Gain(min(gain.low_ps, most), min(gain.high_ps, most))

    @property
    def _beside_text(self) -> str:
        """A sentence for the explanation; empty where it is not worth one."""
        if self.beside.high_ps < BESIDE_SHARE * self.waited_ps:
            return ""
        return (
            " Training's own work was slower while this stage ran: up to "
            f"{seconds(self.beside.high_ps)} more may be saved there."
        )


def blamed_stage(signals: Signals, reason: str, less_work: bool = True) -> BlamedStage | None:
    """The stage that holds up the pipeline, if it does so for this reason and enough is lost.

    `less_work`: the advice saves work, rather than spreading it over more cores.
    """
    culprit = signals.input_culprit
    if culprit is None or culprit.reason != reason:
        return None
    waited = waited_ps(signals.causes_ps, culprit)
    lost = waited + locked_out_ps(signals, culprit)
    fills_once = culprit.below_shuffle and not signals.comes_again("input.shuffle_fill")
    mostly_once = fills_once and 2 * signals.causes_ps["input.shuffle_fill"] > lost
    severity = severity_of(signals.share(lost), lost if mostly_once else None)
    if severity is None:
        return None
    beside = faster_beside_input(signals, in_python=culprit.is_python) if less_work else Gain()
    return BlamedStage(signals, culprit, waited, beside, severity)


def locked_out_ps(signals: Signals, culprit: Culprit) -> int:
    return signals.causes_ps["input.contention"] if culprit.is_python else 0
