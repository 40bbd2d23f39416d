"""Find the runs, profile sessions, event files and debugger dumps under any path.

Names are the same as in the two plugins: a run is named by its folder relative to the logdir ("."
for the logdir itself), a session by `<run folder>/<session>`. A folder named train or validation
belongs to the run of its parent, because Keras writes one run into those two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import partial

from stall_analyzer.captures.capture_format import STAGING
from stall_analyzer.captures.how_to_capture import HOW_TO_GO_ON
from stall_analyzer.discover.attempts import FoundSession, place_dumps, split_attempts, writer_of
from stall_analyzer.discover.console_files import (
    FoundConsoles,
    FoundRun,
    Surroundings,
    consoles_of_attempt,
    only_of_lone_runs,
)
from stall_analyzer.errors import NothingFound, UnreadableFile
from stall_analyzer.files import files
from stall_analyzer.files.listing import FileInfo, Folder
from stall_analyzer.files.tfrecord import HEAD_BYTES
from stall_analyzer.model.notes import Note
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import (
    ConsoleFile,
    DumpFiles,
    EventFile,
    HostFile,
    ProfileSession,
    Run,
)

XPLANE = ".xplane.pb"
TRACE_JSON = ".trace.json.gz"
EVENT_FILE = "tfevents"  # anywhere in a name, as in TensorBoard
PROFILE_EMPTY = ".profile-empty"  # written with a session so that TensorBoard sees its folder
PYTORCH_TRACES = (".pt.trace.json.gz", ".pt.trace.json")  # of torch.profiler
RAW_TRACES = (XPLANE, *PYTORCH_TRACES, TRACE_JSON)
# A file given by name may be any Chrome trace: PyTorch lets the user choose its name.
ANY_JSON = (".json.gz", ".json")
FORMATS = {
    XPLANE: "xplane",
    **dict.fromkeys((*PYTORCH_TRACES, TRACE_JSON, *ANY_JSON), "trace_json"),
}
ROLES = frozenset({"train", "validation"})
DUMP_FILE = pattern(
    r"(?P<set>tfdbg_events\.(?P<start>\d{1,12})\..+)\."
    r"(?P<part>metadata|source_files|stack_frames|graphs|execution|graph_execution_traces)"
)
# In the start record of a capture, which is one of the first in its file.
PARENT = pattern(rb'"parent": *(?P<pid>\d{1,9})\b')
TASK = pattern(rb'"task": *\{"type": *"(?P<type>\w+)", *"index": *(?P<index>\d+)\}')

PathParts = tuple[str, ...]


@dataclass(frozen=True)
class Discovery:
    """All runs under some paths."""

    runs: tuple[Run, ...]
    notes: tuple[Note, ...] = ()


@dataclass
class _RunFolder:
    """What the walk has found for one run so far."""

    path: str
    event_files: list[EventFile] = field(default_factory=list)
    sessions: list[FoundSession] = field(default_factory=list)
    export_stamps_s: list[int] = field(default_factory=list)
    dumps: list[DumpFiles] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    changed_unix_s: float | None = None
    consoles: FoundConsoles = field(default_factory=FoundConsoles)

    def info(self, folder: Folder, name: str) -> FileInfo | None:
        """What is known about a file in one of its folders; None, and a note, if it cannot be
        read."""
        path = files.join(folder.path, name)
        try:
            found = folder.listed.get(name) or files.info(path)
        except UnreadableFile as error:
            text = f"A file could not be read: {error}."
            self.notes.append(Note("warning", text, path, may_pass=True))
            return None
        times_s = (self.changed_unix_s, found.modified_unix_s)
        self.changed_unix_s = max(
            (time_s for time_s in times_s if time_s is not None), default=None
        )
        return found


def discover(paths: Sequence[str]) -> Discovery:
    """Every run under the given logdirs, run folders, session folders or single files.

    Raises NothingFound when there is none at all.
    """
    found = find_runs(paths)
    if not found.runs:
        raise NothingFound(nothing_found(paths, found.notes))
    return found


def find_runs(paths: Sequence[str]) -> Discovery:
    """The same for logdirs that may still be empty."""
    notes: list[Note] = []
    runs = sorted(stream_runs(paths, notes), key=lambda run: by_name(run.name, run.attempt))
    return Discovery(tuple(runs), tuple(notes))


def by_name(name: str, attempt: int) -> tuple[PathParts, int]:
    """The order of runs in every view: a run before those inside its folder."""
    return () if name == "." else tuple(name.split("/")), attempt


def stream_runs(paths: Sequence[str], notes: list[Note]) -> Iterator[Run]:
    """Each run as soon as all of its files are found, in no particular order; anything that does
    not concern a single run is added to `notes`."""
    roots = list(dict.fromkeys(paths))
    prefixes = _prefixes(roots) if len(roots) > 1 else [""] * len(roots)
    for root, prefix in zip(roots, prefixes, strict=True):
        yield from _runs_under(root, prefix, notes)


def _runs_under(root: str, prefix: str, notes: list[Note]) -> Iterator[Run]:
    try:
        yield from only_of_lone_runs(_found_runs(root, prefix, notes))
    except UnreadableFile as error:
        notes.append(Note("error", f"{root or 'An empty path'} could not be read: {error}.", root))


def _found_runs(root: str, prefix: str, notes: list[Note]) -> Iterator[FoundRun]:
    for parts, folder in _run_folders(root, notes):
        name = "/".join((*((prefix,) if prefix else ()), *parts)) or "."
        yield FoundRun(parts, folder.consoles, partial(_attempts_in, folder, name, notes))


def _attempts_in(
    folder: _RunFolder, name: str, notes: list[Note], consoles: tuple[ConsoleFile, ...]
) -> Iterator[Run]:
    if not (folder.event_files or folder.sessions or folder.dumps or folder.notes):
        return  # only a *.profile-empty whose session is gone
    folder.sessions.sort(key=lambda found: found.session.id)
    attempts, attempt_notes = split_attempts(
        folder.event_files, folder.sessions, folder.export_stamps_s
    )
    place_dumps(attempts, folder.dumps)
    own_notes = (*folder.notes, *attempt_notes)
    if len(attempts) > 1:
        text = f"{len(attempts)} attempts wrote into the folder of run {name}."
        notes.extend((Note("info", text, folder.path), *own_notes))
        own_notes = ()  # it is not known which attempt they concern, so they are said once
    for number, attempt in enumerate(attempts, start=1):
        yield Run(
            name=name,
            path=folder.path,
            sessions=tuple(attempt.sessions),
            event_files=tuple(attempt.event_files),
            attempt=number,
            notes=own_notes,
            dumps=tuple(attempt.dumps),
            consoles=consoles_of_attempt(consoles, attempts, number - 1),
            changed_unix_s=folder.changed_unix_s,
        )


def _run_folders(root: str, notes: list[Note]) -> Iterator[tuple[PathParts, _RunFolder]]:
    """Run folders under `root`, each when it is complete, with the parts that lead to it."""
    kind = files.kind(root) if root else None
    if kind is None:
        raise UnreadableFile(f"it does not exist{files.did_you_mean(root)}")
    root = files.tidied(root)
    if kind == "file":  # given by itself, it is like a logdir with nothing else in it
        folder_path, name = files.split(root)
        above = files.absolute_parts(folder_path)
        alone: dict[PathParts, _RunFolder] = {}
        place = _Place(Folder(folder_path, (), (name,)), above, is_bare_file=True)
        _take_folder(place, folder_path, alone, None)
        if not alone:
            text = f"{root} is neither a trace (*{XPLANE}, *{TRACE_JSON}) nor an event file."
            notes.append(Note("error", text, root))
        yield from alone.items()
        return
    above = files.absolute_parts(root)
    # The walk is depth first, so a run is complete once the walk has left its folder, unless there
    # is a link below it, because links come last.
    unfinished: dict[PathParts, _RunFolder] = {}
    held: dict[PathParts, _RunFolder] = {}
    linked: set[PathParts] = set()
    surroundings = Surroundings(root)
    for folder in files.walk(root):
        if any(part.startswith(STAGING) for part in folder.parts):
            continue  # a trace that is still being written
        for parts in [p for p in unfinished if folder.parts[: len(p)] != p]:
            if parts in linked:
                held[parts] = unfinished.pop(parts)
            else:
                yield parts, unfinished.pop(parts)
        if folder.has_links:
            linked.update(folder.parts[:length] for length in range(len(folder.parts) + 1))
        if folder.problem is not None:
            text = f"A folder could not be searched: {folder.problem}."
            notes.append(Note("warning", text, folder.path))
        place = _Place(folder, (*above, *folder.parts))
        surroundings.enter(folder)
        found = held if held and place.run_parts in held else unfinished
        _take_folder(place, root, found, surroundings)
    yield from unfinished.items()
    yield from held.items()


@dataclass(frozen=True)
class _Place:
    """A folder, and what its position in the tree means."""

    folder: Folder
    full: PathParts  # from the root of the file system
    is_bare_file: bool = False

    @property
    def is_session(self) -> bool:
        return self.full[-3:-1] == ("plugins", "profile")

    @property
    def run_parts(self) -> PathParts:
        """From the logdir to the run; also () if the run begins above the given path."""
        owner = self._owner_parts
        return owner[:-1] if self.role in ROLES else owner

    @property
    def role(self) -> str:
        owner = self.full[:-3] if self.is_session else self.full
        return owner[-1] if owner and owner[-1] in ROLES else "run"

    @property
    def session_id(self) -> str:
        if self.is_session:
            return "/".join((*self._owner_parts, self.full[-1]))
        # A trace outside of plugins/profile: the Profile plugin does not show it, so any name that
        # the user recognizes is fine.
        if self.is_bare_file:
            return self.folder.names[0].removesuffix(self.suffix(self.folder.names[0]) or "")
        return "/".join(self.folder.parts) or self.full[-1]

    def suffix(self, name: str) -> str | None:
        """What a trace's name ends with; for PyTorch, the longer ending."""
        return next((suffix for suffix in self.suffixes if name.endswith(suffix)), None)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What names of traces end with in this place."""
        return tuple(FORMATS) if self.is_bare_file else RAW_TRACES

    @property
    def _owner_parts(self) -> PathParts:
        return self.folder.parts[:-3] if self.is_session else self.folder.parts


def _take_folder(
    place: _Place,
    root: str,
    found: dict[PathParts, _RunFolder],
    surroundings: Surroundings | None,
) -> None:
    """Add the content of one folder to the run that it belongs to."""
    names = place.folder.names
    events = [name for name in names if EVENT_FILE in name]
    dumped = [match for name in names if (match := DUMP_FILE.fullmatch(name))]
    suffixes = place.suffixes  # looked up once: there may be very many names
    traced = place.is_session or any(name.endswith(suffixes) for name in names)
    if not (traced or events or dumped):
        return
    run_parts = place.run_parts
    run = found.get(run_parts)
    if run is None:
        run = found[run_parts] = _RunFolder(files.join(root, *run_parts))
        if surroundings is not None:
            run.consoles = surroundings.of_run(run_parts, run.path)
    for name in events:
        _take_event_file(place, name, run)
    _take_dumps(place.folder, dumped, run)
    if traced:
        _take_session(place, run)


def _take_event_file(place: _Place, name: str, run: _RunFolder) -> None:
    path = files.join(place.folder.path, name)
    if path.endswith(PROFILE_EMPTY):
        writer = writer_of(path)
        if writer is not None:
            run.export_stamps_s.append(writer.start_s)
        return
    info = run.info(place.folder, name)
    if info is None:
        return
    if info.size == 0:
        text = "An event file is empty: its process wrote nothing, or has not yet."
        run.notes.append(Note("info", text, path))
    task, parent = _process(path)
    run.event_files.append(EventFile(path, place.role, info.size, task, info.stamp, parent))


def _process(path: str) -> tuple[str, int | None]:
    """For a capture, its worker in the cluster and who started it; nothing for other files."""
    writer = writer_of(path)
    if writer is None or not writer.captures:
        return "", None
    try:
        head = files.read_head(path, HEAD_BYTES)
    except (UnreadableFile, OSError):
        return "", None  # its reader will say why
    task, parent = TASK.search(head), PARENT.search(head)
    named = f"{task['type'].decode()} {task['index'].decode()}" if task else ""
    return named, int(parent["pid"]) if parent else None


def _take_dumps(folder: Folder, dumped: Sequence[re.Match[str]], run: _RunFolder) -> None:
    """The debugger's files, grouped into the sets that belong together."""
    for name in dict.fromkeys(match["set"] for match in dumped):
        mine = [match for match in dumped if match["set"] == name]
        infos = {match["part"]: run.info(folder, match.string) for match in mine}
        found = {part: info for part, info in infos.items() if info is not None}
        run.dumps.append(
            DumpFiles(
                files.join(folder.path, name),
                tuple(found),
                int(mine[0]["start"]),
                sum(info.size for info in found.values()),
                " ".join(info.stamp for info in found.values()),
            )
        )


def _take_session(place: _Place, run: _RunFolder) -> None:
    """Host files of a session: the xplane of each host or, if there is none, its old trace."""
    hosts: dict[str, HostFile] = {}
    written: list[float] = []
    for suffix, file_format in FORMATS.items():
        for name in place.folder.names:
            host = name.removesuffix(suffix)
            if place.suffix(name) != suffix or host in hosts:
                continue
            path = files.join(place.folder.path, name)
            info = run.info(place.folder, name)
            if info is None:
                continue
            if info.size == 0:
                run.notes.append(Note("warning", "A trace file is empty.", path))
                continue
            hosts[host] = HostFile(host, path, file_format, info.size, info.stamp)
            # An object store says when a file was put there, which may be long after.
            if info.modified_unix_s is not None and not files.is_url(path):
                written.append(info.modified_unix_s)
    if hosts:
        in_order = tuple(hosts[host] for host in sorted(hosts))
        session = ProfileSession(place.session_id, place.folder.path, in_order)
        run.sessions.append(FoundSession(session, tuple(written)))
    elif place.is_session:
        reason = _why_no_trace(place.folder.names)
        text = f"Profile session {place.session_id} cannot be read: {reason}."
        run.notes.append(Note("warning", text, place.folder.path))


def _why_no_trace(names: Sequence[str]) -> str:
    if any(name.endswith(".xplane.riegeli") for name in names):
        return "it is in the riegeli format, which is not supported; capture it as *.xplane.pb"
    if any(name.endswith(".trace") for name in names):
        return "its local.trace is the format of TensorFlow 2.0 and 2.1, which is not supported"
    if any(name.endswith(RAW_TRACES) for name in names):
        return "its trace is empty or unreadable"
    if names:
        return "it contains only files converted from a trace, not the trace itself"
    return "its folder is empty; the capture may still be running"


def _prefixes(roots: Sequence[str]) -> list[str]:
    """For each path, as many of its last components as are needed to tell it from the others."""
    parts = [files.absolute_parts(root) for root in roots]
    for count in range(1, max(map(len, parts)) + 1):
        prefixes = ["/".join(path[-count:]) for path in parts]
        if len(set(prefixes)) == len(prefixes):
            return prefixes
    return list(roots)


def nothing_found(paths: Sequence[str], notes: Sequence[Note]) -> str:
    """What to tell someone who expected a run there: what is wrong, and what to do."""
    roots = list(dict.fromkeys(paths))
    reasons = [note.text for note in notes if note.level == "error"]
    if len(reasons) < len(roots):
        where = ", ".join(roots)
        reasons = [f"There is no trace (*{XPLANE}, *{TRACE_JSON}) and no event file "
                   f"({EVENT_FILE}*) in {where} or below.", *reasons]  # fmt: skip
    return f"No training run found. {' '.join(reasons)}\n{HOW_TO_GO_ON}"
