"""The capture around a block in a program that is already running."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tb_stall_plugin import StallCallback
from tb_stall_plugin.capture.cell import captured_fits
from tb_stall_plugin.capture.process import guard


def fit(*callbacks: keras.callbacks.Callback) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = np.zeros((8, 4), "float32"), np.zeros((8, 1), "float32")
    model.fit(*data, verbose=0, callbacks=list(callbacks))


def test_fits_within_are_captured_and_later_ones_are_not(tmp_path: Path) -> None:
    before = keras.Model.fit
    with captured_fits(tmp_path / "run1") as folders:
        fit()
    assert folders == [str(tmp_path / "run1")]
    assert not guard.is_on_duty()
    files = list((tmp_path / "run1").glob("*.stall"))
    assert len(files) == 1
    size = files[0].stat().st_size
    fit()
    assert keras.Model.fit is before
    assert files[0].stat().st_size == size


def test_a_fit_with_its_own_capture_tells_where_that_writes(tmp_path: Path) -> None:
    with captured_fits(tmp_path / "ours") as folders:
        fit(StallCallback(tmp_path / "theirs", report=False))
    assert folders == [str(tmp_path / "theirs")]
    assert not (tmp_path / "ours").exists()


def test_a_wrapper_that_somebody_else_keeps_no_longer_captures_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with captured_fits(tmp_path / "run1") as folders:
        kept: Callable[..., Any] = keras.Model.fit

        def wrapped(*args: Any, **named: Any) -> Any:
            return kept(*args, **named)

        monkeypatch.setattr(keras.Model, "fit", wrapped, raising=False)
    fit()
    assert folders == []
    assert list(tmp_path.iterdir()) == []
