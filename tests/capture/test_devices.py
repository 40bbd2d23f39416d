"""Memory of GPUs, even if this machine has none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import tensorflow as tf

from tb_stall_plugin.capture.training.gpu_memory import bytes_in_use


def test_each_gpu_reports_what_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [SimpleNamespace(name="/device:GPU:0"), SimpleNamespace(name="/device:GPU:1")]
    in_use = {"GPU:0": {"current": 5_000, "peak": 9_000}, "GPU:1": {"current": 0, "peak": 0}}
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: gpus)
    monkeypatch.setattr(tf.config.experimental, "get_memory_info", in_use.__getitem__)
    assert bytes_in_use() == {
        "stall/device/GPU:0/bytes_in_use": 5_000.0,
        "stall/device/GPU:1/bytes_in_use": 0.0,
    }


def test_a_gpu_that_does_not_report_it_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_use(name: str) -> dict[str, int]:
        if name == "GPU:0":
            raise ValueError("Allocator stats not available for device 'GPU:0'")
        return {"current": 5_000}

    gpus = [SimpleNamespace(name="/device:GPU:0"), SimpleNamespace(name="/device:GPU:1")]
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: gpus)
    monkeypatch.setattr(tf.config.experimental, "get_memory_info", in_use)
    assert bytes_in_use() == {"stall/device/GPU:1/bytes_in_use": 5_000.0}


def test_without_a_gpu_there_is_nothing_to_report() -> None:
    assert bytes_in_use() == {}
