"""Run the detectors over a run's signals, and judge.

Nothing that one detector does can hide what the others find.
"""

from __future__ import annotations

from dataclasses import dataclass

from stall_analyzer.answers import Finding, Plan, Verdict
from stall_analyzer.detectors import DETECTORS
from stall_analyzer.detectors.base import Detector, detector_of
from stall_analyzer.model import HostLedger, Ledger, Note, Timeline
from stall_analyzer.signals import Signals
from stall_analyzer.verdict import judge
from stall_analyzer.whatif import plan

SEVERITIES = ("act", "consider", "note")


@dataclass(frozen=True)
class Diagnosis:
    ledger: Ledger  # of the host that stands for the run
    findings: tuple[Finding, ...]
    plan: Plan | None
    verdict: Verdict
    notes: tuple[Note, ...]


def diagnose(timeline: Timeline, hosts: tuple[HostLedger, ...]) -> Diagnosis:
    signals = signals_of(timeline, hosts)
    findings: list[Finding] = []
    notes: list[Note] = []
    for module in DETECTORS:
        detector = detector_of(module)
        finding = _checked(detector, signals, notes)
        if finding is not None:
            findings.append(finding)
    ordered = tuple(sorted(findings, key=_most_worth_first))
    return Diagnosis(
        signals.host.ledger,
        ordered,
        plan(signals, ordered),
        judge(signals, ordered),
        tuple(notes),
    )


def signals_of(timeline: Timeline, hosts: tuple[HostLedger, ...]) -> Signals:
    reference = max(hosts, key=lambda host: (host.training_thread is not None, host.covered_ps))
    return Signals(timeline, hosts, reference)


def _checked(detector: Detector, signals: Signals, notes: list[Note]) -> Finding | None:
    try:
        return detector.check(signals)
    except Exception as error:  # a fault of ours in one detector must not hide the others
        text = f"Detector {detector.id} ({detector.name}) failed: {type(error).__name__}: {error}"
        notes.append(Note("warning", text))
        return None


def _most_worth_first(finding: Finding) -> tuple[int, bool, int]:
    learns = finding.bucket != "numerics"
    return SEVERITIES.index(finding.severity), learns, -finding.gain.high_ps
