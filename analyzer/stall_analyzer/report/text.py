"""The report in a terminal: `render` shows the JSON document and knows nothing beneath it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from stall_analyzer.model.format import percent, seconds
from stall_analyzer.model.kinds import Bucket, Status
from stall_analyzer.model.timeline import off_at_both_ends
from stall_analyzer.report.computing_text import show_computing
from stall_analyzer.report.facts import by_size, figures, shown_name
from stall_analyzer.report.findings_text import SHOWN_IN_FULL, show_findings, show_line
from stall_analyzer.report.glyphs import bar, cells_per_part, sparkline
from stall_analyzer.report.palette import (
    BUCKET_COLOURS,
    BUCKET_LETTERS,
    NOTE_COLOURS,
    STATUS_COLOURS,
)
from stall_analyzer.report.terminal import Terminal
from stall_analyzer.report.threads_text import show_threads
from stall_analyzer.report.words import (
    CAUSE_FROM_SHARE,
    bucket_range,
    causes_in,
    costly_lines,
    epoch_times,
    first_epoch,
    main_cost,
    traced_exactly,
    undecided,
    window_noun,
)

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import (
        Document,
        EstimateEntry,
        LateHostEntry,
        NoteEntry,
        PhaseEntry,
        ReportEntry,
        StepEntry,
    )

NAME_WIDTH = 26
FIGURES_WIDTH = 19  # time and share
SMALL_BAR = 12
SHORTEST_NAME = 12
LEGEND_ENTRIES = 5  # on a line
CAUSES_SHOWN = 4
SLOW_STEP = 2  # times the median
SLOW_STEPS_SHOWN = 5
HOSTS_SHOWN = 16
WHOLE = {"first epoch": "the epoch", "trace": "the window", "so far": "what has passed"}


def render(document: Document, console: Console, threads: bool = False) -> None:
    """Prints every run; where there are several, a table of all of them first."""
    terminal = Terminal(console)
    runs = document["runs"]
    if len(runs) > 1:
        _overview(terminal, runs)
    for run in runs:
        _run(terminal, run, threads)
    if document["notes"]:
        terminal.heading("all paths")
        _notes(terminal, document["notes"])


# ---------------------------------------------------------------- many runs


def _overview(terminal: Terminal, runs: Sequence[ReportEntry]) -> None:
    titles = (f"{len(runs)} runs", "verdict", "epoch 1", "main cost", "where it went")
    table = [[terminal.text(title, "dim") for title in titles]]
    used: set[Bucket] = set()
    for run in runs:
        verdict, buckets_ps = run["verdict"], figures(run)["buckets_ps"]
        used.update(bucket for bucket, ps in buckets_ps.items() if ps)
        table.append(
            [
                terminal.text(shown_name(run["run"], run["attempt"])),
                _status(terminal, verdict["status"]),
                terminal.text(first_epoch(run)),
                terminal.text(main_cost(run)),
                _small_bar(terminal, buckets_ps),
            ]
        )
    fixed = sum(max(row[column].cell_len for row in table) + 2 for column in (1, 2, 4))
    for row in table:  # several candidates may need more room than a narrow terminal has
        row[3] = terminal.cut(row[3], terminal.width - fixed - SHORTEST_NAME - 2)
    room = terminal.width - fixed - max(row[3].cell_len for row in table) - 2
    for row in table:
        row[0] = terminal.name(row[0].plain, room, str(row[0].style))
    terminal.rows(table, right=[2])
    legend = [
        Text.assemble(_swatch(terminal, bucket, 1), terminal.text(f" {bucket}  ", "dim"))
        for bucket in BUCKET_LETTERS
        if bucket in used
    ]
    for entries in (legend[:LEGEND_ENTRIES], legend[LEGEND_ENTRIES:]):
        if entries:
            terminal.line(*entries)


def _small_bar(terminal: Terminal, buckets_ps: Mapping[Bucket, int]) -> Text:
    cells = cells_per_part({name: buckets_ps.get(name, 0) for name in BUCKET_LETTERS}, SMALL_BAR)
    return Text.assemble(*(_swatch(terminal, bucket, count) for bucket, count in cells.items()))


def _swatch(terminal: Terminal, bucket: Bucket, count: int) -> Text:
    return terminal.text(BUCKET_LETTERS[bucket] * count, f"black on {BUCKET_COLOURS[bucket]}")


# ---------------------------------------------------------------- one run


def _run(terminal: Terminal, run: ReportEntry, threads: bool) -> None:
    terminal.heading(shown_name(run["run"], run["attempt"]))
    verdict = run["verdict"]
    terminal.line(terminal.text(verdict["sentence"], f"bold {STATUS_COLOURS[verdict['status']]}"))
    if undecided(run):
        terminal.line(terminal.text(f"undecided: {undecided(run)}", "bold"))
    if run["window"]["duration_ps"]:
        terminal.line(terminal.text(" · ".join(epoch_times(run)), "dim"))
        _buckets(terminal, run)
    show_findings(terminal, run)
    show_threads(terminal, run["threads"], threads)
    if run["window"]["duration_ps"]:
        _code(terminal, run)
        show_computing(terminal, run)
        _steps(terminal, run)
        _phases(terminal, run)
        _hosts(terminal, run)
    _evidence(terminal, run)
    if run["notes"]:
        terminal.gap()
        _notes(terminal, run["notes"])


def _status(terminal: Terminal, status: Status) -> Text:
    return terminal.text(status.replace("_", " "), f"bold {STATUS_COLOURS[status]}")


def _buckets(terminal: Terminal, run: ReportEntry) -> None:
    window_ps = run["window"]["duration_ps"]
    spent = by_size(figures(run)["buckets_ps"])
    ranges = {bucket: bucket_range(run, bucket) for bucket, _ in spent}
    longest = max(map(len, ranges.values()), default=0)
    width = terminal.width - NAME_WIDTH - FIGURES_WIDTH - (longest + len("  ()") if longest else 0)
    width = max(width, 1)

    def row(name: Text, ps: int, filled: Text, style: str = "", known: str = "") -> None:
        name.pad_right(NAME_WIDTH - name.cell_len)
        filled.pad_right(width - filled.cell_len)
        said = f"{seconds(ps):>12}{percent(ps, window_ps):>7}"
        between = f"  ({known})" if known else ""
        terminal.line(name, filled, terminal.text(said, style), terminal.text(between, "dim"))

    terminal.gap()
    for bucket, ps in spent:
        causes = causes_in(run, bucket)
        alone = f" {causes.pop()[0]}" if len(causes) == 1 else ""  # not said twice
        name = Text.assemble(terminal.text(bucket, "bold"), terminal.text(alone, "dim"))
        filled = terminal.text(bar(ps, window_ps, width), BUCKET_COLOURS[bucket])
        row(name, ps, filled, known=ranges[bucket])
        for cause, cause_ps in causes[:CAUSES_SHOWN]:
            row(terminal.text(f"  {cause}", "dim"), cause_ps, Text(), "dim")
    if run["estimate"]:
        _estimate(terminal, run, run["estimate"])


def _estimate(terminal: Terminal, run: ReportEntry, estimate: EstimateEntry) -> None:
    terminal.line(terminal.text(f"estimated; {traced_exactly(run)}", "dim"))
    terminal.gap()
    terminal.line(terminal.text("what this rests on", "bold"))
    for sentence in estimate["rests_on"]:
        terminal.line(terminal.text(sentence), indent=2)


def _code(terminal: Terminal, run: ReportEntry) -> None:
    """Lines that no finding in full has shown."""
    shown = [line for finding in run["findings"][:SHOWN_IN_FULL] for line in finding["lines"]]
    lines = [line for line in costly_lines(run) if line not in shown]
    if lines:
        terminal.gap()
        terminal.line(terminal.text("where in your code", "bold"))
    for line in lines:
        terminal.line(terminal.text(line["cause"], BUCKET_COLOURS[line["bucket"]]), indent=2)
        show_line(terminal, line, indent=4)


def _steps(terminal: Terminal, run: ReportEntry) -> None:
    steps = [step for step in run["steps"] if step["phase"] == "training"]
    if len(steps) < 2:
        return
    durations = [_duration(step) for step in steps]
    ordered = sorted(durations)
    typical_ps = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2
    terminal.gap()
    summary = f"  {len(steps)}, median {seconds(typical_ps)}, "
    summary += f"longest {seconds(max(durations))}"
    terminal.line(terminal.text("steps", "bold"), terminal.text(summary))
    strip = (
        terminal.text(cell, _colour(steps[tallest]))
        for cell, tallest in sparkline(durations, terminal.width - 2)
    )
    terminal.line(*strip, indent=2)
    slow = [step for step in steps if _duration(step) > SLOW_STEP * typical_ps]
    slow.sort(key=_duration, reverse=True)
    if not slow:
        terminal.line(terminal.text(f"none above {SLOW_STEP} times the median", "dim"), indent=2)
        return
    table = [
        [
            terminal.text(f"step {step['index']}"),
            terminal.text(seconds(_duration(step))),
            _mostly(terminal, step),
        ]
        for step in slow[:SLOW_STEPS_SHOWN]
    ]
    terminal.rows(table, right=[0, 1], indent=2)
    if len(slow) > SLOW_STEPS_SHOWN:
        more = f"and {len(slow) - SLOW_STEPS_SHOWN} more above {SLOW_STEP} times the median"
        terminal.line(terminal.text(more, "dim"), indent=2)


def _duration(span: PhaseEntry | StepEntry) -> int:
    return span["end_ps"] - span["start_ps"]


def _largest_bucket(step: StepEntry) -> Bucket | None:
    parts = by_size(step["buckets_ps"])
    return parts[0][0] if parts else None


def _colour(step: StepEntry) -> str:
    bucket = _largest_bucket(step)
    return BUCKET_COLOURS[bucket] if bucket else ""


def _mostly(terminal: Terminal, step: StepEntry) -> Text:
    """`compile 93 %`"""
    bucket = _largest_bucket(step)
    if not bucket:
        return terminal.text("not traced", "dim")
    share = percent(step["buckets_ps"][bucket], _duration(step))
    return Text.assemble(terminal.text(bucket, BUCKET_COLOURS[bucket]), terminal.text(f" {share}"))


def _phases(terminal: Terminal, run: ReportEntry) -> None:
    phases = run["phases"]
    if all(phase["name"] == "training" for phase in phases):
        return
    terminal.gap()
    terminal.line(terminal.text("phases", "bold"))
    errors_ps = off_at_both_ends(phase["error_ps"] for phase in phases)
    table = [
        [
            terminal.text(phase["name"].replace("_", " ")),
            terminal.text(seconds(_duration(phase))),
            terminal.text(f"± {seconds(error_ps)}" if error_ps else ""),
            terminal.text(_traced_of(phase, run["estimate"] is not None), "dim"),
        ]
        for phase, error_ps in zip(phases, errors_ps, strict=True)
    ]
    if not any(errors_ps):
        table = [[name, time, parts] for name, time, _, parts in table]
    terminal.rows(table, right=[1], indent=2)


def _traced_of(phase: PhaseEntry, estimated: bool) -> str:
    """What a phase went to. Beside an estimate, what was not traced is no cost: it says so."""
    parts_ps, whole_ps = phase["buckets_ps"], _duration(phase)
    if not estimated or "unknown" not in parts_ps:
        return _largest_parts(parts_ps, whole_ps)
    known_ps = {**parts_ps, "unknown": 0}
    if not any(known_ps.values()):
        return "not traced"
    traced = percent(sum(known_ps.values()), whole_ps)
    return f"traced {traced}: {_largest_parts(known_ps, whole_ps)}"


def _largest_parts(buckets_ps: Mapping[Bucket, int], whole_ps: int) -> str:
    largest = by_size(buckets_ps)[:3]
    return ", ".join(f"{name} {percent(ps, whole_ps)}" for name, ps in largest)


def _hosts(terminal: Terminal, run: ReportEntry) -> None:
    """A line for each; of many, those that the others wait for first."""
    ledgers = run["host_ledgers"]
    if len(ledgers) < 2:
        return
    late = {entry["host"]: entry for entry in (run["lateness"] or {"hosts": []})["hosts"]}
    cost = {host: entry["cost_ps"] for host, entry in late.items()}
    ordered = sorted(ledgers, key=lambda ledger: -cost.get(ledger["host"], 0))
    terminal.gap()
    terminal.line(terminal.text("hosts, as traced" if run["estimate"] else "hosts", "bold"))
    table = []
    for ledger in ordered[:HOSTS_SHOWN]:
        buckets_ps = ledger["buckets_ps"]
        parts = _largest_parts(buckets_ps, sum(buckets_ps.values()))
        thread = "" if ledger["training_thread"] else "no training thread"
        waited = _waited_for(late.get(ledger["host"]), run["window"]["duration_ps"])
        table.append(
            [
                terminal.name(ledger["host"], terminal.width // 3),
                _small_bar(terminal, buckets_ps),
                terminal.text(", ".join(filter(None, (waited, parts, thread))), "dim"),
            ]
        )
    terminal.rows(table, indent=2)
    if len(ledgers) > HOSTS_SHOWN:
        terminal.line(terminal.text(f"and {len(ledgers) - HOSTS_SHOWN} more", "dim"), indent=2)


def _waited_for(late: LateHostEntry | None, window_ps: int) -> str:
    if late is None or late["cost_ps"] < window_ps // CAUSE_FROM_SHARE:
        return ""
    return f"the others waited {seconds(late['cost_ps'])} for it"


def _evidence(terminal: Terminal, run: ReportEntry) -> None:
    window = run["window"]
    if not window["duration_ps"]:
        seen = "no first epoch was found"
    elif window["source"] == "events":
        seen = "event files only: no trace shows where the time went"
    else:
        covered = percent(window["covered_ps"], window["duration_ps"])
        what = "the capture's clocks cover" if "clocks" in run["evidence"] else "the trace covers"
        seen = f"{what} {covered} of {WHOLE[window_noun(run)]}"
    sure = f"{100 * run['verdict']['confidence']:.0f} %"
    terminal.gap()
    terminal.line(terminal.text("evidence", "bold"))
    terminal.line(terminal.text(f"{seen}; confidence in the verdict {sure}"), indent=2)
    for subject, sentence in run["evidence"].items():
        terminal.line(terminal.text(f"{subject}: {sentence}", "dim"), indent=2)


def _notes(terminal: Terminal, notes: Sequence[NoteEntry]) -> None:
    table = [
        [
            terminal.text(note["level"], NOTE_COLOURS[note["level"]]),
            Text.assemble(
                terminal.text(note["text"]),
                terminal.text(f" ({note['where']})" if note["where"] else "", "dim"),
            ),
        ]
        for note in notes
    ]
    terminal.rows(table)
