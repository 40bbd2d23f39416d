"""Can the input pipeline keep up? What one profiled batch shows.

A pipeline that works ahead fills its buffer while the first step is compiled, so the second batch
is there at once, however slow the pipeline is. But when a batch is taken from a full buffer, its
place is filled again: a pipeline that keeps up makes a batch for each one that is taken. What it
made while the steps were profiled shows how long a batch takes; if it made none, a batch takes
longer than those steps.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from stall_analyzer.model.records import dataclass
from stall_analyzer.signals.input.input_pipeline import (
    GENERATOR_ALONE,
    PASSING,
    WORK_AHEAD,
    PipelineSignals,
    Stage,
)

State: TypeAlias = Literal["in the step", "seen", "slower", "hidden"]
PARALLEL = ("Parallel", "LegacyParallel", "MapAndBatch")


@dataclass(frozen=True)
class Production:
    """How batches are made while steps run."""

    # "in the step": nothing works ahead, so waits show everything. "seen": it is known how long a
    # batch takes. "slower": none was finished in the meantime. "hidden": Python threads outside
    # tf.data make them.
    state: State
    batch_ps: int = 0  # how long one takes, where that was seen
    certain: bool = True  # False: they may have come that fast because a buffer was full
    ready: int = 0  # batches that were in the buffer, made while the first step was compiled


def production_of(pipeline: PipelineSignals, profiled_ps: int) -> Production | None:
    """None where the trace shows no pipeline. `profiled_ps`: how long steps were profiled."""
    if not pipeline.stages or not pipeline.stages[0].count:
        return None
    if all(stage.kind in GENERATOR_ALONE - {"Prefetch"} for stage in pipeline.stages):
        has_generator = any(stage.kind == "Generator" for stage in pipeline.stages)
        return Production("hidden" if has_generator else "in the step")
    ahead = _innermost_ahead(pipeline)
    if not ahead:
        return Production("in the step")
    return _made_for(pipeline, ahead, profiled_ps)


def _made_for(pipeline: PipelineSignals, ahead: str, profiled_ps: int) -> Production:
    """From what the stage that works ahead was given while batches were taken."""
    batches = pipeline.stages[0].count
    stages = {stage.path: stage for stage in pipeline.stages}
    given = max((s for s in pipeline.stages if s.parent == ahead), key=_count, default=None)
    if given is None or not given.count:
        buffered = stages[ahead].parameters.get("buffered_elements", 0) if ahead in stages else 0
        return Production("slower", ready=buffered)
    kind = ahead.rpartition("::")[2]
    if not kind.startswith(PARALLEL):
        return Production("seen", given.total_ps // batches)
    # Several are made at a time: how fast new ones are begun shows how fast others are finished.
    fused = kind.startswith("MapAndBatch") and ahead in stages
    needed = batches * (stages[ahead].parameters.get("batch_size", 1) if fused else 1)
    if given.count >= needed:
        return Production("seen", certain=False)
    return Production("seen", round(profiled_ps / batches * needed / given.count), certain=False)


def _count(stage: Stage) -> int:
    return stage.count


def _innermost_ahead(pipeline: PipelineSignals) -> str:
    """The path of the stage farthest from the step, in an unbroken row of stages that work ahead;
    empty where none does. It need not have given an element itself."""
    found = ""
    for stage in pipeline.stages:
        path, *kinds = stage.path.split("::")
        for kind in kinds:
            if kind not in PASSING and not kind.startswith(WORK_AHEAD):
                break
            path = f"{path}::{kind}"
            if kind.startswith(WORK_AHEAD) and len(path) > len(found):
                found = path
    return found
