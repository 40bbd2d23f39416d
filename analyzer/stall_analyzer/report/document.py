"""The report as one JSON document. schema.json, next to this file, is its contract."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stall_analyzer import __version__
from stall_analyzer.captures.stack_frames import Frame
from stall_analyzer.model.causes import codes_of_bucket
from stall_analyzer.model.cluster import Cluster
from stall_analyzer.model.code_lines import CodeLine, CodeStack
from stall_analyzer.model.columns import median
from stall_analyzer.model.estimate import Estimate
from stall_analyzer.model.findings import Change, Finding, Forecast, Gain, Lateness, Plan, Report
from stall_analyzer.model.intervals import times_in
from stall_analyzer.model.kinds import WindowSource
from stall_analyzer.model.learning_curves import LearningCurves
from stall_analyzer.model.ledger import HostLedger, Ledger
from stall_analyzer.model.model_parts import Computing, ModelPart
from stall_analyzer.model.notes import Note
from stall_analyzer.model.timeline import Phase, Step, starts_and_ends
from stall_analyzer.report.facts import SCHEMA_VERSION

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import (
        BucketTimes,
        ChangeEntry,
        ClusterEntry,
        CodeLineEntry,
        ComputingEntry,
        Document,
        EstimateEntry,
        FindingEntry,
        ForecastEntry,
        HostLedgerEntry,
        LatenessEntry,
        LearningEntry,
        ModelPartEntry,
        NoteEntry,
        PlanEntry,
        PointEntry,
        RangeEntry,
        ReportEntry,
        StackEntry,
        StacksEntry,
    )

LINES_MOST, STACKS_MOST, PARTS_MOST = 50, 300, 20
LATE_STEPS_MOST = 500  # as many as a screen can show
# A name in a trace may be a megabyte long, and a finding may repeat it several times.
LONGEST_NAME, LONGEST_TEXT = 300, 4000


def document(entries: list[ReportEntry], notes: Sequence[Note] = ()) -> Document:
    return {
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "runs": entries,
        "notes": [note_entry(note) for note in notes],
        "fleet": None,
        "over_limit": None,
        "worse": None,
        "better": None,
    }


def run_document(report: Report) -> ReportEntry:
    timeline, ledger = report.timeline, report.ledger
    window, verdict = timeline.window, report.verdict
    later = timeline.later_epochs_ps
    reference = next(host for host in report.hosts if host.ledger is ledger)
    once = ledger.one_time_ps()
    in_phases, in_steps = _parts(ledger, timeline.phases), _parts(ledger, timeline.steps)
    return {
        "run": report.run.name,
        "folder": _cut(report.run.folder, LONGEST_NAME),
        "attempt": report.run.attempt,
        "captured": timeline.events is not None and bool(timeline.events.captures),
        "sessions": [session.id for session in report.run.sessions],
        "hosts": [host.host for host in report.hosts if host.host],
        "host": reference.host or None,
        "framework": timeline.framework,
        "window": {
            "start_unix_ns": window.start_unix_ns,
            "duration_ps": window.duration_ps,
            "epoch": window.epoch,
            "covered_ps": reference.covered_ps,
            "source": _source(report),
            "start_source": window.start_source,
            "end_source": window.end_source,
        },
        "verdict": _fields(
            verdict, sentence=_cut(verdict.sentence, LONGEST_TEXT), host=verdict.host or None,
            candidates=list(verdict.candidates),
        ),
        "buckets_ps": ledger.buckets_ps,
        "causes_ps": ledger.causes_ps,
        "estimate": _estimate(report.estimate) if report.estimate else None,
        "one_time_ps": once,
        "recurring_ps": window.duration_ps - once,
        "phases": [
            _fields(phase, buckets_ps=parts)
            for phase, parts in zip(timeline.phases, in_phases, strict=True)
        ],
        "steps": [
            _fields(step, buckets_ps=parts)
            for step, parts in zip(timeline.steps, in_steps, strict=True)
        ],
        "outside_steps_ps": _outside(ledger, in_steps),
        "later_epochs": {
            "count": len(later),
            "median_ps": int(median(later)) if later else None,
        },
        "findings": [_finding(finding) for finding in report.findings],
        "plan": _plan(report.plan) if report.plan else None,
        "host_ledgers": [_host(host) for host in report.hosts if host.host],
        "traces": [
            {"session": a.session, "host": a.host, "start_ps": a.shift_ps,
             "clock": _fields(a.clock)}
            for a in timeline.traces
        ],
        "lateness": _lateness(report.lateness),
        "cluster": _cluster(report.cluster) if report.cluster else None,
        "lines": [_line(line) for line in report.lines[:LINES_MOST]],
        "stacks": _stacks(report.stacks[:STACKS_MOST]) if report.stacks else None,
        "threads": [
            _fields(thread, frames=[_cut(frame, LONGEST_NAME) for frame in thread.frames])
            for thread in report.threads
        ],
        "computing": _computing(report.computing) if report.computing else None,
        "learning": _learning(report.learning) if report.learning else None,
        "evidence": _texts(reference.evidence),
        "notes": [note_entry(note) for note in report.notes],
    }  # fmt: skip


def _estimate(estimate: Estimate) -> EstimateEntry:
    ledger = estimate.ledger
    once = ledger.one_time_ps()
    return {
        "buckets_ps": ledger.buckets_ps,
        "causes_ps": ledger.causes_ps,
        "one_time_ps": once,
        "recurring_ps": sum(ledger.buckets_ps.values()) - once,
        "ranges_ps": {
            bucket: {"low": known.low_ps, "high": known.high_ps}
            for bucket, known in estimate.ranges.items()
        },
        "rests_on": list(estimate.rests_on),
        "estimated_ps": estimate.estimated_ps,
        "profiled_steps": estimate.profiled_steps,
        "steps": estimate.steps,
    }


def _source(report: Report) -> WindowSource:
    traced = any(host.covered_ps for host in report.hosts)
    logged = report.timeline.events is not None and report.timeline.events.records > 0
    return "both" if traced and logged else "trace" if traced else "events"


def _parts(ledger: Ledger, spans: Sequence[Phase | Step]) -> list[BucketTimes]:
    """Where the time of each span went; buckets that are zero are left out."""
    start, end = starts_and_ends(spans)
    buckets = [bucket for bucket, ps in ledger.buckets_ps.items() if ps]
    sums = times_in(ledger.tiling, start, end, [codes_of_bucket(bucket) for bucket in buckets])
    parts: list[BucketTimes] = [{} for _ in spans]
    for bucket, of_spans in zip(buckets, sums, strict=True):
        for part, ps in zip(parts, of_spans.tolist(), strict=True):
            if ps:
                part[bucket] = ps
    return parts


def _outside(ledger: Ledger, in_steps: Sequence[BucketTimes]) -> BucketTimes:
    """Time outside all steps, so that it and the steps add up to the window."""
    left = dict(ledger.buckets_ps)
    for parts in in_steps:
        for bucket, ps in parts.items():
            left[bucket] -= ps
    return {bucket: ps for bucket, ps in left.items() if ps}


def _finding(finding: Finding) -> FindingEntry:
    return {
        "id": finding.id,
        "name": finding.name,
        "bucket": finding.bucket,
        "severity": finding.severity,
        "lost_ps": finding.lost_ps,
        "gain_ps": _gain(finding.gain),
        "later_gain_ps": _gain(finding.later_gain),
        "later_gain_at_least": finding.later_at_least,
        "confidence": finding.confidence,
        "blames": list(finding.blames),
        "estimated": finding.estimated,
        "lines": [_line(line) for line in finding.lines],
        "stack": [_cut(frame, LONGEST_NAME) for frame in finding.stack],
        "title": _cut(finding.title, LONGEST_NAME),
        "explanation": _cut(finding.explanation, LONGEST_TEXT),
        "change": _change(finding.change),
        "evidence": [
            _fields(e, line=_cut(e.line, LONGEST_NAME), label=_cut(e.label, LONGEST_NAME))
            for e in finding.evidence
        ],
    }


def _line(line: CodeLine) -> CodeLineEntry:
    texts = {key: _cut(getattr(line, key), LONGEST_NAME) for key in ("path", "function", "name")}
    entry: CodeLineEntry = _fields(line, **texts, source=_cut(line.source, LONGEST_NAME))
    return entry


def _stacks(stacks: Sequence[CodeStack]) -> StacksEntry:
    """Each frame once: most stacks share most of their frames."""
    numbers: dict[Frame, int] = {}
    entries: list[StackEntry] = []
    for stack in stacks:
        frames = [numbers.setdefault(frame, len(numbers)) for frame in stack.frames[::-1]]
        entries.append({"bucket": stack.bucket, "frames": frames, "ps": stack.ps})
    return {
        "frames": [_cut(f"{f.path}:{f.line} {f.function}", LONGEST_NAME) for f in numbers],
        "users": [number for frame, number in numbers.items() if frame.is_users],
        "stacks": entries,
    }


def _change(change: Change) -> ChangeEntry:
    return {
        "text": _cut(change.text, LONGEST_TEXT),
        "before": _cut(change.before, LONGEST_TEXT),
        "after": _cut(change.after, LONGEST_TEXT),
        "turns": {turn.knob: turn.to for turn in change.turns},
    }


def _gain(gain: Gain) -> RangeEntry:
    return {"low": gain.low_ps, "high": gain.high_ps}


def _plan(plan: Plan) -> PlanEntry:
    later = plan.later_epoch
    return {
        "findings": list(plan.findings),
        "first_epoch_ps": _forecast(plan.first_epoch),
        "later_epoch_ps": _forecast(later) if later else None,
    }


def _forecast(forecast: Forecast) -> ForecastEntry:
    return {"now": forecast.now_ps, "low": forecast.low_ps, "high": forecast.high_ps}


def _host(host: HostLedger) -> HostLedgerEntry:
    return {
        "host": host.host,
        "buckets_ps": host.ledger.buckets_ps,
        "covered_ps": host.covered_ps,
        "training_thread": host.training_thread and _cut(host.training_thread, LONGEST_NAME),
        "evidence": _texts(host.evidence),
        "notes": [note_entry(note) for note in host.notes],
    }


def _cluster(cluster: Cluster) -> ClusterEntry:
    first = cluster.ended_first
    return {
        "size": cluster.size,
        "size_source": cluster.size_source,
        "members": [
            {"name": m.name, "traced": m.traced, "captured": m.captured, "steps": m.steps,
             "last_unix_ns": m.last_ns if m.captured else None, "ended": m.ended or None}
            for m in cluster.members
        ],
        "missing": list(cluster.missing),
        "ended_first": first.name if first is not None else None,
        "ended_unix_ns": first.at_unix_ns if first is not None else None,
        "others_waited_ps": cluster.others_waited_ps,
    }  # fmt: skip


def _lateness(lateness: Lateness) -> LatenessEntry | None:
    """Who made whom wait; if there are many steps, the costliest, in order of time."""
    if not lateness.meetings:
        return None
    costliest = sorted(lateness.steps, key=lambda late: -late.cost_ps)[:LATE_STEPS_MOST]
    return {
        "meetings": lateness.meetings,
        "waited_ps": dict(lateness.waited_ps),
        "hosts": [
            {"host": h.host, "times": h.times, "late_steps": h.late_steps, "cost_ps": h.cost_ps,
             "bucket": h.reason.bucket or None, "cause": h.reason.cause or None,
             "cause_ps": h.reason.ps, "once": h.once}
            for h in lateness.hosts
        ],
        "steps": [
            _fields(s, step=s.step if s.step >= 0 else None, cause=s.cause or None)
            for s in sorted(costliest, key=lambda late: late.end_ps)
        ],
        "steps_left_out": max(len(lateness.steps) - LATE_STEPS_MOST, 0),
    }  # fmt: skip


def _learning(learning: LearningCurves) -> LearningEntry:
    return {
        "per": learning.per,
        "loss": _points(learning.loss),
        "baseline": learning.baseline,
        "baseline_words": learning.baseline_words,
        "gradients": [
            {"layer": _cut(layer, LONGEST_NAME), "norms": _points(points)}
            for layer, points in learning.gradients
        ],
    }


def _points(points: Sequence[tuple[int, float]]) -> list[PointEntry]:
    return [{"at": at, "value": value if math.isfinite(value) else None} for at, value in points]


def _computing(computing: Computing) -> ComputingEntry:
    parts = computing.parts
    return {
        "ops_ps": parts.ops_ps,
        "layers": [_part(part) for part in parts.layers[:PARTS_MOST]],
        "kinds": [_part(part) for part in parts.kinds[:PARTS_MOST]],
        "next_steps": [
            {"topic": step.topic, "helps": step.helps, "text": step.text}
            for step in computing.next_steps
        ],
    }


def _part(part: ModelPart) -> ModelPartEntry:
    return {"name": _cut(part.name, LONGEST_NAME), "ps": part.ps, "ops": part.ops}


def note_entry(note: Note) -> NoteEntry:
    return {"level": note.level, "text": _cut(note.text, LONGEST_TEXT), "where": note.where}


def _fields(record: object, **changed: object) -> Any:
    """A record whose fields have the same names in the document, with some of them changed."""
    return vars(record) | changed


def _texts(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: _cut(text, LONGEST_TEXT) for name, text in texts.items()}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
