"""How the model was compiled, as far as the stored Keras model shows.

Only plain JSON is read. Every value may be missing or of an unexpected type: then it is None, and
no detector may rely on it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from stall_analyzer.model.event_log import KerasConfig
from stall_analyzer.model.records import dataclass

Json = Mapping[str, object]

BINARY = "binary_crossentropy"
CATEGORICAL = ("categorical_crossentropy", "sparse_categorical_crossentropy")
CROSS_ENTROPIES = (BINARY, *CATEGORICAL)
_SHORT_NAMES = {"bce": BINARY, "mse": "mean_squared_error", "mae": "mean_absolute_error"}
# Layers after the last one with weights that do not change what its units mean.
_TRANSPARENT = frozenset({"Dropout", "ActivityRegularization", "Identity"})
_ACTIVATION_LAYERS = {"Softmax": "softmax", "ReLU": "relu"}
_OUTPUT_LAYERS = frozenset({"Dense", "Conv1D", "Conv2D", "Conv3D", "EinsumDense"})
_SCALING_LAYERS = frozenset(
    {"Rescaling", "Normalization", "BatchNormalization", "LayerNormalization"}
)
_CLIPS = ("clipnorm", "global_clipnorm", "clipvalue")
_RATES_OF_A_SCHEDULE = ("initial_learning_rate", "warmup_target", "end_learning_rate", "values")


@dataclass(frozen=True)
class Output:
    """The layer whose output goes into the loss."""

    name: str
    units: int | None
    activation: str | None  # "linear" where there is none


@dataclass(frozen=True)
class ModelSettings:
    """The model and how it was compiled."""

    compiled: bool = True  # False: only the layers were stored, as Keras 2 does
    optimizer: str | None = None  # the real one, even with loss scaling
    momentum: float = 0.0
    clips: Mapping[str, float] = field(default_factory=dict)  # clipnorm, clipvalue …
    learning_rate: float | None = None  # None for a schedule
    highest_rate: float | None = None  # the highest that the optimizer or its schedule can reach
    loss: str | None = None  # snake_case; None where there is none, or several
    from_logits: bool = False
    averaged: bool = True  # over the batch and unweighted, so it can be compared with a guess
    output: Output | None = None
    scales_input: bool = False
    smoothed: bool = False  # label smoothing: a guess costs more
    frozen: bool = False  # every layer says that it is not trained

    @property
    def classes(self) -> int | None:
        """The number of classes, if the model is certainly a classifier."""
        units = self.output.units if self.output is not None else None
        activation = self.output.activation if self.output is not None else None
        if self.loss == BINARY or (not self.compiled and units == 1 and activation == "sigmoid"):
            return 2
        over_classes = self.loss in CATEGORICAL or (not self.compiled and activation == "softmax")
        return units if over_classes and units and units > 1 else None

    @property
    def guess_loss(self) -> float | None:
        """The loss of a model that gives every class the same probability."""
        return math.log(self.classes) if self.classes and self.averaged else None


def settings_of(keras: KerasConfig | None) -> ModelSettings:
    if keras is None:
        return ModelSettings()
    compiled = keras.compile_config
    optimizer, config = _optimizer(keras)
    loss = _only(compiled.get("loss"))
    loss_config = _object(_object(loss).get("config"))
    return ModelSettings(
        compiled="loss" in compiled,
        optimizer=optimizer,
        momentum=_number(config.get("momentum")) or 0.0,
        clips={key: value for key in _CLIPS if (value := _number(config.get(key))) is not None},
        learning_rate=keras.learning_rate,
        highest_rate=_highest_rate(config.get("learning_rate")),
        loss=_loss_name(loss),
        from_logits=loss_config.get("from_logits") is True,
        averaged=loss_config.get("reduction", "sum_over_batch_size")
        in ("sum_over_batch_size", "mean", "auto")
        and compiled.get("loss_weights") is None
        and ("loss" in compiled or not compiled),  # a custom loop may average in any way
        output=_output(keras.layers),
        scales_input=any(layer.get("class_name") in _SCALING_LAYERS for layer in keras.layers),
        smoothed=bool(_number(loss_config.get("label_smoothing"))),
        frozen=_is_frozen(keras.layers),
    )


def _optimizer(keras: KerasConfig) -> tuple[str | None, Json]:
    wrapped = _object(keras.optimizer_config.get("inner_optimizer"))
    if wrapped:
        return _text(wrapped.get("class_name")), _object(wrapped.get("config"))
    return keras.optimizer, keras.optimizer_config


def _highest_rate(rate: object) -> float | None:
    if isinstance(rate, Mapping):
        settings = _object(rate.get("config"))
        found = [settings.get(key) for key in _RATES_OF_A_SCHEDULE]
        flat = [n for value in found for n in (value if isinstance(value, list) else [value])]
        rates = [number for n in flat if (number := _number(n)) is not None]
        return max(rates, default=None)
    return _number(rate)


def _only(loss: object) -> object:
    """The loss of a model with one output; models with several are not judged."""
    if isinstance(loss, list):
        return loss[0] if len(loss) == 1 else None
    if isinstance(loss, Mapping) and "class_name" not in loss:
        return next(iter(loss.values())) if len(loss) == 1 else None
    return loss


def _loss_name(loss: object) -> str | None:
    """The name of its class, because an object may have been given another name. None for a
    function, which could compute anything."""
    if isinstance(loss, Mapping):
        loss = None if isinstance(loss.get("config"), str) else loss.get("class_name")
    if not isinstance(loss, str):
        return None
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", loss).lower()
    return _SHORT_NAMES.get(snake, snake)


def _output(layers: Sequence[Json]) -> Output | None:
    """From the end: activations and dropout, then the layer with the units."""
    activation: str | None = None
    for layer in reversed(layers):
        kind = _text(layer.get("class_name")) or ""
        if kind in _TRANSPARENT:
            continue
        if kind == "Activation" or kind in _ACTIVATION_LAYERS:
            activation = (
                activation or _ACTIVATION_LAYERS.get(kind) or _text(layer.get("activation"))
            )
            continue
        if kind not in _OUTPUT_LAYERS:
            return None
        units = layer.get("units", layer.get("filters"))
        own = _text(layer.get("activation")) if layer.get("activation") is not None else "linear"
        name = _text(layer.get("name")) or kind
        return Output(name, units if isinstance(units, int) else None, activation or own)
    return None


def _is_frozen(layers: Sequence[Json]) -> bool:
    trainable = [
        layer.get("trainable") for layer in layers if "units" in layer or "filters" in layer
    ]
    return bool(trainable) and all(value is False for value in trainable)


def _object(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
