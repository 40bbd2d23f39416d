"""`stall-analyze`: the only module that prints and exits.

Nothing heavy is imported up here: `--help` must answer at once.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, TextIO

from stall_analyzer.capture import HOW_TO_CAPTURE
from stall_analyzer.errors import NothingFound, StallError, UnreadableFile, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from stall_analyzer.batch import Watch
    from stall_analyzer.extras import Extra
    from stall_analyzer.model import Run

PROGRAM = "stall-analyze"
CAPTURE = "capture"  # the one subcommand; a folder of that name can be given as ./capture
INTERNAL_ERROR = 1
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
PLAIN_WIDTH = 80
MOST_PROCESSES = 8  # each may hold a large trace in memory
# A process takes about half a second to start; below this one process is done sooner.
WORTH_PROCESSES_BYTES = 64 << 20

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
  stall-analyze logs/                    every run under logs/
  stall-analyze logs/ --run 'resnet*'    only some of them
  stall-analyze logs/ --json -o stall.json
  stall-analyze logs/ --html stall.html  one file to pass on: the tab's page
  stall-analyze logs/ --annotate out/    traces with our lines in them
  stall-analyze --explain ST104          what a finding means, and what to do

exit codes:
  0    a report was made, whatever its verdict
  1    internal error
  2    the command line, or the output file, cannot be used
  3    no run was found
  4    a file or a run could not be read; the rest is in the report
  130  interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    if argv is None:
        argv = sys.argv[1:]
    if argv and argv[0] == CAPTURE:
        return _capture(argv[1:])
    parser = _parser()
    arguments = parser.parse_args(argv)
    needs_path = arguments.explain is None and not arguments.list_findings
    if needs_path and not arguments.paths:
        parser.error("a PATH is required: a log directory, or a run in it")
    try:
        return _analyze(arguments) if needs_path else _show_manual(arguments)
    except StallError as error:
        _say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except Exception as error:
        if arguments.verbose:
            import traceback  # noqa: PLC0415

            traceback.print_exc()
        _say(f"internal error: {type(error).__name__}: {error} (-v shows where)")
        return INTERNAL_ERROR


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", metavar="PATH", nargs="*", help="log directory, or a run in it")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON document instead")
    form.add_argument("--markdown", action="store_true", help="print Markdown, for issues and chat")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE")
    more = parser.add_mutually_exclusive_group()
    more.add_argument(
        "--html", metavar="FILE", type=Path, help="write the tab's page with all data into FILE"
    )
    more.add_argument(
        "--annotate",
        metavar="FOLDER",
        type=Path,
        help="write copies of the traces into FOLDER, with buckets, steps and findings as lines",
    )
    parser.add_argument(
        "--run",
        metavar="NAME",
        action="append",
        default=[],
        help="only runs of this name or pattern (*, ?); may be given more than once",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=_positive,
        help=f"processes (default: as many as pay off, at most {MOST_PROCESSES})",
    )
    parser.add_argument(
        "--explain", metavar="ID", help="the manual page of a finding, by id or name; needs no PATH"
    )
    parser.add_argument(
        "--list-findings", action="store_true", help="everything that can be found; needs no PATH"
    )
    parser.add_argument("--no-color", action="store_true", help="no colour; NO_COLOR does the same")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="tracebacks of internal errors"
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="version, and decoder in use")
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        from stall_analyzer import __version__  # noqa: PLC0415
        from stall_analyzer.decode import backend  # noqa: PLC0415

        print(f"{PROGRAM} {__version__} (decoder: {backend()})")
        parser.exit()


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _capture(arguments: Sequence[str]) -> int:
    """Of the plugin, which the analyzer starts but does not import: it stands without it."""
    from importlib.util import find_spec  # noqa: PLC0415
    from runpy import run_module  # noqa: PLC0415

    if find_spec("tb_stall_plugin") is None or find_spec("tensorboard") is None:
        _say("capture needs the package tensorboard-plugin-stall, with TensorBoard, in this Python")
        return UsageError.exit_code
    sys.argv[1:] = arguments
    run_module("tb_stall_plugin.capture", run_name="__main__")
    return 0


def _show_manual(arguments: argparse.Namespace) -> int:
    from stall_analyzer import manual  # noqa: PLC0415

    if arguments.explain is not None:
        page = manual.page(arguments.explain)
        _print(f"{page.id} {page.name} ({page.bucket})\n\n{page.text}\n")
    else:
        pages = manual.pages()
        width = max((len(page.name) for page in pages), default=0)
        lines = (f"{p.id}  {p.bucket:13}  {p.name:{width}}  {p.summary}\n" for p in pages)
        _print("".join(lines))
    return 0


def _analyze(arguments: argparse.Namespace) -> int:
    from stall_analyzer.batch import analyze_all  # noqa: PLC0415
    from stall_analyzer.discover import discover  # noqa: PLC0415
    from stall_analyzer.report.json import document  # noqa: PLC0415

    extra = _extra(arguments)
    discovery = discover(arguments.paths)
    runs = _selected(discovery.runs, arguments.run)
    size = sum(run.size for run in runs)
    with _progress(runs) as watch:
        processes = arguments.jobs or _processes(len(runs), size)
        outcomes = analyze_all(runs, processes, watch, extra.of_each if extra else None)
    if arguments.verbose:
        sys.stderr.writelines(outcome.traceback for outcome in outcomes)
    report = document([], notes=discovery.notes)
    report["runs"] = [outcome.entry for outcome in outcomes]
    if extra:
        written = extra.write(report, [outcome.also for outcome in outcomes])
        _say("\n".join(f"wrote {path}" for path in written) or "there was nothing to write")
    if arguments.output or arguments.json or arguments.markdown or not extra:
        _deliver(report, arguments)
    return UnreadableFile.exit_code if _has_errors(report) else 0


def _extra(arguments: argparse.Namespace) -> Extra | None:
    """What to write beside the report. Refuses what cannot be written, before the work."""
    from stall_analyzer import extras, output  # noqa: PLC0415

    if arguments.output:
        output.check_file(arguments.output)
    if arguments.html:
        return extras.page_in(arguments.html)
    if arguments.annotate:
        return extras.annotated_traces_in(arguments.annotate, arguments.paths)
    return None


def _selected(runs: Sequence[Run], patterns: Sequence[str]) -> list[Run]:
    chosen = [
        run
        for run in runs
        if not patterns or any(fnmatchcase(run.name, pattern) for pattern in patterns)
    ]
    if not chosen:
        some = ", ".join(run.name for run in runs[:10]) + (", …" if len(runs) > 10 else "")
        raise NothingFound(f"no run is called {' or '.join(patterns)}; there are: {some}")
    return chosen


def _processes(runs: int, size: int) -> int:
    if size < WORTH_PROCESSES_BYTES:
        return 1
    return min(os.cpu_count() or 1, MOST_PROCESSES, runs)


def _has_errors(report: Mapping[str, Any]) -> bool:
    notes = [note for entry in (report, *report["runs"]) for note in entry.get("notes", ())]
    return any(note["level"] == "error" for note in notes)


# ---------------------------------------------------------------- output


def _say(message: str) -> None:
    print(f"{PROGRAM}: {message}", file=sys.stderr)


@contextmanager
def _progress(runs: Sequence[Run]) -> Iterator[Watch]:
    """A bar on stderr, for a person who would otherwise wait before an empty screen."""
    sizes = [run.size for run in runs]
    if sum(sizes) < WORTH_PROCESSES_BYTES or not sys.stderr.isatty():
        yield lambda number, share: None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        what = escape(runs[0].name) if len(runs) == 1 else f"{len(runs)} runs"
        task = bar.add_task(f"reading {what}", total=sum(sizes))
        shares = [0.0] * len(runs)

        def watch(number: int, share: float) -> None:
            if share > shares[number]:
                bar.advance(task, (share - shares[number]) * sizes[number])
                shares[number] = share

        yield watch


def _deliver(report: Mapping[str, Any], arguments: argparse.Namespace) -> None:
    from stall_analyzer.output import write_file  # noqa: PLC0415

    if arguments.output:
        write_file(arguments.output, _rendered(report, io.StringIO(), arguments))
    else:
        _print(_rendered(report, sys.stdout, arguments))


def _print(text: str) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a name may not fit the terminal's encoding
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _rendered(report: Mapping[str, Any], stream: TextIO, arguments: argparse.Namespace) -> str:
    """The report as it fits `stream`: its width, colours and encoding."""
    if arguments.markdown:
        from stall_analyzer.report import markdown  # noqa: PLC0415

        return markdown.render(report)
    if arguments.json:
        # Compact: indenting is many times slower, and people have the text view.
        return json.dumps(report, allow_nan=False) + "\n"
    from stall_analyzer.report.text import render  # noqa: PLC0415

    console = _console(stream, arguments)
    with console.capture() as captured:
        render(report, console)
    return captured.get()


def _console(stream: TextIO, arguments: argparse.Namespace) -> Console:
    from rich.console import Console  # noqa: PLC0415

    plain = arguments.no_color or bool(os.environ.get("NO_COLOR"))
    return Console(
        file=stream,
        color_system=None if plain else "auto",
        width=None if stream.isatty() else PLAIN_WIDTH,
        highlight=False,
    )


if __name__ == "__main__":
    sys.exit(main())
