"""A state as plain data, for the tab: the words are those of `stall-analyze watch`."""

from __future__ import annotations

from typing import TypedDict

from stall_analyzer.live.followed_run import RunState
from stall_analyzer.live.state import ProcessState
from stall_analyzer.live.words import costs, how_far, just_now, left
from stall_analyzer.model.kinds import Bucket


class LiveProcess(TypedDict):
    name: str  # the name of its task; empty if there is only one process
    text: str  # `epoch 1, step 56 of 200, 71% waiting for input`
    now: str  # `tracing train_step for 12 s`; empty while steps end
    late: bool  # others wait for it
    buckets_ps: dict[Bucket, int]  # of the epoch so far


class LiveEntry(TypedDict):
    processes: list[LiveProcess]  # the one that leads the others first
    stall: str  # what holds it up, if nothing has moved for a long time; else empty


def live_entry(state: RunState) -> LiveEntry:
    return {"processes": [_process(one) for one in state.processes], "stall": state.stall}


def _process(state: ProcessState) -> LiveProcess:
    return {
        "name": state.name,
        "text": ", ".join(filter(None, (how_far(state), costs(state), left(state)))),
        "now": just_now(state),
        "late": state.is_late,
        "buckets_ps": {**state.spent_ps},
    }
