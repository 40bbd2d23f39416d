"""Programs that hang, or only seem to, and what must be said of them. No TensorFlow here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hang:
    name: str  # of a function in programs.py
    status: str  # "stuck"; or "slow" or "dead", which must not be called stuck
    bucket: str  # what it waits for, in the analyzer's words
    place: str  # the function of the program in which it hangs: a report should name it
    description: str
    watched_s: float = 6.0  # from the dump of the hang on: a few beats, and a profile
    is_unchanged: bool = False  # run as by `stall-analyze capture`
    # In a cluster, TensorFlow itself catches SIGTERM, as the notice of a preemption, and continues.
    heeds_sigterm: bool = True
    ends_itself: bool = False

    @property
    def truth(self) -> dict[str, object]:
        names = ("name", "status", "bucket", "place", "description")
        return {name: getattr(self, name) for name in names}


HANGS = (
    Hang(
        "generator_blocks", "stuck", "input", "read_from_a_dead_source",
        "fit reads a Python generator that waits forever after 20 batches",
    ),
    Hang(
        "callback_deadlocks", "stuck", "host", "SaveMetrics.on_train_batch_end",
        "a callback and a thread take two locks in opposite order",
    ),
    Hang(
        "queue_never_fills", "stuck", "input", "queue_never_fills",
        "a custom loop takes from a tf.queue whose producer has ended",
    ),
    Hang(
        "peer_never_starts", "stuck", "communication", "peer_never_starts",
        "MultiWorkerMirroredStrategy waits for a second worker that nobody started",
        is_unchanged=True, heeds_sigterm=False,
    ),
    Hang(
        # The bucket is that of the second worker; the first only waits for it.
        "peer_hangs", "stuck", "host", "train_as_worker",
        "the second of two workers waits for a lock after 20 steps",
        heeds_sigterm=False,
    ),
    Hang(
        "peer_stops", "dead", "communication", "train_as_worker",
        "the second of two workers is stopped by SIGSTOP after 20 steps",
        ends_itself=True,  # TensorFlow notices within ten seconds, and raises UnavailableError
    ),
    Hang(
        "slow_compute", "slow", "compute", "slow_compute",
        "each step computes for some twenty seconds",
        watched_s=75.0,
    ),
    Hang(
        "slow_input", "slow", "input", "read_slowly",
        "each batch comes after a sleep of twelve seconds",
        watched_s=75.0,
    ),
)  # fmt: skip
BY_NAME = {hang.name: hang for hang in HANGS}
