"""Clocks around Python that TensorFlow calls: generators, functions given to `map`.

Samples see where such a function is, if it lets them look: code that keeps the interpreter to
itself for less than five milliseconds at a time is over before a sampler gets its turn.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

from tensorflow.python.ops.script_ops import FuncRegistry

from stall_analyzer.captures.capture_records import BookItem
from stall_analyzer.captures.stack_frames import Frame
from tb_stall_plugin.capture.process.stack_sampler import Doing

CALL = "__call__"
MOST_FUNCTIONS = 200
Place = tuple[str, str]  # name and where


class PythonCalls:
    """Functions that run at the same time share it, so that all together is how long any ran."""

    def __init__(
        self, doing: Callable[[], Doing], clock_ns: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._doing = doing
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        self._spent: dict[tuple[str, Place], list[float]] = {}  # count and nanoseconds, by account
        self._places: dict[Any, Place] = {}  # by the name that TensorFlow gives each function
        self._running = 0
        self._changed_ns = 0  # when one last began or ended
        self._each_ns = 0.0  # what one that has always been running would have had by then
        self._own: Any = None
        self._ours: Any = None

    def put_in(self) -> None:
        self._own = own = vars(FuncRegistry)[CALL]

        @functools.wraps(own)
        def timed(registry: Any, token: Any, *arguments: Any) -> Any:
            if self._ours is None or threading.get_ident() == self._doing().thread:
                return own(registry, token, *arguments)
            began_ns = self.began()
            try:
                return own(registry, token, *arguments)
            finally:
                self.ended(self._place(registry, token), began_ns)

        self._ours = timed
        setattr(FuncRegistry, CALL, timed)

    def take_out(self) -> None:
        """Where somebody else has wrapped ours meanwhile, it stays, and does nothing."""
        ours, self._ours = self._ours, None
        if ours is not None and vars(FuncRegistry)[CALL] is ours:
            setattr(FuncRegistry, CALL, self._own)

    def began(self) -> float:
        with self._lock:
            self._passes()
            self._running += 1
            return self._each_ns

    def ended(self, place: Place, began_ns: float) -> None:
        account = self._doing().account
        with self._lock:
            self._passes()
            self._running -= 1
            if (account, place) not in self._spent and len(self._spent) >= MOST_FUNCTIONS:
                place = "", ""
            entry = self._spent.setdefault((account, place), [0, 0.0])
            entry[0] += 1
            entry[1] += self._each_ns - began_ns

    def _place(self, registry: Any, token: Any) -> Place:
        """Looked up once for each function."""
        place = self._places.get(token)
        if place is None:
            if len(self._places) >= MOST_FUNCTIONS:
                self._places.clear()
            place = self._places[token] = _place_of(registry.get(token))
        return place

    def _passes(self) -> None:
        now_ns = self._clock_ns()
        if self._running:
            self._each_ns += (now_ns - self._changed_ns) / self._running
        self._changed_ns = now_ns

    def taken(self) -> tuple[BookItem, ...]:
        """Since the last time."""
        with self._lock:
            spent, self._spent = self._spent, {}
        return tuple(
            BookItem(account, *place, round(count), round(ns))
            for (account, place), (count, ns) in spent.items()
        )


def _place_of(function: Any) -> Place:
    """Of the user's function that is behind what TensorFlow calls; empty where it is not known."""
    try:
        return _users_place(function)
    except Exception:  # objects of the user's may do anything when they are looked at
        return "", ""


def _users_place(function: Any) -> Place:
    for candidate in _behind(function):
        plain = inspect.unwrap(candidate)
        code = getattr(getattr(plain, "__func__", plain), "__code__", None)
        if code is not None and Frame(code.co_filename, 0, "").is_users:
            name = getattr(plain, "__qualname__", code.co_name)
            return name, f"{code.co_filename}:{code.co_firstlineno}"
    return "", ""


def _behind(function: Any) -> list[Any]:
    """The function itself, one that a py_function wraps, and the generator of a dataset."""
    found = [function, getattr(function, "_func", None)]
    closure = inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}
    found += [getattr(value, "_generator", value) for value in closure.values()]
    return [candidate for candidate in found if callable(candidate)]
