"""Picoseconds and shares as a person reads them. Every view of the report uses these."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from stall_analyzer.model.units import PS_PER_MS, PS_PER_NS, PS_PER_S, PS_PER_US

UNITS = ((PS_PER_NS, "ns"), (PS_PER_US, "µs"), (PS_PER_MS, "ms"), (PS_PER_S, "s"))


def seconds(ps: int) -> str:
    """Three significant digits up to a minute, then two units: 412 ms, 14.2 s, 3 min 12 s."""
    if ps == 0:
        return "0 s"
    if ps < PS_PER_NS:
        return "<1 ns"
    # A unit serves as long as its *rounded* value stays below the next one: 999.6 ms is 1.00 s.
    for unit_ps, unit in UNITS:
        limit = 60 if unit == "s" else 1000
        value = ps / unit_ps
        if value > limit:
            continue
        for decimals, below in ((2, 10), (1, 100), (0, limit)):
            if decimals and unit == "ns":
                continue  # nothing is measured that finely
            if round(value, decimals) < min(below, limit):
                return f"{value:.{decimals}f} {unit}"
    whole = round(ps / PS_PER_S)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(ps / PS_PER_S / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def between(low_ps: int, high_ps: int) -> str:
    """A range, with one unit if possible: 1.03–1.29 s, 850 ms to 1.29 s."""
    low, high = seconds(low_ps), seconds(high_ps)
    if low == high:
        return high
    if low_ps == 0:
        return f"up to {high}"
    number, unit = low.split(" ", 1)
    if high.split(" ", 1)[1] == unit and unit.isalpha():
        return f"{number}–{high}"
    return f"{low} to {high}"


def percent(part: float, whole: float) -> str:
    """A share in whole percent that never rounds something to nothing, or a part to all."""
    if whole <= 0 or part <= 0:
        return "0%"
    if part >= whole:
        return "100%"
    share = 100 * part / whole
    if share < 1:
        return "<1%"
    if share > 99:
        return ">99%"
    return f"{share:.0f}%"


def at_least(share: float) -> str:
    """`At least 94%`, `More than 99%` or `All`: the beginning of "… of the units"."""
    said = percent(share, 1)
    if said == "100%":
        return "All"
    return f"More than {said[1:]}" if said.startswith(">") else f"At least {said}"


def size(count: int) -> str:
    """Bytes in a suitable unit: 512 kB, 300 MB, 1.5 GB."""
    for unit_bytes, unit in ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")):
        if count >= unit_bytes:
            value = count / unit_bytes
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{count} bytes"


def moment(unix_ns: int) -> str:
    """Date and time on this machine: 2026-11-18 14:02:31. A report may be read days later."""
    return datetime.fromtimestamp(unix_ns / 1e9).strftime("%Y-%m-%d %H:%M:%S")


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names as people list them: `a, b and c`; if there are many, the first few and how many
    more."""
    shown = list(names[:most])
    if len(names) > most:
        shown[-1:] = [f"{len(names) - most + 1} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def counted(count: int, noun: str) -> str:
    """`1 step`, `1,200 steps`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def spoken(cause: str) -> str:
    """`input.first_element` -> `first element`: the bucket is shown next to it anyway."""
    return cause.partition(".")[2].replace("_", " ")
