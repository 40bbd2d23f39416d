"""Prints a log directory's report, as in a terminal, as a web page, for `make screenshots`."""

from __future__ import annotations

import io
import sys

from rich.console import Console
from rich.terminal_theme import MONOKAI

from stall_analyzer import analyze
from stall_analyzer.report.text import render

WIDTH = 96


def main(path: str) -> None:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(f"$ stall-analyze {path}", style="dim", highlight=False)
    render(analyze(path).document, console)
    print(console.export_html(theme=MONOKAI, inline_styles=True))


if __name__ == "__main__":
    main(sys.argv[1])
