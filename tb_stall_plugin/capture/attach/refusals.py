"""Why a process cannot be looked at and what to do, in one sentence each."""

from __future__ import annotations


class Refused(Exception):
    """There is nothing to look at."""


class StacksRefused(Refused):
    """The kernel says something about the process, but Python's stacks cannot be read."""


def ended(pid: int) -> Refused:
    return Refused(f"process {pid} ended while it was being examined")
