"""The whole analysis of one run; the only place where the stages are put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from stall_analyzer.align import align
from stall_analyzer.answers import Report
from stall_analyzer.attribute import attribute
from stall_analyzer.decode import read_trace
from stall_analyzer.diagnose import diagnose
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.events import read_events
from stall_analyzer.format import size
from stall_analyzer.model import DebugDump, EventLog, Note, Run, Session, Trace

# How much is done, from 0 to 1, and what comes next.
Progress: TypeAlias = Callable[[float, str], None]

READING_SHARE = 0.7  # of the whole time, for a large trace


def _unseen(share: float, text: str) -> None: ...


def analyze(run: Run, progress: Progress = _unseen) -> Report:
    """Read a run and account for its first epoch. Bad data become notes, never exceptions."""
    notes = list(run.notes)
    traces = _read_traces(run, notes, progress)
    progress(READING_SHARE, "reading event files")
    events = _read_events(run, notes)
    progress(0.75, "finding the first epoch")
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


def _read_traces(run: Run, notes: list[Note], progress: Progress) -> list[tuple[Session, Trace]]:
    traces: list[tuple[Session, Trace]] = []
    whole = sum(host.size for session in run.sessions for host in session.hosts)
    done = 0
    for session in run.sessions:
        for host_file in session.hosts:
            progress(
                READING_SHARE * done / max(whole, 1),
                f"reading the trace of {host_file.host} ({size(host_file.size)})",
            )
            done += host_file.size
            try:
                traces.append((session, read_trace(host_file)))
            except (UnreadableFile, OSError) as error:  # one bad host hides no other
                notes.append(Note("error", str(error), f"{session.id}/{host_file.host}"))
    return traces


def _read_events(run: Run, notes: list[Note]) -> EventLog | None:
    if not run.event_files:
        return None
    events = read_events(run)
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
