"""Columns of numbers as short texts, which are written and read many times as quickly as the
numbers themselves would be.

Of whole numbers, the bytes in base64: the lowest byte of each, then the next byte of each, and so
on, as many as the largest of them needs.
"""

from __future__ import annotations

from base64 import b64encode

import numpy as np

from stall_analyzer.model.units import Float64s, Int64s


def packed(column: Int64s) -> str:
    """Of numbers that are not negative."""
    needed = (int(column.max(initial=0)).bit_length() + 7) // 8
    in_bytes = column.astype("<i8").view(np.uint8).reshape(-1, 8)
    return b64encode(in_bytes[:, : max(needed, 1)].T.tobytes()).decode()


def packed_doubles(column: Float64s) -> str:
    return b64encode(column.astype("<f8").tobytes()).decode()
