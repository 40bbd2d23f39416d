"""The last traceback that Python wrote to a console, and the line of it that matters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stall_analyzer.consoles.console_text import ConsoleText
from stall_analyzer.model.console_log import PythonError
from stall_analyzer.model.error_text import AROUND_IT, essential_line

HEADER = "Traceback (most recent call last):"
FRAME = re.compile(r'\s*File "(?P<path>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
ERROR = re.compile(
    r"(?P<module>(?:[A-Za-z_]\w*\.)*)(?P<kind>[A-Z]\w*)(?: \(see above for traceback\))?"
    r"(?::\s*(?P<text>.*))?"
)
# Python continues after these.
NOT_FATAL = ("Exception in thread ", "Exception ignored in", "--- Logging error ---")
DIGITS = re.compile(r"\d+")
LAST_OF_TENSORFLOW = "[Op:__"
LONGEST_BLOCK = 400  # lines: TensorFlow lists where each op was defined
LONGEST_LOOK = 256 << 10  # characters
MOST_TRIED = 50  # headers; most quoted ones come with one that is not quoted
MOST_AFTER = 30  # lines that shells, schedulers and the program's own buffer may still write


def last_traceback(console: ConsoleText, last_progress: int) -> PythonError | None:
    """`last_progress`: where the console last mentions a step."""
    for at in sorted(console.find(HEADER), reverse=True)[:MOST_TRIED]:
        lines = list(_block(console, at))
        found = _error_of(lines)
        if found is None:
            continue  # it is quoted inside another error, or cut off
        head, message, rest = found
        error = ERROR.fullmatch(lines[head].strip())
        assert error is not None
        is_last = at > last_progress and rest <= MOST_AFTER and not _is_survived(console, at)
        return PythonError(error["kind"], message, tuple(_frames(lines)), console.line(at), is_last)
    return None


def _block(console: ConsoleText, at: int) -> Iterator[str]:
    """The lines from a header on, without the prefix that a launcher puts before each."""
    start, _ = console.bounds(at)
    before = re.compile(DIGITS.sub(r"\\d+", re.escape(console.text[start:at])))
    header, *following = console.text[at : at + LONGEST_LOOK].splitlines()
    # A prefix of only the first line is a progress bar, whose line had not ended.
    is_prefix = bool(following) and before.match(following[0]) is not None
    yield header
    for line in following:
        match = before.match(line) if is_prefix else None
        yield line[match.end() :] if match else line


def _error_of(lines: list[str]) -> tuple[int, str, int] | None:
    """Where the exception is named, the part of its text that matters, and how many lines
    follow."""
    if len(lines) < 3 or not FRAME.match(lines[1]):  # header, frame, error
        return None
    head = next((i for i, line in enumerate(lines[1:], 1) if _names_error(line)), None)
    if head is None:
        return None
    error = ERROR.fullmatch(lines[head].strip())
    assert error is not None
    end = _end_of_text(lines, head)
    text = error["text"] or ""
    # Keras puts blank lines between its heading and the reason.
    until = head + LONGEST_BLOCK if AROUND_IT.match(text) else end
    after = sum(1 for line in lines[end:] if line.strip())
    return head, essential_line("\n".join([text, *lines[head + 1 : until]])), after


def _names_error(line: str) -> bool:
    return bool(line) and not line[0].isspace() and ERROR.fullmatch(line.strip()) is not None


def _end_of_text(lines: list[str], head: int) -> int:
    """TensorFlow marks the end of its text; any other text ends with its line, or continues
    indented."""
    for i, line in enumerate(lines[head : head + LONGEST_BLOCK], head):
        if LAST_OF_TENSORFLOW in line:
            return i + 1
        if i > head and HEADER in line and i + 1 < len(lines) and FRAME.match(lines[i + 1]):
            break
    end = head + 1
    while end < len(lines) and lines[end][:1].isspace():
        end += 1
    return end


def _frames(lines: list[str]) -> Iterator[str]:
    """Innermost first. Frames that a graph quotes come after Python's own, and are further
    inside."""
    found = [match for line in lines[:LONGEST_BLOCK] if (match := FRAME.match(line))]
    for match in reversed(found):
        yield f"{match['path']}:{match['line']} {match['function'] or '<module>'}"


def _is_survived(console: ConsoleText, at: int) -> bool:
    start, _ = console.bounds(at)
    before = console.text[max(start - 300, 0) : start].splitlines()[-1:]
    return any(line.startswith(NOT_FATAL) for line in before)
