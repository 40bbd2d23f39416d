"""The one way text gets to a terminal: cleaned, wrapped, aligned, never padded.

A report contains names from untrusted files. `text` keeps control characters away from the
terminal, and since everything printed is a `Text`, no name is ever read as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from stall_analyzer.model.patterns import pattern
from stall_analyzer.report.glyphs import ASCII

NARROWEST = 40  # what words and figures need; a narrower terminal wraps the lines itself
WIDEST = 200  # for names and code
WIDEST_TEXT = 100  # longer lines, and bars across them, are harder to read, not easier
COLUMN_GAP = "  "
# Keeps `1.63 s` on one line: rich would wrap even at a no-break space.
FIGURE = pattern(r"(?<=\d) (?=(?:ns|µs|ms|s|min|h|%)\b|%)")
GLUE = "\ue000"  # a private character without a meaning
# Where code without spaces may be broken: `model.fit(`, `data,`.
BETWEEN_NAMES = pattern(r"(?<=[(\[{,])(?=[^)\]}])|(?=(?<=\w)\.[^\d\W])")
SHORTEST_LAST = 12  # cells, for words that are wrapped


class Terminal:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._ascii_only = console.options.ascii_only
        self._is_empty = True
        self.width = max(NARROWEST, min(console.width, WIDEST))
        self.text_width = min(self.width, WIDEST_TEXT)

    def text(self, string: str, style: str = "") -> Text:
        clean = "".join(char if char.isprintable() else "?" for char in string)
        return Text(clean.translate(ASCII) if self._ascii_only else clean, style=style)

    def line(self, *parts: Text, indent: int = 0) -> None:
        """One paragraph: wrapped lines hang under the first."""
        self._hang(Text(" " * indent), Text.assemble(*parts), self.text_width - indent)

    def code(self, line: str, sign: str, indent: int) -> None:
        """A line of code after a sign such as `+`; the code keeps its indentation. A line that is
        too long is broken between words, or else between names."""
        body = line.lstrip(" ")
        depth = min(len(line) - len(body), self.width // 4)
        head = Text(f"{' ' * indent}{sign} {' ' * depth}")
        room = max(self.width - head.cell_len, SHORTEST_LAST)
        self._hanging(head, [self.text(part) for part in _broken(body, room)])

    def frame(self, frame: str, indent: int) -> None:
        """A line of a stack, never wrapped: people copy its path, or click on it."""
        self._is_empty = False
        line = Text(" " * indent) + self.text(frame)
        self._console.print(line, no_wrap=True, overflow="ignore", crop=False)

    def gap(self) -> None:
        """An empty line, but not at the very top."""
        if not self._is_empty:
            self._console.print()

    def heading(self, title: str) -> None:
        name = self.text(self._shortened(title, self.text_width - 4), "bold")
        rule = "─" * (self.text_width - name.cell_len - 1)
        self.gap()
        self.line(name, self.text(f" {rule}", "dim"))

    def rows(
        self, rows: Sequence[Sequence[Text]], right: Sequence[int] = (), indent: int = 0
    ) -> None:
        """Columns as wide as their content; the last one takes the rest of the line and wraps. If
        the others leave it no room, each row is one paragraph.
        """
        widths = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
        left = self.width - indent - sum(width + len(COLUMN_GAP) for width in widths[:-1])
        if left < min(widths[-1], SHORTEST_LAST):
            between = self.text(" · ", "dim")
            for row in rows:
                cells = [cell for cell in row if cell.plain.strip()]
                self._hang(Text(" " * indent), between.join(cells), self.text_width - indent)
            return
        for row in rows:
            head = Text(" " * indent)
            for column, cell in enumerate(row[:-1]):
                padding = Text(" " * (widths[column] - cell.cell_len))
                head += padding + cell if column in right else cell + padding
                head += Text(COLUMN_GAP)
            self._hang(head, row[-1], min(left, WIDEST_TEXT))

    def name(self, name: str, width: int, style: str = "") -> Text:
        """A name cut at its beginning when it is too long: paths differ at their ends."""
        return self.text(self._shortened(name, width), style)

    def cut(self, text: Text, width: int) -> Text:
        """The text without its last words, if it is too long."""
        if text.cell_len <= width:
            return text
        whole_words = text.plain[: width - 1].rpartition(" ")[0]
        kept = (whole_words or text.plain[: width - 2]).rstrip(" ,")
        return text[: len(kept)] + self.text(" …")

    def _shortened(self, name: str, width: int) -> str:
        if cell_len(name) <= width:
            return name
        while name and cell_len(name) >= width:
            name = name[1:]
        return f"…{name}"

    def _hang(self, head: Text, body: Text, room: int) -> None:
        room = max(room, SHORTEST_LAST)
        if body.cell_len <= room:  # most lines are short, and wrapping takes its time
            self._hanging(head, [body])
            return
        body.plain = FIGURE.sub(GLUE, body.plain)
        wrapped = body.wrap(self._console, room)
        for line in wrapped:
            line.plain = line.plain.replace(GLUE, " ")
        self._hanging(head, wrapped)

    def _hanging(self, head: Text, lines: Iterable[Text]) -> None:
        self._is_empty = False
        for number, line in enumerate([*lines] or [Text()]):
            start = head if number == 0 else Text(" " * head.cell_len)
            whole = start + line
            whole.rstrip()
            self._console.print(whole, no_wrap=True, overflow="ignore", crop=False)


def _broken(code: str, room: int) -> list[str]:
    """Lines that fit: broken at spaces, and words that do not fit on any line between names."""
    lines = [""]
    for word in code.replace("# ", f"#{GLUE}").split(" "):
        names = BETWEEN_NAMES.split(word) if len(word) > room else [word]
        pieces = [n[at : at + room] for n in names for at in range(0, max(len(n), 1), room)]
        for number, piece in enumerate(pieces):
            longer = f"{lines[-1]} {piece}" if number == 0 and lines[-1] else lines[-1] + piece
            if len(longer) <= room:
                lines[-1] = longer
            else:
                lines.append(piece)
    return [line.replace(GLUE, " ") for line in lines]
