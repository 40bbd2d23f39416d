"""What a capture measured inside the layers: gradients, updates and dead units, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.captures.capture_records import WeightsRecord
from stall_analyzer.model.columns import distinct, median
from stall_analyzer.model.event_log import Capture, Series
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import Bools, Float64s, Int64s
from stall_analyzer.signals.numerics.losses import first_fit


@dataclass(frozen=True)
class LayerSeries:
    """One measure: a row per measured step, a column per layer in the model's order."""

    layers: tuple[str, ...]
    step: Int64s  # from 1
    value: Float64s  # also NaN if a layer was not measured in that step

    def __len__(self) -> int:
        return len(self.step)

    def of(self, layer: str) -> Float64s:
        """Every measured value that is a number."""
        column = self.value[:, self.layers.index(layer)]
        return column[np.isfinite(column)]

    def usual(self, layer: str) -> float | None:
        values = self.of(layer)
        return float(median(values)) if len(values) else None

    @property
    def total(self) -> Float64s:
        """The norm over all layers together, in each measured step."""
        with np.errstate(over="ignore"):
            return np.asarray(np.sqrt(np.sum(self.value**2, axis=1)), dtype=np.float64)

    def last_run(self, layer: str, holds: Bools) -> int:
        """For how many steps in a row, up to the last one measured, the condition holds."""
        broken = np.flatnonzero(~holds[:, self.layers.index(layer)])
        return len(self) - 1 - int(broken[-1]) if len(broken) else len(self)


@dataclass(frozen=True)
class LayerSignals:
    """All None where there is no capture, or it could not look into the step."""

    gradients: LayerSeries | None = None  # norm of the largest weight's gradient
    updates: LayerSeries | None = None  # norm of the update divided by the norm of the weight
    dead: LayerSeries | None = None  # share of the units without a gradient
    weights: WeightsRecord | None = None  # which of the model's weights are trained


def layer_signals(capture: Capture | None) -> LayerSignals:
    if capture is None:
        return LayerSignals()
    known = capture.model.layers if capture.model is not None else ()
    return LayerSignals(
        gradients=_series(capture.series, Tag.GRADIENT_NORM_OF, known),
        updates=_series(capture.series, Tag.UPDATE_RATIO_OF, known),
        dead=_series(capture.series, Tag.DEAD_UNITS_OF, known),
        weights=_weights(capture),
    )


def _weights(capture: Capture) -> WeightsRecord | None:
    """As of the last look during the first fit: later fits may train another model."""
    ends = [fit[0].ns for fit in capture.fits[1:2]]
    mine = [record for record in capture.weights if not ends or record.ns < ends[0]]
    return mine[-1] if mine else None


def _series(series: Mapping[str, Series], tag: str, known: Sequence[str]) -> LayerSeries | None:
    prefix = tag.removeprefix(Tag.ALL)
    found = {
        name.removeprefix(prefix): fit
        for name, logged in series.items()
        if name.startswith(prefix) and (fit := first_fit(logged)) is not None and len(fit)
    }
    if not found:
        return None
    layers = [layer for layer in known if layer in found]
    layers += [layer for layer in found if layer not in layers]
    steps = distinct(np.concatenate([found[layer].step for layer in layers]))
    value = np.full((len(steps), len(layers)), np.nan)
    for column, layer in enumerate(layers):
        value[np.searchsorted(steps, found[layer].step), column] = found[layer].value
    return LayerSeries(tuple(layers), steps + 1, value)
