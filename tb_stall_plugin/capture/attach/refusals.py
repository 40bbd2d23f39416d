"""Why a process cannot be looked at, in one sentence each, and what to do."""

from __future__ import annotations


class Refused(Exception):
    """There is nothing to look at."""


class StacksRefused(Refused):
    """The kernel says something of the process, but Python's stacks cannot be had."""


def ended(pid: int) -> Refused:
    return Refused(f"process {pid} ended while it was being looked at")
