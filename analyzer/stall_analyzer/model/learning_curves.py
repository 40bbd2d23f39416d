"""How a run learned, for charts: the same data that the detectors of learning use."""

from __future__ import annotations

from typing import Literal, TypeAlias

from stall_analyzer.model.records import dataclass

# A step or epoch, and what was logged for it; values may be non-finite.
Point: TypeAlias = tuple[int, float]


@dataclass(frozen=True)
class LearningCurves:
    per: Literal["step", "epoch"]  # what each point of `loss` is
    loss: tuple[Point, ...]
    baseline: float | None  # the cost of the best answer that ignores its inputs
    baseline_words: str  # which answer that is
    gradients: tuple[tuple[str, tuple[Point, ...]], ...]  # norms by layer, in the model's order
