"""Many runs in a few tables, for a terminal or Markdown: sums, exceeded limits, what is worse.

The last column of a table holds what may be long, such as the name of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stall_analyzer.batch.baseline import Changed, Comparison
from stall_analyzer.batch.judge import Judge
from stall_analyzer.batch.limits import Excess
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.report.facts import shown_name
from stall_analyzer.report.glyphs import bar
from stall_analyzer.report.markdown import plain
from stall_analyzer.report.terminal import Terminal
from stall_analyzer.report.words import about

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import FleetEntry

FINDINGS_SHOWN = 12
DAYS_SHOWN = 14
ERRORS_SHOWN = 5
ROWS_SHOWN = 20
BAR_CELLS = 20
SHORTEST_NAME = 12
INDENT = GAP = 2  # cells before a table, and between its columns


@dataclass(frozen=True)
class Table:
    """A table for a terminal or for Markdown."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    figures: tuple[int, ...] = ()  # columns that are aligned to the right
    more: str = ""  # what the rows leave out, or how to read them
    ends_in_name: bool = False  # a name is cut to fit; other text is wrapped


def show(tables: Sequence[Table], terminal: Terminal) -> None:
    for table in tables:
        terminal.gap()
        terminal.line(terminal.text(table.title, "bold"))
        if table.rows:
            _show_rows(table, terminal)
        if table.more:
            terminal.line(terminal.text(table.more, "dim"), indent=INDENT)


def _show_rows(table: Table, terminal: Terminal) -> None:
    rows = [[terminal.text(cell) for cell in row] for row in table.rows]
    rows.insert(0, [terminal.text(title, "dim") for title in table.columns])
    if table.ends_in_name:
        columns = list(zip(*rows, strict=True))[:-1]
        taken = sum(max(cell.cell_len for cell in column) + GAP for column in columns)
        for row in rows:
            room = terminal.width - taken - INDENT
            row[-1] = terminal.name(row[-1].plain, max(room, SHORTEST_NAME))
    terminal.rows(rows, right=table.figures, indent=INDENT)


def markdown(tables: Sequence[Table]) -> str:
    lines = []
    for table in tables:
        aligned = ("---:" if i in table.figures else "---" for i in range(len(table.columns)))
        lines += ["", f"### {table.title}"]
        if table.rows:
            lines += ["", _row(table.columns), f"|{'|'.join(aligned)}|"]
        lines += [_row([plain(cell) for cell in row]) for row in table.rows]
        if table.more:
            lines += ["", plain(table.more)]
    return "".join(f"{line}\n" for line in lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


# ---------------------------------------------------------------- sums


def headline(fleet: FleetEntry) -> str:
    """`5,000 runs: their first epochs took 38 h 10 min of machine time; 23 h 17 min of it …`"""
    whole_ps, lost_ps, estimated = _whole(fleet), fleet["lost_ps"], fleet["estimated_runs"]
    partly = f" For {_count(estimated, 'run')}, these times are estimated." if estimated else ""
    epochs = "its first epoch" if fleet["runs"] == 1 else "their first epochs"
    return (
        f"{_count(fleet['runs'], 'run')}: {epochs} took {seconds(whole_ps)} of machine "
        f"time; {seconds(lost_ps)} of it ({percent(lost_ps, whole_ps)}) was lost.{partly}"
    )


def fleet_tables(fleet: FleetEntry, root: str = "") -> list[Table]:
    """`root`: what to call the log directory if it is a run itself."""
    made = (
        _verdicts(fleet), _buckets(fleet), _findings(fleet, root), _runs(fleet, root),
        _days(fleet), _errors(fleet, root),
    )  # fmt: skip
    return [table for tables in made for table in tables if table.rows]


def _verdicts(fleet: FleetEntry) -> Iterator[Table]:
    rows = [
        (_spoken(one["status"]), f"{one['runs']:,}", percent(one["runs"], fleet["runs"]),
         seconds(one["machine_ps"]))
        for one in fleet["statuses"]
    ]  # fmt: skip
    yield Table("verdicts", ("verdict", "runs", "", "machine time"), rows, (1, 2, 3))


def _buckets(fleet: FleetEntry) -> Iterator[Table]:
    whole_ps = _whole(fleet)
    parts = sorted(fleet["buckets_ps"].items(), key=lambda part: -part[1])
    rows = [
        (bucket, seconds(ps), percent(ps, whole_ps),
         _count(fleet["primaries"].get(bucket, 0), "run"), bar(ps, whole_ps, BAR_CELLS))
        for bucket, ps in parts
        if ps
    ]  # fmt: skip
    columns = ("bucket", "machine time", "", "costs the most in", "")
    yield Table("where the first epochs went", columns, rows, (1, 2, 3))


def _findings(fleet: FleetEntry, root: str) -> Iterator[Table]:
    costly = [one for one in fleet["findings"] if one["machine_ps"]]
    rows = [
        (found["id"], _spoken(found["name"]), f"{found['runs']:,}", seconds(found["machine_ps"]),
         shown_name(found["worst"]["run"], found["worst"]["attempt"], root))
        for found in costly[:FINDINGS_SHOWN]
    ]  # fmt: skip
    more = "Two findings may claim the same time, so their times must not be added up."
    if len(costly) > FINDINGS_SHOWN:
        more = f"And {len(costly) - FINDINGS_SHOWN} more. {more}"
    columns = ("id", "finding", "runs", "machine time", "worst in")
    yield Table("costliest findings", columns, rows, (2, 3), more, ends_in_name=True)


def _runs(fleet: FleetEntry, root: str) -> Iterator[Table]:
    rows = [
        (about(seconds(run["machine_ps"]), run["estimated"]), _spoken(run["status"]),
         run["primary"], shown_name(run["run"], run["attempt"], root))
        for run in fleet["costliest_runs"]
        if run["machine_ps"]
    ]  # fmt: skip
    columns = ("lost", "verdict", "mostly", "run")
    yield Table("costliest runs", columns, rows, (0,), ends_in_name=True)


def _days(fleet: FleetEntry) -> Iterator[Table]:
    days = [day for day in fleet["days"] if day["day"]]
    rows = []
    for day in days[-DAYS_SHOWN:]:
        whole_ps, lost_ps = sum(day["buckets_ps"].values()), day["lost_ps"]
        runs, healthy = sum(day["statuses"].values()), day["statuses"].get("healthy", 0)
        rows.append(
            (day["day"] or "", f"{runs:,}", percent(healthy, runs), seconds(lost_ps),
             percent(lost_ps, whole_ps))
        )  # fmt: skip
    columns = ("day", "runs", "healthy", "lost", "")
    yield Table("by day (UTC)", columns, rows if len(days) > 1 else [], (1, 2, 3, 4))


def _errors(fleet: FleetEntry, root: str) -> Iterator[Table]:
    rows = [
        (shown_name(one["run"], one["attempt"], root), one["text"])
        for one in fleet["errors"][:ERRORS_SHOWN]
    ]
    left = fleet["runs_with_errors"] - len(rows)
    title = f"could not be fully read: {_count(fleet['runs_with_errors'], 'run')}"
    yield Table(title, ("run", "why"), rows, (), f"And {left:,} more." if left else "")


def _whole(fleet: FleetEntry) -> int:
    return sum(fleet["buckets_ps"].values())


def notes_table(notes: Sequence[Note], count: int) -> Table:
    rows = [(note.level, " ".join(filter(None, (note.text, note.where)))) for note in notes]
    left = count - len(rows)
    return Table("all paths", ("", "note"), rows, (), f"And {left:,} more." if left else "")


# ---------------------------------------------------------------- limits and baseline


def judgments(judge: Judge, root: str = "") -> list[Table]:
    """Only what was asked for; the comparison is shown even if nothing is worse."""
    tables = []
    if judge.limits.exceeded:
        tables.append(_excess_table(judge.limits.in_order(), root))
    if judge.comparison and not judge.comparison.is_of_other_runs:
        found = judge.comparison
        tables.append(_changed_table("worse than the baseline", found.in_order(), root, found))
        if found.better:
            better = found.better_in_order()
            tables.append(_changed_table("better than the baseline", better, root, found))
    return tables


def _excess_table(exceeded: Sequence[Excess], root: str) -> Table:
    rows = [(one.limit, one.measured, shown_name(one.run, one.attempt, root)) for one in exceeded]
    runs = len({(one.run, one.attempt) for one in exceeded})
    title = f"over a limit: {_count(runs, 'run')}"
    columns = ("limit", "measured", "run")
    return Table(title, columns, rows[:ROWS_SHOWN], (), _rest(rows), ends_in_name=True)


def _changed_table(
    title: str, changed: Sequence[Changed], root: str, comparison: Comparison
) -> Table:
    rows = [
        (shown_name(one.run, one.attempt, root), seconds(one.before_ps), seconds(one.now_ps),
         one.sentence)
        for one in changed
    ]  # fmt: skip
    gone = "not selected or gone" if comparison.selected else "gone"
    said = f"{comparison.compared:,} compared, {comparison.new:,} new, {comparison.gone:,} {gone}."
    columns = ("run", "was", "is", "what has changed")
    more = f"{_rest(rows)} {said}".strip()
    return Table(f"{title}: {_count(len(rows), 'run')}", columns, rows[:ROWS_SHOWN], (1, 2), more)


def _rest(rows: Sequence[object]) -> str:
    return f"And {len(rows) - ROWS_SHOWN:,} more." if len(rows) > ROWS_SHOWN else ""


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _count(count: int, thing: str) -> str:
    return f"{count:,} {thing}" + ("" if count == 1 else "s")
