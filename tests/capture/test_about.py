"""What a process knows about itself and its cluster."""

from __future__ import annotations

import json

import pytest

from tb_stall_plugin.capture.process.about import is_one_of_several


@pytest.mark.parametrize(
    ("config", "several"),
    [
        ({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}, True),
        ({"cluster": {"chief": ["a:1"], "worker": ["b:1"]}}, True),
        ({"cluster": {"worker": ["a:1"]}}, False),
        ({"cluster": None}, False),
        ({}, False),
    ],
)
def test_a_cluster_of_one_does_not_count_as_a_cluster(
    config: dict[str, object], several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert is_one_of_several() is several
