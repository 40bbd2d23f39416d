"""What input takes from the steps, compared with steps during which it did nothing."""

from __future__ import annotations

import numpy as np
import pytest

from stall_analyzer.attribute.contention import _against_calm_steps
from stall_analyzer.attribute.interruptions import SLICE_PS, interruptions
from stall_analyzer.attribute.python_beside import computes_beside
from stall_analyzer.model.causes import code
from stall_analyzer.model.intervals import Tiling
from stall_analyzer.model.units import PS_PER_US, Float64s, Int64s

MS = 1e9
STEPS = 200


def steps(really_lost: float, estimate: float, turn: int = 10) -> tuple[Float64s, Float64s]:
    """Steps of 20 ms; in every other turn, input takes something from them."""
    busy = (np.arange(STEPS) // turn) % 2 == 1
    return np.where(busy, 20 + really_lost, 20.0) * MS, np.where(busy, estimate, 0.0) * MS


@pytest.mark.parametrize("really_lost", [3.0, 5.0, 8.0])
def test_the_estimate_is_scaled_to_what_the_steps_lose(really_lost: float) -> None:
    compute, estimate = steps(really_lost, estimate=5.0)
    assert _against_calm_steps(compute, estimate) == pytest.approx(really_lost / 5.0, rel=0.05)


def test_a_machine_that_slows_down_meanwhile_does_not_count_as_input() -> None:
    compute, estimate = steps(5.0, estimate=5.0)
    drift = np.linspace(1.0, 1.3, STEPS)
    assert _against_calm_steps(compute * drift, estimate * drift) == pytest.approx(1.0, rel=0.05)


def test_input_that_never_rests_leaves_nothing_to_compare_with() -> None:
    compute = np.random.default_rng(1).normal(20, 3, STEPS) * MS
    assert _against_calm_steps(compute, 0.2 * compute) == 1.0


def test_few_calm_steps_tell_nothing() -> None:
    compute, estimate = steps(5.0, estimate=3.0)
    assert _against_calm_steps(compute[:60], estimate[:60]) == 1.0


def test_steps_that_differ_for_other_reasons_are_left_to_the_estimate() -> None:
    compute, estimate = steps(50.0, estimate=5.0)
    assert _against_calm_steps(compute, estimate) == 1.0
    scattered = steps(5.0, estimate=1.0)[0] + np.random.default_rng(1).normal(0, 15, STEPS) * MS
    assert _against_calm_steps(scattered, estimate / 5) == 1.0


# ------------------------------------------------------------ the training thread's own work

DISPATCH, PYTHON, STEP = (code(c) for c in ("host.dispatch", "host.python", "compute.step"))
NEVER = (np.empty(0, np.int64), np.empty(0, np.int64))


def own_work(
    start_us: int, back_us: list[int], python_us: list[int] | None = None
) -> tuple[Tiling, Int64s]:
    """Steps that start a graph, compute for 1 ms, take its results back and run Python; where each
    step begins."""
    pieces = zip(back_us, python_us or [300] * len(back_us), strict=True)
    lengths = [length for back, python in pieces for length in (start_us, 1000, back, python)]
    bounds = np.concatenate([[0], np.cumsum(lengths)]) * PS_PER_US
    labels = np.array([DISPATCH, STEP, DISPATCH, PYTHON] * len(back_us))
    return Tiling(bounds, labels), bounds[:-1:4]


def always(tiling: Tiling) -> tuple[Int64s, Int64s]:
    return tiling.bounds[:1], tiling.bounds[-1:]


def test_pieces_that_take_much_longer_next_to_native_input_were_interrupted() -> None:
    back = [100] * 30 + [1100] * 10
    tiling, begins = own_work(300, back)
    lost = interruptions(tiling, begins, native=always(tiling), python=NEVER).lost
    assert lost.sum() == pytest.approx(10 * (1100 - 125) * PS_PER_US)
    assert lost[tiling.labels == PYTHON].sum() == 0


def test_the_same_pieces_without_input_beside_them_are_the_threads_own() -> None:
    tiling, begins = own_work(300, [100] * 30 + [1100] * 10)
    assert interruptions(tiling, begins, native=NEVER, python=NEVER).lost.sum() == 0


def test_pieces_that_scatter_as_those_of_calm_runs_do_lost_nothing() -> None:
    tiling, begins = own_work(300, [100, 110, 120, 130, 140] * 8)
    assert interruptions(tiling, begins, native=always(tiling), python=NEVER).lost.sum() == 0


def test_a_thread_that_waits_for_the_interpreter_after_each_graph_is_locked_out() -> None:
    """No step gets its results back quickly: starting the graph shows how quick it could be."""
    tiling, begins = own_work(300, [5000] * 40)
    found = interruptions(tiling, begins, native=NEVER, python=always(tiling))
    assert found.python_is_awake
    assert found.lost.sum() == pytest.approx(40 * (5000 - 375) * PS_PER_US)


def test_however_long_the_interpreter_is_held_after_a_graph_it_is_waited_for() -> None:
    """A full garbage collection in the pipeline's Python takes more than a slice."""
    tiling, begins = own_work(300, [5000] * 36 + [180_000] * 4)
    found = interruptions(tiling, begins, native=NEVER, python=always(tiling))
    assert found.python_is_awake
    waited = 36 * 5000 + 4 * 180_000 - 40 * 375
    assert found.lost.sum() == pytest.approx(waited * PS_PER_US)


def test_python_may_wait_for_the_interpreter_for_several_slices_in_most_steps() -> None:
    """It asks for the interpreter more than once, and several pipeline functions get it first."""
    tiling, begins = own_work(300, [300] * 40, [300] * 6 + [25_000] * 34)
    found = interruptions(tiling, begins, native=NEVER, python=always(tiling))
    assert found.python_is_awake
    assert found.lost.sum() == pytest.approx(34 * (25_000 - 375) * PS_PER_US)


def test_but_a_step_that_takes_far_longer_than_the_others_works_itself() -> None:
    tiling, begins = own_work(300, [5000] * 40, [300] * 36 + [40_000] * 4)
    found = interruptions(tiling, begins, native=NEVER, python=always(tiling))
    assert found.python_is_awake
    assert found.lost[tiling.labels == PYTHON].sum() <= 4 * 1.1 * SLICE_PS


def test_few_waits_are_enough_if_nearly_all_of_the_time_was_lost() -> None:
    """A short profile of a generator that holds the interpreter whenever it runs."""
    tiling, begins = own_work(300, [100] * 15 + [2000] * 8)
    after_graphs = tiling.bounds[2::4][-8:], tiling.bounds[3::4][-8:]
    assert interruptions(tiling, begins, native=NEVER, python=after_graphs).python_is_awake


def test_few_waits_are_not_enough_if_much_of_that_time_was_the_threads_own() -> None:
    tiling, begins = own_work(300, [100] * 15 + [2000] * 8)
    found = interruptions(tiling, begins, native=NEVER, python=always(tiling))
    assert not found.python_is_awake


def test_python_functions_that_sleep_take_nothing() -> None:
    tiling, begins = own_work(300, [300] * 36 + [600] * 4)
    found = interruptions(tiling, begins, native=NEVER, python=always(tiling))
    assert not found.python_is_awake
    assert found.lost.sum() == 0


def test_long_python_of_the_training_thread_stays_its_own_but_for_a_slice() -> None:
    """A callback that works in every tenth step is not an interruption by input."""
    tiling, begins = own_work(300, [100] * 36 + [200_000] * 4)
    lost = interruptions(tiling, begins, native=always(tiling), python=NEVER).lost
    assert lost.sum() <= 4 * 1.1 * SLICE_PS


def test_steps_of_another_form_are_not_compared() -> None:
    """A step with a checkpoint has more pieces: its n-th is not the n-th of the others."""
    tiling, begins = own_work(300, [100] * 40)
    one_off = np.flatnonzero(tiling.labels == PYTHON)[20]
    length = int(np.diff(tiling.bounds)[one_off])
    cuts = tiling.bounds[one_off] + np.array([length // 3, 2 * length // 3])
    labels = np.insert(tiling.labels, one_off + 1, [STEP, PYTHON])
    mixed = Tiling(np.insert(tiling.bounds, one_off + 1, cuts), labels)
    found = interruptions(mixed, begins, native=always(mixed), python=NEVER)
    assert found.lost.sum() == 0


def test_few_steps_tell_nothing_about_what_is_usual() -> None:
    tiling, begins = own_work(300, [100] * 10 + [1100] * 5)
    assert interruptions(tiling, begins, native=always(tiling), python=NEVER).lost.sum() == 0


# ------------------------------------------------------------ Python that computes, or sleeps

LOST_SHARE = 0.4


def beside_calls(taken: float, longest_ms: float) -> bool:
    """Steps that compute for 10 ms during calls of 2 ms up to the longest, which take a part of
    that time from them."""
    calls = np.linspace(2.0, longest_ms, 50)[np.random.default_rng(1).permutation(50)]
    noise = np.random.default_rng(2).normal(0, 0.5, 50)
    lengths = np.stack([10 + taken * calls + noise, np.ones(50)], axis=1) * MS
    bounds = np.concatenate([[0], np.cumsum(lengths.ravel().astype(np.int64))])
    tiling, begin = Tiling(bounds, np.array([STEP, PYTHON] * 50)), bounds[:-1:2]
    spans = (begin, begin + (calls * MS).astype(np.int64))
    return computes_beside(tiling, (begin, bounds[2::2]), np.array([STEP]), spans, LOST_SHARE)


def test_functions_beside_which_steps_take_longer_compute() -> None:
    assert beside_calls(taken=0.4, longest_ms=8.0)


def test_functions_whose_calls_differ_but_take_nothing_wait_for_something() -> None:
    assert not beside_calls(taken=0.0, longest_ms=8.0)


def test_functions_that_always_take_as_long_sleep() -> None:
    assert not beside_calls(taken=0.4, longest_ms=2.1)
