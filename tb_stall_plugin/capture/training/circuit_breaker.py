"""The first rule of the capture: whatever fails in it, training continues."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tb_stall_plugin.capture.process.recorder import Recorder

logger = logging.getLogger("stall")

P = ParamSpec("P")
T = TypeVar("T")


class CircuitBreaker:
    """Runs the parts of a capture. If a part fails, that is reported once, and it is turned off."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._off: set[str] = set()

    def run(
        self, part: str, action: Callable[P, T], *arguments: P.args, **named: P.kwargs
    ) -> T | None:
        if part in self._off:
            return None
        try:
            return action(*arguments, **named)
        except Exception as error:
            self.switch_off(part, f"{type(error).__name__}: {error}")
            logger.debug("A part of the capture failed.", exc_info=True)
            return None

    def switch_off(self, part: str, why: str) -> None:
        if part not in self._off:
            self._off.add(part)
            logger.warning("%s is turned off; training continues. %s", part.capitalize(), why)
            self._recorder.note("warning", f"{part.capitalize()} was turned off ({why}).")
