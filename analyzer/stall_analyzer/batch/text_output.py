"""A batch as text or Markdown, piece by piece, so that it is never all in memory.

Sums over thousands of known runs need neither numpy nor what shows a run in full: importing them
would take half as long as everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from rich.console import Console

from stall_analyzer.batch import view
from stall_analyzer.batch.batch import Batch
from stall_analyzer.batch.judge import Judge
from stall_analyzer.report.markdown import plain
from stall_analyzer.report.terminal import Terminal

NOTES_SHOWN = 20
HOW_TO_SEE_ONE = "--run NAME shows one run in full, and --full shows all of them."


def as_text(
    batch: Batch,
    judge: Judge,
    console: Console,
    summed_up: bool,
    in_full: bool,
    threads: bool = False,
) -> Iterator[str]:
    """`threads` adds the stack of every thread, as a capture last saw it."""
    if in_full:
        from stall_analyzer.report import text  # noqa: PLC0415
        from stall_analyzer.report.document import document  # noqa: PLC0415

    if in_full and summed_up:  # one at a time
        for entry in batch.entries():
            shown = partial(text.render, document([entry]), console, threads)
            yield _captured(console, shown) + "\n"
    elif in_full:
        report = document(list(batch.entries()), batch.notes)
        yield _captured(console, lambda: text.render(report, console, threads))
    if summed_up:
        yield _captured(console, lambda: _sums(batch, judge, in_full, Terminal(console)))
    tables = view.judgments(judge, batch.root)
    if tables:
        yield "\n" + _captured(console, lambda: view.show(tables, Terminal(console)))


def as_markdown(batch: Batch, judge: Judge, summed_up: bool, in_full: bool) -> Iterator[str]:
    """It is read from the top, so judgments come first."""
    judged = view.markdown(view.judgments(judge, batch.root)).lstrip()
    if judged:
        yield f"{judged}\n"
    if summed_up:
        fleet = judge.fleet.summary()
        yield f"**{plain(view.headline(fleet))}**\n"
        yield view.markdown([*view.fleet_tables(fleet, batch.root), *_notes(batch)])
    if in_full:
        from stall_analyzer.report.document import document  # noqa: PLC0415
        from stall_analyzer.report.markdown import render  # noqa: PLC0415

        if summed_up:
            for entry in batch.entries():
                yield "\n" + render(document([entry]))
        else:
            yield render(document(list(batch.entries()), batch.notes))


def _sums(batch: Batch, judge: Judge, in_full: bool, terminal: Terminal) -> None:
    fleet = judge.fleet.summary()
    terminal.line(terminal.text(view.headline(fleet), "bold"))
    view.show([*view.fleet_tables(fleet, batch.root), *_notes(batch)], terminal)
    if not in_full:
        terminal.gap()
        terminal.line(terminal.text(HOW_TO_SEE_ONE, "dim"))


def _notes(batch: Batch) -> list[view.Table]:
    """What concerns no single run, such as a path that could not be read."""
    notes = [note for note in batch.notes if note.level != "info"]
    return [view.notes_table(notes[:NOTES_SHOWN], len(notes))] if notes else []


def _captured(console: Console, show: Callable[[], None]) -> str:
    with console.capture() as captured:
        show()
    return captured.get()
