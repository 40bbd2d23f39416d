"""Values over the first epoch: the loss, the learning rate, memory in use, gradients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stall_analyzer.captures.capture_format import HostMetric, Tag
from stall_analyzer.chart.chart_columns import Curve
from stall_analyzer.model.event_log import Series
from stall_analyzer.model.units import PS_PER_NS
from stall_analyzer.signals.memory.allocators import memory_in_use
from stall_analyzer.signals.numerics.losses import first_fit
from stall_analyzer.signals.signals import Signals

# What Keras and custom loops call the learning rate of each batch.
BATCH_RATES = ("batch_learning_rate", "learning_rate", "lr")


def curves_of(signals: Signals) -> tuple[Curve, ...]:
    """The curves that have a point in the window."""
    found = (
        _loss(signals),
        _learning_rate(signals),
        *_memory(signals),
        _captured(signals, "gradient_norm", "gradient norm", Tag.GRADIENT_NORM),
        _captured(
            signals, "memory/process", "memory of the process", Tag.HOST + HostMetric.RSS, "bytes"
        ),
        *_device_memory(signals),
    )
    return tuple(_in_order(curve) for curve in found if curve is not None and len(curve.at_ps))


def _in_order(curve: Curve) -> Curve:
    """Clocks may be set, and sessions are not always named in order."""
    order = np.argsort(curve.at_ps, kind="stable")
    return replace(curve, at_ps=curve.at_ps[order], value=curve.value[order])


def _loss(signals: Signals) -> Curve:
    steps = signals.learning.steps
    inside = (steps.at_ps >= 0) & (steps.at_ps <= signals.window_ps)
    return Curve("loss", "loss of each step", "", steps.at_ps[inside], steps.value[inside])


def _learning_rate(signals: Signals) -> Curve | None:
    captured = _captured(signals, "learning_rate", "learning rate", Tag.LEARNING_RATE)
    if captured is not None and len(captured.at_ps):
        return captured
    logged = signals.events.train if signals.events is not None else {}
    for tag in BATCH_RATES:
        if tag in logged:
            curve = _logged(signals, logged[tag])
            if curve is not None:
                return curve
    rate = signals.learning.rate
    if rate is None or signals.window_ps == 0:
        return None
    # Known once for the whole epoch: logged at its end, or stored with the model.
    both_ends = np.array([0, signals.window_ps], dtype=np.int64)
    return Curve("learning_rate", "learning rate of the epoch", "", both_ends, np.full(2, rate))


def _logged(signals: Signals, series: Series) -> Curve | None:
    zero_ns, whole = signals.timeline.window.start_unix_ns, first_fit(series)
    if zero_ns is None or whole is None:
        return None
    at = (whole.wall_ns - zero_ns) * PS_PER_NS
    inside = (at >= 0) & (at <= signals.window_ps)
    if not inside.any():
        return None
    return Curve("learning_rate", "learning rate", "", at[inside], whole.value[inside])


def _captured(signals: Signals, name: str, label: str, tag: str, unit: str = "") -> Curve | None:
    series, zero_ns = signals.captured_in_window(tag), signals.timeline.window.start_unix_ns
    if series is None or zero_ns is None:
        return None
    return Curve(name, label, unit, (series.wall_ns - zero_ns) * PS_PER_NS, series.value)


def _device_memory(signals: Signals) -> list[Curve | None]:
    """As a capture saw it; allocators in a trace have their own curves."""
    tags = [Tag.ALL + name for name in (signals.capture.series if signals.capture else ())]
    return [
        _captured(signals, f"memory/{device}", f"memory in use, {device}", tag, "bytes")
        for tag in tags
        if tag.startswith(Tag.DEVICE)
        for device in [tag.removeprefix(Tag.DEVICE).removesuffix(Tag.BYTES_IN_USE)]
    ]


def _memory(signals: Signals) -> list[Curve]:
    return [
        Curve(f"memory/{name}", f"memory in use, {name}", "bytes", at, in_use.astype(np.float64))
        for allocator, (at, in_use) in memory_in_use(signals.traces).items()
        # TensorFlow 2.7 writes a zero byte in place of the name's first letter.
        for name in [allocator.replace("\0", "")]
    ]
