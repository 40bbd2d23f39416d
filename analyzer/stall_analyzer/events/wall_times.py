"""The wall times of records: seconds since 1970 as a double, in nanoseconds."""

from __future__ import annotations

from stall_analyzer.errors import WireError

LATEST_WALL_S = 2.0**63 / 1e9  # what fits into int64 nanoseconds (the year 2262); as in _scalars.c


def checked(wall_s: float) -> float:
    if not 0 < wall_s < LATEST_WALL_S:  # NaN fails both; 0 is what a record without a time has
        raise WireError("an impossible time")
    return wall_s


def wall_ns_of(wall_s: float) -> int:
    # Separately, because the product of the whole number would lose 256 ns.
    seconds = int(checked(wall_s))
    return seconds * 10**9 + round((wall_s - seconds) * 1e9)
