"""Why a function is traced again: the arguments that changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tb_stall_plugin import watch
from tb_stall_plugin.capture.training.traced_arguments import MOST_LEAVES, TracedArguments
from tests.capture.capture_logs import records
from tests.capture.small_trainings import finish, tf


def step(x: Any, scale: Any = 1) -> None:
    """A function whose arguments have names."""


def changed(before: tuple[Any, ...], now: tuple[Any, ...], **named: Any) -> str:
    arguments = TracedArguments()
    assert arguments.what_changed(step, before, {}) == "", "there is no earlier trace"
    return arguments.what_changed(step, now, named)


def test_a_tensor_is_named_by_dtype_and_shape() -> None:
    said = changed((tf.TensorSpec((32, 8)),), (tf.TensorSpec((17, 8)),))
    assert said == "x: float32[32, 8], now float32[17, 8]"


def test_a_number_is_named_by_its_value() -> None:
    assert changed((1, 0.5), (1, 0.25)) == "scale: 0.5, now 0.25"


def test_parts_of_a_structure_are_named_by_their_path() -> None:
    said = changed(([{"a": 1, "b": 2}],), ([{"a": 1, "b": 3}],))
    assert said == "x[0]['b']: 2, now 3"


def test_an_iterator_is_described_by_its_elements() -> None:
    def of(size: int) -> Any:
        return iter(tf.data.Dataset.from_tensors(tf.zeros(size)))

    assert changed((of(3),), (of(4),)) == "x: float32[3], now float32[4]"


def test_an_argument_that_was_not_given_before_is_named() -> None:
    assert changed((1,), (1,), scale=2) == "scale: nothing, now 2"


def test_two_of_many_changes_are_named() -> None:
    said = changed(([1, 2, 3, 4],), ([5, 6, 7, 8],))
    assert said == "x[0]: 1, now 5; x[1]: 2, now 6; and 2 more"


def test_not_all_of_very_many_parts_are_compared() -> None:
    same = [0] * MOST_LEAVES
    assert changed(([*same, 1],), ([*same, 2],)) == ""


def test_arguments_that_cannot_be_described_are_left_out() -> None:
    class Odd:
        @property
        def element_spec(self) -> Any:
            raise RuntimeError("never asked before")

    assert TracedArguments().what_changed(step, (Odd(),), {}) == ""


def test_a_capture_tells_it_with_the_function_that_was_traced_again(tmp_path: Path) -> None:
    @tf.function
    def train(x: Any, scale: float) -> Any:
        return tf.reduce_sum(x) * scale

    with watch(tmp_path, profile=False) as w:
        for scale in (0.5, 0.25):
            w.step(loss=train(tf.zeros(3), scale))
    finish(tmp_path)
    items = [item for r in records(tmp_path, "books") for item in r.get("items", ())]
    said = [item["why"] for item in items if item["account"] == "retrace"]
    assert said == ["scale: 0.5, now 0.25"]
