"""The books of a process that is killed: all but the last seconds are there, and add up."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.captures.capture_format import Account
from tests.capture.capture_logs import records, start, until
from tests.patience import PATIENCE_S

TRAINING = """
    import sys, time
    import numpy as np
    import tensorflow as tf
    from tb_stall_plugin import StallCallback

    class Sleeps(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(float(sys.argv[2]))

    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.ones((100_000, 4), "float32")
    model.fit(x, x[:, :1], batch_size=1, verbose=0,
              callbacks=[Sleeps(), StallCallback(sys.argv[1], profile=False)])
"""


@pytest.mark.parametrize("pause_s", [0.02, 600], ids=["in many steps", "in one long callback"])
def test_a_killed_run_keeps_its_books(tmp_path: Path, pause_s: float) -> None:
    child = start(TRAINING, tmp_path, pause_s)
    until(lambda: any(_slept(record) for record in _books(tmp_path)))
    seen_ns = time.time_ns()
    until(lambda: _last_ns(_books(tmp_path)) > seen_ns)  # it keeps recording what it does
    child.kill()
    child.communicate(timeout=PATIENCE_S)
    books = records(tmp_path, "books", was_killed=True)
    assert _last_ns(books) > seen_ns
    for record in books:
        rows = zip(*record["spent_ns"].values(), strict=True)
        assert record["lasted_ns"] == [sum(row) for row in rows]


def _slept(record: dict[str, Any]) -> bool:
    return bool(sum(record["spent_ns"].get(Account.CALLBACK, ())) > 5e8)


def _last_ns(books: list[dict[str, Any]]) -> float:
    return max(
        (float(record["began_ns"] + sum(record["lasted_ns"])) for record in books), default=0.0
    )


def _books(folder: Path) -> list[dict[str, Any]]:
    return records(folder, "books")
