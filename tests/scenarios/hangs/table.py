"""Programs that hang, or only seem to, and what must be said of them. No TensorFlow here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hang:
    name: str  # of a function in programs.py
    status: str  # "stuck"; or "slow" or "dead", which must not be called stuck
    bucket: str  # what it waits for, in the analyzer's words
    place: str  # the function of the program in which it stands: a report should name it
    description: str
    watched_s: float = 6.0  # from the dump of the hang on: a few beats, and a profile
    is_unchanged: bool = False  # run as by `stall-analyze capture`
    # In a cluster TensorFlow itself catches SIGTERM, as the notice of a preemption, and goes on.
    heeds_sigterm: bool = True
    ends_itself: bool = False

    @property
    def truth(self) -> dict[str, object]:
        names = ("name", "status", "bucket", "place", "description")
        return {name: getattr(self, name) for name in names}


HANGS = (
    Hang(
        name="generator_blocks",
        status="stuck",
        bucket="input",
        place="read_from_a_dead_source",
        description="fit reads a Python generator that waits for ever after 20 batches",
    ),
    Hang(
        name="callback_deadlocks",
        status="stuck",
        bucket="host",
        place="SaveMetrics.on_train_batch_end",
        description="a callback and a thread take two locks in opposite order",
    ),
    Hang(
        name="queue_never_fills",
        status="stuck",
        bucket="input",
        place="queue_never_fills",
        description="a custom loop takes from a tf.queue whose producer has ended",
    ),
    Hang(
        name="peer_never_starts",
        status="stuck",
        bucket="communication",
        place="peer_never_starts",
        description="MultiWorkerMirroredStrategy waits for a second worker that nobody started",
        is_unchanged=True,
        heeds_sigterm=False,
    ),
    Hang(
        name="peer_hangs",
        status="stuck",
        bucket="host",  # of the second worker; the first only waits for it
        place="train_as_worker",
        description="the second of two workers waits for a lock after 20 steps",
        heeds_sigterm=False,
    ),
    Hang(
        name="peer_stops",
        status="dead",
        bucket="communication",
        place="train_as_worker",
        description="the second of two workers is stopped by SIGSTOP after 20 steps",
        ends_itself=True,  # TensorFlow notices within ten seconds, and raises UnavailableError
    ),
    Hang(
        name="slow_compute",
        status="slow",
        bucket="compute",
        place="slow_compute",
        description="each step computes for some twenty seconds",
        watched_s=75.0,
    ),
    Hang(
        name="slow_input",
        status="slow",
        bucket="input",
        place="read_slowly",
        description="each batch comes after a sleep of twelve seconds",
        watched_s=75.0,
    ),
)
BY_NAME = {hang.name: hang for hang in HANGS}
