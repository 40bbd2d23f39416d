"""The kernel's number for each thread, including those that TensorFlow started.

Python knows it only for its own threads. But in glibc, its ident of a thread is the address of the
thread's record, and the number is at the same offset in all of them. The threads for which both are
known show where that is.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterable
from pathlib import Path

MEMORY = Path("/proc/self/mem")  # here, a wrong address is an error, not a crash
SEARCHED_BYTES = 2048
LEAST_KNOWN = 2  # threads that must agree on the offset

_place: int | None = None  # the offset in the record; -1 if there is none


def numbers_of(idents: Iterable[int]) -> dict[int, str]:
    """The known numbers by ident, as /proc writes them."""
    known = {t.ident: t.native_id for t in threading.enumerate() if t.ident and t.native_id}
    found = {ident: str(known[ident]) for ident in idents if ident in known}
    try:
        with MEMORY.open("rb", buffering=0) as memory:
            place = _found_place(memory.fileno(), known)
            # Also for threads that Python knows: one that TensorFlow started may have ended, and
            # another may have gotten its ident.
            read = {i: _number(memory.fileno(), i, place) for i in idents} if place >= 0 else {}
    except OSError:
        return found
    return found | {ident: str(number) for ident, number in read.items() if number}


def _found_place(memory: int, known: dict[int, int]) -> int:
    global _place  # noqa: PLW0603 (the same for the whole process)
    if _place is None and len(known) >= LEAST_KNOWN:
        places = [_places(memory, ident, number) for ident, number in known.items()]
        _place = min(set.intersection(*places), default=-1)
    return -1 if _place is None else _place


def _places(memory: int, ident: int, number: int) -> set[int]:
    record = os.pread(memory, SEARCHED_BYTES, ident)
    numbers = struct.unpack(f"{len(record) // 4}I", record[: len(record) // 4 * 4])
    return {4 * n for n, each in enumerate(numbers) if each == number}


def _number(memory: int, ident: int, place: int) -> int:
    """0 if the thread has ended, and its record is gone."""
    try:
        number: int = struct.unpack("I", os.pread(memory, 4, ident + place))[0]
    except (OSError, struct.error):
        return 0
    return number
