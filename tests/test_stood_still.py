"""The time in which a training that never continues stood still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from stall_analyzer.align.align import align
from stall_analyzer.captures.stack_frames import frame_of
from stall_analyzer.diagnose.stood_still import (
    is_after,
    stopped_ps,
    time_before,
    with_time_stood_still,
)
from stall_analyzer.model.causes import code
from stall_analyzer.model.findings import Evidence
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.ending.scene import Blamed
from stall_analyzer.signals.ending.stall import ENDLESS, SLOW, STUCK, Stall
from tests import captures as write
from tests.captures import GENERATOR, IN_THE_STEP, QUEUE
from tests.detectors.stalls import STARVED, before, stall
from tests.detectors.training import diagnosed

S = 1_000_000_000
BEGUN_NS = 1_700_000_000 * S


def stuck_after(seconds: int) -> Stall:
    since_ns = BEGUN_NS + seconds * S
    return Stall(STUCK, since_ns, since_ns + 100 * S, step=20, why="nothing moves", blamed=None)


def ledger(*parts: tuple[int, str]) -> Ledger:
    bounds = np.cumsum([0, *(seconds for seconds, _ in parts)]) * PS_PER_S
    causes = np.array([code(cause) for _, cause in parts], dtype=np.uint8)
    return Ledger(bounds, causes, np.zeros(len(parts), dtype=np.bool_))


def test_what_its_steps_cost_ends_where_it_stops() -> None:
    epoch = ledger((2, "input.wait"), (3, "compute.step"), (95, "input.wait"))
    stopped = 6 * PS_PER_S
    assert time_before(stopped, epoch, ("input",)) == 3 * PS_PER_S
    assert time_before(stopped, epoch, ("input", "compute")) == 6 * PS_PER_S
    assert time_before(stopped, epoch, ()) == 6 * PS_PER_S


def test_a_pause_that_never_ends_is_not_a_finding_of_its_own() -> None:
    def pause(start_s: int, end_s: int) -> Evidence:
        return Evidence("box", "", start_s * PS_PER_S, end_s * PS_PER_S, "Python between two calls")

    stopped = 6 * PS_PER_S
    assert is_after(stopped, [pause(5, 60)])
    assert is_after(stopped, [pause(1, 2), pause(5, 60)])
    assert not is_after(stopped, [pause(1, 6)])
    assert not is_after(stopped, [])


def test_after_an_error_only_the_steps_before_it_have_a_cost() -> None:
    failed: Any = SimpleNamespace(
        stall=None,
        ending=SimpleNamespace(has_failed=True),
        timeline=SimpleNamespace(window=SimpleNamespace(start_unix_ns=BEGUN_NS)),
        training_steps=(SimpleNamespace(end_ps=3 * PS_PER_S), SimpleNamespace(end_ps=5 * PS_PER_S)),
    )
    assert stopped_ps(failed) == 5 * PS_PER_S
    failed.ending.has_failed = False
    assert stopped_ps(failed) is None


BOOKS: dict[str, Any] = {
    "began_ns": write.START_NS + S, "phase": "train", "epoch": 0, "lasted_ns": [9 * S],
    "steps": [37], "calls": [37], "spent_ns": {"step": [S], "wait": [8 * S]}, "items": [],
}  # fmt: skip


def lines_of(folder: Path, *seen: Sequence[str]) -> list[int]:
    """The lines in the report on a training that waits for a queue, after these samples."""
    behind = ((frames, "step", "", True) for frames in seen)
    sampled = write.stacks(10.0, (IN_THE_STEP, "step", "", False), *behind)
    records = [*before(), write.record("books", 10.0, **BOOKS), sampled, *stall(*STARVED)]
    report = diagnosed(align([], write.read(folder, records)))
    assert report.verdict.status == "stuck"
    return [line.line for line in report.lines]


def test_no_seconds_of_samples_are_shown_next_to_the_line_where_training_is_stuck(
    tmp_path: Path,
) -> None:
    """They cover time before the wait, or a small part of it: the wait itself has its length."""
    reads = ("/home/me/data.py:10 batches", *GENERATOR[1:])
    assert lines_of(tmp_path, reads, (*QUEUE, *GENERATOR)) == [10]


def test_of_an_endless_loop_all_lines_are_where_training_is_stuck() -> None:
    here, there = (frame_of(f"/home/me/train.py:{line}") for line in ("41 spin", "42 spin"))
    other = frame_of("/home/me/train.py:50 rest")
    blamed = Blamed("host", "a loop", "never ends", ("/home/me/train.py:40 spin",))
    loop = replace(stuck_after(6), state=ENDLESS, blamed=blamed)
    assert here and there and other
    assert loop.stands_at([here]) and loop.stands_at([there]) and not loop.stands_at([other])
    assert not replace(loop, state=SLOW).stands_at([here]), "what is slow has a cost"


def test_of_what_it_waits_for_nothing_is_known_if_no_thread_is_blamed() -> None:
    epoch = ledger((2, "input.wait"), (98, "compute.step"))
    assert with_time_stood_still(epoch, stuck_after(6), BEGUN_NS) is epoch


def test_nobody_takes_cores_from_a_training_that_stands_still() -> None:
    epoch = ledger((2, "compute.step"), (40, "input.wait"), (58, "input.contention"))
    waits = replace(stuck_after(6), blamed=Blamed("input", "the generator", "waits", ()))
    assert with_time_stood_still(epoch, waits, BEGUN_NS).causes_ps == {
        "compute.step": 2 * PS_PER_S, "input.wait": 98 * PS_PER_S,
    }  # fmt: skip


def test_steps_that_had_ended_do_not_share_the_time_stood_still(tmp_path: Path) -> None:
    under_way = {**BOOKS, "lasted_ns": [28 * S], "spent_ns": {"step": [28 * S]}, "is_open": True}
    records = [*before(), write.record("books", 29.0, **under_way), *stall(*STARVED)]
    steps = align([], write.read(tmp_path, records)).steps
    assert len(steps) == 37
    assert steps[-1].end_ps < 10 * PS_PER_S
