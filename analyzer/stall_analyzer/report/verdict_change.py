"""Why the verdict on a run has changed: what is new in its logs."""

from __future__ import annotations

from typing import TypedDict

from stall_analyzer.model.format import percent, seconds
from stall_analyzer.model.kinds import Status
from stall_analyzer.report.facts import Facts

MOVED = 0.05  # of the time: less does not change a verdict


class VerdictChange(TypedDict):
    unix_s: float  # when it was noticed
    status: Status  # as it was
    sentence: str  # as it was
    why: str


def verdict_change(before: Facts, after: Facts, unix_s: float) -> VerdictChange | None:
    """None if the verdict is the same, even if figures have moved."""
    if _verdict(before) == _verdict(after):
        return None
    return {
        "unix_s": unix_s,
        "status": before["status"],
        "sentence": before["sentence"],
        "why": f"{_why(before, after)}.",
    }


def _verdict(facts: Facts) -> tuple[object, ...]:
    return facts["status"], facts["primary"], tuple(facts["candidates"])


def _why(before: Facts, after: Facts) -> str:
    came = [_turn(before, after), _moved(before, after), *_more(before, after)]
    said = "; ".join(filter(None, came))
    return said or "nothing new was recorded, but time has passed"


def _turn(before: Facts, after: Facts) -> str:
    """What happened to the process, or to the epoch."""
    status = after["status"]
    if status == before["status"]:
        return ""
    if status in {"dead", "stuck"}:
        return "the process has ended" if status == "dead" else "steps no longer finish"
    if status == "learning_nothing":
        return "the loss now shows that nothing is being learned"
    if before["status"] == "learning_nothing":
        return "the loss no longer shows that nothing is being learned"
    if before["status"] == "running":
        return f"the first epoch ended after {seconds(after['duration_ps'])}"
    return "steps finish again" if status == "running" else ""


def _moved(before: Facts, after: Facts) -> str:
    """`input takes 71% of the time now; it was 30% before`; empty if that is not the reason."""
    bucket = after["primary"]
    now, then = (
        facts["buckets_ps"][bucket] / max(facts["duration_ps"], 1) for facts in (after, before)
    )
    if bucket in {before["primary"], "unknown"} or abs(now - then) < MOVED:
        return ""
    return f"{bucket} takes {percent(now, 1)} of the time now; it was {percent(then, 1)} before"


def _more(before: Facts, after: Facts) -> list[str]:
    """What evidence is new."""
    steps = after["steps"] - before["steps"]
    profiles = len(after["sessions"]) - len(before["sessions"])
    found = {finding["id"] for finding in before["findings"]}
    new = [finding["id"] for finding in after["findings"] if finding["id"] not in found]
    return [
        text
        for text, is_so in (
            (f"{steps:,} more {'step was' if steps == 1 else 'steps were'} seen", steps > 0),
            (_saved(profiles), profiles > 0),
            ("later epochs were logged", after["later_epochs"] > before["later_epochs"] == 0),
            (f"found since: {', '.join(new)}", bool(new)),
        )
        if is_so
    ]


def _saved(profiles: int) -> str:
    return "a profile was saved" if profiles == 1 else f"{profiles} profiles were saved"
