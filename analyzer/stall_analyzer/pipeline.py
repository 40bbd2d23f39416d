"""The whole analysis of one run; the only place where the stages are put together."""

from __future__ import annotations

from dataclasses import replace

from stall_analyzer.align import align
from stall_analyzer.attribute import attribute
from stall_analyzer.decode import read_trace
from stall_analyzer.diagnose import diagnose
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.events import read_events
from stall_analyzer.model import DebugDump, EventLog, Note, Report, Run, Session, Trace
from stall_analyzer.tfdbg import read_dump


def analyze(run: Run) -> Report:
    """Read a run and account for its first epoch. Bad data become notes, never exceptions."""
    notes = list(run.notes)
    traces = _read_traces(run, notes)
    events = _read_events(run, notes)
    timeline = replace(align(traces, events), dump=_read_dump(run, notes))
    hosts = attribute(timeline)
    diagnosis = diagnose(timeline, hosts)
    notes += (*timeline.notes, *diagnosis.notes)
    notes += [replace(n, where=n.where or h.host) for h in hosts for n in h.notes]
    return Report(
        run,
        timeline,
        hosts,
        diagnosis.ledger,
        diagnosis.findings,
        diagnosis.plan,
        diagnosis.verdict,
        tuple(dict.fromkeys(notes)),
    )


def _read_traces(run: Run, notes: list[Note]) -> list[tuple[Session, Trace]]:
    traces: list[tuple[Session, Trace]] = []
    for session in run.sessions:
        for host_file in session.hosts:
            try:
                traces.append((session, read_trace(host_file)))
            except (UnreadableFile, OSError) as error:  # noqa: PERF203  one bad host hides no other
                notes.append(Note("error", str(error), f"{session.id}/{host_file.host}"))
    return traces


def _read_events(run: Run, notes: list[Note]) -> EventLog | None:
    if not run.event_files:
        return None
    events = read_events(run)
    notes += events.notes
    return events


def _read_dump(run: Run, notes: list[Note]) -> DebugDump | None:
    dump = read_dump(run)
    if dump is not None:
        notes += dump.notes
    return dump
