"""The TensorBoard tab of Stall. Not here yet: the analyzer and its command line come first."""

from __future__ import annotations

from stall_analyzer import __version__

__all__ = ["__version__"]
