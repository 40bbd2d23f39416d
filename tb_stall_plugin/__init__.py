"""Stall: the TensorBoard tab, and what captures a training for it.

Imports nothing: TensorBoard imports this package when it starts, and does not start if that fails.
`StallCallback` and `watch` bring TensorFlow with them, and are loaded when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tb_stall_plugin.capture.training.callback import StallCallback
    from tb_stall_plugin.capture.training.watch import watch

__all__ = ["StallCallback", "watch"]


def __getattr__(name: str) -> object:
    if name == "StallCallback":
        from tb_stall_plugin.capture.training.callback import StallCallback  # noqa: PLC0415

        return StallCallback
    if name == "watch":
        from tb_stall_plugin.capture.training.watch import watch  # noqa: PLC0415

        return watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
