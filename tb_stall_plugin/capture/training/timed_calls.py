"""Clocks around what TensorFlow and Keras do on the training thread, for the books.

Functions and methods are replaced while books are kept, and restored afterward. The clocks change
nothing: what they surround is called with what it was given, and its result and its exceptions are
passed on.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from stall_analyzer.captures.capture_format import Account
from tb_stall_plugin.capture.training.around import Around, Instead, Method
from tb_stall_plugin.capture.training.books import RANKS, Books, Entry
from tb_stall_plugin.capture.training.busy_steps import is_in_loop
from tb_stall_plugin.capture.training.collective_wait import CollectiveWait
from tb_stall_plugin.capture.training.hook import Hook
from tb_stall_plugin.capture.training.input_wait import InputWait
from tb_stall_plugin.capture.training.remote_steps import RemoteSteps
from tb_stall_plugin.capture.training.remote_workers import RemoteWorkers
from tb_stall_plugin.capture.training.time_sheet import Span
from tb_stall_plugin.capture.training.traced_arguments import TracedArguments

HOOKS = (
    "on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end", "on_train_batch_begin",
    "on_train_batch_end", "on_batch_begin", "on_batch_end", "on_test_begin", "on_test_end",
    "on_test_batch_begin", "on_test_batch_end",
)  # fmt: skip

# By thread. A fit inside another has its own books, and the outer one sees it from outside.
_kept: dict[int, list[Books]] = {}
_lock = threading.Lock()
_replaced: list[tuple[Any, str, Any, Any]] = []
# Shared by all fits: graphs outlive the fits for which they were traced.
input_wait = InputWait()
collective_wait = CollectiveWait()
remote_workers = RemoteWorkers(RemoteSteps(input_wait.elsewhere))
_arguments = TracedArguments()


def keep(books: Books) -> None:
    with _lock:
        if not _kept:
            remote_workers.steps.forget()
            _replace_all_or_nothing()
        _kept.setdefault(books.thread, []).append(books)


def no_longer_keep(books: Books) -> None:
    with _lock:
        for thread, kept in tuple(_kept.items()):
            if books in kept:
                kept.remove(books)
            if not kept:
                del _kept[thread]
        if not _kept:
            _put_back_all()


def taken_in_steps() -> dict[str, float]:
    """Seconds that compiled steps have waited since the last call, by account."""
    return {Account.WAIT: input_wait.take(), Account.COLLECTIVE: collective_wait.take()}


def time_callbacks(books: Books, callbacks: Iterable[Any]) -> list[Hook]:
    """Puts clocks around the hooks of each callback. They must be taken out when the fit ends."""
    hooks = []
    for callback in callbacks:
        for name in HOOKS:
            if _does_something(callback, name):
                hook = Hook(callback, name, _timed_hook(books, callback, name))
                hook.put_in()
                hooks.append(hook)
    return hooks


def _does_something(callback: Any, name: str) -> bool:
    """Leaves out Keras's own empty hooks, of which there are many."""
    method = getattr(callback, name, None)
    if method is None or name in vars(callback):
        return method is not None
    return getattr(type(callback), name) is not getattr(tf.keras.callbacks.Callback, name, None)


def _timed_hook(books: Books, callback: Any, name: str) -> Span:
    method = inspect.unwrap(getattr(callback, name))
    account = Account.LOGGING if _logs_scalars(callback) else Account.CALLBACK
    return Span(books, books.entry(account, f"{type(callback).__name__}.{name}", _place(method)))


def _logs_scalars(callback: Any) -> bool:
    """Whether it logs only scalars, as is recommended for TensorBoard."""
    is_for_tensorboard = isinstance(callback, tf.keras.callbacks.TensorBoard)
    return is_for_tensorboard and not getattr(callback, "histogram_freq", 0)


def _place(function: Any) -> str:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def at_own_work() -> contextlib.AbstractContextManager[None]:
    """If books are kept for this thread, what is done inside counts as the capture's own work."""
    return _of_this_thread() or contextlib.nullcontext()


# ---------------------------------------------------------------- TensorFlow's own


def _of_this_thread() -> Books | None:
    kept = _kept.get(threading.get_ident())
    return kept[-1] if kept else None


def _keeping(account: str) -> Books | None:
    """This thread's books, if its time may now go to this account."""
    books = _of_this_thread()
    return None if books is None or books.top.rank >= RANKS[account] else books


def _spend(books: Books, entry: Entry, method: Method, arguments: Any, named: Any) -> Any:
    books.enter(entry)
    try:
        return method(*arguments, **named)
    finally:
        books.leave()


def _timed(account: str, name_of: Callable[..., str]) -> Callable[[Method], Method]:
    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def timed(*arguments: Any, **named: Any) -> Any:
            books = _keeping(account)
            if books is None:
                return method(*arguments, **named)
            entry = books.entry(account, name_of(*arguments))
            return _spend(books, entry, method, arguments, named)

        return timed

    return decorate


def _timed_call(call: Method) -> Around:
    """Times calls of compiled functions."""
    rank, get_ident = RANKS[Account.STEP], threading.get_ident

    def before(function: Any, *arguments: Any, **named: Any) -> Instead | None:
        kept = _kept.get(get_ident())  # there are many calls, so no other function is called
        if not kept or kept[-1].top.rank >= rank:
            # It is called inside a graph that is being built, or already timed.
            if not tf.executing_eagerly() and is_in_loop() and _is_of_a_step(_of_this_thread()):
                step = functools.partial(call, function, *arguments, **named)
                return Instead(input_wait.busy.around, (step, arguments))
            return None
        return kept[-1].call_begins(function._name)

    return Around(call, before)


def _timed_tracing(build: Method) -> Around:
    def before(name: Any, python_func: Any = None, *arguments: Any, **named: Any) -> Instead | None:
        books = _keeping(Account.TRACE)
        if books is None:
            return None
        function = inspect.unwrap(python_func)
        entry = books.tracing(function, str(name), _place(function))
        with books:
            entry.why = _arguments.what_changed(function, *arguments[:2]) or entry.why
        books.enter(entry)
        return books.until_it_ends

    return Around(build, before)


def _timed_next(get_next: Method) -> Method:
    @functools.wraps(get_next)
    def timed(*arguments: Any, **named: Any) -> Any:
        if not tf.executing_eagerly():
            if _is_of_a_step(_of_this_thread()):
                return input_wait.around(functools.partial(get_next, *arguments, **named))
            return get_next(*arguments, **named)
        books = _keeping(Account.INPUT)
        if books is None:
            return get_next(*arguments, **named)
        return _spend(books, books.entry(Account.INPUT), get_next, arguments, named)

    return timed


def _take_down(self: Any) -> None:
    """Takes an iterator down that is no longer used, as would happen anyway, but timed."""
    books = _keeping(Account.TEARDOWN)
    if books is not None and "_iterator_resource" in vars(self):
        _spend(
            books,
            books.entry(Account.TEARDOWN),
            vars(self).__delitem__,
            ("_iterator_resource",),
            {},
        )


def _is_of_a_step(books: Books | None) -> bool:
    """Whether the graph that is being built is neither a callback's nor another thread's."""
    return books is not None and not books.is_below(Account.CALLBACK, Account.SIDE)


def _timed_exchange(exchange: Method) -> Method:
    """Times exchanges between workers in graphs. Outside of graphs, its callers are timed."""

    @functools.wraps(exchange)
    def timed(self: Any, reduce_op: Any, value: Any, *arguments: Any, **named: Any) -> Any:
        call = functools.partial(exchange, self, reduce_op, value, *arguments, **named)
        is_in_graph = not tf.executing_eagerly() and len(self._devices) == 1
        if is_in_graph and _is_of_a_step(_of_who_traces()):
            return collective_wait.around(value, call)
        return call()

    return timed


def _of_who_traces() -> Books | None:
    """The books of the thread that traces. A strategy traces each replica in its own thread, for
    which the training thread waits.

    If several threads train, it is not known to which of them such a thread belongs."""
    own = _of_this_thread()
    if own is not None or len(_kept) != 1:
        return own
    (kept,) = _kept.values()
    return kept[-1] if kept[-1].is_below(Account.TRACE, Account.RETRACE) else None


def _timed_beside(method: Method) -> Method:
    """Times `predict` and `evaluate` in a loop. In a fit, only callbacks and fit itself call
    them."""
    timed = _timed(Account.SIDE, _class_name)(method)

    @functools.wraps(method)
    def beside(*arguments: Any, **named: Any) -> Any:
        books = _of_this_thread()
        is_beside = books is not None and books.is_loop
        return (timed if is_beside else method)(*arguments, **named)

    return beside


def _timed_elsewhere(method: Method) -> Method:
    """Times what a coordinator does with steps in other processes; it counts as calls of them."""

    @functools.wraps(method)
    def elsewhere(*arguments: Any, **named: Any) -> Any:
        books = _of_this_thread()
        if books is not None:
            books.calls += 1
        books = _keeping(Account.REMOTE)
        if books is None:
            return method(*arguments, **named)
        whole = books.entry(Account.REMOTE)
        remote_workers.wait_begins()
        try:
            return _spend(books, whole, method, arguments, named)
        finally:
            for worker, ns in remote_workers.wait_ends().items():
                books.hand_over(whole, books.entry(Account.REMOTE, f"worker {worker}"), ns)
            for account, worker, place, steps, ns in remote_workers.steps.taken():
                books.note(books.entry(account, f"worker {worker}", place), steps, ns)

    return elsewhere


def _replace_all_or_nothing() -> None:
    """Other versions of TensorFlow may lack one of the functions."""
    try:
        _replace_all()
    except Exception:
        _put_back_all()
        raise


def _replace_all() -> None:
    from tensorflow.python.data.ops.iterator_ops import OwnedIterator  # noqa: PLC0415
    from tensorflow.python.data.ops.multi_device_iterator_ops import (  # noqa: PLC0415
        OwnedMultiDeviceIterator,
    )
    from tensorflow.python.distribute.coordinator.cluster_coordinator import (  # noqa: PLC0415
        Worker,
    )
    from tensorflow.python.distribute.coordinator.values import RemoteValueImpl  # noqa: PLC0415
    from tensorflow.python.distribute.cross_device_ops import CollectiveAllReduce  # noqa: PLC0415
    from tensorflow.python.eager.polymorphic_function import polymorphic_function  # noqa: PLC0415
    from tensorflow.python.framework import func_graph  # noqa: PLC0415

    _replace(polymorphic_function.Function, "__call__", _timed_call)
    _replace(func_graph, "func_graph_from_py_func", _timed_tracing)
    _replace(OwnedIterator, "_next_internal", _timed_next)
    _replace(OwnedIterator, "get_next_as_optional", _timed_next)
    _replace(OwnedMultiDeviceIterator, "get_next", _timed_next)
    _replace(OwnedMultiDeviceIterator, "get_next_as_optional", _timed_next)
    for name in ("schedule", "join", "fetch"):
        _replace(tf.distribute.coordinator.ClusterCoordinator, name, _timed_elsewhere)
    _replace(Worker, "_process_closure", remote_workers.timed)
    _replace(RemoteValueImpl, "_wait_and_maybe_error", _timed_elsewhere)
    _replace(CollectiveAllReduce, "_all_reduce", _timed_exchange)
    for name in ("_all_reduce_per_replica_values", "_batch_all_gather"):
        _replace(CollectiveAllReduce, name, _timed(Account.COLLECTIVE, _no_name))
    _replace(OwnedIterator, "_create_iterator", _timed(Account.ITERATOR, _no_name))
    if hasattr(OwnedIterator, "__del__"):
        _replace(OwnedIterator, "__del__", _timed(Account.TEARDOWN, _no_name))
    else:
        OwnedIterator.__del__ = _take_down
        _replaced.append((OwnedIterator, "__del__", None, _take_down))
    for owner in (tf.keras.Model, tf.train.Checkpoint, tf.train.CheckpointManager):
        for name in ("save", "save_weights", "write"):
            _replace(owner, name, _timed(Account.SAVE, _class_name))
    for name in ("predict", "evaluate"):
        _replace(tf.keras.Model, name, _timed_beside)


def _no_name(*arguments: Any) -> str:
    return ""


def _class_name(owner: Any, *arguments: Any) -> str:
    return type(owner).__name__


def _replace(owner: Any, name: str, decorate: Callable[[Method], Method]) -> None:
    """Replaces it in the class that defines it, or in the module."""
    for definer in getattr(owner, "__mro__", (owner,)):
        own = vars(definer).get(name)
        if own is not None:
            ours = decorate(own)
            setattr(definer, name, ours)
            _replaced.append((definer, name, own, ours))
            return


def _put_back_all() -> None:
    """If somebody else has wrapped ours in the meantime, it stays and does nothing."""
    while _replaced:
        owner, name, own, ours = _replaced.pop()
        if vars(owner).get(name) is not ours:
            continue
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)
