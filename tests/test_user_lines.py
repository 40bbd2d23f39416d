"""Which lines of the user's own code the time of a captured epoch went to."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from stall_analyzer.captures.books_reader import read_books
from stall_analyzer.captures.capture_format import Account, BookPhase
from stall_analyzer.captures.capture_records import (
    BookItem,
    BooksRecord,
    StackSamples,
    StacksRecord,
)
from stall_analyzer.captures.stack_frames import frame_of
from stall_analyzer.captures.stacks_reader import read_stacks
from stall_analyzer.diagnose.users_code import with_lines
from stall_analyzer.model.code_lines import CodeLine
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.findings import Change, Evidence, Finding
from stall_analyzer.model.timeline import Window
from stall_analyzer.report import markdown, text
from stall_analyzer.report.document import run_document
from stall_analyzer.report.words import code_cost, code_place
from stall_analyzer.signals.host.user_lines import code_lines, code_stacks, users_frame
from tests.captures import (
    GENERATOR,
    IN_A_CALLBACK,
    IN_THE_STEP,
    NS,
    SITE,
    START_NS,
    write_booked_run,
)
from tests.real_documents import analyzed, document, finding, sample

PS = 1_000_000_000_000  # of a second
IN_A_LAYER = (
    f"{SITE}/tensorflow/python/ops/gen_math_ops.py:9100 sin",
    "/home/me/layers.py:7 Slow.call",
    f"{SITE}/keras/src/layers/layer.py:900 Layer.__call__",
    f"{SITE}/keras/src/backend/tensorflow/trainer.py:401 TensorFlowTrainer.fit",
    "/home/me/train.py:88 <module>",
)
IN_A_LOOP = ("/usr/lib/python3.11/json/encoder.py:200 encode", "/home/me/train.py:30 report")


def books(items: tuple[BookItem, ...] = (), **spent_s: float) -> BooksRecord:
    """One row of an epoch that begins at START_NS."""
    spent = {account: (round(s * NS),) for account, s in spent_s.items()}
    lasted = sum(ns for (ns,) in spent.values())
    return BooksRecord(
        ns=START_NS + lasted, began_ns=START_NS, phase=BookPhase.TRAIN, epoch=0,
        lasted_ns=(lasted,), steps=(1,), calls=(1,), spent_ns=spent, items=items,
    )  # fmt: skip


def seen(*samples: tuple[Any, ...], at_s: float = 0.0, **source: str) -> StacksRecord:
    """Each sample has an account, an item, whether in the background, frames and milliseconds."""
    frames: dict[str, str] = {}
    stacks = {}
    told = []
    for n, (account, item, background, lines, ms) in enumerate(samples):
        numbers = []
        for line in lines:
            numbers.append(len(frames))
            frames[str(numbers[-1])] = line
        stacks[str(n)] = tuple(numbers)
        told.append(StackSamples(account, item, background, n, 1 + ms // 30, ms * NS // 1000))
    began_ns = START_NS + round(at_s * NS)
    return StacksRecord(began_ns + NS, began_ns, frames, stacks, tuple(told), source)


def lines_of(
    kept: BooksRecord, *looks: StacksRecord, epoch_s: float = 10.0, contention_s: float = 0.0
) -> list[CodeLine]:
    read, _ = read_books([kept])
    capture = Capture(books=read, stacks=read_stacks(looks))
    window = Window(0, round(epoch_s * PS), "", "", clock_unix_ns=START_NS)
    source = capture.stacks.source if capture.stacks is not None else {}
    return [*code_lines(code_stacks(capture, window, round(contention_s * PS)), source)]


def in_short(lines: list[CodeLine]) -> list[tuple[str, str, float]]:
    return [(line.cause, f"{line.path}:{line.line}", round(line.ps / PS, 2)) for line in lines]


def test_samples_divide_the_time_of_an_account_among_the_users_lines() -> None:
    samples = seen(
        (Account.PYTHON, "", False, IN_A_LOOP, 300),
        (Account.PYTHON, "", False, ("/home/me/train.py:31 report",), 100),
    )
    assert in_short(lines_of(books(python=4.0), samples)) == [
        ("host.python", "/home/me/train.py:30", 3.0),
        ("host.python", "/home/me/train.py:31", 1.0),
    ]


def test_a_hook_of_a_callback_has_its_own_clock() -> None:
    name = "Report.on_train_batch_end"
    other = BookItem(
        Account.CALLBACK, "ModelCheckpoint.on_epoch_end", f"{SITE}/keras/x.py:3", 1, NS
    )
    kept = books(
        (BookItem(Account.CALLBACK, name, "/home/me/train.py:40", 9, 3 * NS), other), callback=4.0
    )
    samples = seen(
        (Account.CALLBACK, name, False, IN_A_CALLBACK, 100),
        (Account.CALLBACK, other.name, False, IN_THE_STEP[1:], 900),
    )
    (line,) = lines_of(kept, samples)
    assert (line.path, line.line, line.ps, line.name) == ("/home/me/train.py", 41, 3 * PS, name)


def test_what_was_too_short_to_be_seen_has_the_place_of_its_function() -> None:
    name = "Report.on_epoch_end"
    kept = books(
        (BookItem(Account.CALLBACK, name, "/home/me/train.py:50", 1, NS // 4),), callback=0.25
    )
    (line,) = lines_of(kept)
    assert (line.line, line.function, line.ps) == (50, name, PS // 4)


def test_a_librarys_callback_is_not_blamed_on_the_line_that_calls_fit() -> None:
    name = "ModelCheckpoint.on_train_batch_end"
    kept = books(
        (BookItem(Account.CALLBACK, name, f"{SITE}/keras/x.py:3", 9, 2 * NS),), callback=2.0
    )
    samples = seen((Account.CALLBACK, name, False, IN_A_LAYER[2:], 500))
    assert not lines_of(kept, samples)


def test_python_of_steps_without_a_compiled_function_is_eager() -> None:
    samples = seen((Account.PYTHON, "", False, ("/home/me/train.py:31 step",), 100))
    eager = replace(books(python=4.0), calls=(0,))
    assert in_short(lines_of(eager, samples)) == [("host.eager", "/home/me/train.py:31", 4.0)]


def test_a_layer_that_is_traced_is_named_by_its_line() -> None:
    rest = IN_A_LAYER[2:]
    samples = seen(
        (Account.TRACE, "one_step", False, IN_A_LAYER, 600),
        (Account.TRACE, "one_step", False, rest, 400),
    )
    expected = [("compile.tracing", "/home/me/layers.py:7", 3.0)]
    item = BookItem(Account.TRACE, "one_step", "", 1, 5 * NS)
    assert in_short(lines_of(books((item,), trace=5.0), samples)) == expected
    assert in_short(lines_of(books(trace=5.0), samples)) == expected, "killed before it was told"


def test_what_a_replicas_thread_traces_is_what_the_training_thread_waits_for() -> None:
    """TensorFlow 2.21: a strategy builds the step of each replica in a thread of its own."""
    strategy = f"{SITE}/tensorflow/python/distribute/mirrored_run.py"
    waits = (
        "/usr/lib/python3.11/threading.py:327 Condition.wait",
        f"{strategy}:226 _call_for_each_replica",
        "/home/me/train.py:20 train_step",
    )
    replica = ("/home/me/train.py:9 replica_step", f"{strategy}:387 _MirroredReplicaThread.run")
    samples = seen(
        (Account.TRACE, "f", False, waits, 800),
        (Account.TRACE, "f", False, ("/home/me/train.py:21 train_step",), 200),
        (Account.TRACE, "f", True, replica, 600),
        (Account.TRACE, "f", True, GENERATOR, 600),
    )
    item = BookItem(Account.TRACE, "f", "", 1, 10 * NS)
    lines = {line: s for _, line, s in in_short(lines_of(books((item,), trace=10.0), samples))}
    expected = {9: 6.0, 20: 2.0, 21: 2.0}  # 2 s were only TensorFlow's, which is not recorded
    assert lines == {f"/home/me/train.py:{line}": s for line, s in expected.items()}


def test_packages_are_not_the_users_code_wherever_they_are_installed() -> None:
    legacy = frame_of("/jobs/packages/tf_keras/src/engine/training.py:1381 Model.fit")
    own = frame_of("/home/me/keras/train.py:3 main")
    assert legacy is not None and legacy.trains and not legacy.is_users
    assert own is not None and own.is_users


def test_a_wait_is_given_to_what_ran_in_the_background_as_far_as_it_ran() -> None:
    samples = seen(
        (Account.STEP, "f", False, IN_THE_STEP, 1000),
        (Account.STEP, "f", True, GENERATOR, 500),
    )
    (line,) = lines_of(books(step=1.0, wait=3.0), samples)
    assert (line.cause, line.path, line.line) == ("input.wait", "/home/me/data.py", 12)
    assert line.background and line.ps == 2 * PS, "it ran for two of the four seconds"
    (line,) = lines_of(books(step=3.5, wait=0.5), samples)
    assert line.ps == PS // 2, "and costs no more than was waited"


def test_a_generator_that_nobody_waits_for_costs_nothing() -> None:
    samples = seen(
        (Account.STEP, "f", False, IN_THE_STEP, 1000), (Account.STEP, "f", True, GENERATOR, 900)
    )
    assert lines_of(books(step=4.0), samples) == []
    (line,) = lines_of(books(step=4.0), samples, contention_s=1.0)
    assert line.ps == PS, "but what makes the steps slower does"


def test_the_line_that_calls_the_training_explains_nothing() -> None:
    frames = [frame for text in IN_THE_STEP if (frame := frame_of(text))]
    assert users_frame(frames) is None
    frames = [frame for text in IN_A_LAYER if (frame := frame_of(text))]
    found = users_frame(frames)
    assert found is not None and found.place == "layers.py:7"


def test_what_was_seen_outside_of_the_epoch_does_not_count() -> None:
    samples = seen((Account.PYTHON, "", False, IN_A_LOOP, 300))
    later = seen((Account.PYTHON, "", False, ("/home/me/train.py:99 x",), 300), at_s=50.0)
    assert [line.line for line in lines_of(books(python=4.0), samples, later)] == [30]


def test_the_line_comes_with_its_text_where_that_was_recorded() -> None:
    samples = seen((Account.PYTHON, "", False, IN_A_LOOP, 300))
    samples = replace(samples, source={"/home/me/train.py:30": "json.dumps(logs)"})
    assert [line.source for line in lines_of(books(python=4.0), samples)] == ["json.dumps(logs)"]


def test_samples_that_refer_to_a_lost_record_are_left_out() -> None:
    whole = seen((Account.PYTHON, "", False, IN_A_LOOP, 300))
    cut = replace(whole, stacks={"0": (0, 77), "x": (0,)}, frames={**whole.frames, "y": "z"})
    read = read_stacks([cut])
    assert read is not None and read.stacks == ()
    read = read_stacks([replace(whole, stacks={})])
    assert read is not None and read.stacks == ()
    negative = replace(whole, samples=(replace(whole.samples[0], seen_ns=-5),))
    read = read_stacks([negative])
    assert read is not None and read.stacks == ()


# ---------------------------------------------------------------- findings and views

LINE = CodeLine("host", "host.callback", "/home/me/train.py", 41, "Report.hook", 2 * PS, "x = 1")


class _Host:
    host = "box"


class _Signals:
    """The parts of the signals that are used."""

    def __init__(self, *lines: CodeLine) -> None:
        self.code_lines = lines
        self.causes_ps = {"host.callback": 3 * PS, "host.checkpoint": PS}
        self.host = _Host()

    def time_of(self, start: Any, end: Any, cause: str) -> Any:
        """Callbacks in the first three seconds, a checkpoint in the fourth."""
        first, last = (0, 3 * PS) if cause == "host.callback" else (3 * PS, 4 * PS)
        return np.maximum(np.minimum(end, last) - np.maximum(start, first), 0)


@pytest.mark.parametrize(("start_s", "expected"), [(1, (LINE,)), (3, ())])
def test_a_finding_has_the_lines_of_the_cause_that_its_evidence_shows(
    start_s: int, expected: tuple[CodeLine, ...]
) -> None:
    signals = _Signals(LINE)
    evidence = Evidence("box", "", start_s * PS, (start_s + 1) * PS, "")
    found = Finding(
        "act", "", "", Change(""), lost_ps=3 * PS, evidence=(evidence,), bucket="host",
        blames=("host",),
    )  # fmt: skip
    assert with_lines(found, signals).lines == expected  # type: ignore[arg-type]


ENTRY: Any = vars(LINE)


def test_a_line_is_shown_with_file_function_and_seconds() -> None:
    assert code_place(ENTRY) == "train.py:41 Report.hook"
    assert code_cost(ENTRY) == "2.00 s"
    behind: Any = {**ENTRY, "background": True}
    assert code_cost(behind) == "2.00 s in the background, holding up training"


def shown_in_a_terminal(run: Any) -> str:
    output = io.StringIO()
    text.render(document(run), Console(file=output, width=100))
    return output.getvalue()


def test_the_terminal_shows_a_line_with_its_finding(tmp_path: Path) -> None:
    run = run_document(analyzed(write_booked_run(tmp_path / "run")))
    found, line = run["findings"][0], run["lines"][0]
    assert (found["bucket"], found["lines"]) == ("host", [line])
    shown = shown_in_a_terminal(run)
    assert "    train.py:41 Report.on_train_batch_end: 2.00 s\n" in shown
    assert "json.dump(logs, file)" in shown
    assert "where in your code" not in shown


def test_the_terminal_shows_lines_that_no_finding_is_about(tmp_path: Path) -> None:
    run = run_document(analyzed(write_booked_run(tmp_path / "run")))
    where = shown_in_a_terminal({**run, "findings": []}).partition("where in your code\n")[2]
    assert where.startswith("  host.callback\n    train.py:41 Report.on_train_batch_end: 2.00 s\n")
    assert "json.dump(logs, file)" in where


def test_markdown_shows_the_users_line_above_the_change() -> None:
    run = sample("input_py_function")
    shown = document({**run, "findings": [finding(lines=[ENTRY])], "lines": [ENTRY]})
    said = markdown.render(shown)
    assert "```diff\n@@ train.py:41 Report.hook: 2.00 s @@\n  x = 1\n- ds.map(" in said
    assert "- host.callback: train.py:41 Report.hook, 2.00 s" in said
