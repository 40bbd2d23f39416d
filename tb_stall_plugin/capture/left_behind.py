"""What a captured command has left in the log directory, in words for its user."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tensorboard.compat.proto import event_pb2

from stall_analyzer.captures.capture_format import Kind, Reason, Tag, Window
from stall_analyzer.discover.attempts import writer_of
from stall_analyzer.errors import WireError
from stall_analyzer.files import files
from stall_analyzer.files.tfrecord import Record, RecordFile, is_intact, read_records

NO_TENSORFLOW = """\
no process imported TensorFlow, so that nothing was captured. Was the command
`python …`, of an environment with tensorboard-plugin-stall, without -I, -E and -S?
And can {logdir} be written to?"""

NO_FIT = """\
there was no model.fit: memory, hangs and last words are recorded, but neither
steps nor profiles. In a custom loop, these lines add them:

    import tb_stall_plugin as stall
    with stall.watch({logdir!r}) as w:
        for x, y in dataset:
            w.step(loss=train_step(x, y))
"""


def in_words(logdir: str, since_unix_s: float) -> str:
    records = list(_records(logdir, since_unix_s))
    kinds = [record["kind"] for record in records]
    if Kind.START not in kinds:
        return NO_TENSORFLOW.format(logdir=logdir)
    lines = []
    if Kind.MARK not in kinds:
        lines.append(NO_FIT.format(logdir=logdir))
    processes = len({(r["host"], r["pid"]) for r in records if r["kind"] == Kind.START})
    profiles = sum(r.get("what") == Window.SAVED for r in records)
    hangs = [r for r in records if r["kind"] == Kind.DUMP and r.get("reason") == Reason.NO_STEP]
    lines.append(
        f"captured {_many(processes, 'process', 'es')}, {_many(profiles, 'profile', 's')}."
    )
    if hangs:
        longest_s = max(r["idle_s"] for r in hangs)
        lines.append(f"No step finished for {longest_s:.0f} s: all stacks are written down.")
    lines.append(f"Now: stall-analyze {logdir}")
    return "\n".join(lines)


def _many(count: int, word: str, plural: str) -> str:
    return f"{count} {word}{'' if count == 1 else plural}"


def _records(logdir: str, since_unix_s: float) -> Iterator[dict[str, Any]]:
    """Of all processes that wrote there since."""
    for folder in files.walk(logdir):
        for name in folder.names:
            writer = writer_of(name)
            if name.endswith(".stall") and writer and writer.start_s >= int(since_unix_s):
                yield from _records_of(files.join(folder.path, name))


def _records_of(path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def take(file: RecordFile, record: Record) -> None:
        whole = file.whole(record)
        if whole is None or not is_intact(whole):
            raise WireError("damaged")
        found.extend(
            json.loads(value.tensor.string_val[0])
            for value in event_pb2.Event.FromString(whole.data).summary.value
            if value.tag.startswith(Tag.RECORD)
        )

    read_records(path, "an event file", take, notes=[])
    return found
