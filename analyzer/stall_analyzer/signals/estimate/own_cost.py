"""How much of the training thread's time a capture took while no profiler ran, as it timed it."""

from __future__ import annotations

from stall_analyzer.captures.capture_format import MarkName
from stall_analyzer.model.ledger import HostLedger
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.units import PS_PER_S

ENDS = (MarkName.EPOCH_END, MarkName.FIT_END)


def untraced_capture_ps(timeline: Timeline, host: HostLedger) -> int:
    """In the first epoch; 0 where the capture is too old to say."""
    capture = timeline.events.capture if timeline.events is not None else None
    marks = [m for m in capture.first_fit if m.own_s is not None] if capture is not None else []
    begins = [m.own_s for m in marks if m.what == MarkName.EPOCH_BEGIN]
    ends = [m.own_s for m in marks if m.what in ENDS]
    if not begins or not ends or begins[0] is None or ends[0] is None:
        return 0
    whole = round((ends[0] - begins[0]) * PS_PER_S)
    untraced = host.ledger.causes_ps.get("unknown.not_traced", 0)
    return min(max(whole - host.ledger.causes_ps.get("profiler.capture", 0), 0), untraced)
