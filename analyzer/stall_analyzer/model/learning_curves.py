"""How a run learned, to be drawn: what the detectors of learning look at."""

from __future__ import annotations

from typing import Literal, TypeAlias

from stall_analyzer.model.records import dataclass

# A step or epoch, and what was logged of it; what is not finite stays so.
Point: TypeAlias = tuple[int, float]


@dataclass(frozen=True)
class LearningCurves:
    per: Literal["step", "epoch"]  # what the points of `loss` are of
    loss: tuple[Point, ...]
    baseline: float | None  # what the best answer costs that ignores its inputs
    baseline_words: str  # which answer that is
    gradients: tuple[tuple[str, tuple[Point, ...]], ...]  # norms by layer, in the model's order
