"""Python stacks as a capture records them: whose code a thread is in, and what it waits in."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import PurePosixPath

from stall_analyzer.captures.look_records import Loop, ThreadStack
from stall_analyzer.captures.stack_frames import OURS, RESTS, Frame, frame_of
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass

# TensorFlow has been handed an op or a graph, and does not return.
EXECUTES = pattern(
    r"/eager/execute\.py$|/eager/context\.py$|/polymorphic_function/|/gen_\w+_ops\.py$"
)
# It was asked for data, outside any graph.
FETCHES = pattern(r"(iterator_get_next|queue_dequeue|multi_device_iterator_get_next)")
# A cluster is being set up: all its members have to come.
SETS_UP_CLUSTER = pattern(
    r"/distribute/(collective_all_reduce_strategy|parameter_server_strategy_v2)\.py$"
    r"|/coordinator/cluster_coordinator\.py$"
)
# How TensorFlow and Keras call the user's code for data.
GENERATES = pattern(
    r"/from_generator_op\.py$|/data_adapters?/|/data_adapter\.py$|/py_dataset_adapter\.py$"
    r"|/data_utils\.py$|/generator_data_adapter\.py$"
)
# The tf.data service is asked for something.
ASKS_SERVICE = pattern(r"/data_service_ops\.py$")
# A graph is being built from a Python function.
TRACES = pattern(r"/framework/func_graph\.py$")
# AutoGraph runs a loop of the traced function in Python: each iteration makes the graph larger.
UNROLLS = pattern(r"/autograph/operators/control_flow\.py$")
UNROLLED = {"_py_while_stmt": "while", "_py_for_stmt": "for"}
CALLS_ITSELF = 3  # times on one stack
CALLS_PYTHON = pattern(r"/script_ops\.py$")
CALLS_BACK = pattern(r"/callback_list\.py$|/callbacks/|/callbacks\.py$")
WAITS = frozenset(
    {"wait", "wait_for", "acquire", "get", "put", "join", "_wait_for_tstate_lock", "result", "recv",
     "recv_bytes", "_recv", "_recv_bytes", "poll", "_poll", "select", "read", "readinto",
     "communicate", "accept", "connect", "__enter__", "_try_wait", "_wait", "as_completed",
     "_shutdown", "serve_forever", "interaction", "next", "create_connection", "getaddrinfo"}
)  # fmt: skip
# Keras trains, evaluates or predicts.
FITS = pattern(r"/tensorflow/trainer\.py$|/engine/training\.py$")
# A module is being imported.
IMPORTS = pattern(r"^<frozen importlib|/importlib/")
TOP_LEVEL = "<module>"
# The folder of Python's own modules; what follows is the name of one.
LIBRARY = pattern(r"^.*/(lib(64)?/python3[^/]*|Lib)/|^<frozen ")
# Python's main thread has ended, and waits for the threads that are not daemons.
EXITS = pattern(r"/threading\.py$")
# How Python starts a thread: the frames outside the thread's own function.
STARTS_THREADS = frozenset({"run", "_bootstrap", "_bootstrap_inner"})


@dataclass(frozen=True)
class Stack:
    """A thread's frames, innermost first."""

    frames: tuple[Frame, ...]
    texts: tuple[str, ...]  # as recorded
    system_call: str = ""  # the one that it is in, where known
    on: str = ""  # what that call waits for, in words
    loop: Loop | None = None  # in the user's own code

    @property
    def owner(self) -> Frame | None:
        """The innermost frame that says whose code it is: the user's or a library's."""
        return next((f for f in self.frames if not f.is_standard and not f.is_of(OURS)), None)

    @property
    def users(self) -> Frame | None:
        return next((f for f in self.frames if f.is_users), None)

    @property
    def all_users(self) -> list[Frame]:
        return [frame for frame in self.frames if frame.is_users]

    @property
    def is_inside_tensorflow(self) -> bool:
        """The runtime is working or waiting; this thread runs no Python."""
        innermost = self.frames[0] if self.frames else None
        return innermost is not None and innermost.is_tensorflow and innermost.is_of(EXECUTES)

    @property
    def fetches(self) -> bool:
        return self.is_inside_tensorflow and bool(FETCHES.match(self.frames[0].name))

    @property
    def wait(self) -> str:
        """`queue.Queue.get()`: the call of Python's library that it waits in; empty without one."""
        calls = self.library_calls
        if not any(frame.name in WAITS for frame in calls):
            return ""
        outermost = next((f for f in reversed(calls) if f.name not in STARTS_THREADS), calls[0])
        return f"{module_of(outermost)}.{outermost.function}()"

    @property
    def library_calls(self) -> tuple[Frame, ...]:
        """The innermost frames that belong to Python's own library."""
        count = next((n for n, f in enumerate(self.frames) if not f.is_standard), len(self.frames))
        return self.frames[:count]

    @property
    def exits(self) -> bool:
        """The program is over, and the process waits for its threads."""
        calls = self.library_calls
        return len(calls) == len(self.frames) and any(
            frame.name == "_shutdown" and frame.is_of(EXITS) for frame in calls
        )

    @property
    def rests(self) -> bool:
        """Whether it waits for its user or for requests, as notebooks and servers do."""
        telling = (f for f in self.frames if f.is_of(RESTS) or not f.is_standard)
        return any(frame.is_of(RESTS) for frame in islice(telling, 1))

    @property
    def unrolls(self) -> str:
        """`while` or `for`: the loop in a function that is being traced, round by round."""
        names = (f.name for f in self.frames if f.is_of(UNROLLS) and f.name in UNROLLED)
        return next((UNROLLED[name] for name in names), "")

    @property
    def calls_itself(self) -> bool:
        functions = Counter((f.path, f.line) for f in self.frames if f.is_users)
        return max(functions.values(), default=0) >= CALLS_ITSELF

    def users_caller(self, *kinds: re.Pattern[str]) -> re.Pattern[str] | None:
        """Which of these called the innermost function of the user's own code."""
        at = next((n for n, frame in enumerate(self.frames) if frame.is_users), len(self.frames))
        found = (kind for frame in self.frames[at:] for kind in kinds if frame.is_of(kind))
        return next(found, None)

    @property
    def traced(self) -> str | None:
        """The outermost function of the user's own code that is becoming a graph."""
        at = next((n for n, frame in reversed([*enumerate(self.frames)]) if frame.is_of(TRACES)), 0)
        inside = [f"{f.path} {f.function}" for f in self.frames[:at] if f.is_users]
        return inside[-1] if inside else None

    def users_around(self, kind: re.Pattern[str]) -> Frame | None:
        """The user's own line that led there."""
        at = [n for n, frame in enumerate(self.frames) if frame.is_of(kind)]
        return next((f for f in self.frames[at[-1] :] if f.is_users), None) if at else None

    def passes(self, kind: re.Pattern[str]) -> bool:
        return any(frame.is_of(kind) for frame in self.frames)


def stack_of(thread: ThreadStack) -> Stack:
    stack = stack_of_error(thread.frames)
    return replace(stack, system_call=thread.wait, on=thread.on, loop=thread.loop)


def module_of(frame: Frame) -> str:
    """`concurrent.futures`, for a frame of Python's own library. Private parts are left out."""
    path = LIBRARY.sub("", frame.path.replace("\\", "/")).removesuffix(".py")
    parts = [part for part in PurePosixPath(path).parts if not part.startswith("_")]
    return ".".join(parts[-2:]) or PurePosixPath(path).name


def stack_of_error(texts: tuple[str, ...]) -> Stack:
    read = [(text, frame) for text in texts if (frame := frame_of(text))]
    return Stack(tuple(frame for _, frame in read), tuple(text for text, _ in read))


def proof(stack: Stack, most: int) -> tuple[str, ...]:
    """The lines of a stack that show where it is: the innermost ones, and the user's own."""
    users = next((i for i, frame in enumerate(stack.frames) if frame.is_users), 0)
    if users < most:
        return stack.texts[: users + 1]
    return (*stack.texts[: most - 1], stack.texts[users])
