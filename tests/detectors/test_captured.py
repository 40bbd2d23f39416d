"""What a capture makes certain: each detector on its own case and on a near miss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stall_analyzer.align.align import align
from stall_analyzer.captures.capture_format import Account, BookPhase
from stall_analyzer.captures.capture_records import BookItem, Environment, MarkRecord, ModelRecord
from stall_analyzer.detectors.compile import retracing
from stall_analyzer.detectors.host import checkpoint_in_steps, cpu_throttled
from stall_analyzer.detectors.memory import host_memory_pressure, memory_grows
from stall_analyzer.detectors.numerics import (
    dead_units,
    learning_rate_too_low,
    loss_not_finite,
    saturated,
    skipped_updates,
    vanishing_or_exploding_gradients,
)
from stall_analyzer.detectors.profiling import no_trace
from stall_analyzer.model.books import Books, DatedItem
from stall_analyzer.model.event_log import Capture, EventLog, Series
from tests import captures as write
from tests.captures import NS, SITE, START_NS, log
from tests.detectors.logged_losses import Numbers, checked, model, severity
from tests.detectors.training import diagnosed, found

EPOCH_S = 100
LAYERS = ("first", "second", "head")
# The steps that a capture measures: the first sixteen, then one of sixteen.
MEASURED = [*range(16), *range(31, 400, 16)]


def at_steps(values: Numbers, steps: Sequence[int] | None = None) -> Series:
    """Steps of a quarter of a second."""
    step = np.array(steps if steps is not None else MEASURED[: len(values)], dtype=np.int64)
    wall = START_NS + ((step + 1) * 0.25 * NS).astype(np.int64)
    return Series(step, wall, np.asarray(values, dtype=np.float64))


def each_second(values: Numbers) -> Series:
    wall = START_NS + np.arange(len(values), dtype=np.int64) * NS
    return Series(np.arange(len(values), dtype=np.int64) * 4, wall, np.asarray(values, float))


def captured(
    series: Mapping[str, Series], epochs: int = 1, model: ModelRecord | None = None, **train: Series
) -> EventLog:
    marks = [MarkRecord(START_NS, "fit_begin", None, 0)]
    for epoch in range(epochs):
        begin = START_NS + epoch * EPOCH_S * NS
        marks.append(MarkRecord(begin, "epoch_begin", epoch, 0))
        marks.append(MarkRecord(begin + EPOCH_S * NS - 1, "epoch_end", epoch, 0))
    steps = np.arange(epochs * EPOCH_S * 4, dtype=np.int64)
    ends = START_NS + ((steps + 1) * 0.25 * NS).astype(np.int64)
    capture = Capture(
        environment=Environment(host="box", cores=2),
        models=(
            model or ModelRecord(optimizer="Adam", parameters=1000, layers=LAYERS, probed=True),
        ),
        marks=tuple(marks),
        first_ns=START_NS,
        last_ns=int(ends[-1]),
        series={"step_seconds": Series(steps, ends, np.full(len(steps), 0.25)), **series},
    )
    return log(capture, **train)


def norms(first: float, second: float, head: float, **more: Series) -> dict[str, Series]:
    """Gradient norms that scatter a little, the same in all steps."""
    random = np.random.default_rng(1)
    count = len(MEASURED)
    return {
        f"gradient_norm/{layer}": at_steps(norm * random.uniform(0.8, 1.2, count))
        for layer, norm in zip(LAYERS, (first, second, head), strict=True)
    } | more


FLAT = at_steps(1.6 + 0.001 * np.random.default_rng(2).normal(size=len(MEASURED)))
FLAT_EPOCHS = Series(np.arange(3), START_NS + np.arange(1, 4) * EPOCH_S * NS, np.full(3, 1.6))
FALLING = at_steps(2.0 * 0.9 ** np.arange(len(MEASURED)))

# ---------------------------------------------------------------- gradients


def test_the_first_layer_whose_gradient_vanishes_is_named() -> None:
    series = norms(3e-8, 2e-5, 0.3, loss=FLAT)
    finding = found(
        checked(
            vanishing_or_exploding_gradients, captured(series, epochs=3, epoch_loss=FLAT_EPOCHS)
        ),
        "act",
    )
    assert "the gradient norm of first is 3" in finding.title
    assert "times smaller than that of head" in finding.title


def test_small_gradients_that_still_teach_are_left_alone() -> None:
    """Adam divides gradients by their size: the weights still move."""
    ratios = {f"update_ratio/{layer}": at_steps([1e-3] * len(MEASURED)) for layer in LAYERS}
    series = norms(3e-8, 2e-5, 0.3, loss=FALLING, **ratios)
    assert checked(vanishing_or_exploding_gradients, captured(series)) is None
    still = {f"update_ratio/{layer}": at_steps([1e-9] * len(MEASURED)) for layer in LAYERS}
    series = norms(3e-8, 2e-5, 0.3, loss=FALLING, **still)
    assert severity(vanishing_or_exploding_gradients, captured(series)) == "consider"


def test_layers_that_differ_by_a_hundred_are_healthy() -> None:
    series = norms(2e-3, 1e-2, 0.3, loss=FLAT)
    assert checked(vanishing_or_exploding_gradients, captured(series)) is None
    series = norms(5e-5, 6e-5, 9e-5, loss=FALLING)  # a model that has converged
    assert checked(vanishing_or_exploding_gradients, captured(series)) is None


def test_an_explosion_names_the_layer_that_grew_most() -> None:
    series = norms(1.0, 1.0, 1.0)
    series["gradient_norm/second"] = at_steps([2.0, 90.0, 7e5, math.inf, *[math.nan] * 10])
    calmer = at_steps([1.0, 3.0, 40.0, *[math.nan] * 11])
    series |= {f"gradient_norm/{layer}": calmer for layer in ("first", "head")}
    finding = found(checked(vanishing_or_exploding_gradients, captured(series)))
    assert "explode: the gradient norm of second grew from 2 to 7e+05 at step 3" in finding.title


def test_one_spike_and_overflows_that_loss_scaling_survives_are_no_explosion() -> None:
    spike = norms(1.0, 1.0, 1.0)
    spike["gradient_norm/first"].value[5] = 1e6
    assert checked(vanishing_or_exploding_gradients, captured(spike)) is None
    scaled = norms(1.0, 1.0, 1.0)
    for series in scaled.values():
        series.value[:5] = math.inf
    assert checked(vanishing_or_exploding_gradients, captured(scaled)) is None


def test_a_nan_out_of_the_blue_is_no_explosion() -> None:
    """One bad batch, or log(0): the norms were as usual in the measured step before."""
    series = norms(1.0, 1.0, 1.0)
    for logged in series.values():
        logged.value[18:] = math.nan
    assert checked(vanishing_or_exploding_gradients, captured(series)) is None


# ---------------------------------------------------------------- dead units


def dead(first: float, second: float, head: float, **more: Series) -> dict[str, Series]:
    shares = zip(LAYERS, (first, second, head), strict=True)
    return {f"dead_units/{layer}": at_steps([s] * len(MEASURED)) for layer, s in shares} | more


def test_a_dead_layer_is_named() -> None:
    finding = found(checked(dead_units, captured(dead(0.2, 1.0, 0.0, loss=FALLING))), "consider")
    assert finding.title == "All units of second are dead and get no gradient"


def test_where_only_the_last_layer_is_left_nothing_is_learned() -> None:
    finding = found(checked(dead_units, captured(dead(1.0, 1.0, 0.0, loss=FALLING))), "act")
    assert "first and second" in finding.title
    assert "Only head can still learn" in finding.explanation


def test_sparse_layers_are_a_note_and_half_of_the_units_nothing() -> None:
    assert severity(dead_units, captured(dead(0.0, 0.95, 0.0))) == "note"
    assert severity(dead_units, captured(dead(0.5, 0.6, 0.0))) is None


def test_a_loss_without_any_gradient_is_no_dead_layer() -> None:
    """Every gradient of a batch that is predicted perfectly is zero."""
    assert checked(dead_units, captured(dead(1.0, 1.0, 1.0))) is None
    over = captured(dead(1.0, 1.0, 1.0, loss=at_steps([1e-7] * len(MEASURED))))
    assert checked(dead_units, over) is None


def test_no_gradient_anywhere_while_the_loss_is_not_at_its_end_is_found() -> None:
    series = dead(1.0, 1.0, 1.0, loss=FLAT)
    unknown = captured(series, epochs=3, epoch_loss=FLAT_EPOCHS)
    assert "No layer gets a gradient" in found(checked(dead_units, unknown), "consider").title
    known = replace(unknown, keras=model("mean_squared_error", 1))
    assert severity(dead_units, known) == "act"
    falls = captured(dead(1.0, 1.0, 1.0, loss=FALLING))  # trained by something else
    assert checked(dead_units, falls) is None


def test_units_that_were_dead_before_any_update_were_not_killed_by_the_rate() -> None:
    early = found(checked(dead_units, captured(dead(1.0, 1.0, 0.0, loss=FLAT))), "act")
    assert early.change.turns == ()
    shares = at_steps([0.3] * 10 + [1.0] * (len(MEASURED) - 10))
    series = dead(0.0, 0.0, 0.0) | {"dead_units/first": shares, "dead_units/second": shares}
    late = found(checked(dead_units, captured(series)), "act")
    assert [turn.knob for turn in late.change.turns] == ["learning rate"]


def test_flat_units_of_tanh_are_saturated_and_not_dead() -> None:
    layers = tuple(
        {"class_name": "Dense", "name": name, "units": 4, "activation": "tanh"} for name in LAYERS
    )
    keras = replace(model("mean_squared_error", 1), layers=layers)
    log = replace(captured(dead(0.95, 0.2, 0.0, loss=FLAT)), keras=keras)
    assert "units of first are saturated" in found(checked(saturated, log), "consider").title
    report = diagnosed(align([], log))
    assert [f.id for f in report.findings if f.bucket == "numerics"] == ["ST327"]
    relu = replace(log, keras=replace(keras, layers=({**layers[0], "activation": "relu"},)))
    assert checked(saturated, relu) is None


# ---------------------------------------------------------------- losses and rates


def test_a_loss_that_came_back_is_known_to_have_come_back() -> None:
    """The mean that Keras logs stays NaN to the end of the epoch; the loss itself does not."""
    means = Series(
        np.arange(1, 401), START_NS + (np.arange(1, 401) * 0.25 * NS).astype(np.int64),
        np.array([1.0] * 49 + [math.nan] * 351),
    )  # fmt: skip
    back = captured({"loss": at_steps([1.0] * len(MEASURED))}, batch_loss=means)
    finding = found(checked(loss_not_finite, back), "consider")
    assert "at step 50" in finding.title, "the mean knows the very step"
    gone = [1.0] * 18 + [math.nan] * (len(MEASURED) - 18)
    lost = captured({"loss": at_steps(gone)}, batch_loss=means)
    finding = found(checked(loss_not_finite, lost), "act")
    assert "from step 50 on" in finding.title


def test_between_two_measured_steps_the_first_nan_is_not_known() -> None:
    gone = captured({"loss": at_steps([1.0] * 18 + [math.nan] * (len(MEASURED) - 18))})
    finding = found(checked(loss_not_finite, gone))
    assert "between steps 49 and 64" in finding.title
    assert diagnosed(align([], gone)).verdict.status == "learning_nothing"


def test_a_captured_rate_is_judged_without_a_stored_model() -> None:
    def run(rate: float) -> EventLog:
        series = {"loss": FLAT, "learning_rate": at_steps([rate] * len(MEASURED))}
        return captured(series, epochs=3, epoch_loss=FLAT_EPOCHS)

    assert severity(learning_rate_too_low, run(1e-10)) == "act"
    assert severity(learning_rate_too_low, run(1e-3)) is None


def test_weights_that_stand_still_need_no_flat_loss() -> None:
    rate = {"learning_rate": at_steps([1e-9] * len(MEASURED)), "loss": FALLING}

    def run(ratio: float) -> EventLog:
        ratios = {f"update_ratio/{layer}": at_steps([ratio] * len(MEASURED)) for layer in LAYERS}
        return captured(rate | ratios)

    finding = found(checked(learning_rate_too_low, run(1e-8)), "act")
    assert finding.title.startswith("The weights hardly move: a rate of 1e-09")
    assert checked(learning_rate_too_low, run(1e-4)) is None


def test_skipped_updates_are_counted() -> None:
    skips = np.minimum(np.array(MEASURED) + 1, 200).astype(float)
    settled = captured({"skipped_updates": at_steps(skips)})
    finding = found(checked(skipped_updates, settled), "consider")
    assert "200 of 384 updates" in finding.title
    assert "settled" in finding.explanation
    always = captured({"skipped_updates": at_steps(np.array(MEASURED) + 1.0)})
    assert severity(skipped_updates, always) == "act"
    few = at_steps([min(n, 2.0) for n in range(len(MEASURED))])
    assert severity(skipped_updates, captured({"skipped_updates": few})) is None


# ---------------------------------------------------------------- tracing


def test_traces_are_counted_where_no_profile_was_taken() -> None:
    counts = at_steps([2.0, 3.0, 4.0, 5.0], [0, 50, 120, 200])
    events = captured({"traces/train_function": counts})
    steps = events.captures[0].series["step_seconds"]
    for step in (50, 120, 200):  # each takes ten seconds longer
        steps.value[step] += 10.0
        steps.wall_ns[step:] += 10 * NS
    finding = found(checked(retracing, events), "act")
    assert "retraced 3 times in 279 steps" in finding.title
    once = captured({"traces/train_function": at_steps([2.0], [0])})
    assert checked(retracing, once) is None


def test_whoever_captures_already_is_not_told_to_capture() -> None:
    finding = found(checked(no_trace, captured({}, epochs=2)), "note")
    assert "Let the capture profile" in finding.change.text
    assert finding.change.after == ""


# ---------------------------------------------------------------- the machine


def memory(
    stalled_s: float = 0.0, faults: float = 0.0, resident: float = 4e9, swap: Series | None = None
) -> EventLog:
    growing = np.linspace(0.0, 1.0, EPOCH_S)
    return captured(
        {
            "host/memory_stalled_seconds": each_second(stalled_s * growing),
            "host/major_faults": each_second(faults * growing),
            "host/rss_bytes": each_second([resident] * EPOCH_S),
            "host/limit_bytes": each_second([16e9]),
            **({"host/swap_used_bytes": swap} if swap is not None else {}),
        }
    )


def test_waiting_for_memory_of_the_host() -> None:
    finding = found(checked(host_memory_pressure, memory(stalled_s=31, faults=2e5)), "act")
    assert "waited 31" in finding.title and "pages had to be read back" in finding.explanation
    assert 0 <= finding.gain.low_ps <= finding.gain.high_ps <= finding.lost_ps
    assert severity(host_memory_pressure, memory(stalled_s=8, faults=2e5)) == "consider"
    assert severity(host_memory_pressure, memory(stalled_s=31)) is None, "others waited"
    assert severity(host_memory_pressure, memory(faults=2e5)) is None


def test_swapping_and_a_full_machine() -> None:
    swap = each_second(np.linspace(1e9, 3e9, EPOCH_S))
    finding = found(checked(host_memory_pressure, memory(faults=2e5, swap=swap)))
    assert "2.0 GB was swapped out" in finding.title
    assert severity(host_memory_pressure, memory(resident=15.5e9)) == "consider"
    assert severity(host_memory_pressure, memory(resident=12e9)) is None
    assert severity(host_memory_pressure, memory(resident=30e9)) is None, "not its own"


def test_a_cpu_limit_that_stops_the_process() -> None:
    def run(throttled_s: float) -> EventLog:
        counter = each_second(np.linspace(5.0, 5.0 + throttled_s, EPOCH_S))
        return captured({"host/throttled_seconds": counter})

    finding = found(checked(cpu_throttled, run(90.0)), "act")
    assert "for 45" in finding.title, "on two cores"
    assert severity(cpu_throttled, run(12.0)) == "consider"
    assert severity(cpu_throttled, run(4.0)) is None


@pytest.mark.parametrize(
    ("resident", "expected"),
    [
        (np.linspace(1e9, 3e9, EPOCH_S), True),
        (np.minimum(np.linspace(1e9, 6e9, EPOCH_S), 2e9), False),  # a buffer that is full
        (np.linspace(1e9, 1.04e9, EPOCH_S), False),
        (1e9 + 5e8 * np.sin(np.arange(EPOCH_S)), False),
    ],
)
def test_a_process_that_grows_with_every_step(resident: Sequence[float], expected: bool) -> None:
    events = captured({"host/rss_bytes": each_second(resident)})
    finding = checked(memory_grows, events)
    assert (finding is not None) == expected
    if finding is not None:
        assert "grows by 5.1 MB with every step" in finding.title


def test_what_fills_in_the_first_epoch_alone_is_no_leak() -> None:
    filled = [*np.linspace(1e9, 4e9, EPOCH_S), *[4e9] * (2 * EPOCH_S)]
    assert (
        checked(memory_grows, captured({"host/rss_bytes": each_second(filled)}, epochs=3)) is None
    )
    leaking = [*np.linspace(1e9, 4e9, EPOCH_S), *np.linspace(4e9, 6e9, 2 * EPOCH_S)]
    events = captured({"host/rss_bytes": each_second(leaking)}, epochs=3)
    assert severity(memory_grows, events) == "consider"


def building(graphs: int, share: float) -> EventLog:
    """A growing process that built so many graphs in each second, which took this share of it."""
    events = captured({"host/rss_bytes": each_second(np.linspace(1e9, 3e9, EPOCH_S))})
    seconds = np.arange(EPOCH_S, dtype=np.int64)
    spent = np.full(EPOCH_S, round(share * NS), dtype=np.int64)
    begin_ns, end_ns = START_NS + seconds * NS, START_NS + (seconds + 1) * NS
    built = BookItem(Account.RETRACE, "step", "train.py:3", graphs, round(share * NS))
    books = Books(
        begin_ns=begin_ns,
        end_ns=end_ns,
        phase=(BookPhase.TRAIN,) * EPOCH_S,
        epoch=np.zeros(EPOCH_S, dtype=np.int64),
        steps=np.full(EPOCH_S, 4, dtype=np.int64),
        calls=np.full(EPOCH_S, 4, dtype=np.int64),
        spent_ns={Account.RETRACE: spent, Account.STEP: NS - spent},
        items=tuple(
            DatedItem(*row, BookPhase.TRAIN, built)
            for row in zip(begin_ns.tolist(), end_ns.tolist(), strict=True)
        ),
    )
    return replace(events, captures=(replace(events.captures[0], books=books),))


def test_a_process_that_grows_by_its_graphs_is_told_once_as_retracing() -> None:
    events = building(graphs=4, share=0.5)
    assert checked(memory_grows, events) is None
    finding = found(checked(retracing, events), "act")
    assert "Every graph is kept: the process grew by" in finding.explanation


def test_graphs_that_cost_no_time_are_named_as_what_grows() -> None:
    finding = found(checked(memory_grows, building(graphs=4, share=0.01)), "consider")
    assert "graphs were built, and every graph is kept" in finding.explanation
    assert "tf.constant" in finding.change.after


def test_a_graph_now_and_then_does_not_explain_a_process_that_grows_all_the_time() -> None:
    finding = found(checked(memory_grows, building(graphs=0, share=0.5)), "consider")
    assert "a tensor, an array or a Python object" in finding.explanation


@pytest.mark.parametrize(
    ("frames", "title"),
    [
        (
            (f"{SITE}/keras/src/callbacks/model_checkpoint.py:223 ModelCheckpoint.on_epoch_end",),
            "ModelCheckpoint saves the model 9 times in the epoch",
        ),
        (("/home/me/train.py:7 <module>",), "The model is saved 9 times in the epoch"),
    ],
)
def test_the_callback_that_saves_is_named(
    tmp_path: Path, frames: tuple[str, ...], title: str
) -> None:
    saves = {"account": "save", "name": "Sequential", "where": "", "count": 9, "spent_ns": 2 * NS}
    books = {"began_ns": START_NS, "phase": "train", "epoch": 0, "lasted_ns": [3 * NS]}
    spent = {"save": [2 * NS], "step": [NS]}
    more = {"steps": [9], "calls": [9], "spent_ns": spent, "items": [saves]}
    records = [
        write.start(),
        write.mark("fit_begin", 0.0),
        write.mark("epoch_begin", 0.0),
        write.record("books", 3.0, **books, **more),
        write.stacks(3.0, (frames, "save", "Sequential", False)),
        write.mark("epoch_end", 3.0),
    ]
    finding = found(checked(checkpoint_in_steps, write.read(tmp_path, records)), "act")
    assert finding.title.startswith(title)


@pytest.mark.parametrize(("later_s", "status"), [(0.0, "slow_once"), (40.0, "slow_always")])
def test_graphs_that_later_epochs_build_as_well_are_a_cost_of_every_epoch(
    tmp_path: Path, later_s: float, status: str
) -> None:
    def epoch(number: int, retraces_s: float) -> list[bytes]:
        begin_s = 60.0 * number
        spent = {"retrace": round(retraces_s / 10 * NS), "step": round((6 - retraces_s / 10) * NS)}
        item = {"account": "retrace", "name": "step", "where": "", "count": 10}
        items = [{**item, "spent_ns": round(retraces_s * NS)}] if retraces_s else []
        books = write.record(
            "books", begin_s + 60, began_ns=START_NS + round(begin_s * NS), phase="train",
            epoch=number, lasted_ns=[6 * NS] * 10, steps=[1] * 10, calls=[1] * 10, items=items,
            spent_ns={account: [ns] * 10 for account, ns in spent.items()},
        )  # fmt: skip
        begun, ended = (begin_s, "epoch_begin"), (begin_s + 60, "epoch_end")
        return [
            write.mark(begun[1], begun[0], number),
            books,
            write.mark(ended[1], ended[0], number),
        ]

    records = [write.start(), write.mark("fit_begin", 0.0), *epoch(0, 40.0), *epoch(1, later_s)]
    report = diagnosed(align([], write.read(tmp_path, records)))
    assert report.verdict.status == status
    (found_one,) = [finding for finding in report.findings if finding.id == "ST104"]
    assert (found_one.later_gain.high_ps > 0) == (status == "slow_always")


def test_a_schedule_that_takes_the_rate_away_within_the_first_epoch_is_seen_by_its_steps() -> None:
    rates = [1e-3 * 0.9**step for step in MEASURED]
    flat = [0.69 + 0.001 * (n % 2) for n in range(len(MEASURED))]
    finding = found(checked(learning_rate_too_low, rates_and_losses(rates, flat)), "act")
    assert finding.title.startswith("The learning rate has been at most 2.43e-07 since step 79")


@pytest.mark.parametrize(
    ("rates", "losses"),
    [
        ([1e-3 * 0.98**step for step in MEASURED], [0.69] * len(MEASURED)),
        ([1e-3 * 0.9**step for step in MEASURED], [0.69 * 0.9**n for n in range(len(MEASURED))]),
        ([1e-3] * (len(MEASURED) - 8) + [1e-9] * 8, [0.69] * len(MEASURED)),
    ],
    ids=["slow", "learned before", "at the end"],
)
def test_a_rate_that_falls_as_planned_is_left_alone(rates: Numbers, losses: Numbers) -> None:
    log = rates_and_losses(rates, losses)
    assert "since step" not in str(checked(learning_rate_too_low, log))


def rates_and_losses(rates: Numbers, losses: Numbers) -> EventLog:
    return captured({"learning_rate": at_steps(rates), "loss": at_steps(losses)})
