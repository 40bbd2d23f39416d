"""Stall: where the first epoch of a TensorFlow training went.

    from stall_analyzer import analyze, document
    from stall_analyzer.discover import discover

    discovery = discover(["logs"])
    report = document([analyze(run) for run in discovery.runs], notes=discovery.notes)

Names are loaded when first used: `stall-analyze --help` must not wait for numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stall_analyzer.pipeline import analyze
    from stall_analyzer.report.document import document

__version__ = "0.1.0"  # pyproject.toml reads it here: asking the installed package takes longer
__all__ = ["__version__", "analyze", "document"]

_HOMES = {"analyze": "stall_analyzer.pipeline", "document": "stall_analyzer.report.document"}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
