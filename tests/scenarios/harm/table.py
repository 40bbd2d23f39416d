"""The table of `make harm`, in docs/explanation/harm.md."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

BEGIN, END = "<!-- harm -->", "<!-- /harm -->"


def write_table(path: Path, rows: Iterable[tuple[str, str, str]]) -> None:
    """Rows: what it is, what went wrong, why it was not run. Between the two markers."""
    text = path.read_text("utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(f"{before}{BEGIN}\n{table(rows)}{END}{after}", "utf-8")


def table(rows: Iterable[tuple[str, str, str]]) -> str:
    lines = ["| program | with a capture |", "|---|---|"]
    for what, problem, skipped in rows:
        word = problem or (f"not run: {skipped}" if skipped else "the same")
        lines.append(f"| {what} | {word.replace('|', '/')} |")
    return "\n".join(lines) + "\n"
