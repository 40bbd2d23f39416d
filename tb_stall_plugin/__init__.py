"""Stall: the TensorBoard tab, and the capture that records a training run for it.

Imports nothing: TensorBoard imports this package when it starts, and does not start if that fails.
`StallCallback` and `watch` import TensorFlow or Keras, so they are loaded on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tb_stall_plugin.capture.training.callback import StallCallback
    from tb_stall_plugin.capture.training.watch import watch

__all__ = ["StallCallback", "watch"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tb_stall_plugin.capture.backend import trains_with_tensorflow  # noqa: PLC0415

    if trains_with_tensorflow():
        from tb_stall_plugin.capture.training import callback, watch  # noqa: PLC0415

        return callback.StallCallback if name == "StallCallback" else watch.watch
    if name == "StallCallback":
        from tb_stall_plugin.capture.without_tensorflow import callback as plain  # noqa: PLC0415

        return plain.StallCallback
    from tb_stall_plugin.capture.without_tensorflow.watch import watch as plain_watch  # noqa: PLC0415

    return plain_watch
