"""Find the runs, profile sessions, event files and debugger dumps under any path.

Names are the same as in the two plugins: a run is named by its folder relative to the logdir ("."
for the logdir itself), a session by `<run folder>/<session>`. A folder named train or validation
belongs to the run of its parent, because Keras writes one run into those two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from stall_analyzer.captures.capture_format import STAGING
from stall_analyzer.captures.how_to_capture import HOW_TO_GO_ON
from stall_analyzer.discover.attempts import place_dumps, split_attempts
from stall_analyzer.discover.console_files import (
    FoundRun,
    Surroundings,
    consoles_of_attempt,
    only_of_lone_runs,
)
from stall_analyzer.discover.run_folder import (
    EVENT_FILE,
    TRACE_JSON,
    XPLANE,
    PathParts,
    Place,
    RunFolder,
    take_folder,
)
from stall_analyzer.errors import NothingFound, UnreadableFile
from stall_analyzer.files import files
from stall_analyzer.files.listing import Folder
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import ConsoleFile, Run

NO_RUN_HERE = "No training run was found in this folder."


@dataclass(frozen=True)
class Discovery:
    """All runs under some paths."""

    runs: tuple[Run, ...]
    notes: tuple[Note, ...] = ()


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
        found, known = 0, len(notes)
        for run in _runs_under(root, prefix, notes):
            found += 1
            yield run
        if len(roots) > 1 and not found and all(note.level != "error" for note in notes[known:]):
            notes.append(Note("warning", NO_RUN_HERE, root))


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
    folder: RunFolder, name: str, notes: list[Note], consoles: tuple[ConsoleFile, ...]
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


def _run_folders(root: str, notes: list[Note]) -> Iterator[tuple[PathParts, RunFolder]]:
    """Run folders under `root`, each when it is complete, with the parts that lead to it."""
    kind = files.kind(root) if root else None
    if kind is None:
        raise UnreadableFile(f"it does not exist{files.did_you_mean(root)}")
    root = files.tidied(root)
    if kind == "file":  # given by itself, it is like a logdir with nothing else in it
        folder_path, name = files.split(root)
        above = files.absolute_parts(folder_path)
        alone: dict[PathParts, RunFolder] = {}
        place = Place(Folder(folder_path, (), (name,)), above, is_bare_file=True)
        take_folder(place, folder_path, alone, None)
        if not alone:
            text = f"{root} is neither a trace (*{XPLANE}, *{TRACE_JSON}) nor an event file."
            notes.append(Note("error", text, root))
        yield from alone.items()
        return
    above = files.absolute_parts(root)
    # The walk is depth first, so a run is complete once the walk has left its folder, unless there
    # is a link below it, because links come last.
    unfinished: dict[PathParts, RunFolder] = {}
    held: dict[PathParts, RunFolder] = {}
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
        place = Place(folder, (*above, *folder.parts))
        surroundings.enter(folder)
        found = held if held and place.run_parts in held else unfinished
        take_folder(place, root, found, surroundings)
    yield from unfinished.items()
    yield from held.items()


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
