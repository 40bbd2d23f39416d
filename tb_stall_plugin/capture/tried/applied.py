"""The changes themselves, made in the process of a trial run: to functions of TensorFlow when it is
imported, and to the model, the data and the callbacks when `fit` is called."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

from tb_stall_plugin.capture.tried.changes import Knob

Arguments = dict[str, Any]  # those of fit, by name


class Refused(Exception):
    """The change cannot be made to this program; the message says why."""


INTRA_OP = "TF_NUM_INTRAOP_THREADS"
_left_out: list[str] = []  # calls of the program that we turned into nothing


def change_tensorflow(tensorflow: Any, knob: Knob | None) -> None:
    """Turns calls before fit that the program should not make into nothing."""
    if knob is Knob.THREADS_FREE:
        if os.environ.pop(INTRA_OP, ""):
            _left_out.append(INTRA_OP)
        _leave_out(tensorflow.config.threading, "set_intra_op_parallelism_threads")
    elif knob is Knob.CHECKS_OFF:
        _leave_out(tensorflow.debugging, "enable_check_numerics")
        _leave_out(tensorflow.debugging.experimental, "enable_dump_debug_info")
    elif knob is Knob.LOGGING_OFF:
        _leave_out(tensorflow.profiler.experimental, "start")
        _leave_out(tensorflow.profiler.experimental, "stop")
        _leave_out(tensorflow.profiler.experimental, "Profile")


def _leave_out(module: Any, name: str) -> None:
    def nothing(*_: Any, **__: Any) -> Any:
        _left_out.append(name)
        return contextlib.nullcontext()

    setattr(module, name, nothing)


def change_fit(arguments: Arguments, knob: Knob | None, value: int) -> None:
    if knob is not None:
        _CHANGES[knob](arguments, value)


def _steps_per_execution(arguments: Arguments, value: int) -> None:
    model = _model_of_keras_3(arguments)
    if model.steps_per_execution != 1:
        raise Refused(f"steps_per_execution is already {model.steps_per_execution}")
    model.steps_per_execution = value


def _xla_off(arguments: Arguments, _: int) -> None:
    model = _model_of_keras_3(arguments)
    if not model.jit_compile:
        raise Refused("the model is already compiled without XLA (jit_compile is not True)")
    model.jit_compile = False


def _graph(arguments: Arguments, _: int) -> None:
    model = _model_of_keras_3(arguments)
    if not model.run_eagerly:
        raise Refused("the model already runs in graphs (run_eagerly is not True)")
    model.run_eagerly = False


def _model_of_keras_3(arguments: Arguments) -> Any:
    model = arguments["self"]
    if not hasattr(model, "steps_per_execution"):
        raise Refused(
            "Keras 2 keeps this setting in the model's inner state; with Keras 3, the change can "
            "be tried"
        )
    model.train_function = None  # one made by an earlier fit would not see the change
    return model


def _prefetch(arguments: Arguments, _: int) -> None:
    import tensorflow as tf  # noqa: PLC0415

    arguments["x"] = _dataset(arguments).prefetch(tf.data.AUTOTUNE)


def _input_threads(arguments: Arguments, value: int) -> None:
    import tensorflow as tf  # noqa: PLC0415

    options = tf.data.Options()
    options.threading.private_threadpool_size = value
    arguments["x"] = _dataset(arguments).with_options(options)


def _dataset(arguments: Arguments) -> Any:
    import tensorflow as tf  # noqa: PLC0415

    data = arguments.get("x")
    if not isinstance(data, tf.data.Dataset):
        raise Refused(f"fit() was given {_kind(data)}, not a tf.data.Dataset")
    return data


def _workers(arguments: Arguments, value: int) -> None:
    data: Any = arguments.get("x")
    if not any(base.__name__ == "PyDataset" for base in type(data).__mro__):
        why = "only a Keras 3 PyDataset can be read by several threads"
        raise Refused(f"fit() was given {_kind(data)}; {why}")
    if data.workers > 1 or data.use_multiprocessing:
        has = f"has {data.workers} workers" if data.workers > 1 else "uses other processes"
        raise Refused(f"the PyDataset already {has}")
    data.workers = value


def _kind(data: Any) -> str:
    return f"data of type {type(data).__name__}"


def _left_out_is_enough(_: Arguments, __: int) -> None:
    if not _left_out:
        raise Refused("the program does not use what this change turns off")


def _logging_off(arguments: Arguments, _: int) -> None:
    boards = [c for c in arguments["callbacks"] if is_a(c, "TensorBoard")]
    boards = [c for c in boards if c.update_freq != "epoch" or c._should_trace]
    for board in boards:
        board.update_freq, board._should_trace = "epoch", False
    if not boards and not _left_out:
        raise Refused("the program neither profiles itself nor logs its batches")


def is_a(callback: Any, name: str) -> bool:
    """Compares names of classes: each version of Keras has its own classes."""
    return any(base.__name__ == name for base in type(callback).__mro__)


_CHANGES: dict[Knob, Callable[[Arguments, int], None]] = {
    Knob.STEPS_PER_EXECUTION: _steps_per_execution,
    Knob.PREFETCH: _prefetch,
    Knob.INPUT_THREADS: _input_threads,
    Knob.WORKERS: _workers,
    Knob.XLA_OFF: _xla_off,
    Knob.GRAPH: _graph,
    Knob.THREADS_FREE: _left_out_is_enough,
    Knob.CHECKS_OFF: _left_out_is_enough,
    Knob.LOGGING_OFF: _logging_off,
}
