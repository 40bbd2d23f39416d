"""Where the steps of a distribution strategy run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def runs_elsewhere(strategy: Any) -> bool:
    """Whether steps run in other processes, or on a TPU: nothing can be added to them there."""
    return type(strategy).__name__.startswith(("ParameterServer", "TPU"))


def outside_of_graphs_and_strategies(make: Callable[[], T]) -> T:
    """Runs `make` in a new thread, which is in neither. (Creating a variable that several workers
    share would make each wait for the others.)"""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()
