"""The text of a console: bounded, without colors, whatever its encoding.

Only the last megabytes are read, where a job says how it ended, and the beginning, where TensorFlow
says what it found. A progress bar rewrites its line: each of its states counts as a separate line,
but line numbers are those of an editor.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from datetime import datetime

from stall_analyzer.files import files
from stall_analyzer.model.console_log import ConsoleLine
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import ConsoleFile

HEAD_BYTES = 512 << 10
TAIL_BYTES = 4 << 20
BINARY_LOOK_BYTES = 4096
LONGEST_LINE = 1000  # characters; the rest of the line is ignored
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]")
BACKSPACES = re.compile("\x08+")
# How lines begin that TensorFlow's own code or Python's warnings wrote.
BEFORE_MESSAGE = re.compile(
    r"^.*?(?:[IWEF]\d{4} [\d:.]+ +\d+ \S+:\d+\] |\d{4}-\d\d-\d\d [\d:.]+: [IWEF] \S+:\d+\] "
    r"|WARNING:tensorflow:|\S+\.py:\d+: \w*Warning: )"
)
# absl counts seconds since 1970 until it is initialized; all other times are local.
UNIX_TIME = re.compile(r"[IWEF]0000 00:00:(\d{9,11}\.\d+)")
LOCAL_TIME = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?)")


@dataclass(frozen=True)
class ConsoleText:
    """What was read from one file."""

    file: str  # its name
    text: str
    gap: int | None = None  # where in the text the middle is missing

    def find(self, hint: str) -> Iterator[int]:
        """Where the words are."""
        at = self.text.find(hint)
        while at >= 0:
            yield at
            at = self.text.find(hint, at + len(hint))

    def bounds(self, at: int) -> tuple[int, int]:
        """Begin and end of the line around a place."""
        start = max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1
        ends = [end for end in (self.text.find(c, at) for c in "\n\r") if end >= 0]
        return start, min(ends, default=len(self.text))

    def line(self, at: int) -> ConsoleLine:
        start, end = self.bounds(at)
        whole = self.text[start:end]
        message = BEFORE_MESSAGE.sub("", whole, count=1).strip()[:LONGEST_LINE]
        time_s = unix_s(whole)
        return ConsoleLine(
            message, self.file, self.number(at), None if time_s is None else int(time_s * 1e9)
        )

    def number(self, at: int) -> int | None:
        if self.gap is not None and at >= self.gap:
            return None
        return self.text.count("\n", 0, at) + 1


def read_text(console: ConsoleFile) -> ConsoleText | None:
    """None if it is not text. Raises UnreadableFile."""
    name = files.split(console.path)[1]
    if console.size <= HEAD_BYTES + TAIL_BYTES:
        data = files.read_part(console.path, 0, console.size)
        encoding = _encoding(data)
        return ConsoleText(name, _plain(data, encoding)) if encoding else None
    head = files.read_part(console.path, 0, HEAD_BYTES)
    encoding = _encoding(head)
    if not encoding:
        return None
    start = console.size - TAIL_BYTES
    tail = files.read_part(console.path, start - start % 2, TAIL_BYTES + start % 2)
    first = _plain(head, encoding).rpartition("\n")[0] + "\n"
    return ConsoleText(name, first + _plain(tail, encoding).partition("\n")[2], len(first))


def _encoding(data: bytes) -> str:
    """Empty if it is not text. Some Windows shells write UTF-16."""
    if data.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    return "" if b"\0" in data[:BINARY_LOOK_BYTES] else "utf-8"


def _plain(data: bytes, encoding: str) -> str:
    text = data.decode(encoding, errors="replace").replace("\r\n", "\n")
    return BACKSPACES.sub("\r", ESCAPES.sub("", text))


def unix_s(line: str) -> float | None:
    match = UNIX_TIME.search(line)
    return float(match[1]) if match else None


def clock_s(line: str) -> float | None:
    """By any clock: only differences between times of the same console mean something."""
    exact = unix_s(line)
    match = LOCAL_TIME.search(line)
    if exact is not None or match is None:
        return exact
    try:
        return datetime.fromisoformat(match[1].replace(" ", "T")).timestamp()
    except ValueError:  # there is no such day
        return None
