"""What the thread that looks at all others sees of Python."""

from __future__ import annotations

import inspect
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from stall_analyzer.captures.capture_format import Account
from stall_analyzer.captures.capture_records import StacksRecord
from tb_stall_plugin.capture.process import folded_stacks, generated_code, thread_stacks
from tb_stall_plugin.capture.process.folded_stacks import FoldedStacks
from tb_stall_plugin.capture.process.stack_sampler import MOST_COST, Doing, StackSampler
from tests.patience import happens

MS = 1_000_000
LIBRARY = "/venv/lib/python3.11/site-packages/library.py"


@contextmanager
def thread_in(function: Any) -> Iterator[threading.Thread]:
    over = threading.Lock()
    over.acquire()
    thread = threading.Thread(target=function, args=(over,))
    thread.start()
    assert happens(lambda: _is_there(thread))
    yield thread
    over.release()
    thread.join()


def _is_there(thread: threading.Thread) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and frame.f_code in (
        at_work.__code__,
        threading.Condition.__enter__.__code__,
    )


def at_work(over: threading.Lock) -> None:
    """Looks like work to the sampler, since no Python function waits."""
    over.acquire()  # at work


def waiting(over: threading.Lock) -> None:
    condition = threading.Condition(over)
    with condition:
        pass


def by_a_library(function: Any) -> Any:
    """As if a library called it, as TensorFlow does with generators."""
    names: dict[str, Any] = {"function": function}
    exec(compile("def call(over):\n    function(over)\n", LIBRARY, "exec"), names)
    return names["call"]


def seen(looks: int = 2, doing: Doing | None = None, **options: Any) -> list[StacksRecord]:
    """What a sampler sees of this process, in which this thread is the one that trains."""
    records: list[StacksRecord] = []
    now = doing or Doing(threading.get_ident(), Account.PYTHON, "")
    sampler = StackSampler(lambda: now, records.append, _fail, **options)
    for _ in range(looks):
        sampler.look(10 * MS)
    sampler.write()
    return records


def _fail(why: str) -> None:
    raise AssertionError(why)


def places(record: StacksRecord, background: bool = False) -> dict[str, tuple[int, int]]:
    """The count and time of the innermost frames, by function."""
    found = {}
    for sample in record.samples:
        if sample.background == background:
            innermost = record.frames[str(record.stacks[str(sample.stack)][0])]
            found[innermost.rpartition(" ")[2]] = sample.count, sample.seen_ns
    return found


def test_the_training_thread_is_seen_in_what_its_books_say_it_does() -> None:
    doing = Doing(threading.get_ident(), Account.CALLBACK, "Slow.on_epoch_end")
    (record,) = seen(looks=3, doing=doing)
    (sample,) = [sample for sample in record.samples if not sample.background]
    assert (sample.account, sample.item) == (Account.CALLBACK, "Slow.on_epoch_end")
    assert (sample.count, sample.seen_ns) == (3, 30 * MS)
    assert places(record) == {"seen": (3, 30 * MS)}


def test_frames_of_the_capture_are_left_out_and_its_own_time_is_not_looked_at() -> None:
    (record,) = seen()
    assert not any("tb_stall_plugin" in frame for frame in record.frames.values())
    assert seen(doing=Doing(threading.get_ident(), Account.CAPTURE, "")) == []
    assert seen(doing=Doing(0, Account.PYTHON, "")) == []


def test_a_function_that_a_library_runs_in_another_thread_is_seen_in_the_background() -> None:
    with thread_in(by_a_library(at_work)):
        (record,) = seen()
    assert places(record, background=True) == {"at_work": (2, 20 * MS)}


def test_threads_that_run_at_once_share_the_time() -> None:
    with thread_in(by_a_library(at_work)), thread_in(by_a_library(at_work)):
        (record,) = seen()
    (count, seen_ns) = places(record, background=True)["at_work"]
    assert (count, seen_ns) == (4, 20 * MS)


def test_threads_of_the_users_own_count_only_while_somebody_waits_for_them() -> None:
    with thread_in(at_work):
        (record,) = seen()
        assert places(record, background=True) == {}
        with thread_in(by_a_library(waiting)):
            (record,) = seen()
            assert places(record, background=True) == {"at_work": (2, 20 * MS)}


def test_a_thread_that_only_waits_is_not_seen() -> None:
    with thread_in(waiting):
        (record,) = seen()
    assert places(record, background=True) == {}


def test_each_record_holds_what_is_new() -> None:
    folded = FoldedStacks(with_source=False)
    folded.add(Account.PYTHON, "", False, ("a.py:1 f", "a.py:9 g"), 5)
    first = folded.taken()
    folded.add(Account.PYTHON, "", False, ("a.py:1 f", "a.py:9 g"), 7)
    folded.add(Account.PYTHON, "", False, ("a.py:2 f", "a.py:9 g"), 7)
    second = folded.taken()
    assert first is not None and second is not None
    assert first.frames == {"0": "a.py:1 f", "1": "a.py:9 g"} and first.stacks == {"0": (0, 1)}
    assert second.frames == {"2": "a.py:2 f"} and second.stacks == {"1": (2, 1)}
    assert [(s.stack, s.count, s.seen_ns) for s in second.samples] == [(0, 1, 7), (1, 1, 7)]
    assert folded.taken() is None


def test_if_there_are_too_many_stacks_the_users_lines_remain(monkeypatch: Any) -> None:
    monkeypatch.setattr(folded_stacks, "MOST_STACKS", 1)
    monkeypatch.setattr(folded_stacks, "MOST_LINES", 1)
    folded = FoldedStacks(with_source=False)
    for n in range(3):
        folded.add(Account.TRACE, "", False, (f"{LIBRARY}:{n} op", "/home/a.py:1 call"), 1)
    folded.add(Account.TRACE, "", False, ("/home/a.py:2 call",), 1)
    record = folded.taken()
    assert record is not None
    kept = {tuple(record.frames[str(n)] for n in stack) for stack in record.stacks.values()}
    whole = (f"{LIBRARY}:0 op", "/home/a.py:1 call")
    assert kept == {whole, ("…", "/home/a.py:1 call"), ()}
    assert sum(sample.seen_ns for sample in record.samples) == 4


def test_the_text_of_the_users_own_lines_is_recorded_once_unless_it_is_not_wanted() -> None:
    folded = FoldedStacks(with_source=True)
    here = Path(__file__)
    line = next(n for n, text in enumerate(here.read_text().splitlines(), 1) if "# at work" in text)
    frames = f"{here}:{line} at_work", f"{threading.__file__}:1 run"
    folded.add(Account.PYTHON, "", False, frames, 1)
    record = folded.taken()
    assert record is not None
    assert record.source == {f"{here}:{line}": "over.acquire()  # at work"}
    (record,) = seen(with_source=False)
    assert not record.source


def test_expensive_looks_are_rare() -> None:
    sampler = StackSampler(lambda: Doing(0, "", ""), _ignore, _fail)
    for _ in range(50):
        sampler._costs(0.0003)
    pauses = [sampler._pause_s() for _ in range(100)]
    mean = sum(pauses) / len(pauses)
    assert abs(0.0003 / mean - MOST_COST) < 0.1 * MOST_COST
    assert len(set(pauses)) > 50, "or it might always see the same line of regular steps"


def test_a_sampler_that_fails_says_so_once_and_ends() -> None:
    failures: list[str] = []
    sampler = StackSampler(lambda: 1 / 0, _ignore, failures.append)  # type: ignore[arg-type, return-value]
    sampler.begin()
    assert happens(lambda: failures == ["ZeroDivisionError: division by zero"])
    assert happens(lambda: "stall-lines" not in {t.name for t in threading.enumerate()})
    sampler.end()


def test_it_looks_until_it_is_ended() -> None:
    class Counting(StackSampler):
        looks = 0

        def look(self, passed_ns: int) -> None:
            super().look(passed_ns)
            self.looks += 1

    records: list[StacksRecord] = []
    doing = Doing(threading.get_ident(), Account.PYTHON, "")
    sampler = Counting(lambda: doing, records.append, _fail)
    began_ns = time.perf_counter_ns()
    sampler.begin()
    assert happens(lambda: sampler.looks > 2)
    sampler.end()
    (record,) = records
    looked_ns = sum(s.seen_ns for s in record.samples if not s.background)
    assert 0 < looked_ns <= time.perf_counter_ns() - began_ns
    assert happens(lambda: "stall-lines" not in {t.name for t in threading.enumerate()})


def test_a_line_that_autograph_generated_is_shown_as_the_users_own() -> None:
    """TensorFlow calls a function inside a converted one separately, in its own thread."""

    def outer() -> Any:
        def inner() -> Any:
            raise ValueError("as written")

        return inner

    with pytest.raises(ValueError, match="as written") as raised:
        tf.autograph.to_graph(outer)()()
    written, begins = inspect.getsourcelines(outer)
    at = begins + next(n for n, line in enumerate(written) if "as written" in line)
    assert thread_stacks.frames_of_traceback(raised.tb)[0] == f"{__file__}:{at} inner"
    code = [*traceback.walk_tb(raised.tb)][-1][0].f_code
    assert generated_code.GENERATED in code.co_filename
    assert generated_code.users_function(code) == f"{__file__}:{at - 1} inner"


def _ignore(record: StacksRecord) -> None:
    """Nobody records it."""
