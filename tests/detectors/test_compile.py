"""Tracing and graphs: each detector fires on its own case, and not on a near miss."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stall_analyzer.captures.capture_format import Account
from stall_analyzer.detectors.compile import instantiation, retracing, tracing, unrolled_graph
from stall_analyzer.model.event_log import KerasConfig
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.booked_costs import BookedCost
from stall_analyzer.signals.host.overhead import step_overhead
from stall_analyzer.signals.signals import Signals
from tests.detectors.training import found, signals_for, with_cause
from tests.traces import GRAPH, TRAIN_OPS, call, event, keras_log, ops, steps, timeline_of, trainer
from tests.xspace import Event

MS = PS_PER_MS


def signals(
    folder: Path,
    python: Sequence[Event],
    work: Sequence[Event] = (),
    keras: KerasConfig | None = None,
) -> Signals:
    log = keras_log(keras) if keras is not None else None
    timeline = timeline_of(folder, trainer(python, work), events=log)
    return signals_for(timeline)


def after_first_call(
    folder: Path,
    first: Sequence[Event],
    until_ms: float,
    names: Sequence[str] = TRAIN_OPS,
    count: int = 4,
) -> Signals:
    """A first call that begins at 0, and some usual calls after it."""
    python, work = steps(until_ms, count, first_run=100, names=names)
    return signals(folder, [*first, *python], [*ops(until_ms - 10, until_ms, 1, *names), *work])


# ------------------------------------------------------------ signals


def test_a_function_knows_its_calls_and_when_its_code_was_made(tmp_path: Path) -> None:
    first = call(0, 100, run=1, traced_ms=60, instantiated_ms=30)
    (function,) = after_first_call(tmp_path, first, 100).functions
    assert (function.name, function.trains, function.calls) == ("train_step", True, 5)
    assert function.usual_call_ps == 10 * MS
    assert function.graphs == (GRAPH,)
    (build,) = function.builds
    assert (build.tracing_ps, build.instantiate_ps, build.call) == (60 * MS, 30 * MS, 0)
    assert function.retraces == function.recompilations == ()


def test_training_and_validation_of_one_name_are_two_functions(tmp_path: Path) -> None:
    train, train_work = steps(0, 3, first_run=1)
    validate, validate_work = steps(
        30, 2, first_run=10, graph="__inference_train_step_9", names=["dense/MatMul:MatMul"]
    )
    found = signals(tmp_path, [*train, *validate], [*train_work, *validate_work]).functions
    assert [(f.trains, f.calls) for f in found] == [(True, 3), (False, 2)]


def test_a_loop_without_functions_has_none(tmp_path: Path) -> None:
    assert signals(tmp_path, [event("EagerExecute", 0, 10)]).functions == ()


def copies(count: int) -> list[str]:
    return [f"gradient_tape/model/cell/MatMul_{n}/MatMul:MatMul" for n in range(1, count + 1)]


def updates(count: int) -> list[str]:
    return [f"sgd/AssignSubVariableOp_{n}:AssignSubVariableOp" for n in range(1, count + 1)]


def test_copies_of_a_node_are_counted_in_the_backward_pass(tmp_path: Path) -> None:
    pipeline = [f"mul_{n}:Mul" for n in range(300)]
    python, work = steps(0, 3, first_run=1, names=[*copies(50), *updates(4), *pipeline])
    shape = signals(tmp_path, python, work).functions[0].shape
    assert shape is not None
    assert (shape.copies, shape.updates, shape.copied) == (50, 4, "model/cell/MatMul_#")
    assert shape.unrolled


def test_layers_of_one_kind_are_no_unrolled_loop(tmp_path: Path) -> None:
    python, work = steps(0, 3, first_run=1, names=[*copies(50), *updates(100)])
    shape = signals(tmp_path, python, work).functions[0].shape
    assert shape is not None
    assert not shape.unrolled


def test_long_gaps_between_steps_are_not_the_loops_own(tmp_path: Path) -> None:
    python, work = steps(0, 4, first_run=1, pause_ms=2)
    late, late_work = steps(100, 1, first_run=10)
    run = signals(tmp_path, [*python, *late], [*work, *late_work])
    overhead = step_overhead(run.host.ledger, run.training_steps)
    assert overhead.short_gaps_ps == 6 * MS
    assert overhead.steps == 5


# ------------------------------------------------------------ tracing


def traced_twice(first_ms: float, second_ms: float, name: str = "train_step") -> list[Event]:
    """A call that creates variables: traced with them, then initialized, then traced without."""
    again = first_ms + 10
    ready = again + second_ms
    graph = f"__inference_{name}_7"
    return [
        event(name, 0, ready + 20, tf_function_call="traced-nonXla", tracing_count=2),
        event("tf.function-graph_building", 0, first_ms),
        event("EagerExecute", first_ms, again),
        event("EagerLocalExecute: __inference_initialize_variables_3", first_ms, again),
        event("tf.function-graph_building", again, ready),
        event(f"EagerLocalExecute: {graph}", ready, ready + 20),
        event("EagerKernelExecute", ready, ready + 20),
        event("KernelAndDeviceFunc::Run", ready, ready + 20),
        event("FunctionRun", ready, ready + 0.01, id=1, _r=1, _p=1),
    ]


def test_a_step_that_is_traced_twice_wins_one_of_the_traces(tmp_path: Path) -> None:
    run = after_first_call(tmp_path, traced_twice(300, 200), 530)
    # happens once, and takes less than five seconds
    finding = found(tracing.check(run), "consider")
    assert finding.title == "Tracing train_step() twice takes 500 ms in all"
    assert finding.gain.low_ps == 180 * MS
    assert finding.gain.high_ps == 300 * MS
    assert "optimizer.build(model.trainable_variables)" in finding.change.after


def test_keras_is_told_where_to_build_its_optimizer(tmp_path: Path) -> None:
    first = traced_twice(300, 200, name="multi_step_on_iterator")
    finding = found(tracing.check(after_first_call(tmp_path, first, 530)))
    assert finding.title.startswith("Tracing the Keras training step twice")
    assert "model.fit(data)" in finding.change.after


def test_one_trace_that_takes_most_of_the_epoch_is_a_note(tmp_path: Path) -> None:
    first = call(0, 400, run=1, traced_ms=250, instantiated_ms=100)
    finding = found(tracing.check(after_first_call(tmp_path, first, 400)))
    assert (finding.severity, finding.gain.high_ps) == ("note", 0)


def test_python_that_does_more_than_build_a_graph_is_named(tmp_path: Path) -> None:
    first = call(0, 2000, run=1, traced_ms=1900, instantiated_ms=50)
    finding = found(tracing.check(after_first_call(tmp_path, first, 2000)), "consider")
    assert finding.gain.low_ps == (1900 - 6 * 50 - 500) * MS
    assert "__init__" in finding.change.text


def test_a_big_graph_takes_long_to_trace_for_good_reason(tmp_path: Path) -> None:
    first = call(0, 2600, run=1, traced_ms=1900, instantiated_ms=600)
    assert found(tracing.check(after_first_call(tmp_path, first, 2600)), "note")


def test_short_tracing_is_not_worth_a_word(tmp_path: Path) -> None:
    first = call(0, 30, run=1, traced_ms=15)
    assert tracing.check(after_first_call(tmp_path, first, 30, count=20)) is None


# ------------------------------------------------------------ graphs


def test_an_unrolled_loop_is_named_with_its_copies(tmp_path: Path) -> None:
    names = [*copies(200), *updates(6)]
    first = call(0, 900, run=1, traced_ms=600, instantiated_ms=250)
    run = after_first_call(tmp_path, first, 900, names)
    # happens once, and takes less than five seconds
    finding = found(unrolled_graph.check(run), "consider")
    assert finding.title == "A Python loop is unrolled into 200 copies of cell/MatMul_#"
    assert finding.lost_ps == 850 * MS
    assert tracing.check(run) is None and instantiation.check(run) is None


def test_an_unrolled_layer_is_told_to_keep_its_loop(tmp_path: Path) -> None:
    names = [*copies(200), *updates(6)]
    python, work = steps(900, 4, first_run=100, names=names)
    first = call(0, 900, run=1, traced_ms=600, instantiated_ms=250)
    lstm = {"class_name": "LSTM", "name": "lstm", "unroll": True}
    run = signals(
        tmp_path,
        [*first, *python],
        [*ops(850, 900, 1, *names), *work],
        KerasConfig(0, "Sequential", (lstm,)),
    )
    finding = found(unrolled_graph.check(run))
    assert finding.change.before == "keras.layers.LSTM(units, unroll=True)"


def test_an_unrolled_loop_that_long_training_repays_is_a_note(tmp_path: Path) -> None:
    names = [*copies(200), *updates(6)]
    first = call(0, 110, run=1, traced_ms=60, instantiated_ms=40)
    finding = found(unrolled_graph.check(after_first_call(tmp_path, first, 110, names, count=30)))
    assert (finding.severity, finding.gain.low_ps) == ("note", 0)


def test_a_model_of_many_layers_is_not_unrolled(tmp_path: Path) -> None:
    names = [*copies(70), *updates(140)]
    first = call(0, 900, run=1, traced_ms=600, instantiated_ms=250)
    run = after_first_call(tmp_path, first, 900, names)
    assert unrolled_graph.check(run) is None
    finding = found(instantiation.check(run))
    assert (finding.severity, finding.lost_ps) == ("note", 250 * MS)


def test_a_small_graph_is_soon_ready(tmp_path: Path) -> None:
    first = call(0, 60, run=1, traced_ms=30, instantiated_ms=10)
    assert instantiation.check(after_first_call(tmp_path, first, 60)) is None


# ------------------------------------------------------------ retracing


def retraced(
    folder: Path, at: Sequence[int], calls: int, *, new_functions: bool = False
) -> Signals:
    """Calls of 10 ms, those in `at` of 100 ms, of which 80 ms for a new graph."""
    python: list[Event] = []
    work: list[Event] = []
    now, graph, count = 0.0, GRAPH, 0
    for number in range(calls):
        traces = number in at
        if traces:
            graph, count = f"{GRAPH}{number}", 1 if new_functions else count + 1
        end = now + (100 if traces else 10)
        python += call(
            now,
            end,
            run=number + 1,
            traced_ms=60 if traces else 0,
            instantiated_ms=20 if traces else 0,
            count=count,
            graph=graph,
        )
        work += ops(end - 10, end, number + 1, *TRAIN_OPS)
        now = end
    return signals(folder, python, work)


def test_retraces_in_the_middle_are_counted_and_priced(tmp_path: Path) -> None:
    finding = found(retracing.check(retraced(tmp_path, (0, 3, 6), 10)), "act")
    assert finding.title == "train_step() was retraced 2 times in 10 calls"
    assert finding.lost_ps == finding.gain.high_ps == 180 * MS  # calls of 100 ms, usually 10
    assert "(calls 1, 4, 7)" in finding.explanation
    assert "reduce_retracing=True" in finding.change.after
    assert [piece.label for piece in finding.evidence] == [
        "traced again in call 4",
        "traced again in call 7",
    ]


def test_a_trace_in_every_call_speaks_of_arguments(tmp_path: Path) -> None:
    finding = found(retracing.check(retraced(tmp_path, range(10), 10)))
    assert "Every call had something new" in finding.explanation


def test_the_arguments_that_a_capture_saw_change_are_named(tmp_path: Path) -> None:
    signals = retraced(tmp_path, (0, 3, 6), 10)
    name = max(signals.functions, key=lambda function: len(function.retraces)).name
    cost = BookedCost(Account.RETRACE, name, "train.py:3", 2, 1, "scale: 0.5, now 0.25")
    vars(signals)["booked_costs"] = (cost,)
    finding = found(retracing.check(signals))
    assert "(scale: 0.5, now 0.25)" in finding.change.text


def test_a_graph_that_already_serves_all_shapes_needs_them_declared(tmp_path: Path) -> None:
    signals = retraced(tmp_path, (0, 3, 6), 10)
    why = "x: int64[32, 33], now int64[32, None]"
    vars(signals)["booked_costs"] = (
        BookedCost(Account.RETRACE, "train_step", "train.py:3", 2, 1, why),
    )
    finding = found(retracing.check(signals))
    assert "reduce_retracing" in finding.change.before
    assert "input_signature" in finding.change.after


def test_graphs_built_outside_of_profiled_windows_count_by_the_clocks_of_the_capture(
    tmp_path: Path,
) -> None:
    profiled = retraced(tmp_path, (0, 3, 6), 10)
    whole = with_cause(profiled, "compile.retracing", share=0.9)
    cost = BookedCost(Account.RETRACE, "train_step", "train.py:3", 34, 1)
    vars(whole)["booked_costs"] = (cost,)
    finding = found(retracing.check(whole), "act")
    assert finding.title == "train_step() was retraced 34 times"
    assert finding.lost_ps == whole.causes_ps["compile.retracing"] > 180 * MS


def test_a_retrace_in_the_last_call_is_a_smaller_batch(tmp_path: Path) -> None:
    finding = found(retracing.check(retraced(tmp_path, (0, 9), 10)))
    assert finding.title == "The last batch causes train_step() to be traced again"
    assert "drop_remainder=True" in finding.change.after


def test_a_new_function_in_every_call_is_told_from_a_retrace(tmp_path: Path) -> None:
    finding = found(retracing.check(retraced(tmp_path, range(8), 8, new_functions=True)))
    assert "a new tf.function object" in finding.explanation
    assert "before the loop" in finding.change.text


def test_two_graphs_may_be_meant(tmp_path: Path) -> None:
    finding = found(retracing.check(retraced(tmp_path, (0, 3), 10)))
    assert (finding.severity, finding.gain.low_ps) == ("note", 0)


def test_the_steps_of_two_models_are_two_functions_of_one_name(tmp_path: Path) -> None:
    """Called in turn, each is traced once: that is not retracing."""
    python: list[Event] = []
    work: list[Event] = []
    for number in range(8):
        start, traces = 100.0 * number, number < 2
        graph = f"{GRAPH}{number % 2}"
        python += call(start, start + 90, number + 1, traced_ms=60 * traces, graph=graph)
        work += ops(start + 80, start + 90, number + 1, *TRAIN_OPS)
    assert retracing.check(signals(tmp_path, python, work)) is None


def test_a_function_that_is_traced_once_is_not_retraced(tmp_path: Path) -> None:
    assert retracing.check(retraced(tmp_path, (0,), 10)) is None
