"""Layers that logged histograms show to be dead: nothing but zeros, or weights that never move."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stall_analyzer.model.event_log import EventLog, HistogramSums, KerasConfig
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass

# What people call the outputs of an activation. Weights and gradients may well be zeros.
ACTIVATION = pattern(r"relu|activation", re.IGNORECASE)
NO_ACTIVATION = pattern(r"grad|kernel|bias|weight", re.IGNORECASE)
# As Keras names the weights of a layer: `model/dense_1/kernel/histogram`.
WEIGHTS = pattern(r"(?:.*/)?(?P<layer>[^/]+)/(?P<weight>kernel|bias)(_0)?(/histogram)?")


@dataclass(frozen=True)
class HistogramSignals:
    """Layers that logged histograms show to be dead."""

    zero_activations: Mapping[str, HistogramSums]  # by tag; the last record contains only zeros
    still_kernels: Mapping[str, HistogramSums]  # by layer, in order; trainable, while others move


def histogram_signals(events: EventLog | None) -> HistogramSignals:
    if events is None:
        return HistogramSignals({}, {})
    zeros = {
        tag: sums
        for tag, sums in events.histograms.items()
        if sums.zero_run and ACTIVATION.search(tag) and not NO_ACTIVATION.search(tag)
    }
    return HistogramSignals(zeros, _still_kernels(events.histograms, events.keras))


def _still_kernels(
    histograms: Mapping[str, HistogramSums], keras: KerasConfig | None
) -> dict[str, HistogramSums]:
    """Empty where no weight moves: then it is the learning rate, not a dead layer."""
    weights = [(WEIGHTS.fullmatch(tag), sums) for tag, sums in histograms.items()]
    known = [(match, sums) for match, sums in weights if match is not None]
    moving = any(sums.records > 1 and sums.same_run == 1 for _, sums in known)
    if keras is None or not moving:
        return {}
    still = {
        match["layer"]: sums
        for match, sums in known
        if match["weight"] == "kernel" and sums.same_run > 1
    }
    trainable = [layer.get("name") for layer in keras.layers if layer.get("trainable") is True]
    return {str(layer): still[str(layer)] for layer in trainable if layer in still}
