"""What a model's own computation consists of, and what could make it faster."""

from __future__ import annotations

from stall_analyzer.model.records import dataclass


@dataclass(frozen=True)
class ModelPart:
    """A layer, or a kind of op."""

    name: str
    ps: int  # of the threads that ran its ops
    ops: int  # that were run


@dataclass(frozen=True)
class ModelParts:
    """Costliest first."""

    layers: tuple[ModelPart, ...]
    kinds: tuple[ModelPart, ...]
    ops_ps: int
    small_ps: int  # of these, in ops that take less than starting them does


@dataclass(frozen=True)
class NextStep:
    """One way to make computing itself faster."""

    topic: str  # "batch size", "precision", "XLA", "threads"
    helps: bool | None  # None: that hangs on what the log does not tell
    text: str  # with the evidence


@dataclass(frozen=True)
class Computing:
    """Of a healthy run: there is nothing to repair, but perhaps something to tune."""

    parts: ModelParts
    next_steps: tuple[NextStep, ...]
