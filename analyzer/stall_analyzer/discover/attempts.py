"""Restarts that wrote into the same run folder, distinguished by the names of their event files.

    events.out.tfevents.<unix seconds>.<host>.<pid>.<n>.v2 (.stall, for a capture's)

Every process that writes into train/ (or, without such a folder, into the run folder itself) is an
attempt, unless it began together with the one before: another worker of the same job. A process
counts its writers (<n>), which tells a second fit() from a restart with the same pid, as processes
in a container have. The other files go by their process, then by the clock. A capture of a process
that wrote nothing else is an attempt that never got to training, unless its task makes it a worker
of another one. A profile session belongs to the attempt that was running when it was exported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import field, replace
from datetime import datetime, timezone
from functools import lru_cache

from stall_analyzer.model.notes import Note
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import DumpFiles, EventFile, ProfileSession

# Importing TensorFlow takes longer, so a restart cannot begin this soon after the first start.
SAME_START_S = 2
# Workers on several hosts begin together, but not in the same second.
WORKERS_START_S = 60
# Workers that belong to one cluster, according to their captures, wait for each other.
TASKS_START_S = 600
# A session is named by the writer's local time: time zones differ from UTC by whole quarters of an
# hour, at most 14 hours.
ZONE_STEP_S = 15 * 60
ZONE_MAX_S = 14 * 3600
# From naming the session folder to the last byte written into it.
EXPORT_S = 30

_EVENT_NAME = pattern(
    r"tfevents\.(?P<start>\d+)\.(?P<host>.+?)"
    r"(\.(?P<pid>\d+)\.(?P<n>\d+)((?P<capture>\.stall)|\.v2)?)?$"
)
_SESSION_NAME = pattern(r"(\d{4})[-_](\d\d)[-_](\d\d)[-_](\d\d)[-_](\d\d)[-_](\d\d)$")


@dataclass(frozen=True)
class Writer:
    """The process behind an event file, as far as the file's name tells."""

    start_s: int
    host: str
    pid: int | None
    number: int = 0  # counts the files that the process has begun, separately for captures
    captures: bool = False
    task: str = ""  # for a capture in a cluster
    parent: int | None = None  # for a capture: the pid of the process that started it

    @property
    def process(self) -> tuple[str, int | None]:
        return self.host, self.pid


@dataclass(frozen=True)
class FoundSession:
    """A profile session, and when it was written."""

    session: ProfileSession
    written_unix_s: tuple[float, ...]  # modification times of its host files


@dataclass
class Attempt:
    """What one start of training wrote into a folder."""

    start_s: int
    writers: list[Writer] = field(default_factory=list)
    event_files: list[EventFile] = field(default_factory=list)
    sessions: list[ProfileSession] = field(default_factory=list)
    dumps: list[DumpFiles] = field(default_factory=list)


@lru_cache(maxsize=1024)  # each file of a run is looked up several times
def writer_of(path: str) -> Writer | None:
    match = _EVENT_NAME.search(path.replace("\\", "/").rpartition("/")[2])
    if match is None:
        return None
    pid = match["pid"]
    return Writer(
        start_s=int(match["start"]),
        host=match["host"],
        pid=int(pid) if pid else None,
        number=int(match["n"] or 0),
        captures=match["capture"] is not None,
    )


def split_attempts(
    event_files: Sequence[EventFile],
    sessions: Sequence[FoundSession],
    export_stamps_s: Sequence[int],
) -> tuple[list[Attempt], list[Note]]:
    """The attempts in one run folder, oldest first, at least one. `export_stamps_s` are the unix
    seconds in the names of `*.profile-empty` files, which are written together with a session."""
    notes: list[Note] = []
    roles = {file.role for file in event_files}
    leading = next((role for role in ("train", "run", "validation") if role in roles), "")
    attempts = _begin_attempts([f for f in event_files if f.role == leading], notes)
    others = [file for file in event_files if file.role != leading]
    # Captures join the attempt of their own process before those of its other workers do.
    known = {writer.process for attempt in attempts for writer in attempt.writers}
    for file in sorted(others, key=lambda file: (_is_foreign(file, known), _by_start(file))):
        owner = _owner(attempts, _writer(file))
        owner.event_files.append(file)
        if owner not in attempts:
            attempts.append(owner)
    attempts.sort(key=lambda attempt: attempt.start_s)
    _place_sessions(attempts, sessions, export_stamps_s, notes)
    for attempt in attempts:
        attempt.event_files.sort(key=_by_start)
    return attempts, notes


def place_dumps(attempts: Sequence[Attempt], dumps: Sequence[DumpFiles]) -> None:
    """Gives each dump to the attempt that began closest to it: a debugger starts a little before or
    after fit()."""
    for dump in dumps:
        nearest = min(attempts, key=lambda attempt: abs(attempt.start_s - dump.start_unix_s))
        nearest.dumps.append(dump)


def _begin_attempts(event_files: Sequence[EventFile], notes: list[Note]) -> list[Attempt]:
    attempts: list[Attempt] = []
    for file in sorted(event_files, key=_by_start):
        writer = _writer(file)
        attempt = _attempt_of(attempts, writer, notes)
        if attempt is None:
            attempt = Attempt(writer.start_s if writer else 0)
            attempts.append(attempt)
        attempt.event_files.append(file)
        if writer is not None:
            attempt.writers.append(writer)
    return attempts or [Attempt(0)]


def _attempt_of(
    attempts: Sequence[Attempt], writer: Writer | None, notes: list[Note]
) -> Attempt | None:
    """The attempt that a file belongs to; None if it begins another one."""
    own = [attempt for attempt in attempts if writer is not None and _goes_on(attempt, writer)]
    if own:
        return own[-1]
    if not attempts or (writer is not None and _begins_anew(attempts[-1], writer, notes)):
        return None
    return attempts[-1]


def _begins_anew(attempt: Attempt, writer: Writer, notes: list[Note]) -> bool:
    later_s = writer.start_s - attempt.start_s
    if _is_another_worker(attempt, writer) or _is_started_by(attempt, writer):
        return False
    names_process = attempt.writers and all(w.pid is not None for w in (*attempt.writers, writer))
    if not names_process:
        if later_s > SAME_START_S:
            text = (
                "Several event files in one folder do not name their process: "
                "they are read as one training run, which may be wrong."
            )
            _note_once(notes, Note("info", text))
        return False
    other_host = all(known.host != writer.host for known in attempt.writers)
    if other_host and later_s <= WORKERS_START_S:
        text = (
            "Several hosts began event files at about the same time: they are read as one training "
            "run."
        )
        _note_once(notes, Note("info", text))
        return False
    return later_s > SAME_START_S


def _goes_on(attempt: Attempt, writer: Writer) -> bool:
    """Whether it is another file of a process of this attempt: another fit(), or a capture's next
    file."""
    own = [known for known in attempt.writers if known.process == writer.process]
    alike = [known.number for known in own if known.captures == writer.captures]
    return writer.pid is not None and bool(own) and writer.number > max(alike, default=-1)


def _is_another_worker(attempt: Attempt, writer: Writer) -> bool:
    tasks = {known.task for known in attempt.writers if known.task}
    together = writer.start_s - attempt.start_s <= TASKS_START_S
    return bool(writer.task and tasks) and writer.task not in tasks and together


def _is_started_by(attempt: Attempt, writer: Writer) -> bool:
    """A process that another one started to help it, such as the workers of a PyDataset."""
    parent = writer.host, writer.parent
    return writer.parent is not None and any(w.process == parent for w in attempt.writers)


def _owner(attempts: Sequence[Attempt], writer: Writer | None) -> Attempt:
    """The attempt of a validation or run-folder file: by its process, else the one then running."""
    if writer is None:
        return attempts[-1]
    own = [
        attempt
        for attempt in attempts
        if any(known.process == writer.process for known in attempt.writers)
        or _is_started_by(attempt, writer)
    ]
    if own or not writer.captures:
        owner = _running_at(own or attempts, writer.start_s)
    else:
        # A capture begins before fit() does, and so before the event files of the leading process.
        owner = _running_at(attempts, writer.start_s + WORKERS_START_S)
        if not _is_another_worker(owner, writer):
            owner = Attempt(writer.start_s)
    if writer.captures:
        owner.writers.append(writer)
    return owner


def _running_at(attempts: Sequence[Attempt], unix_s: float) -> Attempt:
    begun = [attempt for attempt in attempts if attempt.start_s <= unix_s + SAME_START_S]
    return begun[-1] if begun else attempts[0]


def _place_sessions(
    attempts: Sequence[Attempt],
    sessions: Sequence[FoundSession],
    export_stamps_s: Sequence[int],
    notes: list[Note],
) -> None:
    timed = [(found, local_seconds(found.session.id)) for found in sessions]
    known = [(found, local_s) for found, local_s in timed if local_s is not None]
    seen_s = _offset_seen(known, export_stamps_s)
    # A single attempt has all sessions, whatever the offset.
    guess = seen_s is None and len(attempts) > 1
    offset_s = _offset_guessed(attempts, known) if guess else seen_s or 0
    for index, (found, local_s) in enumerate(timed):
        session = found.session
        if local_s is not None:
            exported_s = None if seen_s is None else local_s - seen_s
            session = replace(session, exported_unix_s=exported_s)
            _running_at(attempts, local_s - offset_s).sessions.append(session)
        elif len(sessions) == len(attempts):
            attempts[index].sessions.append(session)
        else:
            attempts[-1].sessions.append(session)
        if local_s is None and 1 < len(attempts) != len(sessions):
            text = (
                f"The name of session {found.session.id} contains no time, so it counts "
                f"as part of the last attempt in its folder."
            )
            notes.append(Note("warning", text, found.session.path))


def local_seconds(session_id: str) -> int | None:
    """The time in a session's name, read as if it were UTC."""
    match = _SESSION_NAME.search(session_id)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(group) for group in match.groups())
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError:
        return None
    return int(moment.timestamp())


def _offset_seen(
    timed: Sequence[tuple[FoundSession, int]], export_stamps_s: Sequence[int]
) -> int | None:
    """How far the sessions' local times are ahead of UTC, from the times of files that were written
    with them; None if no file tells (copied files lose their times)."""
    all_local_s = [local_s for _, local_s in timed]
    seen = [_offset_between(all_local_s, unix_s) for unix_s in export_stamps_s]
    for found, local_s in timed:
        seen.extend(_offset_between([local_s], unix_s) for unix_s in found.written_unix_s)
    votes = Counter(offset_s for offset_s in seen if offset_s is not None)
    return min(votes, key=lambda offset_s: (-votes[offset_s], abs(offset_s)), default=None)


def _offset_guessed(attempts: Sequence[Attempt], timed: Sequence[tuple[FoundSession, int]]) -> int:
    """The offset that puts the sessions soonest after the starts of the attempts."""

    def unlikeliness(offset_s: int) -> tuple[int, int, int]:
        moments = [local_s - offset_s for _, local_s in timed]
        after_s = [moment - _running_at(attempts, moment).start_s for moment in moments]
        before = sum(1 for value in after_s if value < -SAME_START_S)
        return before, sum(after_s), abs(offset_s)

    return min(range(-ZONE_MAX_S, ZONE_MAX_S + 1, ZONE_STEP_S), key=unlikeliness)


def _offset_between(candidates_local_s: Sequence[int], unix_s: float) -> int | None:
    """The time zone in which one of the local times is the moment `unix_s`."""
    fits = []
    for local_s in candidates_local_s:
        offset_s = round((local_s - unix_s) / ZONE_STEP_S) * ZONE_STEP_S
        fits.append((abs(local_s - unix_s - offset_s), abs(offset_s), offset_s))
    if not fits:
        return None
    misfit_s, size_s, offset_s = min(fits)
    return offset_s if misfit_s <= EXPORT_S and size_s <= ZONE_MAX_S else None


def _writer(file: EventFile) -> Writer | None:
    writer = writer_of(file.path)
    return replace(writer, task=file.task, parent=file.parent) if writer is not None else None


def _is_foreign(file: EventFile, processes: Collection[tuple[str, int | None]]) -> bool:
    writer = writer_of(file.path)
    return writer is not None and writer.process not in processes


def _by_start(file: EventFile) -> tuple[int, int, str]:
    writer = writer_of(file.path)
    return (writer.start_s, writer.number, file.path) if writer else (0, 0, file.path)


def _note_once(notes: list[Note], note: Note) -> None:
    if note not in notes:
        notes.append(note)
