"""Where the first step's time went, beyond what every step takes.

It builds the graph, instantiates it, asks for the first element and runs for the first time.
Building takes Python some time per op, Keras's own preparations take about the same time in every
run, and both take longer on a slower machine. What is left over is the first element, if the
pipeline may be slow to start, or otherwise the building of code.
"""

from __future__ import annotations

from collections.abc import Sequence

from stall_analyzer.decode.vocabulary import XLA_OPS, op_type
from stall_analyzer.model.event_log import KerasConfig
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.estimate.parts import Part
from stall_analyzer.signals.estimate.production import Production
from stall_analyzer.signals.input.input_pipeline import PipelineSignals

# How long it takes to trace an op of the step in Python and prepare it to run. If the step creates
# variables, such as Adam's, Keras traces it twice. These times and those below were measured on
# half of the programs of `make partial`; a slower machine takes longer for all of them.
OP_PS, OP_TWICE_PS = 1.6 * PS_PER_MS, 2.5 * PS_PER_MS
OPS_PER_LAYER = 20  # a layer with its gradient and its update, where no trace shows them
USUAL_OPS = 100  # where neither a trace nor a model shows them
PREPARING_PS = 85 * PS_PER_MS  # Keras, in Python
PROFILER_START_PS = 80 * PS_PER_MS
WARM_UP_PS = 20 * PS_PER_MS  # kernels and memory, for the first time
FIRST_ELEMENT_PS = 25 * PS_PER_MS  # creating the iterator and its threads
READY_ELEMENT_PS = 8 * PS_PER_MS  # the same for data that is in memory
# A machine is assumed to be slower by at most this factor: a longer first step has another reason.
SLOWER = 1.3
DOUBT, DOUBT_TWO_REASONS = 0.3, 0.6

# Sources whose first element may take any amount of time: it has to be opened, read or started.
OPENED = (
    "Generator", "TFRecord", "TextLine", "FixedLengthRecord", "SSTable", "Csv", "CSV", "Sql",
    "Interleave", "ParallelInterleave", "LegacyParallelInterleave", "Snapshot", "Load", "Save",
    "FileCache", "Experimental",
)  # fmt: skip


# Stages that have no function to prepare.
IN_MEMORY = frozenset({
    "Root", "Prefetch", "Model", "Options", "MaxIntraOpParallelism", "TensorSlice", "FromTensor",
    "Tensor", "Range", "FiniteRepeat", "ForeverRepeat", "BatchV2", "Batch", "Zip", "MemoryCache",
    "Take", "Skip", "Shuffle",
})  # fmt: skip


@dataclass(frozen=True)
class FirstStepEvidence:
    """What is known about the first step."""

    ops: int  # those in the step's graph that were seen
    traced_twice: bool  # the optimizer creates variables in the first step
    compiled_by_xla: bool
    eager: bool
    by_keras: bool  # the window begins where Keras begins to prepare
    source_may_be_slow: bool
    in_memory: bool  # the pipeline only passes on data that is in memory
    traced: bool  # some steps were profiled
    element_ps: float  # the first element, as fast as the others, with a buffer to fill
    starts_profiler: bool = False  # Keras starts it at the end of the step


def evidence_of(
    traces: Sequence[AlignedTrace],
    keras: KerasConfig | None,
    pipeline: PipelineSignals,
    production: Production | None,
) -> FirstStepEvidence:
    ops = sum(_ops_in(trace) for trace in traces[:1])
    layers = len(keras.layers) if keras is not None else 0
    kinds = {kind for stage in pipeline.stages for kind in stage.path.split("::")}
    opened = any(kind.startswith(OPENED) for kind in kinds)
    slow = production is not None and production.state in ("slower", "hidden")
    xla = any(map(_uses_xla, traces)) or (keras is not None and keras.jit_compile is True)
    return FirstStepEvidence(
        ops=(OPS_PER_LAYER * layers or USUAL_OPS) if xla or not ops else ops,
        traced=bool(traces),
        traced_twice=_makes_variables(keras),
        compiled_by_xla=xla,
        eager=any(trace.eager for trace in traces) or bool(keras and keras.run_eagerly),
        by_keras=keras is not None,
        source_may_be_slow=opened or slow,
        in_memory=bool(kinds) and kinds <= IN_MEMORY,
        element_ps=_fill_ps(pipeline) + (production.batch_ps if production is not None else 0),
    )


def _makes_variables(keras: KerasConfig | None) -> bool:
    """Whether the optimizer keeps variables for each weight; plain gradient descent does not."""
    if keras is None or keras.optimizer is None:
        return False
    momentum = keras.optimizer_config.get("momentum")
    return keras.optimizer.lower() != "sgd" or bool(momentum)


def divide_first_step(extra_ps: float, evidence: FirstStepEvidence) -> Part:
    """`extra_ps`: how much longer it took than a usual step."""
    element_ps = min(evidence.element_ps, extra_ps)
    expected = expected_ps(evidence)
    slower = (extra_ps - element_ps) / sum(expected.values())
    reason = _other_reason(evidence)
    slower = min(slower, SLOWER)
    likely = {cause: ps * slower for cause, ps in expected.items()}
    likely["input.first_element"] += element_ps
    rest = max(extra_ps - sum(likely.values()), 0.0)
    for cause, share in _shares_of_rest(reason, evidence).items():
        likely[cause] = likely.get(cause, 0.0) + share * rest
    doubted = (rest > extra_ps / 2 and reason == "input.first_element") or not evidence.traced
    rivals: tuple[Bucket, ...] = ("compile", "input", "host", "compute")
    return Part(
        {cause: ps for cause, ps in likely.items() if ps > 0},
        once=True,
        doubt=DOUBT_TWO_REASONS if doubted else DOUBT,
        rivals=rivals,
    )


def expected_ps(evidence: FirstStepEvidence) -> dict[str, float]:
    """How long such a first step takes on the machine on which the times were measured."""
    built = evidence.ops * (OP_TWICE_PS if evidence.traced_twice else OP_PS)
    return {
        "compile.tracing": 0.0 if evidence.eager else built,
        "host.python": float(PREPARING_PS) if evidence.by_keras else 0.0,
        "compute.warm_up": float(WARM_UP_PS),
        "profiler.start": float(PROFILER_START_PS) if evidence.starts_profiler else 0.0,
        "input.first_element": float(READY_ELEMENT_PS if evidence.in_memory else FIRST_ELEMENT_PS),
    }


def _other_reason(evidence: FirstStepEvidence) -> str:
    """What may take long whatever the size of the graph; if nothing else, Python in the model."""
    if evidence.compiled_by_xla:
        return "compile.xla"
    slow_input = evidence.source_may_be_slow or evidence.eager
    return "input.first_element" if slow_input else "compile.tracing"


def _shares_of_rest(reason: str, evidence: FirstStepEvidence) -> dict[str, float]:
    """If no step was traced, the pipeline is not known: it may just as well be slow to start."""
    if evidence.traced or reason != "compile.tracing":
        return {reason: 1.0}
    return {reason: 0.5, "input.first_element": 0.5}


def _ops_in(aligned: AlignedTrace) -> int:
    """Different ops that ran; the pipeline has few compared with the step."""
    trace = aligned.trace
    return sum(
        1
        for name, count in zip(trace.names, trace.totals.count, strict=False)
        if count and ": " not in name and op_type(name)
    )


def _uses_xla(aligned: AlignedTrace) -> bool:
    return any(op_type(name) in XLA_OPS for name in aligned.trace.names)


def _fill_ps(pipeline: PipelineSignals) -> float:
    """The number of elements in a shuffle buffer times the time for one of them."""
    filled = 0.0
    for shuffle in pipeline.of_kind("Shuffle"):
        size = shuffle.parameters.get("buffer_size", 0)
        below = [s for s in pipeline.stages if s.parent == shuffle.path and s.count]
        filled += sum(size * s.total_ps / s.count for s in below)
    return filled
