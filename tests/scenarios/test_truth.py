"""The truth itself must be right before anything is judged by it."""

from __future__ import annotations

from tests.scenarios.truth import (
    Call,
    Clocks,
    Coat,
    Interval,
    Knowledge,
    buckets_ns,
    paint,
    steps_of,
)

EPOCH = Interval(0, 1000)


def _nonzero(totals: dict[str, int]) -> dict[str, int]:
    return {bucket: ns for bucket, ns in totals.items() if ns}


def test_unpainted_time_is_host() -> None:
    assert _nonzero(paint(EPOCH, [])) == {"host": 1000}


def test_a_later_coat_covers_an_earlier_one() -> None:
    coats = [Coat("input", Interval(0, 600)), Coat("compute", Interval(400, 700))]
    assert _nonzero(paint(EPOCH, coats)) == {"input": 400, "compute": 300, "host": 300}


def test_paint_outside_the_epoch_is_lost() -> None:
    coats = [Coat("input", Interval(-50, 10)), Coat("compute", Interval(990, 2000))]
    assert _nonzero(paint(EPOCH, coats)) == {"input": 10, "compute": 10, "host": 980}


def _three_calls(first_traced: bool = True) -> Clocks:
    """Each call: head, wait, step, tail. Only the head of the first one is long."""
    return Clocks(
        epoch=EPOCH,
        calls=[
            Call("train", Interval(0, 300), traced=first_traced),
            Call("train", Interval(400, 500)),
            Call("train", Interval(600, 700)),
        ],
        fetches=[Interval(210, 230), Interval(410, 430), Interval(610, 630)],
        step_ends=[290, 490, 690],
    )


def test_a_traced_call_is_compile_until_its_graph_starts_less_the_usual_head() -> None:
    totals = buckets_ns(_three_calls(), Knowledge())
    assert _nonzero(totals) == {"compile": 200, "input": 60, "compute": 180, "host": 560}
    assert sum(totals.values()) == EPOCH.length_ns


def test_wasted_steps_are_numerics() -> None:
    totals = buckets_ns(_three_calls(), Knowledge(wasted_steps={1, 2}))
    assert (totals["compute"], totals["numerics"]) == (60, 120)


def test_under_xla_the_excess_of_the_first_step_is_compile() -> None:
    clocks = _three_calls()
    clocks.calls[0] = Call("train", Interval(0, 395), traced=True)
    clocks.step_ends[0] = 390
    totals = buckets_ns(clocks, Knowledge(xla_calls={0}))
    assert (totals["compile"], totals["compute"]) == (200 + 100, 180)


def test_a_read_hidden_behind_the_previous_step_is_no_wait() -> None:
    clocks = Clocks(
        epoch=EPOCH,
        calls=[Call("train", Interval(0, 500))],
        fetches=[Interval(10, 20), Interval(25, 90), Interval(130, 240)],
        step_ends=[120, 220, 340],
    )
    assert [(s.interval.begin_ns, s.interval.end_ns) for s in steps_of(clocks)] == [
        (20, 120), (120, 220), (240, 340),
    ]  # fmt: skip
    assert buckets_ns(clocks, Knowledge())["input"] == 10 + 20


def test_the_hooks_that_log_are_the_profilers_and_not_the_hosts() -> None:
    clocks = _three_calls()
    without = buckets_ns(clocks, Knowledge())
    clocks.logging = [Interval(310, 360), Interval(510, 560)]
    logged = buckets_ns(clocks, Knowledge())
    assert logged["profiler"] == 100
    assert logged["host"] == without["host"] - 100


def test_moves_keep_the_sum() -> None:
    totals = buckets_ns(_three_calls(), Knowledge(moves=[("compute", "input", 50e-9)]))
    assert (totals["compute"], totals["input"]) == (130, 110)
    assert sum(totals.values()) == EPOCH.length_ns


def test_a_read_of_a_batch_that_was_there_is_the_step_at_work() -> None:
    clocks = _three_calls()
    waited = buckets_ns(clocks, Knowledge())
    ready = buckets_ns(clocks, Knowledge(ready_from=1))
    behind = sum(fetch.length_ns for fetch in clocks.fetches[1:])
    assert ready["input"] == waited["input"] - behind
    assert ready["compute"] == waited["compute"] + behind
