"""Limits the memory that a window may take: the profiler keeps every event in memory, without
limit.

A shuffle buffer that fills with small elements creates a hundred megabytes of events per second.
The memory of the events cannot be told apart from that of the training, so the whole process is
watched.
"""

from __future__ import annotations

from stall_analyzer.captures.capture_format import HostMetric
from tb_stall_plugin.capture.process.host_sampler import HostSampler

MB = 1 << 20
MOST_BYTES = 1024 * MB
SHARE_OF_FREE = 0.1
LEAST_BYTES = 256 * MB  # with less, nothing is gained by closing a window
MORE = 4  # times the limit, after it has closed a window that turned out to be small


class Growth:
    def __init__(self) -> None:
        self._host = HostSampler()
        self._factor = 1
        self._limit = float("inf")

    def begin(self) -> None:
        """A window opens."""
        host = self._host.sample()
        used = host.get(HostMetric.RSS)
        if used is None:  # not on Linux: nothing is watched
            self._limit = float("inf")
            return
        free = min(
            host.get(HostMetric.AVAILABLE, 0.0), host.get(HostMetric.LIMIT, float("inf")) - used
        )
        allowed = max(LEAST_BYTES, min(MOST_BYTES, SHARE_OF_FREE * free))
        self._limit = used + self._factor * allowed

    def is_too_much(self) -> bool:
        return self._host.sample().get(HostMetric.RSS, 0.0) > self._limit

    def was_not_ours(self) -> None:
        """The window that was closed turned out to be small: it is the training that grows."""
        self._factor *= MORE
