"""Where the steps of a distribution strategy run."""

from __future__ import annotations

from typing import Any


def runs_elsewhere(strategy: Any) -> bool:
    """In other processes, or on a TPU: nothing can be added to such steps."""
    return type(strategy).__name__.startswith(("ParameterServer", "TPU"))
