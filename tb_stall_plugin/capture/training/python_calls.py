"""Clocks around Python that TensorFlow calls: generators, functions given to `map`.

Samples show where such a function is only if it lets other threads run: code that holds the
interpreter for less than five milliseconds at a time is over before a sampler gets its turn.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tensorflow.python.ops.script_ops import FuncRegistry

from stall_analyzer.captures.capture_records import BookItem
from stall_analyzer.captures.stack_frames import Frame, frame_of
from tb_stall_plugin.capture.process.generated_code import GENERATED, users_function
from tb_stall_plugin.capture.process.stack_sampler import Doing

CALL = "__call__"
MOST_FUNCTIONS = 200
MOST_CALLS = 50_000  # that have not been taken yet
Place = tuple[str, str]  # name and where


class _Call(NamedTuple):
    """A call that has ended."""

    began_ns: int
    ended_ns: int
    account: str  # the one that the training thread was in when the call ended
    place: Place


class PythonCalls:
    """Functions that run at the same time share that time, so that the sum is how long any ran.

    Nothing here takes a lock: garbage collection can happen anywhere and may end an iterator, which
    then waits for its generator, and that is one of these functions.
    """

    def __init__(
        self, doing: Callable[[], Doing], clock_ns: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._doing = doing
        self._clock_ns = clock_ns
        self._over: deque[_Call] = deque(maxlen=MOST_CALLS)
        self._places: dict[Any, Place] = {}  # by the name that TensorFlow gives each function
        self._own: Any = None
        self._ours: Any = None
        self.were_seen = False  # since they were last put in

    def put_in(self) -> None:
        self.were_seen = False
        self._own = own = vars(FuncRegistry)[CALL]

        @functools.wraps(own)
        def timed(registry: Any, token: Any, *arguments: Any) -> Any:
            if self._ours is None or threading.get_ident() == self._doing().thread:
                return own(registry, token, *arguments)
            began_ns = self._clock_ns()
            try:
                return own(registry, token, *arguments)
            finally:
                self.ended(self._place(registry, token), began_ns)

        self._ours = timed
        setattr(FuncRegistry, CALL, timed)

    def take_out(self) -> None:
        """If somebody else has wrapped ours in the meantime, it stays and does nothing."""
        ours, self._ours = self._ours, None
        if ours is not None and vars(FuncRegistry)[CALL] is ours:
            setattr(FuncRegistry, CALL, self._own)

    def ended(self, place: Place, began_ns: int) -> None:
        self.were_seen = True
        self._over.append(_Call(began_ns, self._clock_ns(), self._doing().account, place))

    def _place(self, registry: Any, token: Any) -> Place:
        """Each function is looked up only once."""
        place = self._places.get(token)
        if place is None:
            if len(self._places) >= MOST_FUNCTIONS:
                self._places.clear()
            place = self._places[token] = _place_of(registry.get(token))
        return place

    def taken(self) -> tuple[BookItem, ...]:
        """The calls that have ended since the last time."""
        calls = []
        while self._over:
            calls.append(self._over.popleft())
        spent: dict[tuple[str, Place], list[float]] = {}  # count and nanoseconds, by account
        for call, own_ns in zip(calls, _shared_ns(calls), strict=True):
            if (call.account, call.place) not in spent and len(spent) >= MOST_FUNCTIONS:
                call = call._replace(place=("", ""))  # noqa: PLW2901 (one of too many)
            entry = spent.setdefault((call.account, call.place), [0, 0.0])
            entry[0] += 1
            entry[1] += own_ns
        return tuple(
            BookItem(account, *place, round(count), round(ns))
            for (account, place), (count, ns) in spent.items()
        )


def _shared_ns(calls: Sequence[_Call]) -> list[float]:
    """How long each call took, if calls that overlap share the time."""
    bounds = [(call.began_ns, 1, n) for n, call in enumerate(calls)]
    bounds += [(call.ended_ns, -1, n) for n, call in enumerate(calls)]
    own_ns = [0.0] * len(calls)
    each_ns, running, last_ns = 0.0, 0, 0
    for at_ns, change, n in sorted(bounds):
        if running:
            each_ns += (at_ns - last_ns) / running
        own_ns[n] -= change * each_ns
        running, last_ns = running + change, at_ns
    return own_ns


def _place_of(function: Any) -> Place:
    """The place of the user's function behind what TensorFlow calls; empty if it is not known."""
    try:
        return _users_place(function)
    except Exception:  # the user's objects may do anything when they are inspected
        return "", ""


def _users_place(function: Any) -> Place:
    for candidate in _behind(function):
        plain = inspect.unwrap(candidate)
        code = getattr(getattr(plain, "__func__", plain), "__code__", None)
        if code is not None and GENERATED in code.co_filename:
            frame = frame_of(users_function(code) or "")
            if frame is not None and frame.is_users:
                return frame.name, f"{frame.path}:{frame.line}"
        elif code is not None and Frame(code.co_filename, 0, "").is_users:
            name = getattr(plain, "__qualname__", code.co_name)
            return name, f"{code.co_filename}:{code.co_firstlineno}"
    return "", ""


def _behind(function: Any) -> list[Any]:
    """The function itself, one that a py_function wraps, and the generator of a dataset."""
    found = [function, getattr(function, "_func", None)]
    closure = inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}
    found += [getattr(value, "_generator", value) for value in closure.values()]
    return [candidate for candidate in found if callable(candidate)]
