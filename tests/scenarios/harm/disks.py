"""Disks that are full, slow or not to be written to, and clocks that jump."""

from __future__ import annotations

import os
import resource
import time
from typing import Any

from tests.scenarios.harm.capture import Capture, kind
from tests.scenarios.harm.odd_fits import at_batch
from tests.scenarios.harm.small import fit, model

CANNOT_WRITE = ("Cannot write to", "Profiling is turned off; training continues")


@kind("a log directory that cannot be made", says=CANNOT_WRITE)
def no_folder(capture: Capture) -> None:
    file = capture.folder / "file"
    file.touch()
    of = model()
    fit(of, capture.callbacks(str(file / "logs")))
    capture.weights(of)


@kind("a read-only file system", says=CANNOT_WRITE)
def read_only(capture: Capture) -> None:
    of = model()
    fit(of, capture.callbacks("/proc/stall/logs"))
    capture.weights(of)


@kind("a disk that is full after a few kilobytes", says=CANNOT_WRITE)
def full_disk(capture: Capture) -> None:
    of = model()
    most = 6 << 10
    limit = at_batch(3, lambda _: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
    fit(of, [*capture.callbacks(), limit], epochs=20)
    capture.weights(of)


@kind("a disk on which each write takes three seconds")
def slow_disk(capture: Capture) -> None:
    write = os.write

    def slowly(descriptor: int, told: Any) -> int:
        time.sleep(3 if len(told) > 1 else 0)
        return write(descriptor, told)

    os.write = slowly
    of = model()
    began_s = time.monotonic()
    fit(of, capture.callbacks())
    capture.result([time.monotonic() - began_s < 30])
    capture.weights(of)


@kind("the clock jumps a day ahead, and two back")
def jumping_clock(capture: Capture) -> None:
    now, now_ns = time.time, time.time_ns
    jump = [0.0]
    time.time = lambda: now() + jump[0]
    time.time_ns = lambda: now_ns() + int(jump[0] * 1e9)

    def ahead(_: Any) -> None:
        jump[0] = 86_400.0

    def back(_: Any) -> None:
        jump[0] = -172_800.0

    of = model()
    fit(of, [*capture.callbacks(), at_batch(3, ahead), at_batch(7, back)], epochs=3)
    capture.weights(of)
