"""What a model's own computation consists of, and what could make it faster."""

from __future__ import annotations

from stall_analyzer.model.records import dataclass


@dataclass(frozen=True)
class ModelPart:
    """A layer, or a kind of op."""

    name: str
    ps: int  # time of all threads that ran its ops
    ops: int  # how many were run


@dataclass(frozen=True)
class ModelParts:
    """Costliest first."""

    layers: tuple[ModelPart, ...]
    kinds: tuple[ModelPart, ...]
    ops_ps: int
    small_ps: int  # of that, in ops that take less time than starting them


@dataclass(frozen=True)
class NextStep:
    """One way to make computing itself faster."""

    topic: str  # "batch size", "precision", "XLA", "threads"
    helps: bool | None  # None if that depends on what the log does not show
    text: str  # with the evidence


@dataclass(frozen=True)
class Computing:
    """For a healthy run, which has nothing to fix, but perhaps something to tune."""

    parts: ModelParts
    next_steps: tuple[NextStep, ...]
