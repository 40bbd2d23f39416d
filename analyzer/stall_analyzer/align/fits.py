"""Which fit() of a process the report is about, and what is known about the others.

A process may call fit() for each fold, for each model of a search, for each phase of fine-tuning,
or in a loop for each epoch. The first epoch is that of the first fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stall_analyzer.align.placed_trace import PlacedTrace
from stall_analyzer.captures.capture_format import MarkName
from stall_analyzer.events.fits import is_same_model
from stall_analyzer.model.event_log import Capture, EventLog
from stall_analyzer.model.notes import Note
from stall_analyzer.model.timeline import Fits
from stall_analyzer.model.units import PS_PER_NS

# By whether they train the same model, and whether there is only one.
OTHERS = {
    (True, True): "The other call continues with the same model: its epochs count as later epochs.",
    (True, False): "The other calls continue with the same model: their epochs count as later "
    "epochs.",
    (False, True): "The other call trains another model, or the same one after it was compiled "
    "again.",
    (False, False): "The other calls train other models, or the same one after it was compiled "
    "again.",
}


def profiled_fit(
    events: EventLog | None, seen: Sequence[PlacedTrace]
) -> tuple[EventLog | None, int]:
    """The first fit that had not ended when the first profile began, and its number from 0."""
    begins = [
        p.base_unix_ns + p.extent_ps[0] // PS_PER_NS
        for p in seen
        if p.exact and p.base_unix_ns is not None
    ]
    if events is None or not begins or events.capture is not None:
        return events, 0
    fits = [events, *events.later_fits]
    ended = [_ended_ns(fit) <= min(begins) for fit in fits]
    if all(ended) or not ended[0]:
        return events, 0
    told = ended.index(False)
    return replace(fits[told], later_fits=tuple(fits[told + 1 :])), told


def fits_of(events: EventLog | None, told: int, reference: PlacedTrace | None) -> Fits:
    """From the log, the capture or the trace, whichever shows the most fits."""
    known = [_from_trace(reference)]
    if events is not None:
        known.append(_from_log(events, told))
        known += [_from_capture(capture) for capture in (events.capture,) if capture is not None]
    return max(known, key=lambda fits: fits.count)


def note_of(fits: Fits) -> Note | None:
    if fits.count == 1:
        return None
    about, others = "the first call", OTHERS[fits.same_model, fits.count == 2]
    if fits.told:
        about = f"call number {fits.told + 1}, the first that was profiled"
        others = f"The {'call before it is' if fits.told == 1 else 'calls before it are'} left out."
    text = f"This process called fit {fits.count} times; this report is about {about}. {others}"
    return Note("info", text)


def _ended_ns(fit: EventLog) -> int:
    series = [*fit.train.values(), *fit.validation.values()]
    return max((int(s.wall_ns.max()) for s in series if len(s)), default=fit.last_wall_ns or 0)


def _from_log(events: EventLog, told: int) -> Fits:
    later = events.later_fits
    same = all(is_same_model(events, fit) for fit in later)
    return Fits(told + events.fits + sum(fit.fits for fit in later), told, same and told == 0)


def _from_capture(capture: Capture) -> Fits:
    begun = sum(mark.what == MarkName.FIT_BEGIN for mark in capture.marks)
    return Fits(max(begun, 1), 0, capture.is_one_model)


def _from_trace(reference: PlacedTrace | None) -> Fits:
    later = [epoch for epoch in reference.epochs if epoch.begins_fit] if reference else []
    return Fits(1 + len(later), 0, not any(epoch.compiled_anew for epoch in later))
