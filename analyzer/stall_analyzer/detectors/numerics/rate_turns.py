"""The learning rate as a knob, which several findings turn."""

from __future__ import annotations

from stall_analyzer.model.findings import Turn


def turned_to(rate: float | None) -> tuple[Turn, ...]:
    """To this rate; where it is not known from what, down."""
    return (Turn("learning rate", f"{rate:.3g}" if rate is not None else "down"),)
