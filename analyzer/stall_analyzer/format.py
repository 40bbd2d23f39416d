"""Numbers as people read them; used by sentences and views."""

from __future__ import annotations

from stall_analyzer.model import PS_PER_MS, PS_PER_S, PS_PER_US


def seconds(ps: int) -> str:
    """Picoseconds with a unit that leaves three digits: 412 ms, 14.2 s, 3 min 12 s, 2 h 05 min."""
    if ps >= 3600 * PS_PER_S:
        minutes = round(ps / (60 * PS_PER_S))
        return f"{minutes // 60} h {minutes % 60:02d} min"
    if ps >= 100 * PS_PER_S:
        whole = round(ps / PS_PER_S)
        return f"{whole // 60} min {whole % 60:02d} s"
    for unit, name in ((PS_PER_S, "s"), (PS_PER_MS, "ms"), (PS_PER_US, "µs")):
        if ps >= unit:
            value = ps / unit
            return f"{value:.2f} {name}" if value < 10 else f"{value:.1f} {name}"
    return "0 s"


def percent(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.1f} %" if 0 < share < 10 else f"{share:.0f} %"
