"""Tells the user what a captured command left in the log directory."""

from __future__ import annotations

from stall_analyzer.captures.capture_format import StopReason, WindowEvent
from stall_analyzer.discover.attempts import writer_of
from stall_analyzer.events.event_files import read_events
from stall_analyzer.files import files
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.runs import EventFile, Run

NO_TENSORFLOW = """\
no process imported TensorFlow, so nothing was captured. Was the command
`python …`, in an environment with tensorboard-plugin-stall, and without -I, -E
and -S? Is {logdir} writable?"""

NO_FIT = """\
there was no model.fit: memory, hangs and how the program ended are recorded,
but neither steps nor profiles. In a custom loop, these lines add them:

    import tb_stall_plugin as stall
    with stall.watch({logdir!r}) as w:
        for x, y in dataset:
            w.step(loss=train_step(x, y))
"""


def in_words(logdir: str, since_unix_s: float) -> str:
    captures = captures_since(logdir, since_unix_s)
    if not captures:
        return NO_TENSORFLOW.format(logdir=logdir)
    lines = []
    if not any(capture.trains for capture in captures):
        lines.append(NO_FIT.format(logdir=logdir))
    windows = [window for capture in captures for window in capture.windows]
    profiles = sum(window.what == WindowEvent.SAVED for window in windows)
    dumps = [dump for capture in captures for dump in capture.dumps]
    hung_s = [dump.idle_s for dump in dumps if dump.reason == StopReason.NO_STEP]
    lines.append(
        f"captured {_many(len(captures), 'process', 'es')}, {_many(profiles, 'profile', 's')}."
    )
    if hung_s:
        lines.append(f"No step finished for {max(hung_s):.0f} s; all stacks were recorded.")
    lines.append(f"Next: stall-analyze {logdir}")
    return "\n".join(lines)


def _many(count: int, word: str, plural: str) -> str:
    return f"{count} {word}{'' if count == 1 else plural}"


def captures_since(logdir: str, since_unix_s: float) -> tuple[Capture, ...]:
    """The captures of all processes that began to write there since then."""
    written = tuple(
        EventFile(files.join(folder.path, name), "run", 0)
        for folder in files.walk(logdir)
        for name in folder.names
        if name.endswith(".stall")
        and (writer := writer_of(name))
        and writer.start_s >= int(since_unix_s)
    )
    return read_events(Run(".", logdir, (), written)).captures
