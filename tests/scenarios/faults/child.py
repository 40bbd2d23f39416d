"""Runs one program of the fault matrix in this process. Started by run.py."""

from __future__ import annotations

import sys
from importlib import import_module


def main(group: str, name: str, form: str, logdir: str) -> None:
    faults = {
        fault.name: fault for fault in import_module(f"tests.scenarios.faults.{group}").FAULTS
    }
    program = {"faulty": faults[name].faulty, "fixed": faults[name].fixed}[form]
    program(logdir)


if __name__ == "__main__":
    main(*sys.argv[1:])
