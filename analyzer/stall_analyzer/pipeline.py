"""The whole analysis of one run; the only place where the stages are put together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from stall_analyzer.align.align import align
from stall_analyzer.decode.decode import read_trace
from stall_analyzer.decode.trace_cache import TraceCache
from stall_analyzer.discover.attempts import writer_of
from stall_analyzer.errors import ForeignFile, Unreachable, UnreadableFile
from stall_analyzer.events.event_files import read_events
from stall_analyzer.files.guard import guarded, note_of
from stall_analyzer.model.console_log import ConsoleLog
from stall_analyzer.model.debug_dump import DebugDump
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.findings import Report
from stall_analyzer.model.foreign import ForeignTrace
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import ProfileSession, Run
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.trace import TraceSource
from stall_analyzer.progress import DIVIDING_SHARE, Progress, Reading, ignore_progress


def analyze(run: Run, progress: Progress = ignore_progress, kept_in: Path | None = None) -> Report:
    """Read a run and account for its first epoch. Bad data becomes notes, never exceptions.

    `kept_in`: a folder for what was read from growing files, so that it is not read again.
    """
    notes = list(run.notes)
    reading = Reading(run, progress)
    events, dump = None, None
    consoles: tuple[ConsoleLog, ...] = ()
    with guarded("The event files", notes):
        events = _read_events(run, notes, reading, kept_in)
    with guarded("The debugger's dump", notes):
        dump = _read_dump(run, notes)
    with guarded("The console's output", notes):
        consoles = _read_consoles(run, notes)
    whole = _Pieces(run, events, dump, consoles)
    try:
        return _answered(whole, [*notes], progress, reading)
    except Exception as error:
        for what, rest in whole.without_one():
            without = Note("error", f"{what} had to be left out: {_fault(error)}")
            with suppress(Exception):
                return _answered(rest, [*notes, without], progress, Reading(run, ignore_progress))
        raise


@dataclass(frozen=True)
class _Pieces:
    """Everything that was read of a run except its traces."""

    run: Run
    events: EventLog | None
    dump: DebugDump | None
    consoles: tuple[ConsoleLog, ...]

    def without_one(self) -> Iterator[tuple[str, _Pieces]]:
        """The pieces without one of them, smallest first, for when all together make it fail."""
        if self.dump is not None:
            yield "The debugger's dump", replace(self, dump=None)
        if self.consoles:
            yield "The console's output", replace(self, consoles=())
        if self.events is not None and self.events.captures:
            yield "The captures", replace(self, events=replace(self.events, captures=()))
        if self.run.sessions:
            yield "The event files", replace(self, events=None)
            yield "The traces", replace(self, run=replace(self.run, sessions=()))
            yield "Everything except the traces", _Pieces(self.run, None, None, ())


def _fault(error: Exception) -> str:
    return f"{type(error).__name__}: {error}. This is a bug in stall-analyze."


def _answered(pieces: _Pieces, notes: list[Note], progress: Progress, reading: Reading) -> Report:
    run = pieces.run
    foreign: list[ForeignTrace] = []
    traces = _read_traces(run, notes, foreign, reading)
    timeline = align(traces, pieces.events, _logging_host(run))
    timeline = replace(timeline, dump=pieces.dump, foreign=tuple(foreign), consoles=pieces.consoles)
    timeline = replace(timeline, unread_hosts=_unread_hosts(run, timeline))
    return _accounted(run, timeline, notes, progress)


def analyze_log(run: Run, events: EventLog) -> Report:
    """The same for something that is in no file: a process that was looked at."""
    return _accounted(run, align((), events), list(run.notes), ignore_progress)


def _accounted(run: Run, timeline: Timeline, notes: list[Note], progress: Progress) -> Report:
    # Not imported above: the command loads them while it reads, see `cli`.
    from stall_analyzer.attribute.attribute import attribute  # noqa: PLC0415
    from stall_analyzer.diagnose.diagnose import diagnose  # noqa: PLC0415

    progress(DIVIDING_SHARE, "dividing its time")
    hosts = attribute(timeline)
    progress(0.9, "looking for causes")
    report = diagnose(run, timeline, hosts)
    notes += (*timeline.notes, *report.notes)
    notes += [replace(n, where=n.where or h.host) for h in hosts for n in h.notes]
    return replace(report, notes=tuple(dict.fromkeys(notes)))


def _read_traces(
    run: Run, notes: list[Note], foreign: list[ForeignTrace], reading: Reading
) -> Iterator[tuple[ProfileSession, TraceSource]]:
    """One after the other, so that the traces of a large cluster need not all be in memory."""
    cache = TraceCache(read_trace)
    for session in run.sessions:
        for host in session.hosts:
            progress = reading.file(f"the trace of {host.host}", host.size)
            try:
                trace = cache.put(host, read_trace(host, progress))
            except ForeignFile as error:
                foreign.append(error.trace)
                notes.append(Note("info", f"{error}.", f"{session.id}/{host.host}"))
            except UnreadableFile as error:  # one bad host must not hide the others
                where, may_pass = f"{session.id}/{host.host}", isinstance(error, Unreachable)
                notes.append(Note("error", f"{error}.", where, may_pass))
            except Exception as error:
                notes.append(note_of(f"The trace of {host.host}", error, session.id))
            else:
                yield session, trace


def _unread_hosts(run: Run, timeline: Timeline) -> tuple[str, ...]:
    read = {aligned.host for aligned in timeline.traces}
    read |= {trace.host for trace in timeline.foreign}
    hosts = (host.host for session in run.sessions for host in session.hosts)
    return tuple(dict.fromkeys(host for host in hosts if host not in read))


def _logging_host(run: Run) -> str:
    """The host whose clock the event files use."""
    writers = [writer_of(file.path) for file in run.event_files]
    return next((writer.host for writer in writers if writer is not None), "")


def _read_events(
    run: Run, notes: list[Note], reading: Reading, kept_in: Path | None
) -> EventLog | None:
    if not run.event_files:
        return None
    events = read_events(run, reading, kept_in)
    notes += events.notes
    return events


def _read_dump(run: Run, notes: list[Note]) -> DebugDump | None:
    if not run.dumps:
        return None
    from stall_analyzer.tfdbg.debug_dumps import read_dump  # noqa: PLC0415  few runs have any

    dump = read_dump(run)
    if dump is not None:
        notes += dump.notes
    return dump


def _read_consoles(run: Run, notes: list[Note]) -> tuple[ConsoleLog, ...]:
    if not run.consoles:
        return ()
    from stall_analyzer.consoles.console_reader import read_consoles  # noqa: PLC0415  as above

    return read_consoles(run, notes)
