"""Exceptions, signals, children: what goes on around the training in its process."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.scenarios.harm.capture import Capture, kind
from tests.scenarios.harm.odd_fits import at_batch
from tests.scenarios.harm.small import fit, model

READY = "ready"


def ready(capture: Capture) -> None:
    """The runner sends its signal now."""
    (capture.folder / READY).touch()


def _wait(capture: Capture, seconds: float = 60.0) -> None:
    ready(capture)
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        time.sleep(0.05)


def _fail(of: Any) -> None:
    raise ValueError("in the middle of a fit")


@kind("an exception that ends the program")
def exception(capture: Capture) -> None:
    fit(model(), [*capture.callbacks(), at_batch(3, _fail)])


@kind("an exception that the program survives")
def survived(capture: Capture) -> None:
    of = model()
    try:
        fit(of, [*capture.callbacks(), at_batch(3, _fail)])
    except ValueError as error:
        capture.result([str(error)])
    fit(of, capture.callbacks())
    capture.weights(of)


@kind("an error in the graph")
def error_in_graph(capture: Capture) -> None:
    of = model()
    x, y = (value[:, :1] for value in (of.get_weights()[0], of.get_weights()[0]))
    of.fit(x, y, verbose=0, callbacks=capture.callbacks())


@kind("sys.exit(3) in a callback")
def exits(capture: Capture) -> None:
    fit(model(), [*capture.callbacks(), at_batch(3, lambda _: sys.exit(3))])


@kind("os._exit(4) as soon as fit is over")
def exits_at_once(capture: Capture) -> None:
    fit(model(), capture.callbacks())
    os._exit(4)


@kind("Ctrl-C in a fit", sends=signal.SIGINT)
def interrupted(capture: Capture) -> None:
    fit(model(), [*capture.callbacks(), at_batch(3, lambda _: _wait(capture))])


@kind("SIGTERM in a fit", sends=signal.SIGTERM)
def terminated(capture: Capture) -> None:
    fit(model(), [*capture.callbacks(), at_batch(3, lambda _: _wait(capture))])


@kind("SIGTERM while C code holds the interpreter", sends=signal.SIGTERM)
def terminated_in_c(capture: Capture) -> None:
    def hold(_: Any) -> None:
        ready(capture)
        re.match(r"(a+)+$", "a" * 60 + "b")  # for years

    fit(model(), [*capture.callbacks(), at_batch(3, hold)])


@kind("SIGTERM after the fit", sends=signal.SIGTERM)
def terminated_later(capture: Capture) -> None:
    fit(model(), capture.callbacks())
    _wait(capture)


@kind("SIGTERM, with a handler that was set before", sends=signal.SIGTERM)
def handler_before(capture: Capture) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
    fit(model(), [*capture.callbacks(), at_batch(3, lambda _: _wait(capture))])


@kind("SIGTERM, with a handler that is set later", sends=signal.SIGTERM)
def handler_later(capture: Capture) -> None:
    def wait(_: Any) -> None:
        before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(6))
        capture.result([str(before), str(signal.getsignal(signal.SIGUSR1))])
        _wait(capture)

    fit(model(), [*capture.callbacks(), at_batch(3, wait)])


@kind("SIGTERM is ignored", sends=signal.SIGTERM)
def ignored(capture: Capture) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    of = model()
    fit(of, [*capture.callbacks(), at_batch(3, lambda _: _wait(capture, 3.0))])
    capture.weights(of)


@kind("handlers, hooks, timers and threads are as before when the process continues")
def left_as_found(capture: Capture) -> None:
    ticks: list[int] = []
    signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    hooks = (sys.gettrace(), sys.getprofile(), threading.excepthook, len(warnings.filters))
    of = model()
    fit(of, capture.callbacks())
    signal.setitimer(signal.ITIMER_REAL, 0)
    same = hooks == (sys.gettrace(), sys.getprofile(), threading.excepthook, len(warnings.filters))
    capture.result([same, bool(ticks), len(gc.callbacks), gc.isenabled(), gc.get_threshold()])
    capture.weights(of)


@kind("faulthandler's timer, set by the program")
def own_timer(capture: Capture) -> None:
    def set_timer(_: Any) -> None:
        with (capture.folder / "stacks.txt").open("w") as file:
            faulthandler.dump_traceback_later(0.3, file=file)
            time.sleep(1.0)
            faulthandler.cancel_dump_traceback_later()

    of = model()
    fit(of, [*capture.callbacks(), at_batch(3, set_timer)])
    capture.result([(capture.folder / "stacks.txt").stat().st_size > 0])
    capture.weights(of)


@kind(
    "warnings are errors", arguments=("-W", "error::RuntimeWarning", "-W", "error::ResourceWarning")
)
def warnings_are_errors(capture: Capture) -> None:
    of = model()
    fit(of, capture.callbacks())
    capture.weights(of)


@kind("a fork in the middle of a fit, with a child that exits in its own way")
def forks(capture: Capture) -> None:
    def fork(_: Any) -> None:
        ways: tuple[Callable[[], object], ...] = (
            lambda: os._exit(7),
            os.abort,
            lambda: os.kill(os.getpid(), signal.SIGTERM),
        )
        for way in ways:
            child = os.fork()
            if not child:
                way()
                os._exit(9)
            capture.result([os.waitpid(child, 0)[1]])

    of = model()
    fit(of, [*capture.callbacks(), at_batch(3, fork)])
    capture.weights(of)


def square(number: int) -> int:
    return number * number


@kind("pools of forked and of spawned processes, and a subprocess")
def pools(capture: Capture) -> None:
    def start(_: Any) -> None:
        for how in ("fork", "spawn"):
            with multiprocessing.get_context(how).Pool(2) as pool:
                capture.result(pool.map(square, range(5)))
        said = subprocess.run(
            [sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True, check=True
        )
        capture.result([said.stdout])

    of = model()
    fit(of, [*capture.callbacks(), at_batch(3, start)])
    capture.weights(of)


def _child_trains(folder: str, logdir: str | None) -> None:
    of = model()
    child = Capture(Path(folder), logdir)
    fit(of, child.callbacks())
    child.weights(of)
    Path(folder, "child.txt").write_text(str(child.results))


@kind("a spawned child that trains alongside its parent")
def trains_in_child(capture: Capture) -> None:
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=_child_trains, args=(str(capture.folder), capture.logdir))
    child.start()
    of = model()
    fit(of, capture.callbacks())
    child.join()
    capture.weights(of)
    capture.result([child.exitcode, (capture.folder / "child.txt").read_text()])


@kind("asyncio: a fit inside a running loop with signal handlers", sends=signal.SIGTERM)
def in_asyncio(capture: Capture) -> None:
    async def main() -> None:
        told = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
        of = model()
        await asyncio.to_thread(fit, of, capture.callbacks())
        fit(of, capture.callbacks())
        ready(capture)
        await asyncio.wait_for(told.wait(), 30)
        capture.weights(of)

    asyncio.run(main())
