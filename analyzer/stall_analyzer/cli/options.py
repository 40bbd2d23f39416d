"""The command line of `stall-analyze`: its options, and what the help says about them.

Nothing heavy is imported here: `--help` must answer at once. Hence argparse, which loads in a few
milliseconds, and not click or typer.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from stall_analyzer.batch.limits import BUCKETS, STATUSES
from stall_analyzer.batch.limits import parse as parse_limit
from stall_analyzer.batch.selection import (
    ALL,
    parse_duration,
    parse_shard,
    parse_share,
    parse_since,
)
from stall_analyzer.cli.argument_parser import ArgumentParser
from stall_analyzer.cli.help_texts import DESCRIPTION, EPILOG, MOST_IN_FULL, SHORT_HELP
from stall_analyzer.cli.settings import DEADLINE, TOLERANCE, positive

PROGRAM = "stall-analyze"
# The subcommands; a folder of that name can be given as ./capture.
ATTACH, CAPTURE, CHECK, TRY, WATCH = "attach", "capture", "check", "try", "watch"
SUBCOMMANDS = (ATTACH, CAPTURE, CHECK, TRY, WATCH)
SHELLS = ("bash", "zsh", "tcsh")
MOST_PROCESSES = 8  # each process may hold a large trace in memory
TEXT, JSON, MARKDOWN, GITHUB, SARIF, JUNIT = "text", "json", "markdown", "github", "sarif", "junit"
BUILD_FORMATS = (GITHUB, SARIF, JUNIT)
FORMATS = (TEXT, JSON, MARKDOWN, *BUILD_FORMATS)

Value = TypeVar("Value")


def parser() -> ArgumentParser:
    made = ArgumentParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} PATH… [options]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    made.add_argument(
        "-h", "--help", action=_ShortHelp, nargs=0, help="show the most common options"
    )
    made.add_argument("--help-all", action="help", help="show all options")
    made.add_argument("paths", metavar="PATH", nargs="*", help="log directory, or a run in it")
    _add_outputs(made)
    _add_selection(made.add_argument_group("which runs"))
    _add_batch(made.add_argument_group("many runs"))
    _add_checks(made.add_argument_group("to fail a build"))
    made.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="read settings from FILE, not from the nearest stall.toml or pyproject.toml; "
        "docs/how-to/ci.md lists the settings",
    )
    made.add_argument(
        "--explain",
        metavar="ID",
        help="show the manual page of a finding, by id or name; needs no PATH",
    )
    made.add_argument(
        "--list-findings",
        action="store_true",
        help="list everything that can be found; needs no PATH",
    )
    made.add_argument(
        "--completion",
        choices=SHELLS,
        help="print the completion script for a shell; needs the [completion] extra",
    )
    made.add_argument("--no-color", action="store_true", help="no color; NO_COLOR does the same")
    made.add_argument(
        "-v", "--verbose", action="store_true", help="show tracebacks of internal errors"
    )
    made.add_argument(
        "--version", action=_Version, nargs=0, help="show the version and the decoder in use"
    )
    return made


def _add_outputs(made: argparse.ArgumentParser) -> None:
    form = made.add_mutually_exclusive_group()
    form.add_argument(
        "--format",
        choices=FORMATS,
        default=TEXT,
        help="what to print: text, one JSON document, Markdown for issues and chat, GitHub "
        "workflow annotations, SARIF or JUnit (docs/how-to/ci.md)",
    )
    for same in (JSON, MARKDOWN):
        form.add_argument(
            f"--{same}",
            dest="format",
            action="store_const",
            const=same,
            help=f"the same as --format {same}",
        )
    made.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE")
    made.add_argument(
        "--full",
        action="store_true",
        default=None,
        help=f"show every run in full, even if there are more than {MOST_IN_FULL}",
    )
    made.add_argument(
        "--threads",
        action="store_true",
        help="show what each thread was doing when a capture last checked, with the one to blame "
        "first",
    )
    made.add_argument(
        "--jsonl", metavar="FILE", type=Path, help="write JSON lines, one run per line"
    )
    made.add_argument(
        "--parquet",
        metavar="FOLDER",
        type=Path,
        help="write runs.parquet, findings.parquet and causes.parquet, for DuckDB and the like",
    )
    made.add_argument(
        "--bundle",
        metavar="FILE",
        type=Path,
        help="write a zip for a bug report: the report and the versions in use, but no log files",
    )
    made.add_argument(
        "--with-logs", action="store_true", help="add the log files that were read to the --bundle"
    )
    more = made.add_mutually_exclusive_group()
    more.add_argument(
        "--html",
        metavar="FILE",
        type=Path,
        help="write one file to share: the page of the Stall tab, with all its data",
    )
    more.add_argument(
        "--annotate",
        metavar="FOLDER",
        type=Path,
        help="write copies of the traces into FOLDER, with added lines for buckets, steps and "
        "findings",
    )


def _add_selection(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--run",
        "--runs",
        metavar="NAME",
        action="append",
        default=[],
        help="only runs with this name or pattern (*, ?); may be given more than once",
    )
    group.add_argument(
        "--since",
        metavar="WHEN",
        type=_value(parse_since),
        help="only runs with a file that changed since a date (2026-11-01) or within a time (3d)",
    )
    group.add_argument(
        "--status",
        choices=STATUSES,
        action="append",
        default=[],
        help="only runs with this verdict; may be given more than once",
    )
    group.add_argument(
        "--bucket",
        choices=BUCKETS,
        action="append",
        default=[],
        help="only runs in which this bucket costs the most; may be given more than once",
    )
    group.add_argument(
        "--finding",
        metavar="ID",
        action="append",
        default=[],
        help="only runs with this finding, by id or name; may be given more than once",
    )
    group.add_argument(
        "--shard",
        metavar="I/N",
        type=_value(parse_shard),
        default=ALL,
        help="only part I of N, counting from 0, to divide the work among machines by hand",
    )
    group.add_argument(
        "--console",
        metavar="FILE",
        default="",
        help="file with the run's terminal output, if it is not found automatically (as *.out, "
        "*.err or *.log near the logs); if there are several runs, it must be in the folder of the "
        "run that wrote it",
    )


def _add_batch(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--jobs",
        metavar="N",
        type=_value(positive),
        help=f"number of processes (default: one per core, at most {MOST_PROCESSES}; "
        "a single one if there is little to read)",
    )
    group.add_argument(
        "--scheduler",
        metavar="URL",
        help="run on the Dask cluster with this scheduler (tcp://…); needs the [cluster] extra",
    )
    group.add_argument(
        "--deadline",
        metavar="TIME",
        type=_value(parse_duration),
        help=f"give up on a run that takes longer than this (default: {DEADLINE}); ignored if only "
        "a few runs are read",
    )
    group.add_argument(
        "--store",
        metavar="FOLDER",
        type=Path,
        help="folder in which results are kept (default: the user's cache folder); several "
        "machines may share it",
    )
    group.add_argument(
        "--fresh", action="store_true", help="read every run again, even if its result was kept"
    )


def _add_checks(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--fail-over",
        metavar="LIMIT",
        type=_value(parse_limit),
        action="append",
        help="exit with 5 if a run exceeds LIMIT, such as input=20%% (of the first epoch), "
        "compile.xla=30s or epoch=10m, or has the status in LIMIT, such as status=stuck; may be "
        "given more than once",
    )
    group.add_argument(
        "--baseline",
        metavar="RESULT",
        type=Path,
        help="exit with 6 if a run is worse than in RESULT: a --json or --jsonl file, or a folder "
        "of them",
    )
    group.add_argument(
        "--tolerance",
        metavar="SHARE",
        type=_value(parse_share),
        help="how much slower an epoch may be than in the baseline, as a share of the time that "
        f"it took there (default: {100 * TOLERANCE:.0f}%%)",
    )


class _ShortHelp(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        print(SHORT_HELP, end="")
        parser.exit()


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        from stall_analyzer import __version__  # noqa: PLC0415
        from stall_analyzer.decode.decode import backend  # noqa: PLC0415

        print(f"{PROGRAM} {__version__} (decoder: {backend()})")
        parser.exit()


def _value(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """argparse shows the text of this error, but not that of a ValueError."""

    def convert(text: str) -> Value:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert
