"""Several runs in a table, for a terminal: a line for each, and where its time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from stall_analyzer.model.kinds import Bucket, Status
from stall_analyzer.report.facts import figures, shown_name
from stall_analyzer.report.glyphs import cells_per_part
from stall_analyzer.report.palette import BUCKET_COLORS, BUCKET_LETTERS, STATUS_COLORS
from stall_analyzer.report.terminal import Terminal
from stall_analyzer.report.words import first_epoch, main_cost

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import ReportEntry

SMALL_BAR = 12
SHORTEST_NAME = 12
COST_COLUMN, SHORTEST_COST = 3, 16
GAP = 2  # after each column but the last
LEGEND_ENTRIES = 5  # per line


def show_overview(terminal: Terminal, runs: Sequence[ReportEntry]) -> None:
    titles = ("run", "verdict", "epoch 1", "main cost", "where it went")
    table = [[terminal.text(title, "dim") for title in titles]]
    used: set[Bucket] = set()
    for run in runs:
        verdict, buckets_ps = run["verdict"], figures(run)["buckets_ps"]
        used.update(bucket for bucket, ps in buckets_ps.items() if ps)
        table.append(
            [
                terminal.text(shown_name(run["run"], run["attempt"], run["folder"])),
                _status(terminal, verdict["status"]),
                terminal.text(first_epoch(run)),
                terminal.text(main_cost(run)),
                small_bar(terminal, buckets_ps),
            ]
        )
    _fit(terminal, table)
    terminal.rows(table, right=[2])
    if len(table[0]) < len(titles):
        return  # without the bars there is nothing to explain
    legend = [
        Text.assemble(_swatch(terminal, bucket, 1), terminal.text(f" {bucket}  ", "dim"))
        for bucket in BUCKET_LETTERS
        if bucket in used
    ]
    for entries in (legend[:LEGEND_ENTRIES], legend[LEGEND_ENTRIES:]):
        if entries:
            terminal.line(*entries)


def _fit(terminal: Terminal, table: list[list[Text]]) -> None:
    """If there is no room, columns are dropped, starting with the last, but never the name."""

    def width(column: int) -> int:
        return max(row[column].cell_len for row in table) + GAP

    while True:
        others = (column for column in range(1, len(table[0])) if column != COST_COLUMN)
        fixed = sum(map(width, others)) - GAP
        has_cost = len(table[0]) > COST_COLUMN
        if terminal.width - fixed >= SHORTEST_NAME + (SHORTEST_COST if has_cost else 0):
            break
        for row in table:
            del row[-1]
    if has_cost:  # a list of candidates may leave too little room for the names
        room = max(terminal.width - fixed - width(0), SHORTEST_COST) - GAP
        for row in table:
            row[COST_COLUMN] = _cut(terminal, row[COST_COLUMN], room)
    room = terminal.width - fixed - (width(COST_COLUMN) if has_cost else 0) - GAP
    for row in table:
        row[0] = terminal.name(row[0].plain, room, str(row[0].style))


def _cut(terminal: Terminal, cost: Text, room: int) -> Text:
    """`compile, input or host?` becomes `compile …?`: it must not look decided."""
    if cost.cell_len <= room or not cost.plain.endswith("?"):
        return terminal.cut(cost, room)
    return terminal.cut(cost, room - 1) + terminal.text("?")


def small_bar(terminal: Terminal, buckets_ps: Mapping[Bucket, int]) -> Text:
    cells = cells_per_part({name: buckets_ps.get(name, 0) for name in BUCKET_LETTERS}, SMALL_BAR)
    return Text.assemble(*(_swatch(terminal, bucket, count) for bucket, count in cells.items()))


def _swatch(terminal: Terminal, bucket: Bucket, count: int) -> Text:
    return terminal.text(BUCKET_LETTERS[bucket] * count, f"black on {BUCKET_COLORS[bucket]}")


def _status(terminal: Terminal, status: Status) -> Text:
    return terminal.text(status.replace("_", " "), f"bold {STATUS_COLORS[status]}")
