"""Updates the outputs of commands in the documentation: `make docs`.

In a `console` block, a line that begins with `$` is a command, and the rest is its output.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSOLE = re.compile(r"(?<=^```console\n)\$ (.*)\n((?:.*\n)*?)(?=^```$)", re.MULTILINE)
PROGRAM = "stall-analyze"


def pages() -> Iterator[Path]:
    """All pages that a user reads, except those of the findings, which are made from the code."""
    yield ROOT / "README.md"
    yield ROOT / "examples" / "README.md"
    yield from (p for p in sorted((ROOT / "docs").rglob("*.md")) if p.parent.name != "findings")


def refreshed(text: str) -> str:
    return CONSOLE.sub(lambda found: f"$ {found[1]}\n{_printed(found[1])}", text)


def _printed(command: str) -> str:
    program, *arguments = command.split()
    assert program == PROGRAM, f"{command}: only {PROGRAM} is run"
    plain = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "stall_analyzer", *arguments],
        cwd=ROOT, env=plain, capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    return run.stdout.rstrip() + "\n"


def main() -> None:
    for page in pages():
        old = page.read_text(encoding="utf-8")
        new = refreshed(old)
        if new != old:
            page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
