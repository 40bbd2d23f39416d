"""What is read from the JSON of a model, in the shapes that Keras 2 and Keras 3 write."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stall_analyzer.discover.discover import discover
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.events.event_files import read_events
from stall_analyzer.events.keras_config import parse_keras_config
from stall_analyzer.model.event_log import KerasConfig
from tests import corpus
from tests.detectors.stored_models import VERSIONS, stored


def policy(name: str) -> dict[str, object]:
    return {"module": "keras", "class_name": "DTypePolicy", "config": {"name": name}}


def layer(class_name: str, **config: object) -> dict[str, object]:
    return {"class_name": class_name, "config": config, "registered_name": None}


def optimizer(class_name: str, **config: object) -> dict[str, object]:
    return {"module": "keras.optimizers", "class_name": class_name, "config": config}


def parse(layers: list[object] | None = None, **compile_config: object) -> KerasConfig:
    model = {
        "class_name": "Sequential",
        "config": {"name": "m", "layers": layers or []},
        "compile_config": compile_config,
    }
    return parse_keras_config(json.dumps(model), wall_ns=7)


def test_compile_settings_of_keras_3() -> None:
    config = parse(
        optimizer=optimizer("Adam", learning_rate=0.001),
        loss="mse", run_eagerly=False, jit_compile="auto", steps_per_execution=4,
    )  # fmt: skip
    assert config.wall_ns == 7
    assert (config.optimizer, config.learning_rate, config.loss) == ("Adam", 0.001, "mse")
    assert (config.run_eagerly, config.jit_compile, config.steps_per_execution) == (
        False, "auto", 4,
    )  # fmt: skip


def test_a_schedule_is_not_a_rate_but_its_settings_are_kept() -> None:
    schedule = {"class_name": "ExponentialDecay", "config": {"initial_learning_rate": 0.1}}
    config = parse(optimizer=optimizer("SGD", learning_rate=schedule))
    assert config.learning_rate is None
    assert config.optimizer_config["learning_rate"] == schedule


def test_the_rate_under_loss_scaling_is_that_of_the_inner_optimizer() -> None:
    inner = optimizer("Adam", learning_rate=0.01)
    config = parse(optimizer=optimizer("LossScaleOptimizer", inner_optimizer=inner))
    assert (config.optimizer, config.learning_rate) == ("LossScaleOptimizer", 0.01)


FUNCTION = {"module": "builtins", "class_name": "function", "config": "my_loss"}


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        ("sparse_categorical_crossentropy", "sparse_categorical_crossentropy"),
        (
            {"module": "keras.losses", "class_name": "MeanSquaredError",
             "config": {"name": "mean_squared_error"}},
            "mean_squared_error",
        ),
        (FUNCTION, "my_loss"),
        ({"class_name": "__lambda__", "config": {"value": ["4wIA", None, None]}}, "<lambda>"),
        (["mse", FUNCTION], "mse, my_loss"),
        ({"a": "mse", "b": FUNCTION}, "mse, my_loss"),
        (None, None),
        (17, None),
    ],
)  # fmt: skip
def test_a_loss_by_name(loss: object, name: str | None) -> None:
    assert parse(loss=loss).loss == name


def test_layers_are_flat_and_their_settings_plain() -> None:
    dense = layer(
        "Dense", name="d", units=3, activation="relu", dtype=policy("mixed_float16"),
        kernel_initializer={"class_name": "GlorotUniform", "config": {}},
    )  # fmt: skip
    bidirectional = layer("Bidirectional", name="b", layer=layer("LSTM", name="f", units=2))
    inner_model = layer("Sequential", name="inner", layers=[dense])
    flat = parse([inner_model, bidirectional]).layers
    assert [(each["class_name"], each["name"]) for each in flat] == [
        ("Dense", "d"), ("Bidirectional", "b"), ("LSTM", "f"),
    ]  # fmt: skip
    assert flat[0]["units"] == 3
    assert flat[0]["dtype"] == "mixed_float16"
    assert flat[0]["kernel_initializer"] == "GlorotUniform"


def test_the_numbers_of_initializers_are_kept() -> None:
    bias = {"class_name": "Constant", "config": {"value": -0.6}}
    flat = parse([layer("Dense", name="d", units=3, bias_initializer=bias)]).layers
    assert flat[0]["bias_initializer"] == "Constant"
    assert flat[0]["settings"] == {"bias_initializer": {"value": -0.6}}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_chain_is_a_model_whose_layers_feed_only_the_next_one(version: str) -> None:
    chains = ("sound", "zeros, functional", "zeros, nested")
    assert all(stored(name, version).is_chain for name in chains)
    assert not stored("zeros, gone around", version).is_chain


@pytest.mark.parametrize(
    ("activation", "name"),
    [
        ("softmax", "softmax"),
        (
            {"module": "keras.layers", "class_name": "LeakyReLU", "config": {"name": "l"}},
            "LeakyReLU",
        ),
        ({"value": ["4wEA", None, None]}, "<lambda>"),
    ],
)
def test_an_activation_by_name(activation: object, name: str) -> None:
    assert parse([layer("Dense", units=1, activation=activation)]).layers[0]["activation"] == name


def test_json_inside_a_json_string() -> None:
    text = json.dumps(json.dumps({"class_name": "Functional", "config": {}}))
    assert parse_keras_config(text, 0).model_class == "Functional"


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '{"config": {}}', "[" * 100_000])
def test_anything_but_a_model_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(UnreadableFile, match="JSON"):
        parse_keras_config(text, 0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["class_name", "config", "layers", "layer", "name", "optimizer", "learning_rate",
             "loss", "compile_config", "value", "units", "inner_optimizer", "build_config"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=25,
)  # fmt: skip


@given(JSON)
def test_unexpected_types_never_raise(value: object) -> None:
    model: Mapping[str, object] = {"class_name": "M", "config": value, "compile_config": value}
    assert parse_keras_config(json.dumps(model), 0).model_class == "M"


def test_keras_2_stored_the_layers_but_not_how_the_model_was_compiled() -> None:
    keras = read_events(discover([corpus.case("L15")]).runs[0]).keras
    assert keras is not None
    assert keras.model_class == "Functional"
    assert [each["filters"] for each in keras.layers if each["class_name"] == "Conv2D"][:3] == [
        64, 64, 128,
    ]  # fmt: skip
    assert keras.layers[-1]["activation"] == "softmax"
    assert (keras.optimizer, keras.loss, keras.jit_compile) == (None, None, None)
