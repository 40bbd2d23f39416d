"""The learning rate as a knob that several findings turn."""

from __future__ import annotations

from stall_analyzer.model.findings import Turn


def turned_to(rate: float | None) -> tuple[Turn, ...]:
    """Turned to this rate; down, where the rate is not known."""
    return (Turn("learning rate", f"{rate:.3g}" if rate is not None else "down"),)
