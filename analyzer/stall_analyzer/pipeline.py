"""The whole analysis of one run; the only place where the stages are put together."""

from __future__ import annotations

from dataclasses import replace

from stall_analyzer import files
from stall_analyzer.align import align
from stall_analyzer.answers import Report
from stall_analyzer.attribute import attribute
from stall_analyzer.decode import read_trace
from stall_analyzer.diagnose import diagnose
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.events import read_events
from stall_analyzer.model import DebugDump, EventLog, Note, Run, Session, Trace
from stall_analyzer.progress import READING_SHARE, Progress, Reading, unseen


def analyze(run: Run, progress: Progress = unseen) -> Report:
    """Read a run and account for its first epoch. Bad data become notes, never exceptions."""
    notes = list(run.notes)
    reading = Reading(run, progress)
    traces = _read_traces(run, notes, reading)
    events = _read_events(run, notes, reading)
    progress(READING_SHARE, "finding the first epoch")
    timeline = replace(align(traces, events), dump=_read_dump(run, notes))
    progress(0.8, "dividing its time")
    hosts = attribute(timeline)
    progress(0.9, "looking for causes")
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
        diagnosis.sample,
    )


def _read_traces(run: Run, notes: list[Note], reading: Reading) -> list[tuple[Session, Trace]]:
    traces: list[tuple[Session, Trace]] = []
    for session in run.sessions:
        for host in session.hosts:
            progress = reading.file(f"the trace of {host.host}", host.size)
            open_file = files.open_binary if files.is_url(host.path) else None
            try:
                traces.append((session, read_trace(host, open_file, progress)))
            except (UnreadableFile, OSError) as error:  # one bad host hides no other
                notes.append(Note("error", str(error), f"{session.id}/{host.host}"))
    return traces


def _read_events(run: Run, notes: list[Note], reading: Reading) -> EventLog | None:
    if not run.event_files:
        return None
    events = read_events(run, reading)
    notes += events.notes
    return events


def _read_dump(run: Run, notes: list[Note]) -> DebugDump | None:
    if not run.dumps:
        return None
    from stall_analyzer.tfdbg import read_dump  # noqa: PLC0415  few runs have any

    dump = read_dump(run)
    if dump is not None:
        notes += dump.notes
    return dump
