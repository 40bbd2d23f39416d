"""The one way by which text gets onto a terminal: cleaned, wrapped, aligned, never padded.

A report holds names out of foreign files. `text` keeps control characters away from the terminal,
and since everything printed is a `Text`, no name is ever read as markup.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from stall_analyzer.report.glyphs import ASCII

NARROWEST = 72  # what the columns need; a narrower terminal wraps the lines itself
WIDEST = 100  # a bar across a very wide terminal is harder to read, not easier
COLUMN_GAP = "  "


class Terminal:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._ascii_only = console.options.ascii_only
        self._is_empty = True
        self.width = max(NARROWEST, min(console.width, WIDEST))

    def text(self, string: str, style: str = "") -> Text:
        clean = "".join(char if char.isprintable() else "?" for char in string)
        return Text(clean.translate(ASCII) if self._ascii_only else clean, style=style)

    def line(self, *parts: Text, indent: int = 0) -> None:
        """One paragraph: wrapped lines hang under the first."""
        self._hang(Text(" " * indent), Text.assemble(*parts))

    def code(self, line: str, sign: str, indent: int) -> None:
        """A line of code after a sign of its own; the code's indentation stays."""
        body = line.lstrip(" ")
        depth = len(line) - len(body)
        self._hang(Text(f"{' ' * indent}{sign} {' ' * depth}"), self.text(body))

    def gap(self) -> None:
        """An empty line, but not at the very top."""
        if not self._is_empty:
            self._console.print()

    def heading(self, title: str) -> None:
        name = self.text(self._shortened(title, self.width - 4), "bold")
        rule = "─" * (self.width - name.cell_len - 1)
        self.gap()
        self.line(name, self.text(f" {rule}", "dim"))

    def rows(
        self, rows: Sequence[Sequence[Text]], right: Sequence[int] = (), indent: int = 0
    ) -> None:
        """Columns as wide as their content; the last one takes the rest of the line and wraps."""
        widths = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
        for row in rows:
            head = Text(" " * indent)
            for column, cell in enumerate(row[:-1]):
                padding = Text(" " * (widths[column] - cell.cell_len))
                head += padding + cell if column in right else cell + padding
                head += Text(COLUMN_GAP)
            self._hang(head, row[-1])

    def name(self, name: str, width: int, style: str = "") -> Text:
        """A name cut at its beginning when it is too long: paths differ at their ends."""
        return self.text(self._shortened(name, width), style)

    def cut(self, text: Text, width: int) -> Text:
        """The same, without its end where it is too long."""
        if text.cell_len <= width:
            return text
        return self.text(f"{text.plain[: width - 3].rstrip(' ,')} …", str(text.style))

    def _shortened(self, name: str, width: int) -> str:
        if cell_len(name) <= width:
            return name
        while name and cell_len(name) >= width:
            name = name[1:]
        return f"…{name}"

    def _hang(self, head: Text, body: Text) -> None:
        self._is_empty = False
        room = max(self.width - head.cell_len, 10)
        wrapped = body.wrap(self._console, room) or [Text()]
        for number, line in enumerate(wrapped):
            start = head if number == 0 else Text(" " * head.cell_len)
            whole = start + line
            whole.rstrip()
            self._console.print(whole, no_wrap=True, overflow="ignore", crop=False)
