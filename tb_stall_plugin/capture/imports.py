"""Turns the capture on in a program that knows nothing of it, once its imports show that it trains.

Runs in every Python process under `stall-analyze capture`, before its first line, so it must be
light, and no failure in it may reach the program. After TensorFlow is imported, the guard starts;
after Keras's trainer is imported, `fit` gets a StallCallback.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

logger = logging.getLogger("stall")

LOGDIR = "STALL_LOGDIR"
HANG_AFTER = "STALL_HANG_AFTER"
BELOW = "STALL_BELOW"  # set for the processes that a captured program starts
# A program that has not imported TensorFlow after this long is watched anyway.
LATE_S = 300.0
IMPORTS_S = 20.0  # how long imports may take on a slow disk, whatever limit was set for the steps
CHECK = "STALL_CHECK"  # run the checks before the first epoch; it is set to one of:
STOP, GO_ON = "stop", "go_on"  # then end the program, or let it train
TRY = "STALL_TRY"  # the order of `stall-analyze try`, which replaces the capture

# For each Keras, the class whose `fit` the others inherit.
TRAINERS = {
    "keras.src.backend.tensorflow.trainer": "TensorFlowTrainer",  # Keras 3
    "keras.src.backend.jax.trainer": "JAXTrainer",
    "keras.src.backend.torch.trainer": "TorchTrainer",
    "keras.src.engine.training": "Model",  # Keras 2, of TensorFlow 2.13 to 2.15
    "tf_keras.src.engine.training": "Model",  # Keras 2 next to Keras 3
}
Ours = Callable[[Sequence[Any]], list[Any]]  # our callbacks, given those that fit was called with
NOT_TRAINING = ("tensorboard",)  # programs that import TensorFlow for other purposes


def watch_imports() -> None:
    if os.environ.get(TRY):
        from tb_stall_plugin.capture.tried import trial_run  # noqa: PLC0415

        sys.meta_path.insert(0, AfterImport(trial_run.actions(os.environ[TRY])))
    elif os.environ.get(LOGDIR):
        actions = {"tensorflow": _begin, **dict.fromkeys(TRAINERS, _capture_fit)}
        sys.meta_path.insert(0, AfterImport(actions))
        if not os.environ.get(BELOW):
            os.environ[BELOW] = "1"
            _begin_when_late()


def _begin_when_late(age_s: float = 0.0) -> None:
    """The program may hang before TensorFlow is imported, in another import for example."""
    pause_s = max(_hang_after_s() or LATE_S, IMPORTS_S)
    timer = threading.Timer(pause_s, _quietly, (_begin_late, age_s + pause_s))
    timer.name, timer.daemon = "stall-late", True
    timer.start()


def _begin_late(age_s: float) -> None:
    """Starts the guard, unless another process of this command is captured: a process that only
    starts others is of no interest."""
    from tb_stall_plugin.capture.process import guard  # noqa: PLC0415

    if guard.is_on_duty():
        return
    if "tensorflow" in sys.modules and age_s < LATE_S:  # it is still being imported
        _begin_when_late(age_s)
        return
    folder, began_s = Path(os.environ[LOGDIR]), time.time() - age_s
    files = folder.glob("*.stall") if folder.is_dir() else ()
    if is_training() and all(file.stat().st_mtime < began_s for file in files):
        guard.guard(os.environ[LOGDIR], _hang_after_s(), age_s)


class AfterImport(MetaPathFinder):
    """Finds no module itself. It lets the module's own loader do its work, and then acts."""

    def __init__(self, actions: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self._waiting = dict(actions)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        action = self._waiting.pop(fullname, None)
        if action is None:
            return None
        spec = _found_by_others(self, fullname, path, target)
        if spec is None or spec.loader is None:
            self._waiting[fullname] = action
            return None
        execute = spec.loader.exec_module

        def execute_and_act(module: ModuleType) -> None:
            execute(module)
            _quietly(action, module)

        # Set on the loader itself: a loader of ours would have to do everything else it can do.
        setattr(spec.loader, "exec_module", execute_and_act)  # noqa: B010
        return spec


def _found_by_others(
    ours: MetaPathFinder, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    for finder in sys.meta_path:
        if finder is not ours and hasattr(finder, "find_spec"):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
    return None


def _quietly(action: Callable[[Any], None], argument: Any) -> None:
    try:
        action(argument)
    except Exception:
        logger.warning("The capture could not be turned on.", exc_info=True)


# ---------------------------------------------------------------- what is done after an import


def is_training() -> bool:
    """Whether this process may be the one that trains, and not one of its input workers."""
    processes = sys.modules.get("multiprocessing.process")
    is_child = processes is not None and processes.parent_process() is not None
    return not is_child and Path(sys.argv[0] if sys.argv else "").stem not in NOT_TRAINING


def _hang_after_s() -> float | None:
    text = os.environ.get(HANG_AFTER)
    return float(text) if text else None


def _begin(tensorflow: ModuleType) -> None:
    from tb_stall_plugin.capture.process.guard import guard  # noqa: PLC0415

    if is_training():
        guard(os.environ[LOGDIR], _hang_after_s()).pulse.alive()


def _capture_fit(module: ModuleType) -> None:
    trainer = getattr(module, TRAINERS[module.__name__])
    trainer.fit = with_callback(trainer.fit)


def with_callback(fit: Callable[..., Any], ours: Ours | None = None) -> Callable[..., Any]:
    """`fit` with a StallCallback, or with what `ours` returns, before the user's callbacks."""
    signature = inspect.signature(fit)

    @functools.wraps(fit)
    def captured_fit(*args: Any, **kwargs: Any) -> Any:
        try:
            call = signature.bind(*args, **kwargs)
            _add_callbacks(call, ours or _ours)
        except Exception as error:  # such as a call that fit itself will refuse
            logger.warning("This fit is not captured: %s", error)
            return fit(*args, **kwargs)
        return fit(*call.args, **call.kwargs)

    return captured_fit


def _add_callbacks(call: inspect.BoundArguments, ours: Ours) -> None:
    given = call.arguments.get("callbacks")
    if given is None:
        given = []
    elif type(given).__name__ == "CallbackList":  # it already has its model and its callbacks
        raise ValueError("it was given a CallbackList")
    elif not isinstance(given, (list, tuple)):
        given = [given]
    if is_training():
        call.arguments["callbacks"] = [*ours(given), *given]


def _ours(given: Sequence[Any]) -> list[Any]:
    return _preflight() if os.environ.get(CHECK) else _capture(given)


def _capture(given: Sequence[Any]) -> list[Any]:
    from tb_stall_plugin import StallCallback  # noqa: PLC0415

    if any(isinstance(callback, StallCallback) for callback in given):
        return []
    return [StallCallback(os.environ[LOGDIR], hang_after_s=_hang_after_s())]


def _preflight() -> list[Any]:
    from tb_stall_plugin.capture.preflight.preflight_callback import (  # noqa: PLC0415
        PreflightCallback,
    )

    return [PreflightCallback(os.environ[LOGDIR], os.environ[CHECK] == GO_ON)]
