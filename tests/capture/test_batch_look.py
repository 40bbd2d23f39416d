"""What a capture says about batches, compared with numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stall_analyzer.captures.capture_format import BatchNumber, Tag
from stall_analyzer.discover.discover import discover
from stall_analyzer.model.findings import Finding
from stall_analyzer.pipeline import analyze
from tb_stall_plugin import StallCallback, watch
from tb_stall_plugin.capture.training.batch_numbers import BatchNumbers
from tb_stall_plugin.capture.training.batch_sample import (
    INPUTS,
    LABELS,
    OUTPUTS,
    WEIGHTS,
    packed,
    packed_length,
    unpacked,
)
from tb_stall_plugin.capture.training.tracing_counts import tracing_counts
from tests.capture import capture_logs
from tests.capture.small_trainings import FEATURES, finish, keras, small_model, tf

RANDOM = np.random.default_rng(3)
ROLES = {"x": INPUTS, "y": LABELS, "y_pred": OUTPUTS, "sample_weight": WEIGHTS}


def numbers(*batches: dict[str, Any]) -> dict[str, float]:
    """The numbers of the last of these batches."""
    look = BatchNumbers()
    for batch in batches:
        tensors = [tf.constant(np.asarray(value, dtype="float32")) for value in batch.values()]
        vector = packed([ROLES[name] for name in batch], tensors).numpy()
        assert len(vector) == packed_length(tensors)
        values = look.of(unpacked(vector))
    return {tag.removeprefix(Tag.BATCH): value for tag, value in values.items()}


def test_a_sample_of_a_small_tensor_is_the_tensor() -> None:
    x = RANDOM.normal(size=(5, 3)).astype("float32")
    [part] = unpacked(packed([INPUTS], [tf.constant(x)]).numpy())
    assert np.array_equal(part.sample, x)
    assert (part.rank, part.last, part.rows, part.columns) == (2, 3, 5, 3)


def test_a_sample_of_a_large_tensor_is_bounded() -> None:
    [part] = unpacked(packed([INPUTS], [tf.ones([500, 40, 40])]).numpy())
    assert part.sample.shape == (64, 256)
    assert (part.rows, part.columns) == (500, 1600)


def test_a_batch_whose_size_is_known_only_when_it_runs() -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def sampled(x: Any) -> Any:
        return packed([INPUTS], [x])

    x = RANDOM.normal(size=(5, 3)).astype("float32")
    [part] = unpacked(sampled(x).numpy())
    assert np.array_equal(part.sample, x)


def test_ranges_and_shares_of_values_that_are_not_finite() -> None:
    x = np.array([[1.0, 5.0], [np.nan, 5.0], [3.0, 5.0], [4.0, 5.0]])
    found = numbers({"x": x})
    assert found["inputs/not_finite"] == pytest.approx(1 / 8)
    assert (found["inputs/smallest"], found["inputs/largest"]) == (1.0, 5.0)
    assert found[BatchNumber.INPUTS_CONSTANT] == 0.5
    assert found[BatchNumber.ROWS] == 4


def test_classes_cost_their_entropy() -> None:
    y = np.array([0, 0, 0, 1, 1, 2])
    shares = np.array([3, 2, 1]) / 6
    entropy = -(shares * np.log(shares)).sum()
    outputs = RANDOM.normal(size=(6, 3))
    found = numbers({"y": y, "y_pred": outputs})
    assert found[BatchNumber.LABELS_ENTROPY] == pytest.approx(entropy)
    assert found[BatchNumber.LABELS_KINDS] == 3
    one_hot = numbers({"y": np.eye(3)[y], "y_pred": outputs})
    assert one_hot[BatchNumber.LABELS_ENTROPY] == pytest.approx(entropy)


def test_weights_count_as_in_the_loss_of_keras() -> None:
    y, weight = np.array([0, 1, 1, 1]), np.array([3.0, 1.0, 1.0, 1.0])
    found = numbers({"y": y, "y_pred": np.zeros((4, 2)), "sample_weight": weight})
    constant = np.full((4, 2), 0.5, "float32")  # weighted, both classes are equally frequent
    loss = keras.losses.SparseCategoricalCrossentropy()(y, constant, sample_weight=weight)
    assert found[BatchNumber.LABELS_ENTROPY] == pytest.approx(float(loss), rel=1e-5)


def test_shares_of_columns_cost_what_binary_cross_entropy_makes_of_their_means() -> None:
    y = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    means = np.broadcast_to(y.mean(0), y.shape)
    loss = keras.losses.BinaryCrossentropy()(y, means)
    found = numbers({"y": y, "y_pred": np.zeros((4, 2))})
    assert found[BatchNumber.LABELS_ENTROPY] == pytest.approx(float(loss), rel=1e-4)


def test_quantities_cost_their_variance() -> None:
    y = RANDOM.normal(size=(40, 2)) * [1.0, 5.0]
    found = numbers({"y": y[:20], "y_pred": y[:20]}, {"y": y[20:], "y_pred": y[20:]})
    assert found[BatchNumber.LABELS_VARIANCE] == pytest.approx(y.var(0).mean(), rel=1e-4)
    assert BatchNumber.LABELS_KINDS not in found


@pytest.mark.parametrize(("ordered", "low", "high"), [(True, 0.0, 0.01), (False, 0.7, 1.3)])
def test_the_share_within_batches_tells_order(ordered: bool, low: float, high: float) -> None:
    y = np.repeat(np.arange(8), 32)
    y = y if ordered else RANDOM.permutation(y)
    batches = [{"y": part, "y_pred": np.zeros((32, 8))} for part in np.split(y, 8)]
    assert low <= numbers(*batches)[BatchNumber.LABELS_WITHIN] <= high


def test_weights_of_rare_classes_do_not_count_as_an_order() -> None:
    rare = np.zeros(32)
    rare[0] = 1
    batches = [
        {"y": y, "y_pred": np.zeros((32, 1)), "sample_weight": 1 + 30 * y}
        for y in (rare, 0 * rare, rare, rare)
    ]
    assert numbers(*batches)[BatchNumber.LABELS_WITHIN] > 0.9


def train(folder: Path, model: Any, x: Any, y: Any, **options: Any) -> None:
    usual = {"batch_size": 16, "epochs": 2, "verbose": 0}
    callback = StallCallback(folder, profile=False, report=False)
    model.fit(x, y, callbacks=[callback], **{**usual, **options})
    finish(folder)


def found(folder: Path) -> dict[str, Finding]:
    [run] = discover([str(folder)]).runs
    return {finding.name: finding for finding in analyze(run).findings}


@pytest.mark.parametrize("options", [{}, {"run_eagerly": True}, {"jit_compile": True}])
def test_a_fit_is_looked_at_however_it_runs(tmp_path: Path, options: dict[str, Any]) -> None:
    x = RANDOM.normal(size=(512, FEATURES)).astype("float32")
    y = x[:, :1]
    train(tmp_path, small_model(**options), x, y, shuffle=False, epochs=1)
    scalars = capture_logs.scalars(tmp_path)
    assert scalars[Tag.BATCH + "inputs/largest"][0][1] == pytest.approx(x[:16].max())
    assert scalars[Tag.BATCH + "labels/mean"][1][1] == pytest.approx(y[16:32].mean(), abs=1e-6)
    assert capture_logs.records(tmp_path, "note") == []


def test_without_the_probe_no_batch_is_looked_at(tmp_path: Path) -> None:
    model = small_model()
    callback = StallCallback(tmp_path, profile=False, report=False, probe=False)
    model.fit(np.ones((32, FEATURES)), np.ones((32, 1)), callbacks=[callback], verbose=0)
    finish(tmp_path)
    assert not [tag for tag in capture_logs.scalars(tmp_path) if tag.startswith(Tag.BATCH)]
    assert capture_logs.records(tmp_path, "weights") == []


def test_inputs_of_several_kinds_are_handled(tmp_path: Path) -> None:
    words = keras.layers.Input((1,), dtype="string", name="words")
    lengths = keras.layers.Input((2,), name="lengths")
    model = keras.Model({"words": words, "lengths": lengths}, keras.layers.Dense(1)(lengths))
    model.compile("sgd", "mse")
    x = {"words": np.array([["a"]] * 32), "lengths": np.ones((32, 2), "float32")}
    data = tf.data.Dataset.from_tensor_slices((x, np.ones((32, 1), "float32"))).batch(4)
    callback = StallCallback(tmp_path, profile=False, report=False)
    model.fit(data, callbacks=[callback], verbose=0)
    finish(tmp_path)
    assert capture_logs.scalars(tmp_path)[Tag.BATCH + BatchNumber.INPUTS_CONSTANT][0][1] == 1.0
    assert capture_logs.records(tmp_path, "note") == []


def test_a_loop_shows_its_batches(tmp_path: Path) -> None:
    y, outputs = RANDOM.normal(size=8), RANDOM.normal(size=(8, 1))
    loss = float(np.mean(np.subtract.outer(y, outputs[:, 0]) ** 2))
    with watch(tmp_path, profile=False, report=False) as w:
        w.epoch()
        for _ in range(20):
            w.step(loss=loss, x=np.zeros((8, 3)), y=y, y_pred=tf.constant(outputs))
    finish(tmp_path)
    assert {"constant_input", "wrong_shape"} <= set(found(tmp_path))


def test_inputs_that_are_all_zero_are_found(tmp_path: Path) -> None:
    y = RANDOM.normal(size=(640, 1)).astype("float32")
    train(tmp_path, small_model(), np.zeros((640, FEATURES), "float32"), y, epochs=3)
    finding = found(tmp_path)["constant_input"]
    assert (finding.severity, finding.title) == ("act", "All inputs are 0")


def test_labels_that_are_all_the_same_are_found(tmp_path: Path) -> None:
    x = RANDOM.normal(size=(640, FEATURES)).astype("float32")
    train(tmp_path, small_model(), x, np.ones((640, 1), "float32"))
    assert found(tmp_path)["constant_labels"].severity == "act"


def test_data_that_is_sorted_by_label_is_found(tmp_path: Path) -> None:
    x = RANDOM.normal(size=(640, FEATURES)).astype("float32")
    train(tmp_path, small_model(), x, np.sort(x[:, :1], axis=0), shuffle=False)
    assert "not_shuffled" in found(tmp_path)


def test_a_sound_training_has_none_of_these(tmp_path: Path) -> None:
    x = RANDOM.normal(size=(640, FEATURES)).astype("float32")
    train(tmp_path, small_model(), x, x[:, :1], epochs=3)
    names = {"constant_input", "constant_labels", "not_shuffled", "wrong_shape", "frozen"}
    assert names.isdisjoint(found(tmp_path))
    assert "labels_do_not_fit" not in found(tmp_path)


def test_a_look_changes_no_weight_and_causes_no_retracing(tmp_path: Path) -> None:
    x = RANDOM.normal(size=(256, FEATURES)).astype("float32")
    plain, looked_at = small_model(), small_model()
    plain.fit(x, x[:, :1], batch_size=12, epochs=2, verbose=0, shuffle=False)
    train(tmp_path, looked_at, x, x[:, :1], batch_size=12, shuffle=False)
    for one, other in zip(plain.get_weights(), looked_at.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    ours, theirs = (tracing_counts(model) for model in (looked_at, plain))
    assert ours == theirs
