"""`stall-analyze`: what the command does, and its exit code.

Nothing heavy is imported up here: `--help` must answer at once.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from stall_analyzer.cli import settings
from stall_analyzer.cli.help_texts import MOST_IN_FULL
from stall_analyzer.cli.options import CAPTURE, MOST_PROCESSES, SUBCOMMANDS, WATCH, parser
from stall_analyzer.cli.outputs import print_all, say, write, write_extra
from stall_analyzer.cli.progress_bar import counted_runs
from stall_analyzer.errors import StallError, UnreadableFile, UsageError
from stall_analyzer.garbage import collect_rarely

if TYPE_CHECKING:
    from stall_analyzer.batch.batch import Batch
    from stall_analyzer.batch.engines import Engine, Watch
    from stall_analyzer.batch.judge import Judge
    from stall_analyzer.batch.selection import Interest
    from stall_analyzer.extras import Extra
    from stall_analyzer.model.runs import Run
    from stall_analyzer.results.result_store import ResultStore

INTERNAL_ERROR = 1
OVER_LIMIT = 5
WORSE = 6
INTERRUPTED = 130  # 128 + SIGINT, as in shells
# A process takes about half a second to start; below these limits, one process is faster.
WORTH_PROCESSES_BYTES = 64 << 20
MOST_AT_ONCE = 20  # runs
# numpy's matrix library starts a thread for each core, which spins for 30 ms before it sleeps. No
# matrices are multiplied here.
BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def main(argv: Sequence[str] | None = None) -> int:
    is_ours = argv is None  # the process is ours, and ends with this command
    if argv is None:
        argv = sys.argv[1:]
    if argv and argv[0] in SUBCOMMANDS:
        return _subcommand(argv)
    if is_ours:
        os.environ.setdefault(BLAS_THREADS, "1")
        # Python would look for garbage once more at the end: a twentieth of the whole time.
        atexit.register(gc.freeze)
    known = parser()
    arguments = known.parse_args(argv)
    asks = arguments.explain is not None or arguments.list_findings or arguments.completion
    if not asks and not arguments.paths:
        known.error("a PATH is required: a log directory, or a run in it")
    try:
        return _answer(arguments) if asks else _analyze(arguments)
    except StallError as error:
        say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except Exception as error:
        if arguments.verbose:
            import traceback  # noqa: PLC0415

            traceback.print_exc()
        say(f"internal error: {type(error).__name__}: {error} (-v shows where)")
        return INTERNAL_ERROR


def _subcommand(argv: Sequence[str]) -> int:
    if argv[0] == WATCH:
        from stall_analyzer.cli import watch  # noqa: PLC0415

        return watch.main(argv[1:])
    return _capture(argv[1:] if argv[0] == CAPTURE else argv)


def _capture(arguments: Sequence[str]) -> int:
    """Part of the plugin, which the analyzer starts but does not import: it works without it."""
    from importlib.util import find_spec  # noqa: PLC0415
    from runpy import run_module  # noqa: PLC0415

    if find_spec("tb_stall_plugin") is None or find_spec("tensorboard") is None:
        say("this command needs tensorboard-plugin-stall and TensorBoard in this environment")
        return UsageError.exit_code
    sys.argv[1:] = arguments
    run_module("tb_stall_plugin.capture", run_name="__main__")
    return 0


def _answer(arguments: argparse.Namespace) -> int:
    """Answers what needs no PATH."""
    from stall_analyzer.detectors import manual  # noqa: PLC0415

    if arguments.completion:
        from stall_analyzer.cli import completion  # noqa: PLC0415

        print_all([completion.script(arguments.completion)])
    elif arguments.explain is not None:
        page = manual.page(arguments.explain)
        print_all([f"{page.id} {page.name} ({page.bucket})\n\n{page.text}\n"])
    else:
        pages = manual.pages()
        width = max((len(page.name) for page in pages), default=0)
        print_all(f"{p.id}  {p.bucket:13}  {p.name:{width}}  {p.summary}\n" for p in pages)
    return 0


def _analyze(arguments: argparse.Namespace) -> int:
    asked = arguments.tolerance is not None
    settings.fill(arguments)
    if asked and not arguments.baseline:
        raise UsageError(
            "--tolerance needs --baseline RESULT, because it is a share of the first epoch in "
            "the baseline"
        )
    collect_rarely()
    extra = _check_outputs(arguments)
    store = _store(arguments)
    batch, judge = _find(store, arguments, again=arguments.fresh)
    _say_found(batch)
    if extra is None:
        _read(batch, arguments)
    elif batch.runs <= extra.most_runs:
        batch, judge = _find(store, arguments, again=True)  # extras are not kept in the store
        _read(batch, arguments, extra)
        write_extra(extra, batch, batch)
    else:
        _read(batch, arguments)
        costly = _costliest(batch, int(extra.most_runs), store, arguments)
        _read(costly, arguments, extra)
        write_extra(extra, batch, costly)
    if arguments.verbose:
        sys.stderr.writelines(batch.tracebacks)
    _say_left_out(batch)
    write(batch, judge, extra, arguments)
    if arguments.store is None and batch.runs > MOST_IN_FULL:
        store.prune()
    if judge.limits.exceeded:
        over = {(one.run, one.attempt) for one in judge.limits.exceeded}
        say(f"over a limit: {len(over):,} of {counted_runs(judge.fleet.runs)}")
    judge.check()
    return _outcome(batch, judge)


def _outcome(batch: Batch, judge: Judge) -> int:
    """The exit code, with a line on stderr that says why it is not 0."""
    worse = judge.comparison.worse if judge.comparison else ()
    if worse:
        say(f"worse than the baseline: {len(worse):,} of {counted_runs(judge.fleet.runs)}")
    if judge.limits.exceeded:
        return OVER_LIMIT
    if worse:
        return WORSE
    if judge.fleet.with_errors or any(note.level == "error" for note in batch.notes):
        say("not everything could be read; the report says what could not")
        return UnreadableFile.exit_code
    return 0


def _check_outputs(arguments: argparse.Namespace) -> Extra | None:
    """What to write besides the report. Refuses what cannot be written, before the work."""
    from stall_analyzer import extras  # noqa: PLC0415
    from stall_analyzer.files import output  # noqa: PLC0415

    if arguments.with_logs and not arguments.bundle:
        raise UsageError("--with-logs needs --bundle FILE")
    for path in filter(None, (arguments.output, arguments.jsonl, arguments.bundle)):
        output.check_file(path)
    if arguments.parquet:
        from stall_analyzer.batch.tables import check_parquet  # noqa: PLC0415

        check_parquet(arguments.parquet)
    if arguments.html:
        return extras.page_in(arguments.html, arguments.paths)
    if arguments.annotate:
        return extras.annotated_traces_in(arguments.annotate, arguments.paths)
    return None


def _store(arguments: argparse.Namespace) -> ResultStore:
    from stall_analyzer.files import caches  # noqa: PLC0415
    from stall_analyzer.results.result_store import ResultStore  # noqa: PLC0415

    if arguments.store is None:
        return ResultStore(caches.results_folder())
    store = ResultStore(arguments.store, lasting=True)
    store.check()
    return store


def _find(store: ResultStore, arguments: argparse.Namespace, again: bool) -> tuple[Batch, Judge]:
    from stall_analyzer.batch.batch import Batch  # noqa: PLC0415
    from stall_analyzer.batch.judge import Judge  # noqa: PLC0415
    from stall_analyzer.batch.selection import Selection  # noqa: PLC0415
    from stall_analyzer.cli.progress_bar import finding  # noqa: PLC0415

    of_interest = _of_interest(arguments)
    wanted = Selection(arguments.run, arguments.since, arguments.shard, arguments.console)
    selected = wanted.leaves_out or of_interest is not None
    judge = Judge(arguments.fail_over, arguments.baseline, arguments.tolerance, selected)
    batch = Batch(store, judge.take, of_interest.holds if of_interest else None)
    with finding() as seen:
        batch.find(arguments.paths, wanted, again, seen)
    return batch, judge


def _of_interest(arguments: argparse.Namespace) -> Interest | None:
    if not (arguments.status or arguments.bucket or arguments.finding):
        return None
    from stall_analyzer.batch.selection import Interest  # noqa: PLC0415
    from stall_analyzer.detectors import manual  # noqa: PLC0415

    ids = [manual.page(found).id for found in arguments.finding]
    return Interest(arguments.status, arguments.bucket, ids)


def _costliest(batch: Batch, most: int, store: ResultStore, arguments: argparse.Namespace) -> Batch:
    """The runs of a batch that lost the most, to be read again; with all attempts of each."""
    from glob import escape  # noqa: PLC0415
    from heapq import nlargest  # noqa: PLC0415

    from stall_analyzer.batch.batch import Batch  # noqa: PLC0415
    from stall_analyzer.batch.selection import Selection  # noqa: PLC0415
    from stall_analyzer.report.facts import machine_loss_ps  # noqa: PLC0415

    names = {facts["run"] for facts in nlargest(most, batch.facts(), key=machine_loss_ps)}
    wanted = Selection(
        sorted(map(escape, names)), arguments.since, arguments.shard, arguments.console
    )
    costly = Batch(store)
    costly.find(arguments.paths, wanted, again=True)
    return costly


def _say_found(batch: Batch) -> None:
    from stall_analyzer.discover.discover import NO_RUN_HERE  # noqa: PLC0415

    for note in batch.notes:
        if note.text == NO_RUN_HERE:
            say(f"no training run was found in {note.where}")
    if not batch.runs and not batch.left_out:
        why = (
            "none has changed since the time given with --since"
            if batch.not_new
            else "all are in other shards"
        )
        say(f"there are runs, but {why}")
    elif batch.runs > MOST_IN_FULL:
        known = batch.runs - batch.to_read
        say(f"{batch.runs:,} runs: {batch.to_read:,} to read, {known:,} unchanged")


def _read(batch: Batch, arguments: argparse.Namespace, extra: Extra | None = None) -> None:
    from stall_analyzer.cli.progress_bar import reading  # noqa: PLC0415

    if not batch.to_read:
        return
    name = batch.last_to_read if batch.to_read == 1 else ""

    def watch(run: Run, share: float) -> None:
        bar.share(run, share)

    with (
        # Before the bar, which has a thread: processes with threads cannot be copied.
        _engine(batch, arguments, watch) as engine,
        reading(batch.to_read, batch.bytes_to_read, name) as bar,
    ):
        batch.analyze(engine, extra.extra_of if extra else None, bar.done)


def _say_left_out(batch: Batch) -> None:
    if batch.left_out:
        runs = "1 other run does" if batch.left_out == 1 else f"{batch.left_out:,} other runs do"
        say(f"{runs} not match --status, --bucket or --finding")


def _engine(
    batch: Batch, arguments: argparse.Namespace, watch: Watch
) -> AbstractContextManager[Engine]:
    processes = arguments.jobs or _processes(batch.to_read, batch.bytes_to_read)
    if not arguments.scheduler and processes == 1 and batch.to_read <= MOST_AT_ONCE:
        from stall_analyzer.batch.engines import in_this_process  # noqa: PLC0415
        from stall_analyzer.results.memory_limit import limit_memory, memory_limit  # noqa: PLC0415

        limit_memory(memory_limit())
        return in_this_process(watch)
    from stall_analyzer.batch import parallel  # noqa: PLC0415

    if arguments.scheduler:
        return parallel.on_cluster(arguments.scheduler, arguments.deadline)
    return parallel.in_processes(min(processes, batch.to_read), arguments.deadline, watch)


def _processes(runs: int, size: int) -> int:
    if runs <= MOST_AT_ONCE and size < WORTH_PROCESSES_BYTES:
        return 1
    return min(os.cpu_count() or 1, MOST_PROCESSES, runs)
