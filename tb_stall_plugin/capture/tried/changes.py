"""Which change can be made from outside a program for which finding, and why others cannot.

Nothing here imports TensorFlow, because the command that starts the program needs it, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Knob(str, Enum):
    STEPS_PER_EXECUTION = "steps_per_execution"
    PREFETCH = "prefetch"
    INPUT_THREADS = "input_threads"
    WORKERS = "workers"
    XLA_OFF = "xla_off"
    GRAPH = "graph"
    THREADS_FREE = "threads_free"
    CHECKS_OFF = "checks_off"
    LOGGING_OFF = "logging_off"


@dataclass(frozen=True)
class TriedChange:
    knob: Knob
    words: str  # what is done, with {} for the number
    value: int = 0
    caution: str = ""  # what to know about it, or what cannot be checked from outside

    def __str__(self) -> str:
        return self.words.format(self.value)


# As many as the finding advises: with more, hardly anything more is saved.
STEPS_PER_CALL_MOST = 32
WORKERS = 4

_XLA = TriedChange(Knob.XLA_OFF, "compile(jit_compile=False)")
CHANGES = {
    "ST109": TriedChange(
        Knob.STEPS_PER_EXECUTION, "compile(steps_per_execution={})", STEPS_PER_CALL_MOST,
        "Callbacks are then called only once for every {} batches.",
    ),
    "ST004": TriedChange(Knob.PREFETCH, "dataset.prefetch(tf.data.AUTOTUNE) before fit()"),
    "ST010": TriedChange(
        Knob.INPUT_THREADS, "options.threading.private_threadpool_size = {} for the dataset", 1,
        "The prediction assumes that the input becomes cheaper, for example with a cache; this "
        "change only slows the input down.",
    ),
    "ST002": TriedChange(
        Knob.WORKERS, "PyDataset(workers={}), in threads", WORKERS,
        "Its __getitem__ must be safe to call from several threads at once.",
    ),
    "ST105": _XLA,
    "ST106": _XLA,
    "ST112": _XLA,
    "ST108": TriedChange(
        Knob.GRAPH, "compile(run_eagerly=False)",
        caution="Python in the step, such as a print, then runs only while the step is traced.",
    ),
    "ST407": TriedChange(Knob.THREADS_FREE, "no limit on the threads of an op"),
    "ST311": TriedChange(Knob.CHECKS_OFF, "no tf.debugging.enable_check_numerics()"),
    "ST409": TriedChange(
        Knob.LOGGING_OFF, "no profiler, and TensorBoard's callback writing once per epoch"
    ),
}  # fmt: skip

# By the first digits of the id, longest first.
_REFUSED = {
    "ST40": "the code to change is your own, between the steps, and cannot be changed from outside",
    "ST0": "your program builds the pipeline, and its stages cannot be changed from outside "
    "without changing what they do",
    "ST1": "the step is part of your program: what it traces cannot be changed from outside",
    "ST2": "your model and data determine how much memory is used",
    "ST3": "the change would affect what is learned, not only how fast",
    "ST4": "the change that it advises is not a change to the program",
    "ST5": "it is about a cluster or about how a run ended, which a few steps cannot show",
}


def refusal(finding: str) -> str:
    """Why nothing can be tried for a finding."""
    why = next(why for start, why in _REFUSED.items() if finding.startswith(start))
    return f"{finding} cannot be tried: {why}. These can: {', '.join(sorted(CHANGES))}."


def steps_together(steps: int) -> int:
    """How many steps to put into one call, so that there are still a few calls."""
    together = STEPS_PER_CALL_MOST
    while together > 2 and together * 4 > steps:
        together //= 2
    return together
