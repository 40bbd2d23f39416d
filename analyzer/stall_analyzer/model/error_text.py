"""The line of an error's text that says what went wrong.

TensorFlow puts it last: first come a heading, the node, and where in the program it was defined.
"""

from __future__ import annotations

import re

from stall_analyzer.model.patterns import pattern

LONGEST_ERROR = 200
# What TensorFlow and Keras write around the reason.
AROUND_IT = pattern(
    r"graph execution error:?$|detected at node|node:|file \"|traceback \(most recent call last\)"
    r"|<stack traces unavailable>|\d+ root error\(s\) found|\d+ successful operations"
    r"|\d+ derived errors ignored|stack trace for|original stack trace|hint:|\[\[|\[op:|arguments"
    r" received by|exception encountered when calling|errors may have originated|[\^~ ]+$"
    r"|during handling of the above|the above exception was|call arguments received|input source"
    r" operations|first instantiated at|in user code:",
    re.IGNORECASE,
)
NODES = pattern(r"^(\s*\{\{.*?\}\})+\s*")
ROOT_ERROR = pattern(r"^\s*\(\d+\)\s+")  # "(0) Resource exhausted: …"
BEHIND_IT = pattern(r"\s*(\[Op:.*|\[\[.*|\[name: ?.*\])$")


def essential_line(text: str) -> str:
    """The line that matters in an exception's text, from str() or a traceback; empty if there is
    none."""
    lines = text.splitlines()
    told = [line for i, line in enumerate(lines) if _says_what(line, lines[i - 1] if i else "")]
    first = next((line for line in [*told, *lines] if line.strip()), "")
    line = BEHIND_IT.sub("", NODES.sub("", ROOT_ERROR.sub("", first))).strip().rstrip(" :")
    return line if len(line) <= LONGEST_ERROR else f"{line[:LONGEST_ERROR]}…"


def _says_what(line: str, before: str) -> bool:
    if not line.strip() or AROUND_IT.match(line.strip()):
        return False
    is_code = line.startswith("  ") and before.lstrip().startswith('File "')
    return not is_code or bool(ROOT_ERROR.match(line))
