"""The report in a terminal: `render` shows the JSON document and knows nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from stall_analyzer.model.format import percent, seconds
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.timeline import off_at_both_ends
from stall_analyzer.report.computing_text import show_computing
from stall_analyzer.report.facts import by_size, figures, need, shown_name
from stall_analyzer.report.findings_text import SHOWN_IN_FULL, show_findings, show_line
from stall_analyzer.report.glyphs import bar, sparkline
from stall_analyzer.report.hosts_text import show_hosts
from stall_analyzer.report.overview_text import show_overview
from stall_analyzer.report.palette import (
    BUCKET_COLORS,
    NOTE_COLORS,
    STATUS_COLORS,
)
from stall_analyzer.report.terminal import Terminal
from stall_analyzer.report.threads_text import show_threads
from stall_analyzer.report.words import (
    bucket_range,
    causes_in,
    costly_lines,
    epoch_times,
    largest_parts,
    traced_share,
    undecided,
    window_noun,
)

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import (
        Document,
        EstimateEntry,
        NoteEntry,
        PhaseEntry,
        ReportEntry,
        StepEntry,
    )

NAME_WIDTH = 26
SHORTEST_BAR = 8
FIGURES_WIDTH = 19  # time and share
CAUSES_SHOWN = 4
SLOW_STEP = 2  # times the median
SLOW_STEPS_SHOWN = 5
WHOLE = {"first epoch": "the epoch", "trace": "the window", "so far": "the time so far"}


def render(document: Document, console: Console, threads: bool = False) -> None:
    """Prints every run; if there are several, a table of all of them comes last, so that it is
    right above the prompt."""
    terminal = Terminal(console)
    runs = sorted(document["runs"], key=_need)
    for run in runs:
        _run(terminal, run, threads)
    if document["notes"]:
        terminal.heading("all paths")
        _notes(terminal, document["notes"])
    if len(runs) > 1:
        terminal.heading(f"{len(runs)} runs, those that need attention first")
        show_overview(terminal, runs)


def _need(run: ReportEntry) -> tuple[int, int]:
    return need(run["verdict"]["status"], figures(run)["buckets_ps"])


# ---------------------------------------------------------------- one run


def _run(terminal: Terminal, run: ReportEntry, threads: bool) -> None:
    terminal.heading(shown_name(run["run"], run["attempt"], run["folder"]))
    verdict = run["verdict"]
    terminal.line(terminal.text(verdict["sentence"], f"bold {STATUS_COLORS[verdict['status']]}"))
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
        show_hosts(terminal, run)
    _evidence(terminal, run)
    if run["notes"]:
        terminal.gap()
        _notes(terminal, run["notes"])


def _buckets(terminal: Terminal, run: ReportEntry) -> None:
    window_ps = run["window"]["duration_ps"]
    spent = by_size(figures(run)["buckets_ps"])
    ranges = {bucket: bucket_range(run, bucket) for bucket, _ in spent}
    longest = max(map(len, ranges.values()), default=0)
    beside = longest + len("  ()") if longest else 0
    width = terminal.text_width - NAME_WIDTH - FIGURES_WIDTH - beside
    below = width < SHORTEST_BAR and beside > 0  # then ranges are below their figures
    if below:
        width += beside
    if width < SHORTEST_BAR:
        width = 0
    name_width = min(NAME_WIDTH, terminal.text_width - FIGURES_WIDTH)

    def row(name: Text, ps: int, filled: Text, style: str = "", known: str = "") -> None:
        name = terminal.cut(name, name_width - 1)
        name.pad_right(name_width - name.cell_len)
        filled.pad_right(width - filled.cell_len)
        said = f"{seconds(ps):>12}{percent(ps, window_ps):>6}"
        between = f"  ({known})" if known and not below else ""
        terminal.line(name, filled, terminal.text(said, style), terminal.text(between, "dim"))
        if known and below:
            terminal.line(terminal.text(f"{f'({known})':>{name_width + 12}}", "dim"))

    terminal.gap()
    for bucket, ps in spent:
        causes = causes_in(run, bucket)
        alone = f" {causes.pop()[0]}" if len(causes) == 1 else ""  # not printed twice
        name = Text.assemble(terminal.text(bucket, "bold"), terminal.text(alone, "dim"))
        filled = terminal.text(bar(ps, window_ps, width) if width else "", BUCKET_COLORS[bucket])
        row(name, ps, filled, known=ranges[bucket])
        for cause, cause_ps in causes[:CAUSES_SHOWN]:
            row(terminal.text(f"  {cause}", "dim"), cause_ps, Text(), "dim")
    if run["estimate"]:
        _estimate(terminal, run, run["estimate"])


def _estimate(terminal: Terminal, run: ReportEntry, estimate: EstimateEntry) -> None:
    terminal.line(terminal.text(f"estimated; {traced_share(run)}", "dim"))
    terminal.gap()
    terminal.line(terminal.text("what this is based on", "bold"))
    for sentence in estimate["rests_on"]:
        terminal.line(terminal.text(sentence), indent=2)


def _code(terminal: Terminal, run: ReportEntry) -> None:
    """Lines that were not already shown with a finding."""
    shown = [line for finding in run["findings"][:SHOWN_IN_FULL] for line in finding["lines"]]
    lines = [line for line in costly_lines(run) if line not in shown]
    if lines:
        terminal.gap()
        terminal.line(terminal.text("where in your code", "bold"))
    for line in lines:
        terminal.line(terminal.text(line["cause"], BUCKET_COLORS[line["bucket"]]), indent=2)
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
        terminal.text(cell, _color(steps[tallest]))
        for cell, tallest in sparkline(durations, terminal.text_width - 2)
    )
    terminal.line(*strip, indent=2)
    slow = [step for step in steps if _duration(step) > SLOW_STEP * typical_ps]
    slow.sort(key=_duration, reverse=True)
    if not slow:
        none = f"none took over {SLOW_STEP} times the median"
        terminal.line(terminal.text(none, "dim"), indent=2)
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
        left = len(slow) - SLOW_STEPS_SHOWN
        more = f"and {left} more that took over {SLOW_STEP} times the median"
        terminal.line(terminal.text(more, "dim"), indent=2)


def _duration(span: PhaseEntry | StepEntry) -> int:
    return span["end_ps"] - span["start_ps"]


def _largest_bucket(step: StepEntry) -> Bucket | None:
    parts = by_size(step["buckets_ps"])
    return parts[0][0] if parts else None


def _color(step: StepEntry) -> str:
    bucket = _largest_bucket(step)
    return BUCKET_COLORS[bucket] if bucket else ""


def _mostly(terminal: Terminal, step: StepEntry) -> Text:
    """`compile 93%`"""
    bucket = _largest_bucket(step)
    if not bucket:
        return terminal.text("not traced", "dim")
    share = percent(step["buckets_ps"][bucket], _duration(step))
    return Text.assemble(terminal.text(bucket, BUCKET_COLORS[bucket]), terminal.text(f" {share}"))


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
    """Where the time of a phase went. If there is an estimate, untraced time is not a cost."""
    parts_ps, whole_ps = phase["buckets_ps"], _duration(phase)
    if not estimated or "unknown" not in parts_ps:
        return largest_parts(parts_ps, whole_ps)
    known_ps = {**parts_ps, "unknown": 0}
    if not any(known_ps.values()):
        return "not traced"
    traced = percent(sum(known_ps.values()), whole_ps)
    return f"traced {traced}: {largest_parts(known_ps, whole_ps)}"


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
    sure = f"{100 * run['verdict']['confidence']:.0f}%"
    terminal.gap()
    terminal.line(terminal.text("evidence", "bold"))
    terminal.line(terminal.text(f"{seen}; confidence in the verdict {sure}"), indent=2)
    for subject, sentence in run["evidence"].items():
        terminal.line(terminal.text(f"{subject}: {sentence}", "dim"), indent=2)


def _notes(terminal: Terminal, notes: Sequence[NoteEntry]) -> None:
    table = [
        [
            terminal.text(note["level"], NOTE_COLORS[note["level"]]),
            Text.assemble(
                terminal.text(note["text"]),
                terminal.text(f" ({note['where']})" if note["where"] else "", "dim"),
            ),
        ]
        for note in notes
    ]
    terminal.rows(table)
