"""Which worker alone a coordinator waits for, while the others have no step to run.

A thread of the coordinator stands for each worker, and runs one function at a time on it.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from tb_stall_plugin.capture.training.remote_steps import RemoteSteps

Method = Callable[..., Any]


class RemoteWorkers:
    """Workers are known by their index."""

    def __init__(
        self, steps: RemoteSteps, clock_ns: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self.steps = steps
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        self._busy: set[int] = set()
        self._waits = False
        self._since_ns = 0
        self._alone_ns: Counter[int] = Counter()

    def timed(self, process: Method) -> Method:
        """Around the method of a worker's thread that runs a function."""

        @functools.wraps(process)
        def timed(worker: Any, closure: Any) -> Any:
            began_ns = self._clock_ns()
            self.begins(worker.worker_index)
            try:
                return process(worker, closure)
            finally:
                self.ends(worker.worker_index)
                self.steps.ran(worker, closure, self._clock_ns() - began_ns)

        return timed

    def begins(self, worker: int) -> None:
        with self._lock:
            self._time_passes()
            self._busy.add(worker)

    def ends(self, worker: int) -> None:
        with self._lock:
            self._time_passes()
            self._busy.discard(worker)

    def wait_begins(self) -> None:
        with self._lock:
            self._time_passes()
            self._waits = True

    def wait_ends(self) -> Counter[int]:
        """How many nanoseconds of the wait were for one worker alone."""
        with self._lock:
            self._time_passes()
            self._waits = False
            alone_ns, self._alone_ns = self._alone_ns, Counter()
            return alone_ns

    def _time_passes(self) -> None:
        now_ns = self._clock_ns()
        if self._waits and len(self._busy) == 1:
            (worker,) = self._busy
            self._alone_ns[worker] += now_ns - self._since_ns
        self._since_ns = now_ns
