"""Where the steps of a distribution strategy run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def runs_elsewhere(strategy: Any) -> bool:
    """Whether steps run in other processes, or on a TPU: none of our variables is there."""
    return type(strategy).__name__.startswith(("ParameterServer", "TPU"))


def is_coordinated(strategy: Any) -> bool:
    """Whether a coordinator gives its steps to servers, which run nothing but TensorFlow."""
    return type(strategy).__name__ == "ParameterServerStrategyV2"


def outside_of_graphs_and_strategies(make: Callable[[], T]) -> T:
    """Runs `make` in a new thread, which is in neither. (Creating a variable that several workers
    share would make each wait for the others.)"""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()
