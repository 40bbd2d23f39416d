"""Run the detectors over a run's signals, and judge.

Nothing that one detector does can hide what the others find. If there are several hosts, the one
that all the others wait for represents the run: fixing another would save nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from stall_analyzer.detectors.gains import OFTEN
from stall_analyzer.detectors.registry import DETECTORS, Detector
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.diagnose.calibration import calibrated
from stall_analyzer.diagnose.causes import weighed
from stall_analyzer.diagnose.foreign import without_our_frameworks
from stall_analyzer.diagnose.next_steps import computing
from stall_analyzer.diagnose.plan import plan
from stall_analyzer.diagnose.precedence import without_opposed, without_silenced
from stall_analyzer.diagnose.sooner_ending import with_sooner_ending
from stall_analyzer.diagnose.stood_still import (
    is_after,
    stopped_ps,
    time_before,
    with_time_stood_still,
)
from stall_analyzer.diagnose.users_code import with_lines
from stall_analyzer.diagnose.verdict import judge
from stall_analyzer.model.estimate import Estimate
from stall_analyzer.model.findings import Finding, Gain, LateHost, Report
from stall_analyzer.model.format import seconds
from stall_analyzer.model.kinds import Severity
from stall_analyzer.model.ledger import HostLedger
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import Run
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.signals.ending.seen_threads import seen_threads
from stall_analyzer.signals.numerics.learning_curves import learning_curves
from stall_analyzer.signals.sampled import over_the_epoch, profiled_alone
from stall_analyzer.signals.signals import Signals

SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # most severe first
# A straggler that was profiled much less than the others cannot represent the run.
SEEN_SHARE = 0.5
OTHERS_ASKED = 4  # stragglers whose own findings are looked for; each costs as much time as a host


def diagnose(run: Run, timeline: Timeline, hosts: tuple[HostLedger, ...]) -> Report:
    signals = signals_of(timeline, hosts)
    notes: list[Note] = []
    findings = [with_lines(finding, signals) for finding in findings_of(signals, notes)]
    for late in signals.stragglers[1:OTHERS_ASKED]:
        findings += _of_its_reason(late, signals, findings)
    ordered = tuple(sorted(without_opposed(findings), key=_most_worth_first))
    slower = timeline.later_epochs_are_slower
    ordered = tuple(replace(finding, later_at_least=slower) for finding in ordered)
    if slower:
        notes.append(_slower_later(signals))
    verdict = judge(signals, ordered)
    shown = _shown(signals)
    return Report(
        run=run,
        timeline=timeline,
        hosts=tuple(shown if host is signals.host else host for host in hosts),
        ledger=shown.ledger,
        findings=ordered,
        # How long a running epoch will take is not known, with or without a change, and one that
        # is stuck does not end.
        plan=plan(signals, ordered) if verdict.status not in ("running", "stuck") else None,
        verdict=verdict,
        notes=tuple(dict.fromkeys(notes)),
        estimate=signals.estimate,
        lateness=signals.lateness,
        lines=signals.code_lines,
        stacks=signals.code_stacks,
        threads=seen_threads(signals.capture, signals.stall),
        computing=computing(signals) if verdict.status == "healthy" else None,
        learning=learning_curves(signals.learning, signals.layers.gradients),
        cluster=signals.cluster if signals.cluster.size > 1 else None,
    )


def _slower_later(signals: Signals) -> Note:
    return Note(
        "info",
        f"Later epochs took {seconds(signals.later_epoch_ps or 0)}, longer than the first "
        f"({seconds(signals.window_ps)}), for reasons that were not recorded. What a change saves "
        "in them is therefore given as a minimum.",
    )


def signals_of(timeline: Timeline, hosts: tuple[HostLedger, ...]) -> Signals:
    """With the host that represents the run: the straggler or, if there is none, the one that was
    recorded best."""
    best_seen = max(hosts, key=lambda host: (host.training_thread is not None, host.covered_ps))
    signals = Signals(timeline, hosts, best_seen)
    if not signals.stragglers:
        return signals
    late = signals.on(signals.stragglers[0].host)
    return late if late.host.covered_ps >= SEEN_SHARE * best_seen.covered_ps else signals


def findings_of(signals: Signals, notes: list[Note]) -> list[Finding]:
    """What the detectors find, ordered by id. A sampled epoch is also judged by its samples."""
    found = _found(signals, notes)
    if signals.profiled_part is not None:
        scaled = _in_all_steps(signals, signals.profiled_part, notes)
        # What clocks measured in all steps needs no scaling.
        found |= {id: f for id, f in scaled.items() if id not in found or not found[id].by_clocks}
    if signals.estimate is None:
        found = {id: _within_what_it_blames(f, signals) for id, f in found.items()}
    before = (_before_it_stood_still(found[id], signals) for id in sorted(found))
    return [calibrated(finding, signals) for finding in before if finding is not None]


def _within_what_it_blames(finding: Finding, signals: Signals) -> Finding:
    """A trace and a capture's clocks differ a little: no cost may exceed its buckets."""
    if not finding.blames:
        return finding
    return _at_most(finding, sum(signals.buckets_ps[bucket] for bucket in finding.blames))


def _before_it_stood_still(finding: Finding, signals: Signals) -> Finding | None:
    """What comes with the steps costs nothing once there are none: faster steps do not make a run
    continue that never will."""
    stopped = stopped_ps(signals)
    if stopped is None or finding.fatal:
        return finding
    if finding.gain.high_ps and is_after(stopped, finding.evidence):
        return None  # what never ends is not one long pause
    if not finding.later_gain.high_ps:
        return finding
    most = time_before(stopped, signals.host.ledger, finding.blames)
    later = _capped(finding.later_gain, most)
    return _judged_anew(replace(_at_most(finding, most), later_gain=later), signals)


def _at_most(finding: Finding, most: int) -> Finding:
    lost = min(finding.lost_ps, most)
    return replace(finding, lost_ps=lost, gain=_capped(finding.gain, most))


def _capped(gain: Gain, most: int) -> Gain:
    return Gain(min(gain.low_ps, most), min(gain.high_ps, most))


def _found(signals: Signals, notes: list[Note]) -> dict[str, Finding]:
    findings = (_checked(detector, signals, notes) for detector in DETECTORS)
    found = {finding.id: finding for finding in findings if finding is not None}
    if signals.timeline.is_foreign:
        found = without_our_frameworks(found)
    return weighed(without_silenced(found))


def _in_all_steps(signals: Signals, estimate: Estimate, notes: list[Note]) -> dict[str, Finding]:
    """Findings that cost time in the profiled steps, and so in all the others."""
    found = _found(profiled_alone(signals, estimate), notes)
    scaled = {
        id: _judged_anew(over_the_epoch(finding, signals, estimate), signals)
        for id, finding in found.items()
        if _comes_with_the_steps(finding, signals.hosts)
    }
    return {id: finding for id, finding in scaled.items() if finding is not None}


def _of_its_reason(late: LateHost, signals: Signals, found: Sequence[Finding]) -> list[Finding]:
    """What another straggler does wrong, if that is something else. The ledger that is shown is
    another host's, so the title says whose time it is."""
    known = {finding.id for finding in found}
    its_own = signals.on(late.host)
    return [
        replace(with_lines(finding, its_own), title=f"{finding.title}, on {late.host}")
        for finding in findings_of(its_own, notes=[])
        if finding.bucket == late.reason.bucket
        and finding.severity != "note"
        and finding.id not in known
    ]


def _comes_with_the_steps(finding: Finding, hosts: tuple[HostLedger, ...]) -> bool:
    """Whether it costs time in every step, so that a sample of steps speaks for all. Numerics are
    judged by what was logged for all steps; several hosts by all their traces.
    """
    if finding.bucket == "numerics" or (finding.bucket == "communication" and len(hosts) > 1):
        return False
    return finding.severity != "note" and finding.later_gain.high_ps > 0


def _judged_anew(finding: Finding, signals: Signals) -> Finding | None:
    """With the severity that its share of the whole epoch gives it."""
    severity = severity_of(signals.share(finding.lost_ps))
    if severity is None:
        return None
    return replace(finding, severity=max(severity, finding.severity, key=SEVERITIES.index))


def _checked(detector: Detector, signals: Signals, notes: list[Note]) -> Finding | None:
    try:
        finding = detector.check(signals)
        return finding and with_sooner_ending(_of_later_epochs_if_often(finding), signals)
    except Exception as error:  # a bug of ours in one detector must not hide the others
        text = f"Detector {detector.id} ({detector.name}) failed: {type(error).__name__}: {error}"
        notes.append(Note("warning", text))
        return None


def _of_later_epochs_if_often(finding: Finding) -> Finding:
    """Without later gains if it was seen only once or twice: it may never happen again."""
    if finding.once_an_epoch or not finding.evidence or len(finding.evidence) >= OFTEN:
        return finding
    return replace(finding, later_gain=Gain())


def _shown(signals: Signals) -> HostLedger:
    """The ledger for readers: what faster steps would save is not in the time it stood still. If
    there is an estimate, that is shown."""
    host, begun_ns = signals.host, signals.timeline.window.start_unix_ns
    stall = signals.stall if signals.estimate is None else None
    return replace(host, ledger=with_time_stood_still(host.ledger, stall, begun_ns))


def _most_worth_first(finding: Finding) -> tuple[bool, int, bool, int]:
    learns = finding.bucket != "numerics"
    severity = SEVERITIES.index(finding.severity)
    return not finding.fatal, severity, learns, -finding.gain.high_ps
