"""Programs whose Python is always at work, and what it is doing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stall_analyzer.signals.ending.stall import ENDLESS, SLOW, STUCK
from tests import captures as write
from tests.captures import GENERATOR, IN_A_CALLBACK, IN_THE_STEP, QUEUE, SITE, thread
from tests.detectors.stalls import LAST_STEP_S, Json, before, judged, stall

SCRIPT = "/home/me/train.py"
TRACED = (
    f"{SITE}/tensorflow/python/framework/ops.py:10 create",
    f"{SCRIPT}:8 step",
    f"{SITE}/tensorflow/python/framework/func_graph.py:1060 func_graph_from_py_func",
    f"{SCRIPT}:13 <module>",
)
RUNS = (f"{SITE}/tensorflow/python/eager/execute.py:53 quick_execute", f"{SCRIPT}:13 <module>")
IN_A_POOL = (
    "/usr/lib/python3.11/threading.py:327 Condition.wait",
    "/usr/lib/python3.11/multiprocessing/pool.py:765 ApplyResult.wait",
    f"{SCRIPT}:9 load",
)


def fixed(values: str) -> bytes:
    loop = {"where": f"{SCRIPT}:20 search", "last": 25, "rounds": 90, "values": values}
    return write.record("work", LAST_STEP_S + 14, steps=None, stages=[], counts=[], fixed=loop)


@pytest.mark.parametrize(("values", "bucket"), [("loss is NaN", "numerics"), ("p is 0", "host")])
@pytest.mark.parametrize("phase", ["startup", "between_batches"])
def test_a_loop_that_gets_the_same_in_each_round_is_endless(
    tmp_path: Path, values: str, bucket: str, phase: str
) -> None:
    main = thread(f"{SCRIPT}:22 search", f"{SCRIPT}:40 <module>", main=True)
    records = [*before(), *stall(main, cores=1.0, phase=phase), fixed(values)]
    found, finding, verdict = judged(write.read(tmp_path, records))
    assert found is not None and (found.state, found.bucket) == (ENDLESS, bucket)
    assert f"train.py:20 never ends: {values} in each of at least 90 rounds" in verdict.sentence
    assert finding is not None and "Wait" not in finding.change.text


def test_a_loop_that_was_left_is_not(tmp_path: Path) -> None:
    main = thread(f"{SCRIPT}:30 search", f"{SCRIPT}:40 <module>", main=True)
    records = [*before(), *stall(main, cores=1.0, phase="between_batches"), fixed("loss is NaN")]
    found = judged(write.read(tmp_path, records))[0]
    assert found is not None and found.state == SLOW


def test_a_function_that_is_traced_again_and_again_is_slow_outside_of_fit(tmp_path: Path) -> None:
    def main(idle: int) -> Json:
        return thread(*(TRACED if idle % 6 < 2 else RUNS), main=True)

    found = judged(write.read(tmp_path, [*before(0), *stall(main, phase="startup", steps=0)]))[0]
    assert found is not None and (found.state, found.bucket) == (SLOW, "compile")
    assert "called at train.py:13, was being traced again (train.py:8)" in found.why


def test_a_loop_of_ones_own_that_was_traced_once_is_not_judged(tmp_path: Path) -> None:
    def main(idle: int) -> Json:
        return thread(*(TRACED if idle < 9 else RUNS), main=True)

    records = [*before(0), *stall(main, phase="startup", steps=0, cores=1.0)]
    assert judged(write.read(tmp_path, records))[0] is None


@pytest.mark.parametrize(
    ("left", "state"), [(lambda idle: 8, STUCK), (lambda idle: 40 - idle, SLOW)]
)
def test_a_pool_whose_workers_end_at_once_is_stuck_unless_they_get_something_done(
    tmp_path: Path, left: Callable[[int], int], state: str
) -> None:
    records = stall(
        thread(*IN_A_POOL, main=True, wait="futex"),
        phase="startup",
        steps=0,
        cores=0.3,
        children=lambda idle: [{"pid": 100 + idle, "name": "python", "state": "R", "cpu_s": 0.01}],
        tasks_left=left,
    )
    found = judged(write.read(tmp_path, [*before(0), *records]))[0]
    assert found is not None and found.state == state


def test_a_line_before_fit_that_takes_long_is_slow_wherever_it_is_met(tmp_path: Path) -> None:
    def main(idle: int) -> Json:
        return thread(f"{SCRIPT}:{4 + idle % 3} near", f"{SCRIPT}:20 <module>", main=True)

    looks = stall(main, phase="startup", steps=0, cores=1.0)
    dump = write.record(
        "dump", LAST_STEP_S + 13, reason="no_step", step=0, idle_s=13.0, phase="startup",
        cpu_s=16.0, threads=[main(13)], native=[], for_data=True,
    )  # fmt: skip
    found = judged(write.read(tmp_path, [*before(0), *looks, dump]))[0]
    assert found is not None and (found.state, found.bucket) == (SLOW, "input")


def test_a_fit_in_another_thread_is_what_the_main_one_waits_for(tmp_path: Path) -> None:
    trains = thread(*IN_THE_STEP, f"{SITE}/keras/src/backend/tensorflow/trainer.py:371 fit")
    joins = thread(
        f"{write.LIBRARY}/threading.py:1119 Thread.join", f"{SCRIPT}:9 <module>", main=True
    )
    looks = stall(joins, trains, thread(*QUEUE, *GENERATOR))
    found = judged(write.read(tmp_path, [*before(), *looks]))[0]
    assert found is not None and (found.state, found.bucket) == (STUCK, "input")


def test_what_goes_on_when_it_is_told_to_end_was_woken_by_the_signal(tmp_path: Path) -> None:
    sends = thread(
        *IN_A_CALLBACK, main=True, wait="sendto", on="the socket to 10.0.0.7:443", turns=7
    )
    looks = stall(sends, phase="between_batches")
    end = LAST_STEP_S + 20
    woken = [
        write.steps(end + 0.1, 1, 0.1),
        write.record(
            "dump", end + 0.3, reason="sigterm", step=38, idle_s=0.1, phase="between_batches",
            cpu_s=4.0, threads=[sends], native=[], signal_ns=round((write.START_S + end) * 1e9),
        ),
    ]  # fmt: skip
    found = judged(write.read(tmp_path, [*before(), *looks, *woken]))[0]
    assert found is not None and found.state == STUCK
