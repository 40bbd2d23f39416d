"""The layers of the stored model: how their weights start, and what comes between them.

As in `model_settings`, only plain JSON is read, and what is missing or odd is None. Weights may
have been loaded after the model was created: this is only how the model was built, and the loss
shows whether that matters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from stall_analyzer.model.event_log import KerasConfig
from stall_analyzer.model.records import dataclass

Json = Mapping[str, object]

WEIGHTED = frozenset(
    {"Dense", "EinsumDense", "Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose",
     "Conv3DTranspose"}
)  # fmt: skip
NORMALIZING = frozenset(
    {"BatchNormalization", "LayerNormalization", "GroupNormalization", "UnitNormalization",
     "RMSNormalization", "SyncBatchNormalization"}
)  # fmt: skip
# The output of these is a linear function of their input, whatever their settings.
LINEAR = frozenset(
    {"InputLayer", "Flatten", "Reshape", "Permute", "Dropout", "SpatialDropout1D",
     "SpatialDropout2D", "Rescaling", "Normalization", "BatchNormalization", "Identity", "Add",
     "Subtract", "Average", "Concatenate", "AveragePooling1D", "AveragePooling2D",
     "GlobalAveragePooling1D", "GlobalAveragePooling2D", "ZeroPadding1D", "ZeroPadding2D",
     "Cropping1D", "Cropping2D", "UpSampling1D", "ActivityRegularization"}
)  # fmt: skip
ACTIVATIONS = {"Softmax": "softmax", "ReLU": "relu", "LeakyReLU": "leaky_relu", "ELU": "elu",
               "PReLU": "prelu"}  # fmt: skip
SATURATING = frozenset({"sigmoid", "tanh", "hard_sigmoid", "softsign"})
# Between the weights and their activation; none of them changes whether a gradient gets through.
PASSED = frozenset({"Dropout", "Flatten", "Reshape", "Identity", "ActivityRegularization"})
_CONSTANTS = {"zeros": 0.0, "zero": 0.0, "ones": 1.0, "one": 1.0}


@dataclass(frozen=True)
class Start:
    """How an initializer fills a weight."""

    constant: float | None = None  # the value that all of it has
    deviation: float | None = None  # None: as wide as suits the number of inputs


@dataclass(frozen=True)
class WeightLayer:
    """A layer with a kernel."""

    name: str
    kind: str
    activation: str | None  # its own, or that of the layer after it; "linear" if there is none
    kernel: Start
    bias: Start
    normalized: bool  # between its weights and its activation, or right after
    inputs: int | None  # of one unit
    penalty: float | None  # what its regularizers add to the first loss; None: not known


@dataclass(frozen=True)
class StoredLayers:
    """Empty where no model was stored, or only a subclassed one."""

    all: tuple[Json, ...] = ()
    weighted: tuple[WeightLayer, ...] = ()
    is_chain: bool = False

    @property
    def hidden(self) -> tuple[WeightLayer, ...]:
        return self.weighted[:-1]

    def activation_of(self, name: str) -> str | None:
        return next((layer.activation for layer in self.weighted if layer.name == name), None)

    @property
    def is_linear(self) -> bool:
        """Whether it has at least two layers with weights, and everything between is linear."""
        if len(self.weighted) < 2:
            return False
        last = [_name(layer) for layer in self.all].index(self.weighted[-1].name)
        return all(_is_linear(layer) for layer in self.all[:last])

    @property
    def penalty(self) -> float | None:
        """What the regularizers add to the first loss; None where that cannot be worked out."""
        known = [layer.penalty for layer in self.weighted if layer.penalty is not None]
        others = [layer for layer in self.all if layer.get("class_name") not in WEIGHTED]
        if len(known) < len(self.weighted) or any(_regularizers(layer) for layer in others):
            return None
        return sum(known)


def stored_layers(keras: KerasConfig | None) -> StoredLayers:
    if keras is None:
        return StoredLayers()
    return StoredLayers(keras.layers, tuple(_weighted(keras.layers)), keras.is_chain)


def _weighted(layers: Sequence[Json]) -> Iterator[WeightLayer]:
    for at, layer in enumerate(layers):
        if layer.get("class_name") not in WEIGHTED:
            continue
        behind = _behind(layers[at + 1 :])
        own, kernel = _activation(layer), _start(layer, "kernel_initializer")
        yield WeightLayer(
            name=_name(layer),
            kind=str(layer["class_name"]),
            activation=own if own != "linear" else _first_activation(behind),
            kernel=kernel,
            bias=_start(layer, "bias_initializer"),
            normalized=any(one.get("class_name") in NORMALIZING for one in behind),
            inputs=_inputs(layer),
            penalty=_penalty(layer, kernel),
        )


def _behind(layers: Sequence[Json]) -> list[Json]:
    """The layers up to the next activation, or up to one that does not belong to this layer."""
    found: list[Json] = []
    for layer in layers:
        kind = layer.get("class_name")
        if kind == "Activation" or kind in ACTIVATIONS:
            return [*found, layer]
        if kind not in PASSED and kind not in NORMALIZING:
            break
        found.append(layer)
    return found


def _first_activation(behind: Sequence[Json]) -> str | None:
    return _activation(behind[-1]) if behind else "linear"


def _activation(layer: Json) -> str | None:
    """None where it is not known, such as a custom function."""
    kind = str(layer.get("class_name"))
    if kind in ACTIVATIONS:
        return ACTIVATIONS[kind]
    value = layer.get("activation")
    if value is None:
        return "linear"
    return value if isinstance(value, str) else None


def _is_linear(layer: Json) -> bool:
    kind = layer.get("class_name")
    return kind in LINEAR or (kind in WEIGHTED and _activation(layer) == "linear")


def _start(layer: Json, key: str) -> Start:
    name, settings = layer.get(key), _settings(layer, key)
    kind = name.lower() if isinstance(name, str) else ""
    if kind in _CONSTANTS:
        return Start(constant=_CONSTANTS[kind])
    if kind == "constant":
        return Start(constant=_number(settings.get("value", 0.0)))
    return Start(deviation=_deviation(kind.replace("_", ""), settings))


def _deviation(kind: str, settings: Json) -> float | None:
    if kind in ("randomnormal", "truncatednormal"):
        return _number(settings.get("stddev"))
    if kind == "randomuniform":
        low, high = _number(settings.get("minval")), _number(settings.get("maxval"))
        return (high - low) / math.sqrt(12) if low is not None and high is not None else None
    return None


def _inputs(layer: Json) -> int | None:
    shape = layer.get("input_shape")
    if not isinstance(shape, list) or not shape or not isinstance(shape[-1], int):
        return None
    window = layer.get("kernel_size")
    sides = window if isinstance(window, list) else []
    return shape[-1] * math.prod(side for side in sides if isinstance(side, int)) or None


def _penalty(layer: Json, kernel: Start) -> float | None:
    """For fresh weights: biases mostly start at 0, and the outputs are not known."""
    used = _regularizers(layer)
    if not used:
        return 0.0
    inputs, units = _inputs(layer), layer.get("units", layer.get("filters"))
    if used != ["kernel_regularizer"] or inputs is None or not isinstance(units, int):
        return None
    usual = math.sqrt(2 / (inputs + units))  # Glorot's, the default
    spread = abs(kernel.constant) if kernel.constant is not None else kernel.deviation or usual
    settings = _settings(layer, used[0])
    l1, l2 = (_number(settings.get(key)) or 0.0 for key in ("l1", "l2"))
    return inputs * units * (l2 * spread**2 + l1 * spread)


def _regularizers(layer: Json) -> list[str]:
    return [key for key, value in layer.items() if key.endswith("_regularizer") and value]


def _settings(layer: Json, key: str) -> Json:
    settings = layer.get("settings")
    value = settings.get(key) if isinstance(settings, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _name(layer: Json) -> str:
    return str(layer.get("name") or layer.get("class_name"))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
