"""The closed sets of words that a report uses. The document's schema and the page share them."""

from __future__ import annotations

from typing import Literal, TypeAlias

# What the training thread or the device was busy with or waiting for.
Bucket: TypeAlias = Literal[
    "input", "compile", "memory", "numerics", "compute",
    "communication", "host", "profiler", "unknown",
]  # fmt: skip
Severity: TypeAlias = Literal["act", "consider", "note"]
Status: TypeAlias = Literal[
    "healthy", "slow_once", "slow_always", "learning_nothing", "stuck", "dead", "running", "unknown"
]
# What wrote the files. `other`: only event files that TensorFlow did not write.
Framework: TypeAlias = Literal["tensorflow", "jax", "pytorch_xla", "pytorch", "other"]
# Knobs that one change might turn one way and another change the other way.
Knob: TypeAlias = Literal[
    "learning rate", "batch size", "precision", "cache", "threads", "XLA", "checks for NaN"
]
Level: TypeAlias = Literal["info", "warning", "error"]  # of a note
PhaseName: TypeAlias = Literal["startup", "first_step", "training", "validation", "epoch_end"]
StepPhase: TypeAlias = Literal["training", "validation"]
StepSource: TypeAlias = Literal["marker", "function", "iterator", "device", "capture", "events"]
WindowSource: TypeAlias = Literal["trace", "events", "both"]
ClockSource: TypeAlias = Literal["own clock", "collectives", "steps", "session name", "none"]
# What tells how many should train together.
SizeSource: TypeAlias = Literal["TF_CONFIG", "the collectives", "the worker numbering", "the files"]

# The end of the window if the epoch was not finished.
LAST_RECORD = "last record: no epoch was finished"
