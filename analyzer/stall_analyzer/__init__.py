"""Stall: where the time of the first epoch went when TensorFlow trains.

    import stall_analyzer as stall

    result = stall.analyze("logs/run1")
    print(result.verdict.sentence)
    result.save("report.html")

docs/reference/api.md describes the names below. They are loaded when first used, so that
`stall-analyze --help` need not wait for numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stall_analyzer.api import Analysis, Finding, Step, analyze
    from stall_analyzer.errors import NothingFound, StallError, UsageError
    from stall_analyzer.model.findings import Change, Verdict
    from stall_analyzer.trackers import log_to

# Pyproject.toml reads it from here: asking the installed package would take longer.
__version__ = "0.2.0"

_HOMES = {
    "Analysis": "api",
    "Change": "model.findings",
    "Finding": "api",
    "NothingFound": "errors",
    "StallError": "errors",
    "Step": "api",
    "UsageError": "errors",
    "Verdict": "model.findings",
    "analyze": "api",
    "log_to": "trackers",
    "load_ipython_extension": "cell_magic",  # what `%load_ext stall_analyzer` calls
    "unload_ipython_extension": "cell_magic",
}

__all__ = [  # noqa: RUF022  as docs/reference/api.md has them
    "__version__", "analyze", "log_to",
    "Analysis", "Verdict", "Finding", "Change", "Step",
    "StallError", "NothingFound", "UsageError",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
