"""The sample logs, compared with the clocks of the programs that wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real_documents import SAMPLES
from tests.real_documents import sample as entry_of
from tests.scenarios.score import as_clocked

# A share of the epoch, summed over the buckets and halved, as in similar scenarios.
MOST_MISATTRIBUTED = 0.02

pytestmark = pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: str(path.name))


def expected(sample: Path) -> dict[str, Any]:
    return dict(json.loads((sample / "expected.json").read_text()))


def test_the_verdict_names_the_right_bucket(sample: Path) -> None:
    verdict = entry_of(sample.name)["verdict"]
    assert verdict["primary"] == expected(sample)["primary"]
    assert verdict["status"] in expected(sample)["status"]
    assert verdict["host"] == expected(sample).get("host")


def test_the_window_is_the_first_epoch(sample: Path) -> None:
    window, truth = entry_of(sample.name)["window"], expected(sample)["truth"]
    duration_ns = truth["epoch_end_unix_ns"] - truth["epoch_start_unix_ns"]
    assert window["duration_ps"] / 1000 == pytest.approx(duration_ns, rel=0.02)
    assert window["start_unix_ns"] == pytest.approx(truth["epoch_start_unix_ns"], abs=15e6)


def test_the_seconds_are_those_of_the_programs_own_clocks(sample: Path) -> None:
    run, truth = entry_of(sample.name), expected(sample)["truth_s"]
    if run["window"]["source"] == "events":
        assert run["buckets_ps"]["unknown"] == run["window"]["duration_ps"]
        return
    ledger = run
    if host := expected(sample).get("truth_host"):  # whose clocks they were
        (ledger,) = [one for one in run["host_ledgers"] if one["host"] == host]
    found = as_clocked(ledger)
    wrong = sum(abs(found[bucket] - truth.get(bucket, 0.0)) for bucket in found) / 2
    assert wrong <= MOST_MISATTRIBUTED * sum(truth.values())


def test_no_path_of_the_machine_that_wrote_it_is_inside(sample: Path) -> None:
    for path in sample.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert b"/home/" not in data and b"/root/" not in data and b"site-packages" not in data
