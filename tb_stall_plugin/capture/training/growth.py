"""Memory that a window may take: the profiler keeps every event in it, and sets no limit itself.

A shuffle buffer that fills with small elements makes a hundred megabytes of events a second. What
the events take cannot be told from what the training takes, so the process as a whole is watched.
"""

from __future__ import annotations

from stall_analyzer.captures.capture_format import HostMetric
from tb_stall_plugin.capture.process.host_sampler import HostSampler

MB = 1 << 20
MOST_BYTES = 1024 * MB
SHARE_OF_FREE = 0.1
LEAST_BYTES = 256 * MB  # below that nothing is gained by closing a window
MORE = 4  # where the limit has closed a window that was small


class Growth:
    def __init__(self) -> None:
        self._host = HostSampler()
        self._factor = 1
        self._limit = float("inf")

    def begin(self) -> None:
        """A window is opened."""
        host = self._host.sample()
        used = host.get(HostMetric.RSS)
        if used is None:  # no Linux: then nothing is watched
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
        """The window that was closed for it turned out to be small: the training grows."""
        self._factor *= MORE
