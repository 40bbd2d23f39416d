"""Looks at a process, or at its whole job, and has the looks judged like those of a capture."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from stall_analyzer.model.event_log import Capture, EventLog
from stall_analyzer.model.runs import Run
from stall_analyzer.pipeline import analyze_log
from stall_analyzer.report.document import document, run_document
from stall_analyzer.report.document_types import Document
from stall_analyzer.signals.ending.scene import COMMUNICATION
from stall_analyzer.signals.ending.stall import Stall
from stall_analyzer.signals.ending.stalled import stall_of
from tb_stall_plugin.capture.attach.local_job import job_of
from tb_stall_plugin.capture.attach.outside_looks import Observer
from tb_stall_plugin.capture.attach.refusals import Refused
from tb_stall_plugin.capture.attach.target import Target

PAUSE_S = 1.0
LEAST_PAUSE_S = 0.1  # on a slow machine, where a look takes longer than PAUSE_S


@dataclass(frozen=True)
class Member:
    """A process of the job, and what we found out about it."""

    observer: Observer
    capture: Capture
    stall: Stall | None

    @property
    def pid(self) -> int:
        return self.observer.target.pid

    @property
    def waits_for_others(self) -> bool:
        return self.stall is not None and self.stall.bucket == COMMUNICATION


@dataclass(frozen=True)
class AttachedJob:
    members: tuple[Member, ...]
    shown: Member  # in full: the one that the others wait for, else the one that was asked for
    waited_for: bool
    report: Document


def attached_job(pid: int, seconds: float, all_ranks: bool) -> AttachedJob:
    target = Target(pid)
    targets = job_of(target) if all_ranks else [target]
    observers = _observed([Observer(each) for each in targets], pid, seconds)
    captures = [observer.capture for observer in observers]
    members = tuple(
        Member(observer, capture, stall_of(capture, captures))
        for observer, capture in zip(observers, captures, strict=True)
    )
    culprit = waited_for(members)
    shown = culprit or next(member for member in members if member.pid == pid)
    return AttachedJob(members, shown, culprit is not None, _report(shown, captures))


def _observed(observers: list[Observer], asked: int, seconds: float) -> list[Observer]:
    """Drops processes that cannot be looked at; raises if it is the one that was asked for."""
    while True:
        round_s = time.monotonic()
        observers = [o for o in observers if _could_look(o, is_asked=o.target.pid == asked)]
        if all(observer.has_seen(seconds) for observer in observers):
            return observers
        time.sleep(max(PAUSE_S - (time.monotonic() - round_s), LEAST_PAUSE_S))


def _could_look(observer: Observer, is_asked: bool) -> bool:
    try:
        observer.look()
    except Refused:
        if is_asked:
            raise
        return False
    return True


def waited_for(members: Sequence[Member]) -> Member | None:
    """If some wait for others: the stuck one among those that do not, or else the first of them."""
    own = [member for member in members if not member.waits_for_others]
    if len(own) == len(members):
        return None
    stuck = [member for member in own if member.stall is not None and member.stall.never_goes_on]
    return next(iter(stuck or own), None)


def _report(shown: Member, captures: Sequence[Capture]) -> Document:
    target, capture = shown.observer.target, shown.capture
    in_a_cluster = len(capture.environment.training_tasks) > 1
    others = [other for other in captures if other is not capture] if in_a_cluster else []
    events = EventLog(
        train={},
        validation={},
        keras=None,
        first_wall_ns=capture.first_ns,
        last_wall_ns=capture.last_ns,
        graph_wall_ns=None,
        records=0,
        captures=(capture, *others),
        read_ns=capture.last_ns,
    )
    run = Run(target.title, str(target.folder), sessions=(), event_files=())
    return document([run_document(analyze_log(run, events))])
