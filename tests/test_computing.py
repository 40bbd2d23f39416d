"""What a healthy run computes, and what could make it faster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from stall_analyzer.captures.capture_records import Environment
from stall_analyzer.diagnose.next_steps import PRODUCTS, _precision
from stall_analyzer.model.model_parts import ModelPart, ModelParts, NextStep
from stall_analyzer.signals.host.model_parts import OUTSIDE, layer_of
from stall_analyzer.signals.signals import Signals
from tests.real_documents import sample


@pytest.mark.parametrize(
    ("op", "layer"),
    [
        ("StatefulPartitionedCall/sequential_1/dense_1/Relu:_MklNativeFusedMatMul",
         "sequential_1/dense_1"),
        ("StatefulPartitionedCall/gradient_tape/sequential_1/dense_1/MatMul/MatMul_1:MatMul",
         "sequential_1/dense_1"),
        ("while/body/_1/while/cond/then/_139/while/cond/StatefulPartitionedCall/functional_1/"
         "dense_2/Add:AddV2", "functional_1/dense_2"),
        ("StatefulPartitionedCall/sgd_1/AssignSubVariableOp_2:AssignSubVariableOp", "sgd_1"),
        ("StatefulPartitionedCall/compile_loss/mean_squared_error/Mean:Mean",
         "compile_loss/mean_squared_error"),
        ("StatefulPartitionedCall/strided_slice:StridedSlice", OUTSIDE),
    ],
)  # fmt: skip
def test_an_op_belongs_to_the_layer_in_whose_scope_it_was_made(op: str, layer: str) -> None:
    assert layer_of(op) == layer


def test_a_healthy_run_says_what_it_computes_costliest_first() -> None:
    computing = sample("healthy")["computing"]
    assert computing is not None
    for parts in (computing["layers"], computing["kinds"]):
        listed_ps = sum(part["ps"] for part in parts)  # the costliest
        assert 0.99 * computing["ops_ps"] < listed_ps <= computing["ops_ps"]
        assert parts == sorted(parts, key=lambda part: -part["ps"])
    assert computing["kinds"][0]["name"] == "MatMul"
    assert computing["layers"][0]["name"].startswith("sequential_1/dense_1")


def test_with_large_products_neither_batches_nor_xla_would_save_much() -> None:
    computing = sample("healthy")["computing"]
    assert computing is not None
    steps = {step["topic"]: step for step in computing["next_steps"]}
    assert steps.keys() == {"batch size", "precision", "XLA", "threads"}
    assert not any(step["helps"] for step in steps.values())
    assert "however many rows it has" in steps["batch size"]["text"]


def test_a_run_that_is_held_up_has_findings_instead() -> None:
    assert sample("input_py_function")["computing"] is None


PARTS = ModelParts((), (ModelPart("MatMul", 80, 1), ModelPart("Relu", 20, 1)), 100, 0)


def precision(parts: ModelParts, native: bool | None, policy: str = "float32") -> NextStep | None:
    layers = ({"class_name": "Dense", "dtype": policy},)
    environment = Environment(bfloat16=native)
    signals = SimpleNamespace(
        keras=SimpleNamespace(layers=layers), capture=SimpleNamespace(environment=environment)
    )
    return _precision(cast(Signals, signals), parts)


@pytest.mark.parametrize("native", [True, False, None])
def test_precision_helps_if_the_cores_support_it(native: bool | None) -> None:
    step = precision(PARTS, native)
    assert step is not None
    assert step.helps is native
    assert "80% of the ops' time" in step.text


def test_precision_saves_little_if_products_take_little() -> None:
    step = precision(ModelParts((), (ModelPart("Relu", 100, 1),), 100, 0), True)
    assert step is not None and step.helps is False


def test_precision_that_is_mixed_already_is_not_advised() -> None:
    assert precision(PARTS, True, "mixed_bfloat16") is None


@pytest.mark.parametrize(
    ("kind", "is_product"),
    [("MatMul", True), ("BatchMatMulV2", True), ("Conv2DBackpropFilter", True), ("Einsum", True),
     ("DepthwiseConv2dNativeBackpropInput", True), ("Conv3DBackpropInputV2", True),
     ("MatrixDiag", False), ("Softmax", False)],
)  # fmt: skip
def test_products_are_told_by_the_kind_of_op(kind: str, is_product: bool) -> None:
    assert bool(PRODUCTS.fullmatch(kind)) is is_product
