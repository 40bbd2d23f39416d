"""All faults, from the tables of their groups."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tests.scenarios.faults.score import Expected

if TYPE_CHECKING:
    from tests.scenarios.faults.base import Fault

GROUPS = ("input", "compile", "memory", "host", "cluster", "numerics", "numerics_dumps")


def all_faults() -> dict[str, tuple[str, Fault]]:
    """By name, each with its group. Needs TensorFlow: the tables name functions."""
    faults: dict[str, tuple[str, Fault]] = {}
    for group in GROUPS:
        for fault in import_module(f"tests.scenarios.faults.{group}").FAULTS:
            if fault.name in faults:
                raise ValueError(f"two faults are called {fault.name}")
            faults[fault.name] = (group, fault)
    return faults


def expected_of(group: str, fault: Fault) -> Expected:
    return Expected(fault.name, group, fault.finding, fault.bucket, fault.healthy)
