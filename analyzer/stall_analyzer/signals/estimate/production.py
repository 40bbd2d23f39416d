"""Can the input pipeline keep up? What one profiled batch shows of it.

A pipeline that works ahead fills its buffer while the first step is compiled, so the second batch
is there at once however slow the pipeline is. But when a batch is taken from a full buffer, its
place is filled again: a pipeline that keeps up makes a batch for each one that is taken. What it
made while the steps were profiled tells how long a batch takes; where it made none, a batch takes
longer than those steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

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
    """How batches come about beside the steps."""

    # "in the step": nothing works ahead, a wait shows all. "seen": what a batch takes is known.
    # "slower": none was finished meanwhile. "hidden": Python threads outside of tf.data make them.
    state: State
    batch_ps: int = 0  # what one takes, where it was seen
    ready: int = 0  # batches that lay in the buffer, made while the first step was compiled


def production_of(pipeline: PipelineSignals, profiled_ps: int) -> Production | None:
    """None where the trace shows no pipeline. `profiled_ps`: how long steps were profiled."""
    if not pipeline.stages or not pipeline.stages[0].count:
        return None
    if all(stage.kind in GENERATOR_ALONE - {"Prefetch"} for stage in pipeline.stages):
        has_generator = any(stage.kind == "Generator" for stage in pipeline.stages)
        return Production("hidden" if has_generator else "in the step")
    ahead = _innermost_ahead(pipeline)
    if ahead is None:
        return Production("in the step")
    return _made_for(pipeline, ahead, profiled_ps)


def _made_for(pipeline: PipelineSignals, ahead: Stage, profiled_ps: int) -> Production:
    """What the stage that works ahead was given while batches were taken from it."""
    needed = ahead.count * (ahead.parameters.get("batch_size", 1) if _fuses(ahead) else 1)
    given = max((s.count for s in pipeline.stages if s.parent == ahead.path), default=0)
    batches = pipeline.stages[0].count
    if not needed or not given:
        return Production("slower", ready=ahead.parameters.get("buffered_elements", 0))
    if ahead.kind.startswith(PARALLEL):
        return Production("seen", round(profiled_ps / batches * needed / given))
    source = max((s for s in pipeline.stages if s.parent == ahead.path), key=lambda s: s.count)
    return Production("seen", source.total_ps // batches)


def _fuses(stage: Stage) -> bool:
    return stage.kind.startswith("MapAndBatch")


def _innermost_ahead(pipeline: PipelineSignals) -> Stage | None:
    """The last of the stages that work ahead one after the other, seen from the step."""
    found: Stage | None = None
    for stage in pipeline.stages:  # outermost first
        works_ahead = stage.kind.startswith(WORK_AHEAD)
        follows = found is None or stage.parent == found.path
        if works_ahead and follows and _only_passing_above(pipeline, stage):
            found = stage
    return found


def _only_passing_above(pipeline: PipelineSignals, stage: Stage) -> bool:
    """Below a stage that works inside the step, working ahead hides only a part of the wait."""
    return all(
        above.kind in PASSING or above.kind.startswith(WORK_AHEAD)
        for above in pipeline.around(stage)
    )
