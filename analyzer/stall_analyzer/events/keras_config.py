"""What the TensorBoard callback stored about the model, read as plain JSON.

Nothing is deserialized by Keras: a lambda in that JSON is marshaled bytecode. Every value may
have an unexpected type; what we do not understand becomes None or is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from stall_analyzer.errors import UnreadableFile
from stall_analyzer.model.event_log import KerasConfig

LAMBDA = "<lambda>"
MAX_DEPTH = 50  # for models inside models; no real one comes close

Json = Mapping[str, object]


def parse_keras_config(text: str, wall_ns: int) -> KerasConfig:
    """Raises UnreadableFile when `text` is not the JSON of a model."""
    model = _load(text)
    compiled = _object(model.get("compile_config"))
    optimizer = _object(compiled.get("optimizer"))
    optimizer_config = _object(optimizer.get("config"))
    return KerasConfig(
        wall_ns=wall_ns,
        model_class=_text(model.get("class_name")) or "unknown",
        layers=tuple(_layers(model, MAX_DEPTH)),
        is_chain=_is_chain(model, MAX_DEPTH),
        optimizer=_name(compiled.get("optimizer"), prefer_class=True),
        learning_rate=_learning_rate(optimizer_config),
        loss=_loss(compiled.get("loss")),
        run_eagerly=_boolean(compiled.get("run_eagerly")),
        jit_compile=_jit_compile(compiled.get("jit_compile")),
        steps_per_execution=_integer(compiled.get("steps_per_execution")),
        optimizer_config=optimizer_config,
        compile_config=compiled,
    )


def _load(text: str) -> Json:
    try:
        value: object = json.loads(text)
        if isinstance(value, str):  # some versions store the JSON of a JSON string
            value = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile("the stored model is not valid JSON") from error
    if not _is_object(value) or "class_name" not in value:
        raise UnreadableFile("the stored JSON does not describe a Keras model")
    return value


def _layers(model: Json, depth: int) -> Iterator[Json]:
    """The layers of a model in order; models inside it and wrapped layers are flattened."""
    if depth == 0:
        return
    config = model.get("config")
    # Keras 2.0 wrote a Sequential's layers directly as its config.
    layers = config if isinstance(config, list) else _object(config).get("layers")
    for layer in layers if isinstance(layers, list) else ():
        if _is_object(layer):
            yield from _layer(layer, depth)


def _layer(layer: Json, depth: int) -> Iterator[Json]:
    config = _object(layer.get("config"))
    if isinstance(config.get("layers"), list):
        yield from _layers(layer, depth - 1)
        return
    flat = {key: _plain(value) for key, value in config.items() if not _is_layer(value)}
    flat["settings"] = {
        key: value["config"] for key, value in config.items() if _has_settings(value)
    }
    flat["class_name"] = _text(layer.get("class_name")) or "unknown"
    flat["name"] = _text(config.get("name")) or _text(layer.get("name"))
    flat["registered_name"] = _text(layer.get("registered_name"))
    if "input_shape" in _object(layer.get("build_config")):
        flat["input_shape"] = _object(layer.get("build_config"))["input_shape"]
    yield flat
    if depth > 1:
        for value in config.values():  # Bidirectional, TimeDistributed and the like
            if _is_object(value) and _is_layer(value):
                yield from _layer(value, depth - 1)


def _is_chain(model: Json, depth: int) -> bool:
    """Whether each layer feeds only the next one, so that nothing bypasses a broken layer."""
    if depth == 0:
        return False
    config = model.get("config")
    layers = config if isinstance(config, list) else _object(config).get("layers")
    if not isinstance(layers, list):
        return False
    inside = [layer for layer in layers if "layers" in _object(_object(layer).get("config"))]
    if not all(_is_chain(layer, depth - 1) for layer in inside):
        return False
    fed_by = [_fed_by(_object(layer).get("inbound_nodes")) for layer in layers]
    if not any(fed_by):  # a Sequential need not say
        return _text(model.get("class_name")) == "Sequential" or isinstance(config, list)
    sources = [name for names in fed_by for name in names]
    return all(len(names) <= 1 for names in fed_by) and len(set(sources)) == len(layers) - 1


def _fed_by(nodes: object) -> list[str]:
    """The layers whose outputs a layer takes, once per use, as Keras 2 or 3 writes them."""
    if isinstance(nodes, list):
        if len(nodes) == 4 and isinstance(nodes[0], str):  # Keras 2: name, node, tensor, arguments
            return [nodes[0]]
        return [name for node in nodes for name in _fed_by(node)]
    if not _is_object(nodes):
        return []
    history = _object(nodes.get("config")).get("keras_history")
    if isinstance(history, list) and history and isinstance(history[0], str):
        return [history[0]]
    return [name for value in nodes.values() for name in _fed_by(value)]


def _has_settings(value: object) -> TypeGuard[Json]:
    """An initializer or a regularizer that has numbers."""
    return _is_object(value) and _is_object(value.get("config")) and not _is_layer(value)


def _is_layer(value: object) -> bool:
    """Whether a config value is a wrapped layer; an activation may be a layer, but is not one."""
    if not _is_object(value) or "class_name" not in value:
        return False
    config = _object(value.get("config"))
    return "units" in config or "filters" in config or "layers" in config or "cell" in config


def _plain(value: object) -> object:
    """Serialized objects become their names, everything else stays as it is."""
    return _name(value) if _is_object(value) else value


def _name(value: object, prefer_class: bool = False) -> str | None:
    """`relu`, `GlorotUniform`, `mean_squared_error`, `mixed_float16`, `<lambda>` …"""
    if not _is_object(value):
        return _text(value)
    class_name = _text(value.get("class_name"))
    if class_name == "__lambda__" or "value" in value:
        return LAMBDA
    config = value.get("config")
    if isinstance(config, str):  # a function: its config is its name
        return LAMBDA if config in {"lambda", LAMBDA} else config
    own_name = _text(_object(config).get("name"))
    if prefer_class:
        return class_name or own_name
    is_policy = class_name is not None and class_name.endswith("Policy")
    is_loss = _text(value.get("module")) == "keras.losses"
    return own_name if own_name and (is_policy or is_loss) else class_name or own_name


def _loss(value: object) -> str | None:
    """One name; for a model with several outputs, their names joined by commas."""
    if isinstance(value, list):
        several = value
    elif _is_object(value) and "class_name" not in value and "value" not in value:
        several = list(value.values())
    else:
        return _name(value)
    return ", ".join(_name(loss) or "none" for loss in several) or None


def _learning_rate(optimizer_config: Json) -> float | None:
    """None for a schedule: its settings stay in the optimizer's config."""
    wrapped = _object(optimizer_config.get("inner_optimizer"))  # loss scaling wraps the real one
    config = _object(wrapped.get("config")) if wrapped else optimizer_config
    rate = config.get("learning_rate")
    return float(rate) if isinstance(rate, (int, float)) and not isinstance(rate, bool) else None


def _jit_compile(value: object) -> bool | str | None:
    return value if isinstance(value, (bool, str)) else None


def _is_object(value: object) -> TypeGuard[Json]:
    return isinstance(value, dict)


def _object(value: object) -> Json:
    return value if _is_object(value) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _boolean(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
