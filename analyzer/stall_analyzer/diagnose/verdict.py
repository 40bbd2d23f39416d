"""From findings and the ledger to one verdict: what holds up the run, and whether to act.

A run that has stopped comes first: nothing else matters to those who wait for it. Then learning is
judged, before time: nobody is told to tune the input of a run that learns nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stall_analyzer.diagnose.console_verdict import dead_by_console
from stall_analyzer.diagnose.costliest import costliest_change
from stall_analyzer.diagnose.dead import dead, ended_in_a_wait, is_dead
from stall_analyzer.diagnose.foreign import judged_as_foreign
from stall_analyzer.diagnose.how_sure import SLOWER_FIRST, noun_of, weighed
from stall_analyzer.diagnose.primary import (
    ACT_SHARE,
    ACT_SHARE_ONCE,
    ACTIONABLE,
    costs_of,
    is_mostly_once,
    primary_bucket,
    worked_ps,
)
from stall_analyzer.diagnose.running import judged_as_running
from stall_analyzer.model.causes import bucket_of
from stall_analyzer.model.cluster import EndedFirst
from stall_analyzer.model.columns import median
from stall_analyzer.model.findings import Finding, Verdict
from stall_analyzer.model.format import listed, moment, percent, seconds, spoken
from stall_analyzer.model.kinds import Bucket, Status
from stall_analyzer.model.ledger import HostLedger, Ledger
from stall_analyzer.signals.cluster.remote_waits import is_coordinator, late_remote_worker
from stall_analyzer.signals.ending.stall import Stall
from stall_analyzer.signals.signals import Signals

# A recurring cost is mentioned next to a one-time cost when it is noticeable in the first epoch,
# too.
STAYS_SHARE = 0.1
# A healthy run computes for at least this share of its time; otherwise something was not seen.
HEALTHY_SHARE = 0.4
# A profile of less than this says little about the epoch.
COVERED_SHARE = 0.9
LEAST_DOUBT = 0.1
# With these causes, the steps themselves were wasted; checking numbers only makes them slower.
LEARNS_NOTHING = frozenset({"numerics.nonfinite", "numerics.skipped_update"})
# Causes that do not return unless later epochs bring a new shape or number.
MAY_RETURN = frozenset({"compile.retracing"})
NAMED_IN_TURN = 3  # stragglers in one sentence
PROPER_NAMES = ("Python", "Keras")


def judge(signals: Signals, findings: tuple[Finding, ...]) -> Verdict:
    """One sentence for a tired person, with status, bucket and confidence."""
    beyond = _beyond_time(signals, findings) or _of_one_change(signals, findings)
    return beyond or weighed(_of_its_time(signals, findings), signals, ACTIONABLE, ACT_SHARE)


def _beyond_time(signals: Signals, findings: tuple[Finding, ...]) -> Verdict | None:
    """What matters more than time: stuck, dead, learning nothing, nothing recorded."""
    stall = signals.stall
    if stall is not None and stall.never_goes_on and not _failed_before(signals, stall):
        sentence = f"{stall.sentence}.{_is_it_still_there(signals, stall)}"
        confidence = stall.blamed.confidence if stall.blamed else 0.5
        return Verdict("stuck", stall.bucket, sentence, confidence, _absent(signals))
    if signals.cluster.in_vain:
        return _never_joined(signals)
    hopeless = [f for f in findings if f.bucket == "numerics" and f.severity == "act"]
    if hopeless:
        return _learning_nothing(signals, hopeless[0])
    if signals.cluster.ended_first is not None:
        return _ended_first(signals.cluster.ended_first)
    if is_dead(signals):
        return dead(signals)
    if (died := dead_by_console(signals)) is not None:
        return died
    set_apart = judged_as_running(signals) or judged_as_foreign(signals)
    if set_apart is not None:
        return set_apart
    if stall is not None and (not signals.traces or ended_in_a_wait(signals)):
        return Verdict("unknown", stall.bucket, f"{stall.sentence}.", 0.5)
    if signals.timeline.window.duration_ps == 0:
        return _without_window(signals)
    return _held_up(signals, findings)


def _of_its_time(signals: Signals, findings: tuple[Finding, ...]) -> Verdict:
    timeline, ledger = signals.timeline, signals.likely_ledger
    costs = costs_of(ledger)
    primary = primary_bucket(ledger, findings)
    unknown = costs["unknown"]
    confidence = _confidence(signals, unknown)
    if primary is not None and costs[primary] > unknown / 2:
        return _stalled(signals, findings, primary, confidence)
    saw_training = timeline.window.epoch is not None
    if not saw_training or costs["compute"] < HEALTHY_SHARE * worked_ps(ledger):
        return _unknown(signals, confidence)
    whole_ps = timeline.window.duration_ps
    return Verdict(
        "healthy",
        "compute",
        f"Healthy: {percent(costs['compute'], whole_ps)} of the {noun_of(timeline)} "
        f"({seconds(whole_ps)}) is the model's own computation"
        f"{_from_a_sample(signals)}.{_what_came_once(ledger)}",
        confidence,
    )


def _what_came_once(ledger: Ledger) -> str:
    """What makes the first epoch longer than the others."""
    once = {bucket: ledger.one_time_ps(bucket) for bucket in ACTIONABLE}
    bucket = max(once, key=lambda b: once[b])
    if once[bucket] < ACT_SHARE * worked_ps(ledger):
        return ""
    return f" {bucket.capitalize()} took {seconds(once[bucket])}, once."


def _of_one_change(signals: Signals, findings: tuple[Finding, ...]) -> Verdict | None:
    """About one thing that costs more than any bucket to act on."""
    ledger = signals.likely_ledger
    costs, unknown = costs_of(ledger), ledger.buckets_ps["unknown"]
    to_act_on = {bucket: costs[bucket] for bucket in ACTIONABLE}
    named = costliest_change(signals, findings, to_act_on, ACT_SHARE * worked_ps(ledger))
    if named is None or named.lost_ps <= unknown / 2:
        return None
    recurs = named.later_gain.high_ps >= named.gain.high_ps / 2
    slow = f"{'slow in every epoch' if recurs else 'slow once'}: {_within(named.title)}."
    sentence = f"S{slow[1:]}" if signals.estimate is None else f"Probably {slow}"
    confidence = min(_confidence(signals, unknown), named.confidence)
    return Verdict("slow_always" if recurs else "slow_once", named.bucket, sentence, confidence)


def _within(title: str) -> str:
    """A title as part of a sentence: a first word that is not a name becomes lowercase."""
    first, _, rest = title.partition(" ")
    is_name = first in PROPER_NAMES or not first[1:].islower()
    return title if is_name and len(first) > 1 else f"{first.lower()} {rest}"


def _held_up(signals: Signals, findings: tuple[Finding, ...]) -> Verdict | None:
    """Hosts that wait for a straggler are held up by whatever holds up the straggler."""
    late = signals.stragglers
    cost, window = sum(host.cost_ps for host in late), signals.covered_by_all_ps
    once = bool(late) and all(host.once for host in late)
    if not late:
        return _held_up_elsewhere(signals)
    if cost < (ACT_SHARE_ONCE if once else ACT_SHARE) * window:
        return None
    names, reason = listed([host.host for host in late]), late[0].reason
    primary = reason.bucket if reason.bucket in ACTIONABLE else "communication"
    what = f"{names} made the others wait {seconds(cost)} ({percent(cost, window)})"
    if reason.bucket and len(late) == 1:
        what += (
            f" because of its {reason.bucket} time ({spoken(reason.cause)} {seconds(reason.ps)})"
        )
    elif len(late) > 1:
        each = (f"{h.host} {seconds(h.cost_ps)}, {h.reason.bucket or 'unknown'}" for h in late)
        what += f" in turn ({'; '.join(list(each)[:NAMED_IN_TURN])})"
    named = _title_of_reason(findings, reason.bucket, cost)
    why = f". {named}." if named else "."
    status: Status = "slow_once" if once else "slow_always"
    prefix = "Slow once, not again" if once else "Slow in every epoch"
    confidence = 0.9 if reason.bucket else 0.7
    return Verdict(status, primary, f"{prefix}: {what}{why}", confidence, late[0].host)


def _held_up_elsewhere(signals: Signals) -> Verdict | None:
    """A coordinator that mostly waits for one of its workers."""
    late, window = late_remote_worker(signals), signals.window_ps
    if late is None or late.cost_ps < ACT_SHARE * window:
        return None
    what = f"{late.name} made the others wait {seconds(late.cost_ps)}"
    why = ". What it did was not recorded."
    if late.bucket:
        why = f" because of its {late.bucket} time."
    sentence = f"Slow in every epoch: {what} ({percent(late.cost_ps, window)}){why}"
    primary = late.bucket if late.bucket in ACTIONABLE else "communication"
    return Verdict("slow_always", primary, sentence, 0.8 if late.bucket else 0.7)


def _confidence(signals: Signals, unknown_ps: int) -> float:
    """Reduced by what is not known, and by what is uncertain in an estimate."""
    estimate = signals.estimate
    doubted = 0.0 if estimate is None else estimate.estimated_ps * LEAST_DOUBT
    return round(min(0.95, 1 - (unknown_ps + doubted) / signals.window_ps), 2)


def _from_a_sample(signals: Signals) -> str:
    return f", {signals.estimate.words}" if signals.estimate is not None else ""


def _failed_before(signals: Signals, stall: Stall) -> bool:
    """The program had failed, but its process did not exit."""
    ending = signals.ending
    failed = ending is not None and ending.process_lives and "Interrupt" not in ending.error
    return failed and ending is not None and ending.ns <= stall.until_ns


def _is_it_still_there(signals: Signals, stall: Stall) -> str:
    """Whether to go and look at the process. If there are several, it would not be clear which."""
    captures = signals.events.captures if signals.events is not None else ()
    if len(captures) != 1 or stall.attached:
        return ""
    if signals.ending is not None:
        return f" {signals.ending.sentence}"
    return f" The process was still running at {moment(captures[0].last_ns)}."


def _absent(signals: Signals) -> str:
    """The member of the cluster that all others wait for."""
    cluster, first = signals.cluster, signals.cluster.ended_first
    if cluster.in_vain:
        return cluster.missing[0]
    return first.name if first is not None else ""


def _never_joined(signals: Signals) -> Verdict:
    cluster = signals.cluster
    missing, waiting = listed(cluster.missing), len(cluster.members)
    waited = seconds(cluster.others_waited_ps)
    sentence = (
        f"Stuck: {missing} never joined. According to {cluster.size_source}, {cluster.size} hosts "
        f"should be training; {waiting} joined but ran no step in the {waited} that was recorded."
    )
    return Verdict("stuck", "communication", sentence, 0.9, _absent(signals))


def _ended_first(first: EndedFirst) -> Verdict:
    """A cluster that lost a member: its end explains the end of all the others."""
    when = f" at {moment(first.at_unix_ns)}" if first.at_unix_ns is not None else ""
    sentence = f"Dead: {first.name} ended first{when}. {first.how} {first.others}"
    return Verdict("dead", "communication", sentence, 0.85, first.name)


def _without_window(signals: Signals) -> Verdict:
    if signals.capture is not None and not signals.capture.trains:
        sentence = (
            "This process ran neither fit nor a watched step: only its memory use and its end "
            "were recorded, and nothing hung."
        )
        return Verdict("unknown", "unknown", sentence, 0.5)
    if signals.dump is None or not signals.dump.looked_at:
        return Verdict("unknown", "unknown", "Nothing could be read from this run.", 0.0)
    sentence = (
        f"Nothing shows where this run's time went. The debugger checked "
        f"{signals.dump.looked_at:,} tensors, and found none that ruins the training."
    )
    return Verdict("unknown", "unknown", sentence, 0.0)


def _learning_nothing(signals: Signals, finding: Finding) -> Verdict:
    wasted = signals.likely_ledger.buckets_ps["numerics"]
    lost = (
        f" {seconds(wasted)} of the {noun_of(signals.timeline)} was wasted"
        f"{_from_a_sample(signals)}."
        if wasted
        else ""
    )
    stall = signals.stall if ended_in_a_wait(signals) else None
    ended = f" {stall.sentence}." if stall is not None else ""
    sentence = f"Learning nothing: {finding.title}.{lost}{ended}"
    return Verdict("learning_nothing", "numerics", sentence, finding.confidence)


def _stalled(
    signals: Signals, findings: tuple[Finding, ...], primary: Bucket, confidence: float
) -> Verdict:
    ledger = signals.likely_ledger
    cost, whole_ps = costs_of(ledger)[primary], sum(ledger.causes_ps.values())
    causes = {c: ps for c, ps in ledger.causes_ps.items() if bucket_of(c) == primary}
    worst = max(causes, key=lambda c: causes[c])
    where = f"{worst.partition('.')[2].replace('_', ' ')} {seconds(causes[worst])}"
    said = f"{seconds(cost)} of {seconds(whole_ps)} ({percent(cost, whole_ps)})"
    if worst in LEARNS_NOTHING:
        sentence = f"Learning nothing: {said} was wasted ({where})."
        return Verdict("learning_nothing", primary, sentence, confidence)
    named = _title_of_reason(findings, primary, cost)
    why = f". {named}." if named else f" ({where})."
    whole = f"{noun_of(signals.timeline)} went to {primary}{_from_a_sample(signals)}"
    what = f"{said} of the {whole}{why}"
    may_return = _may_return(signals, findings, primary, cost - ledger.one_time_ps(primary))
    if may_return or is_mostly_once(ledger, primary):
        stays = _what_stays(ledger, findings, () if not may_return else (primary,))
        over = not stays and not may_return and worst not in MAY_RETURN
        prefix = "Slow once, not again" if over else "Slow once"
        return Verdict("slow_once", primary, f"{prefix}: {what}{stays}", confidence)
    return Verdict("slow_always", primary, f"Slow in every epoch: {what}", confidence)


def _may_return(
    signals: Signals, findings: tuple[Finding, ...], primary: Bucket, again_ps: int
) -> bool:
    """Whether something was seen only once or twice, or not later on, so that it may not recur."""
    acts = [f for f in findings if f.bucket == primary and f.severity == "act"]
    later = signals.later_epoch_ps
    seen_once = bool(acts) and not any(finding.later_gain.high_ps for finding in acts)
    return seen_once or (later is not None and again_ps > SLOWER_FIRST * later)


def _what_stays(ledger: Ledger, findings: tuple[Finding, ...], left_out: Sequence[Bucket]) -> str:
    """A user who waits out the one-time cost should know about the recurring one."""
    costs, worked = costs_of(ledger), worked_ps(ledger)
    recurring = {b: costs[b] - ledger.one_time_ps(b) for b in ACTIONABLE if b not in left_out}
    bucket = max(recurring, key=lambda b: recurring[b])
    left = worked - ledger.one_time_ps() + ledger.one_time_ps("profiler")
    if recurring[bucket] < max(ACT_SHARE * left, STAYS_SHARE * worked):
        return _change_that_stays(findings)
    cost = recurring[bucket]
    named = _title_of_reason(findings, bucket, cost)
    why = f": {named}." if named else "."
    return f" But {bucket} takes {seconds(cost)} in every epoch{why}"


def _change_that_stays(findings: Iterable[Finding]) -> str:
    """What no bucket to act on shows, such as validation, which takes some of each."""
    for finding in findings:
        recurs = finding.later_gain.high_ps > 0
        if finding.severity == "act" and recurs and finding.bucket not in ACTIONABLE:
            return f" But {_within(finding.title)}, in every epoch."
    return ""


def _title_of_reason(findings: Iterable[Finding], bucket: Bucket | None, cost_ps: int) -> str:
    """Of the first finding to act on, or one that explains most of the cost; empty if none does."""
    for finding in findings:
        explains = finding.severity == "consider" and finding.lost_ps >= cost_ps / 2
        if finding.bucket == bucket and (finding.severity == "act" or explains):
            return finding.title
    return ""


def _unknown(signals: Signals, confidence: float) -> Verdict:
    timeline = signals.timeline
    duration, later = timeline.window.duration_ps, timeline.later_epochs_ps
    noun = noun_of(timeline)
    usual = int(median(later)) if later else duration
    why = _why_unknown(signals)
    if duration > SLOWER_FIRST * usual:
        sentence = (
            f"The first epoch took {seconds(duration)}, later ones {seconds(usual)}: "
            f"{seconds(duration - usual)} was a one-time cost. {why}"
        )
        return Verdict("slow_once", "unknown", sentence, max(confidence, 0.5))
    sentence = f"The {noun} took {seconds(duration)}. {why}"
    return Verdict("unknown", "unknown", sentence, confidence)


def _device_share(host: HostLedger, duration: int) -> str:
    computed = host.ledger.causes_ps.get("compute.device", 0)
    return f" A device computed for {percent(computed, duration)} of this time." if computed else ""


def _why_unknown(signals: Signals) -> str:
    """Why no cause is named, and what little the trace shows."""
    host, duration, noun = signals.host, signals.window_ps, noun_of(signals.timeline)
    if is_coordinator(signals):
        return "Its steps ran in other processes, and what those did was not recorded."
    if not host.covered_ps:
        return f"There is no profile of the {noun}, so the cause is not known."
    observed = " " + host.evidence["input"] if "input" in host.evidence else ""
    if host.covered_ps < COVERED_SHARE * duration:
        covered = percent(host.covered_ps, duration)
        return f"The profile covers only {covered} of the {noun}.{observed}"
    if host.training_thread is None:
        return (
            "No training thread was found in the trace, so the cause is not known."
            f"{_device_share(host, duration)}"
        )
    return f"Most of the {noun} left no evidence.{observed}"
