"""What one folder of a log directory holds, and which run it belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from stall_analyzer.discover.attempts import FoundSession, writer_of
from stall_analyzer.discover.console_files import FoundConsoles, Surroundings
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.files import files
from stall_analyzer.files.listing import FileInfo, Folder
from stall_analyzer.files.tfrecord import HEAD_BYTES
from stall_analyzer.model.notes import Note
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import DumpFiles, EventFile, HostFile, ProfileSession

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


@dataclass
class RunFolder:
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


@dataclass(frozen=True)
class Place:
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


def take_folder(
    place: Place,
    root: str,
    found: dict[PathParts, RunFolder],
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
        run = found[run_parts] = RunFolder(files.join(root, *run_parts))
        if surroundings is not None:
            run.consoles = surroundings.of_run(run_parts, run.path)
    for name in events:
        _take_event_file(place, name, run)
    _take_dumps(place.folder, dumped, run)
    if traced:
        _take_session(place, run)


def _take_event_file(place: Place, name: str, run: RunFolder) -> None:
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
        text = "An event file is empty: its process wrote nothing to it, or has not done so yet."
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


def _take_dumps(folder: Folder, dumped: Sequence[re.Match[str]], run: RunFolder) -> None:
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


def _take_session(place: Place, run: RunFolder) -> None:
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
        return "its local.trace is in the format of TensorFlow 2.0 and 2.1, which is not supported"
    if any(name.endswith(RAW_TRACES) for name in names):
        return "its trace is empty or unreadable"
    if names:
        return "it contains only files converted from a trace, not the trace itself"
    return "its folder is empty; the capture may still be running"
