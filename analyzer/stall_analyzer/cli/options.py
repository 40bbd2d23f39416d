"""The command line of `stall-analyze`: what may be said on it, and what the help tells.

Nothing heavy is imported here: `--help` must answer at once. Hence argparse, which loads in a few
milliseconds, and not click or typer.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import TypeVar

from stall_analyzer.batch.limits import parse as parse_limit
from stall_analyzer.batch.selection import (
    ALL,
    parse_duration,
    parse_shard,
    parse_share,
    parse_since,
)
from stall_analyzer.captures.how_to_capture import HOW_TO_CAPTURE

PROGRAM = "stall-analyze"
MOST_PROCESSES = 8  # each may hold a large trace in memory
MOST_IN_FULL = 20  # runs; of more, the sums say more than the reports
TOLERANCE = 0.1

Value = TypeVar("Value")

DESCRIPTION = """\
Why is my training stuck on the first epoch?

Reads TensorFlow profiler traces and event files under each PATH (a log
directory of TensorBoard, or a run in it) and divides the wall time of the
first epoch exactly: waiting for input, compiling, memory, numerics,
communication, Python on the host, and the model's own work. What the files
do not show is called unknown. Nothing is written into a log directory.
"""

EPILOG = f"""\
how to capture the first epoch:
{indent(HOW_TO_CAPTURE, "  ")}

  Event files alone are enough to see that the first epoch is slow; the
  trace is what shows why. StallCallback takes it in pieces, and also writes
  down where a run hangs. Profile is written when its block ends, so let a
  very long epoch run with steps_per_epoch=200.

examples:
  stall-analyze capture -- python train.py    record a run, and why it hangs;
                                         more: stall-analyze capture --help
  stall-analyze check train.py           can it learn at all? tries one batch
  stall-analyze try ST109 -- python train.py  does the change help? measures it
  stall-analyze attach PID               it hangs, and nothing was recorded
  stall-analyze watch logs/              how are they doing, while they go on
  stall-analyze logs/                    every run under logs/
  stall-analyze logs/ --run 'resnet*'    only some of them
  stall-analyze logs/ --json -o stall.json
  stall-analyze logs/ --html stall.html  one file to pass on: the tab's page
  stall-analyze logs/ --annotate out/    traces with our lines in them
  stall-analyze --explain ST104          what a finding means, and what to do

many runs (docs/CLUSTER.md has more):
  stall-analyze s3://bucket/logs --jsonl all.jsonl --parquet tables/
  stall-analyze logs/ --since 1d --fail-over input=20% --fail-over status=stuck
  stall-analyze logs/ --baseline last.jsonl --jsonl new.jsonl
  stall-analyze logs/ --scheduler tcp://head:8786

  More than {MOST_IN_FULL} runs are summed up; --full or --run shows them in full. Results are
  kept, and a run is read again only when its files have changed: a pass
  that was killed goes on where it was when it is started again.

exit codes:
  0    a report was made, whatever its verdict
  1    internal error
  2    the command line, or the output file, cannot be used
  3    no run was found
  4    a file or a run could not be read; the rest is in the report
  5    a run is over a limit of --fail-over
  6    a run is worse than in the --baseline
  7    the cluster of --scheduler cannot be used, or was lost
  130  interrupted
  Of 4, 5 and 6, the first of 5, 6, 4 that holds.
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("paths", metavar="PATH", nargs="*", help="log directory, or a run in it")
    _add_outputs(made)
    _add_selection(made.add_argument_group("which runs"))
    _add_batch(made.add_argument_group("many runs"))
    _add_checks(made.add_argument_group("for builds that should fail"))
    made.add_argument(
        "--explain", metavar="ID", help="the manual page of a finding, by id or name; needs no PATH"
    )
    made.add_argument(
        "--list-findings", action="store_true", help="everything that can be found; needs no PATH"
    )
    made.add_argument("--no-color", action="store_true", help="no colour; NO_COLOR does the same")
    made.add_argument("-v", "--verbose", action="store_true", help="tracebacks of internal errors")
    made.add_argument("--version", action=_Version, nargs=0, help="version, and decoder in use")
    return made


def _add_outputs(made: argparse.ArgumentParser) -> None:
    form = made.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON document instead")
    form.add_argument("--markdown", action="store_true", help="print Markdown, for issues and chat")
    made.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE")
    made.add_argument(
        "--full",
        action="store_true",
        help=f"every run in full, even when there are more than {MOST_IN_FULL}",
    )
    made.add_argument(
        "--threads",
        action="store_true",
        help="what each thread was doing when a capture last looked; first the one to blame",
    )
    made.add_argument(
        "--jsonl", metavar="FILE", type=Path, help="write JSON lines, one run's entry each"
    )
    made.add_argument(
        "--parquet",
        metavar="FOLDER",
        type=Path,
        help="write runs.parquet, findings.parquet and causes.parquet, for DuckDB and the like",
    )
    more = made.add_mutually_exclusive_group()
    more.add_argument(
        "--html", metavar="FILE", type=Path, help="write the tab's page with all data into FILE"
    )
    more.add_argument(
        "--annotate",
        metavar="FOLDER",
        type=Path,
        help="write copies of the traces into FOLDER, with buckets, steps and findings as lines",
    )


def _add_selection(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--run",
        "--runs",
        metavar="NAME",
        action="append",
        default=[],
        help="only runs of this name or pattern (*, ?); may be given more than once",
    )
    group.add_argument(
        "--since",
        metavar="WHEN",
        type=_value(parse_since),
        help="only runs with a file that changed since then: 2026-11-01, or 3d for three days",
    )
    group.add_argument(
        "--shard",
        metavar="I/N",
        type=_value(parse_shard),
        default=ALL,
        help="only the I-th of N parts, from 0/N on, to divide the work by hand",
    )
    group.add_argument(
        "--console",
        metavar="FILE",
        default="",
        help="what the run wrote to its terminal, where that is not found beside its logs "
        "(*.out, *.err, *.log); of several runs, it is that of the one it lies beside",
    )


def _add_batch(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--jobs",
        metavar="N",
        type=_positive,
        help=f"processes (default: as many as pay off, at most {MOST_PROCESSES})",
    )
    group.add_argument(
        "--scheduler",
        metavar="URL",
        help="work on the Dask cluster of this scheduler, tcp://…; needs the extra [cluster]",
    )
    group.add_argument(
        "--deadline",
        metavar="TIME",
        type=_value(parse_duration),
        default=parse_duration("30m"),
        help="give a run up that takes longer (default: 30m); not where a few are read at once",
    )
    group.add_argument(
        "--store",
        metavar="FOLDER",
        type=Path,
        help="where results are kept (default: the user's cache folder); machines may share one",
    )
    group.add_argument(
        "--fresh", action="store_true", help="read every run, whatever results are kept"
    )


def _add_checks(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--fail-over",
        metavar="LIMIT",
        type=_value(parse_limit),
        action="append",
        default=[],
        help="exit with 5 when a run is over it: input=20%% of the first epoch, compile.xla=30s, "
        "epoch=10m, status=stuck; may be given more than once",
    )
    group.add_argument(
        "--baseline",
        metavar="RESULT",
        type=Path,
        help="exit with 6 when a run is worse than in this --json or --jsonl, or folder of them",
    )
    group.add_argument(
        "--tolerance",
        metavar="SHARE",
        type=_value(parse_share),
        default=TOLERANCE,
        help=f"of the former epoch by which a run may be slower (default: {TOLERANCE:.0%})".replace(
            "%", "%%"
        ),
    )


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        from stall_analyzer import __version__  # noqa: PLC0415
        from stall_analyzer.decode.decode import backend  # noqa: PLC0415

        print(f"{PROGRAM} {__version__} (decoder: {backend()})")
        parser.exit()


def _value(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """argparse shows the words of this error, and not those of a ValueError."""

    def convert(text: str) -> Value:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)
