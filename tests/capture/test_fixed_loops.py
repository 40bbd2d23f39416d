"""Loops that recompute their condition in each round, always from the same values."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stall_analyzer.captures.look_records import FixedLoop
from tb_stall_plugin.capture.process.fixed_loops import fixed_loop
from tb_stall_plugin.capture.process.loop_conditions import conditions_of
from tests.patience import happens


@pytest.mark.parametrize(
    ("loop", "fresh"),
    [
        ("while loss > 0.1:\n    loss = step()", {"loss"}),
        ("while not float(loss) < limit:\n    loss = step()\n    n += 1", {"loss"}),
        ("while True:\n    m = crop()\n    if m.sum() > 0:\n        break", {"m"}),
        # Only some rounds change it, or count something else.
        ("while len(found) < 9:\n    v = draw()\n    if v > 1:\n        found.append(v)", None),
        ("while wait < 5:\n    loss = step()\n    if loss > best:\n        wait = wait + 1", None),
        ("while loss > 0.1 and n < 9:\n    loss = step()\n    n += 1", None),
        # What decides is outside of the loop, or not known.
        ("while True:\n    p = path()\n    if os.path.exists(p):\n        break", None),
        ("while True:\n    p = draw()\n    if rng.random() < p:\n        break", None),
        (
            "while True:\n    x = step()\n    try:\n        return x\n    except E:\n        pass",
            None,
        ),
        ("while True:\n    step()", None),
    ],
)
def test_all_ways_out_depend_on_what_each_round_computes(
    tmp_path: Path, loop: str, fresh: set[str] | None
) -> None:
    script = tmp_path / "train.py"
    script.write_text(loop)
    found = conditions_of(str(script), 1, loop.count("\n") + 1)
    assert (found and set(found.fresh)) == fresh


def tried(value: Callable[[], float], stop: threading.Event) -> None:
    loss = 1.0
    sys._getframe().f_trace = None  # set by coverage, as by a debugger: then it is left alone
    while loss > 0.1:
        time.sleep(0.001)
        loss = 0.0 if stop.is_set() else value()


def test_a_loss_that_is_the_same_in_each_round_keeps_its_loop_going() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=tried, args=(lambda: math.inf - 0 * time.time(), stop))
    thread.start()
    found: FixedLoop | None = None

    def is_found() -> bool:
        nonlocal found
        found = fixed_loop(1.0)
        return found is not None

    try:
        assert happens(is_found)
    finally:
        stop.set()
        thread.join()
    assert found is not None and "tried" in found.where and found.values == "loss is inf"


def test_a_loss_that_changes_does_not() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=tried, args=(time.monotonic, stop))
    thread.start()
    try:
        assert fixed_loop(0.5) is None
    finally:
        stop.set()
        thread.join()
