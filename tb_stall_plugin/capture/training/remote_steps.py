"""What a coordinator's workers spend on their steps, and how much of it on waiting for batches.

The thread that stands for a worker asks it for its sums after a step, when the worker has just
answered: no other thread waits for that, and if the worker is gone, the next step would notice it
in the same way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from stall_analyzer.captures.capture_format import Account
from tb_stall_plugin.capture.training.remote_input import RemoteInput

EVERY_NS = 1_000_000_000  # asking takes about two milliseconds
ASKED_FOR_ALL = 20  # and later at most this often in all the time so far


class Spent(NamedTuple):
    account: str
    worker: int
    place: str  # where it waited: path:line function
    steps: int
    ns: int


class _Asked:
    """What a worker has run since it last told its sums. Only its own thread uses this."""

    def __init__(self, now_ns: int) -> None:
        self.began_ns = self.due_ns = now_ns
        self.steps = self.ns = 0
        self.told_s: dict[str, float] | None = None  # none: what it has run since then is not known


class RemoteSteps:
    def __init__(
        self, waits: RemoteInput, clock_ns: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._waits, self._clock_ns = waits, clock_ns
        self._asked: dict[int, _Asked] = {}
        self._spent: list[Spent] = []
        self._lock = threading.Lock()

    def forget(self) -> None:
        """What ran while nobody kept books does not count."""
        with self._lock:
            self._asked, self._spent = {}, []

    def ran(self, worker: Any, closure: Any, ns: int) -> None:
        """Called by the thread of this worker, after a step. Whatever fails, less is known."""
        now_ns = self._clock_ns()
        asked = self._asked.setdefault(worker.worker_index, _Asked(now_ns))
        try:
            if not self._waits.is_known(closure._concrete_function):
                asked.told_s = None
                return
            asked.steps += 1
            asked.ns += ns
            if now_ns >= asked.due_ns:
                asked.due_ns = now_ns + max(EVERY_NS, (now_ns - asked.began_ns) // ASKED_FOR_ALL)
                self._ask(worker, asked)
        except Exception:
            asked.told_s = None

    def taken(self) -> list[Spent]:
        """What became known since the last call."""
        with self._lock:
            spent, self._spent = self._spent, []
            return spent

    def _ask(self, worker: Any, asked: _Asked) -> None:
        steps, ns, before_s = asked.steps, asked.ns, asked.told_s
        asked.steps, asked.ns, asked.told_s = 0, 0, None
        asked.told_s = told_s = self._waits.read(worker.device_name)
        if before_s is None:  # also the first step, for which the worker prepares the function
            return
        index = worker.worker_index
        spent = [Spent(Account.REMOTE_STEP, index, "", steps, ns)]
        for place, in_all_s in told_s.items():
            # A server that was started again has begun at 0.
            earlier_s = before_s.get(place, 0.0)
            waited_s = in_all_s - earlier_s if in_all_s >= earlier_s else in_all_s
            if waited_s > 0:
                spent.append(Spent(Account.REMOTE_WAIT, index, place, steps, round(1e9 * waited_s)))
        with self._lock:
            self._spent += spent
