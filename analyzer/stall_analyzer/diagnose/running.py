"""The verdict on a run that is still going: how far it is, and what it waits for."""

from __future__ import annotations

from stall_analyzer.model.findings import Verdict
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.ending.still_running import PAUSES, StillRunning
from stall_analyzer.signals.signals import Signals

WAITED_FOR: tuple[Bucket, ...] = ("input", "compile", "memory", "communication", "host")
# Less than a fifth of what was profiled would not be missed.
FELT_SHARE = 0.2
SURELY, PROBABLY = 0.9, 0.5
PAUSE_PS = 30 * PS_PER_S


def judged_as_running(signals: Signals) -> Verdict | None:
    """None if the run is over, or if that is not known."""
    running = signals.still_running
    if running is None:
        return None
    primary, waits = _waits_for(signals)
    begin = "Still running" if running.surely else "Still running, it seems"
    age = "" if running.surely else f"; its last record is {seconds(running.silent_ps)} old"
    sentence = f"{begin}: {_how_far(running)}{age}.{waits}"
    return Verdict("running", primary, sentence, SURELY if running.surely else PROBABLY)


def _how_far(running: StillRunning) -> str:
    if not running.step:
        what = "step has ended" if running.surely else "epoch has finished"
        return f"no {what} after {seconds(running.lasted_ps)}"
    share = ""
    if running.steps and running.step <= running.steps:
        share = f" of {running.steps:,} ({percent(running.step, running.steps)})"
    each = f" (about {seconds(running.step_ps)} a step)" if running.step_ps else ""
    return f"step {running.step:,}{share} after {seconds(running.lasted_ps)}{each}{_since(running)}"


def _since(running: StillRunning) -> str:
    """A pause that is longer than a few steps. Not every short step is recorded."""
    if running.since_step_ps < max(PAUSE_PS, PAUSES * (running.step_ps or 0)):
        return ""
    return f", and the last step ended {seconds(running.since_step_ps)} ago"


def _waits_for(signals: Signals) -> tuple[Bucket, str]:
    """According to the last look at the process or, without one, to the profile so far."""
    if signals.stall is not None:
        return signals.stall.bucket, f" {signals.stall.sentence}."
    if signals.endless_data is not None:
        return "input", f" {signals.endless_data.sentence}.".replace("could not", "cannot")
    profiled, buckets = signals.host.covered_ps, signals.buckets_ps
    most = max(WAITED_FOR, key=lambda bucket: buckets[bucket])
    if not profiled or buckets[most] < FELT_SHARE * profiled:
        return "unknown", ""
    share = percent(buckets[most], profiled)
    return most, f" Of the {seconds(profiled)} that was profiled, {share} went to {most}."
