"""Building the training function's graph takes a large part of the first epoch.

What it finds
A training function whose first call spends much of the epoch in tracing: Python runs the model's
code once to record its graph. Two avoidable reasons are recognized: the step is traced twice
because variables are created inside the first call, or Python in the model's code does more than
build a graph (reads files, computes with numpy, sleeps).

Why it stalls
Nothing is trained while a graph is built. A tf.function that creates variables in its first call is
traced a second time, this time without creating them. Keras optimizers with slots (Adam, RMSprop,
SGD with momentum) create their slots in the first step unless the optimizer was built beforehand.

How it is measured
The ledger's time for tracing inside the first call. If a call was traced twice, its graph was built
once before initialize_variables ran and once after. Instantiation, which prepares the graph to run,
scales with the graph and the machine just as tracing does. Tracing that takes many times as long as
instantiation must have done other work in Python.

Example
A model of 16 dense layers with Adam traced its step twice, for 3.7 s and 1.4 s. With
optimizer.build(model.trainable_variables) before fit(), it was traced once.

What to do
Build the model and its optimizer before fit(), and pass metrics to compile() as objects: metrics
given by name are created in the first step. Move slow Python out of call(), into __init__ or
build(). If neither reason applies, nothing is wrong: tracing happens once and hardly matters in a
long run.

Blind spots
The trace does not say which line of Python was slow unless the Python tracer was on. Functions
loaded from a SavedModel show no tracing.
"""

from __future__ import annotations

from stall_analyzer.captures.capture_format import Account
from stall_analyzer.decode.vocabulary import KERAS_STEPS
from stall_analyzer.detectors.gains import partly, spare_trace
from stall_analyzer.detectors.severity import ACT_SHARE, CONSIDER_SHARE, severity_of
from stall_analyzer.model.findings import Change, Finding, Gain
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.booked_costs import costliest
from stall_analyzer.signals.compile.functions import Build, FunctionSignals
from stall_analyzer.signals.signals import Signals

ID = "ST101"
BUCKET = "compile"

# The first trace of a process also loads what tracing needs: 0.1 to 0.3 s on the machines measured.
FIRST_TRACE_PS = 500 * PS_PER_MS
# Beyond that, tracing took 1.6 to 6 times as long as instantiation (2 to 100 layers).
LEAST_RATIO, MOST_RATIO = 1.6, 6
SLOW_RATIO = 10

SPARE_GRAPH = 0.5  # one of the two graphs

FEWER_TRACES = Change(
    "Do nothing if you train for more than a few epochs. For many short runs, trace less: "
    "use fewer and larger layers, and avoid Python loops over layers or time steps."
)


def check(signals: Signals) -> Finding | None:
    return _traced(signals) if signals.traces else _booked(signals)


def _booked(signals: Signals) -> Finding | None:
    """From the capture's timing of graph building: how long, and for which function."""
    cost = costliest(signals.booked_costs, Account.TRACE)
    if cost is None or signals.share(cost.spent_ps) < ACT_SHARE:
        return None
    called = "the Keras step" if cost.name in KERAS_STEPS else f"{cost.name}()"
    return Finding(
        severity="note",
        title=f"Tracing {called} takes {seconds(cost.spent_ps)}, once",
        explanation=(
            f"Building its graph took {signals.with_share(cost.spent_ps)}, as timed by the "
            f"capture. Later epochs do not pay for it.{cost.where_sentence}"
        ),
        change=FEWER_TRACES,
        lost_ps=cost.spent_ps,
        confidence=0.9,
        evidence=signals.evidence_of("compile.tracing", "tracing"),
    )


def _traced(signals: Signals) -> Finding | None:
    function = max(signals.functions, key=_tracing_ps, default=None)
    if function is None or function.first is None:
        return None
    build = function.first
    if build.second_trace_ps and signals.share(build.variable_init_ps) >= CONSIDER_SHARE:
        return None  # ST107 covers both, because one change fixes both
    if build.second_trace_ps:
        return _traced_twice(signals, function, build)
    if function.shape is not None and function.shape.unrolled:
        return None  # ST102 says why
    if build.tracing_ps > SLOW_RATIO * build.instantiate_ps + FIRST_TRACE_PS:
        return _slow_python(signals, function, build)
    return _comes_once(signals, function, build)


def _tracing_ps(function: FunctionSignals) -> int:
    return function.first.tracing_ps if function.first is not None else 0


def _traced_twice(signals: Signals, function: FunctionSignals, build: Build) -> Finding | None:
    # The graph of the extra trace runs once, so it has to be instantiated as well.
    gain = spare_trace(build.spare_trace_ps) + partly(build.instantiate_ps, 0, SPARE_GRAPH)
    middle = (gain.low_ps + gain.high_ps) // 2
    severity = severity_of(signals.share(middle), once_ps=middle)
    if severity is None:
        return None
    if function.is_keras:
        change = Change(
            "Build the optimizer before fit(), so that the first call creates no variables. A "
            "model without an Input layer must be built before that: model.build(input_shape). "
            'Metrics given by name ("accuracy") are created in the first call as well: pass '
            "objects instead, such as keras.metrics.SparseCategoricalAccuracy().",
            "model.compile(optimizer, loss)\nmodel.fit(data)",
            "model.compile(optimizer, loss)\n"
            "model.optimizer.build(model.trainable_variables)\n"
            "model.fit(data)",
        )
    else:
        change = Change(
            f"Create the variables before {function.words} is called for the first time.",
            "optimizer = keras.optimizers.Adam()",
            "optimizer = keras.optimizers.Adam()\n"
            "model.build(input_shape)  # where the model has no Input layer\n"
            "optimizer.build(model.trainable_variables)",
        )
    return Finding(
        severity=severity,
        title=f"Tracing {function.words} twice takes {seconds(build.tracing_ps)} in all",
        explanation=(
            f"The first call of {function.words} created variables, probably those of the "
            "optimizer. TensorFlow then traced the step again. The first trace took "
            f"{seconds(build.first_trace_ps)} and the second {seconds(build.second_trace_ps)} of "
            f"the first epoch's {seconds(signals.window_ps)}; one of the two can be avoided."
        ),
        change=change,
        lost_ps=build.tracing_ps + build.instantiate_ps,
        gain=gain,
        confidence=0.9,
        evidence=signals.evidence_of("compile.tracing", "tracing"),
    )


def _slow_python(signals: Signals, function: FunctionSignals, build: Build) -> Finding | None:
    severity = severity_of(signals.share(build.tracing_ps), once_ps=build.tracing_ps)
    if severity is None:
        return None
    least = build.tracing_ps - MOST_RATIO * build.instantiate_ps - FIRST_TRACE_PS
    most = build.tracing_ps - round(LEAST_RATIO * build.instantiate_ps)
    return Finding(
        severity=severity,
        title=(
            f"Python code in {function.words} runs for {seconds(build.tracing_ps)} during tracing"
        ),
        explanation=(
            f"The first call spent {seconds(build.tracing_ps)} "
            f"({percent(build.tracing_ps, signals.window_ps)} of the first epoch) in Python to "
            f"record a graph that TensorFlow instantiated in {seconds(build.instantiate_ps)}. "
            "A graph of that size is normally recorded much faster, so some code in the model or "
            "the loss must be doing other work in Python. Such code runs once per trace and never "
            "in a step."
        ),
        change=Change(
            "Move slow Python (reading files, numpy, network, logging) from call() and from the "
            "loss into __init__() or build().",
            "def call(self, x):\n    table = read_table(path)\n    return x * table",
            "def __init__(self, path):\n    super().__init__()\n"
            "    self.table = read_table(path)\n\n"
            "def call(self, x):\n    return x * self.table",
        ),
        lost_ps=build.tracing_ps,
        gain=Gain(least, most),
        confidence=0.7,
        evidence=signals.evidence_of("compile.tracing", "tracing"),
    )


def _comes_once(signals: Signals, function: FunctionSignals, build: Build) -> Finding | None:
    if signals.share(build.tracing_ps) < ACT_SHARE:
        return None
    return Finding(
        severity="note",
        title=f"Tracing {function.words} takes {seconds(build.tracing_ps)}, once",
        explanation=(
            f"The first call took {seconds(build.tracing_ps)} to record the graph: "
            f"{percent(build.tracing_ps, signals.window_ps)} of a first epoch of "
            f"{seconds(signals.window_ps)}. The function was traced once, which cannot be avoided. "
            "Later epochs do not pay for it."
        ),
        change=FEWER_TRACES,
        lost_ps=build.tracing_ps,
        confidence=0.8,
        evidence=signals.evidence_of("compile.tracing", "tracing"),
    )
