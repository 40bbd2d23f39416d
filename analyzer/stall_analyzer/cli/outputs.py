"""What `stall-analyze` prints and writes: the report, tables, a bundle, and lines on stderr."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from stall_analyzer.cli.help_texts import MOST_IN_FULL
from stall_analyzer.cli.options import (
    BUILD_FORMATS,
    GITHUB,
    JSON,
    JUNIT,
    MARKDOWN,
    PROGRAM,
    SARIF,
    TEXT,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from stall_analyzer.batch.batch import Batch
    from stall_analyzer.batch.judge import Judge
    from stall_analyzer.extras import Extra

PLAIN_WIDTH = 80  # for a pipe or a file, unless COLUMNS says otherwise


def write(batch: Batch, judge: Judge, extra: Extra | None, arguments: argparse.Namespace) -> None:
    from stall_analyzer.files import output  # noqa: PLC0415

    if arguments.jsonl or arguments.parquet:
        _write_tables(batch, arguments)
    if arguments.bundle:
        from stall_analyzer.batch.bundle import write_bundle  # noqa: PLC0415

        write_bundle(arguments.bundle, batch, judge, arguments.with_logs)
        say(f"wrote {arguments.bundle}")
    if arguments.output:
        output.write_file(arguments.output, _pieces(batch, judge, io.StringIO(), arguments))
    elif arguments.format != TEXT or not extra:
        print_all(_pieces(batch, judge, sys.stdout, arguments))


def write_extra(extra: Extra, batch: Batch, in_full: Batch) -> None:
    from stall_analyzer.report.document import document  # noqa: PLC0415

    report = document(list(in_full.entries()), batch.notes)
    written = extra.write(report, in_full.extras(), batch.facts())
    say("\n".join(f"wrote {path}" for path in written) or "there was nothing to write")


def _write_tables(batch: Batch, arguments: argparse.Namespace) -> None:
    from stall_analyzer.batch import tables  # noqa: PLC0415

    written: list[Path] = []
    if arguments.jsonl:
        written += tables.write_jsonl(arguments.jsonl, batch.lines())
    if arguments.parquet:
        written += tables.write_parquet(arguments.parquet, batch.facts())
    say("\n".join(f"wrote {path}" for path in written))


def _pieces(
    batch: Batch, judge: Judge, stream: TextIO, arguments: argparse.Namespace
) -> Iterator[str]:
    """The report in a form that fits `stream`: its width, colors and encoding."""
    if arguments.format == JSON:
        from stall_analyzer.batch.json_output import as_json  # noqa: PLC0415

        return as_json(batch, judge)
    if arguments.format in BUILD_FORMATS:
        from stall_analyzer.batch import build_output  # noqa: PLC0415

        render = {
            GITHUB: build_output.as_github,
            SARIF: build_output.as_sarif,
            JUNIT: build_output.as_junit,
        }
        return render[arguments.format](batch, judge)
    from stall_analyzer.batch import text_output  # noqa: PLC0415

    summed_up = batch.runs > MOST_IN_FULL
    in_full = arguments.full or not summed_up
    if arguments.format == MARKDOWN:
        return text_output.as_markdown(batch, judge, summed_up, in_full)
    console = _console(stream, arguments)
    return text_output.as_text(batch, judge, console, summed_up, in_full, arguments.threads)


def _console(stream: TextIO, arguments: argparse.Namespace) -> Console:
    from rich.console import Console  # noqa: PLC0415

    plain = arguments.no_color or bool(os.environ.get("NO_COLOR"))
    return Console(
        file=stream,
        color_system=None if plain else "auto",
        width=None if stream.isatty() else _plain_width(),
        highlight=False,
    )


def _plain_width() -> int:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) else PLAIN_WIDTH


def say(message: str) -> None:
    print(f"{PROGRAM}: {message}", file=sys.stderr)


def print_all(pieces: Iterable[str]) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a name may not fit the terminal's encoding
    try:
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
