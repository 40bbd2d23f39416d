"""What the programs of the fault matrix share.

A fault is a program as people write it and the same program with our advice applied. The analyzer
must find the fault in the first, stay silent on the second, and have said how much it would win.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec

import keras
import tensorflow as tf

Program = Callable[[str], None]
Options = ParamSpec("Options")


@dataclass(frozen=True)
class Fault:
    name: str
    finding: str | None  # the id that must be found; None for a healthy program
    bucket: str
    faulty: Program
    fixed: Program | None  # None if there is no other form (healthy programs)
    description: str
    env: Mapping[str, str] = field(default_factory=dict)
    healthy: bool = False


def forms(train: Callable[Concatenate[str, Options], None]) -> Callable[Options, Program]:
    """For a program with options: called with them alone, it gives one form of the program."""

    def form(*args: Options.args, **kwargs: Options.kwargs) -> Program:
        return lambda logdir: train(logdir, *args, **kwargs)

    return form


@contextmanager
def profiled(logdir: str, update_freq: str | int = "batch") -> Iterator[keras.callbacks.Callback]:
    """Profiles the block, and gives the callback that writes the event files."""
    # Collecting all that TensorFlow imported takes 0.1 to 0.2 s, which would fall into the epoch of
    # one form and not of the other by chance.
    gc.collect()
    gc.freeze()
    board = keras.callbacks.TensorBoard(logdir, update_freq=update_freq, profile_batch=0)
    with tf.profiler.experimental.Profile(logdir):
        yield board


def fit(
    logdir: str,
    model: keras.Model,
    data: Any,
    *callbacks: keras.callbacks.Callback,
    update_freq: str | int = "batch",
    **options: Any,
) -> None:
    with profiled(logdir, update_freq) as board:
        model.fit(data, verbose=0, callbacks=[*callbacks, board], **options)
