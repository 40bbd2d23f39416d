"""What could still be saved if the model's own computation takes the time.

Nothing here is a fault, so none of it is a finding: each step says what it would affect, by how
much at most, and whether that is worth trying. What a log does not show is left out. Nothing is
said about a device: the host's ops only show how long its kernels take to launch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stall_analyzer.detectors.larger_batch import room_for_larger_batch
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.model.model_parts import Computing, ModelParts, NextStep
from stall_analyzer.model.patterns import pattern
from stall_analyzer.signals.host.model_parts import model_parts
from stall_analyzer.signals.host.overhead import step_overhead
from stall_analyzer.signals.signals import Signals

WORTH_TRYING = 0.1  # of the time that a change would affect; less is lost in the noise

# The kinds of ops that oneDNN computes in bfloat16.
PRODUCTS = pattern(r"(Batch)?MatMul(V\d)?|(Depthwise)?Conv\d[Dd](Native)?(Backprop\w+)?|Einsum")
MIXED = {
    True: ", and these cores support bfloat16 natively: mixed_precision.set_global_policy("
    '"mixed_bfloat16") can halve that.',
    False: ", but these cores have no bfloat16 instructions: they would have to convert each "
    "number.",
    None: ": mixed_bfloat16 can halve that on cores that support it natively (amx_bf16 or "
    "avx512_bf16 in /proc/cpuinfo), but this log does not show whether these do.",
}


def computing(signals: Signals) -> Computing | None:
    """None if no op was traced, or a device computes."""
    if signals.devices.used:
        return None
    parts = model_parts(signals.traces)
    if not parts.ops_ps:
        return None
    steps = (step(signals, parts) for step in NEXT_STEPS)
    return Computing(parts, tuple(step for step in steps if step is not None))


def _larger_batches(signals: Signals, _: ModelParts) -> NextStep | None:
    """They spread the fixed cost of a step."""
    overhead = step_overhead(signals.host.ledger, signals.training_steps[1:])  # without the first
    if not overhead.steps or overhead.own_span_ps <= 0:
        return None
    fixed_ps = overhead.dispatch_ps + overhead.eager_ps + overhead.short_gaps_ps
    helps = fixed_ps >= WORTH_TRYING * overhead.own_span_ps
    each = seconds(overhead.own_span_ps // overhead.steps)
    text = (
        f"Starting a step takes {seconds(fixed_ps // overhead.steps)} of its {each} "
        f"({percent(fixed_ps, overhead.own_span_ps)}), however many rows it has: larger batches "
        f"or steps_per_execution {'spread that cost' if helps else 'would save no more than that'}."
    )
    return NextStep("batch size", helps, text + room_for_larger_batch(signals))


def _precision(signals: Signals, parts: ModelParts) -> NextStep | None:
    """It speeds up only matrix products, and only if the cores multiply bfloat16 natively: other
    cores convert each number before and after."""
    if signals.keras is not None and any(map(_is_mixed, signals.keras.layers)):
        return None
    products_ps = sum(part.ps for part in parts.kinds if PRODUCTS.fullmatch(part.name))
    share = percent(products_ps, parts.ops_ps)
    begin = f"Matrix products and convolutions take {share} of the ops' time"
    if products_ps < WORTH_TRYING * parts.ops_ps:
        return NextStep("precision", False, f"{begin}: mixed_bfloat16 speeds up only those.")
    native = None if signals.capture is None else signals.capture.environment.bfloat16
    return NextStep("precision", native, begin + MIXED[native])


def _is_mixed(layer: Mapping[str, object]) -> bool:
    return str(layer.get("dtype")).startswith("mixed_")


def _xla(signals: Signals, parts: ModelParts) -> NextStep | None:
    if signals.keras is not None and signals.keras.jit_compile is True:
        return None
    helps = parts.small_ps >= WORTH_TRYING * parts.ops_ps
    share = percent(parts.small_ps, parts.ops_ps)
    return NextStep(
        "XLA",
        helps,
        f"Ops of less than 10 µs take {share} of the ops' time: "
        + (
            "jit_compile=True fuses them into a few large ones, but compiling takes extra time "
            "at first."
            if helps
            else "jit_compile=True would find little to fuse."
        ),
    )


def _threads(signals: Signals, _: ModelParts) -> NextStep | None:
    """More than one thread, but fewer than cores. A single thread is a finding."""
    pools = signals.pools
    if pools.cores is None or pools.intra_op_threads < 2:
        return None
    helps = pools.intra_op_threads < pools.cores
    rest = "but the process may use" if helps else "and the process may use only"
    return NextStep(
        "threads",
        helps,
        f"Large ops are split among {pools.intra_op_threads} threads, {rest} {pools.cores} cores.",
    )


NEXT_STEPS: tuple[Callable[[Signals, ModelParts], NextStep | None], ...] = (
    _larger_batches, _precision, _xla, _threads,
)  # fmt: skip
