"""One trial run: the first steps of the program's first fit, with or without a change.

Then the process ends at once: neither the end of the epoch nor anything after fit is run, so a
model trained for a few steps never overwrites a trained one.
"""

from __future__ import annotations

import functools
import inspect
import logging
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from tb_stall_plugin.capture.imports import TRAINERS, is_training
from tb_stall_plugin.capture.tried.applied import (
    Arguments,
    Refused,
    change_fit,
    change_tensorflow,
    is_a,
)
from tb_stall_plugin.capture.tried.orders import Answer, Order

logger = logging.getLogger("stall")

PS_PER_NS = 1000
# The attribute that says where one of Keras's callbacks writes: it is set to a temporary folder.
WRITES_TO = {"TensorBoard": "log_dir", "CSVLogger": "filename", "ModelCheckpoint": "filepath"}
# BackupAndRestore would continue another run, and delete its backup afterward. The script's own
# StallCallback would be a second capture, in the user's folder.
LEFT_OUT = ("BackupAndRestore", "StallCallback")


def actions(text: str) -> dict[str, Callable[[ModuleType], None]]:
    """What to do when a module is imported, by its name."""
    order = Order.from_text(text)
    bound = functools.partial(_bound_fit, order)
    return {
        "tensorflow": lambda module: _begin(module, order),
        **dict.fromkeys(TRAINERS, bound),
    }


def _begin(tensorflow: ModuleType, order: Order) -> None:
    if not is_training():
        return
    if order.logdir:
        from tb_stall_plugin.capture.process.guard import guard  # noqa: PLC0415

        guard(order.logdir).pulse.alive()
    change_tensorflow(tensorflow, order.knob)


def _bound_fit(order: Order, module: ModuleType) -> None:
    trainer = getattr(module, TRAINERS[module.__name__])
    trainer.fit = bounded(trainer.fit, order)


def bounded(fit: Callable[..., Any], order: Order) -> Callable[..., Any]:
    signature = inspect.signature(fit)

    @functools.wraps(fit)
    def bounded_fit(*args: Any, **named: Any) -> Any:
        if not is_training():
            return fit(*args, **named)
        call = signature.bind(*args, **named)
        try:
            _prepare(call.arguments, order)
        except Refused as why:
            _end(order, Answer(refused=str(why)))
        except Exception as error:
            logger.warning("The trial run failed.", exc_info=True)
            refused = f"the trial run failed: {type(error).__name__}: {error}"
            _end(order, Answer(refused=refused))
        return fit(*call.args, **call.kwargs)

    return bounded_fit


def _prepare(arguments: Arguments, order: Order) -> None:
    _check(arguments["self"])
    given = arguments.get("callbacks") or []
    if is_a(given, "CallbackList"):
        raise Refused("fit() was given a CallbackList, to which nothing can be added")
    given = list(given) if isinstance(given, (list, tuple)) else [given]
    arguments["callbacks"] = [c for c in given if not any(is_a(c, kind) for kind in LEFT_OUT)]
    _write_elsewhere(arguments["callbacks"], order)
    change_fit(arguments, order.knob, order.value)
    first = arguments.get("initial_epoch", 0)
    arguments["epochs"] = first + 1
    arguments["validation_freq"] = first + 2  # never: validation is not part of the comparison
    ours = _our_callbacks(order, arguments["self"])
    arguments["callbacks"] = [*ours, *arguments["callbacks"]]


def _check(model: Any) -> None:
    strategy = getattr(model, "distribute_strategy", None)
    if strategy is None:
        raise Refused("only Keras on TensorFlow can be changed from outside")
    if strategy.num_replicas_in_sync > 1:
        raise Refused("the model trains on several devices, whose steps wait for each other")


def _write_elsewhere(callbacks: list[Any], order: Order) -> None:
    for number, callback in enumerate(callbacks):
        for kind, attribute in WRITES_TO.items():
            if is_a(callback, kind):
                name = Path(str(getattr(callback, attribute))).name
                folder = Path(order.folder, f"callback{number}")
                folder.mkdir(parents=True, exist_ok=True)
                setattr(callback, attribute, str(folder / name))


def _our_callbacks(order: Order, model: Any) -> list[Any]:
    from tb_stall_plugin.capture.tried.bound_callback import BoundCallback  # noqa: PLC0415

    captures: list[Any] = []
    if order.logdir:
        from tb_stall_plugin import StallCallback  # noqa: PLC0415

        captures = [StallCallback(order.logdir, report=False)]
    at_once = getattr(model, "steps_per_execution", 1)

    def done(epoch_ns: int, steps: int, loss: float | None) -> NoReturn:
        for capture in captures:
            capture.on_train_end()
        _end(order, Answer(epoch_ns * PS_PER_NS, steps, loss))

    return [*captures, BoundCallback(order.steps, order.seconds, at_once, done)]


def _end(order: Order, answer: Answer) -> NoReturn:
    """Ends the process without anything that the program would do at its end."""
    answer.write(order)
    if order.logdir:
        from stall_analyzer.captures.capture_format import StopReason  # noqa: PLC0415
        from tb_stall_plugin.capture.process.guard import guard  # noqa: PLC0415

        guard(order.logdir).close(StopReason.EXIT)
    for worker in multiprocessing.active_children():
        worker.terminate()  # it would outlive this process, and wait for it
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)
