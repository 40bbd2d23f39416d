"""Is everything that should learn really trained? Which weights get a gradient, and which move?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stall_analyzer.captures.capture_records import WeightsRecord
from tb_stall_plugin.capture.training.probe import Probe, ids_of, tf_variable
from tb_stall_plugin.capture.training.updates import UpdateMeter
from tb_stall_plugin.capture.training.watched_layers import choose, layer_path


class TrainedWeights:
    """Compares samples of a model's weights at the end of epochs with those before."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        self._variables = list(getattr(model, "trainable_variables", None) or ())
        self._optimizer = optimizer
        self._layers = choose(self._variables, self._variables)
        self._names = {
            layer_path(self._variables[layer.weight]): layer.layer for layer in self._layers
        }
        weights = [tf_variable(self._variables[layer.weight]) for layer in self._layers]
        self._meter = UpdateMeter(self._layers, weights)
        self._meter.look()
        self._moved = {layer.layer: False for layer in self._layers}
        self._epochs = 0  # how many have ended

    def look(self, probe: Probe | None, steps: int) -> WeightsRecord | None:
        """Called after `steps` steps. None if there is nothing new to record."""
        self._epochs += 1
        is_due = self._epochs <= 3 or self._epochs & (self._epochs - 1) == 0  # 4, 8, 16 …
        if not self._variables or not is_due:
            return None
        for layer, (change, _) in zip(self._layers, self._meter.look() or (), strict=True):
            self._moved[layer.layer] |= change != 0
        seen = probe is not None and probe.is_in_step
        given = probe.given if probe is not None else set()
        left_out = [v for v in self._variables if not ids_of(v) & given] if seen else []
        return WeightsRecord(
            steps=steps,
            layers=tuple(self._moved),
            still=tuple(layer for layer, moved in self._moved.items() if not moved),
            not_given=self._named(left_out),
            no_gradient=self._named(probe.without_gradient) if probe is not None else (),
            updates=_updates(self._optimizer),
        )

    def _named(self, variables: Iterable[Any]) -> tuple[str, ...]:
        """The layers of these variables, if they are among those that are watched."""
        paths = dict.fromkeys(layer_path(variable) for variable in variables)
        return tuple(self._names[path] for path in paths if path in self._names)


def _updates(optimizer: Any) -> int | None:
    """How often the optimizer says that it was applied."""
    try:
        return int(getattr(optimizer, "inner_optimizer", optimizer).iterations.numpy())
    except (AttributeError, TypeError, ValueError):  # it is not one of Keras's own
        return None
