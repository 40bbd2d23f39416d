"""Sixty-four hosts with clocks that are seconds apart, one of them cut and one missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from stall_analyzer.discover.discover import discover
from stall_analyzer.pipeline import analyze
from stall_analyzer.report.document import run_document
from stall_analyzer.report.document_types import ReportEntry
from tests.scenarios.clusters.many import Made, clock_error_ms, make

SAMPLE = Path(__file__).resolve().parents[1] / "sample_logs" / "communication_straggler"
HOSTS = 64


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, ReportEntry]:
    folder = tmp_path_factory.mktemp("many")
    made = make(sorted(SAMPLE.rglob("*.xplane.pb")), late=1, hosts=HOSTS, target=folder)
    (run,) = discover([str(folder)]).runs
    entry = run_document(analyze(run))
    return made, entry


def test_the_one_that_is_late_is_found_among_them(answer: tuple[Made, ReportEntry]) -> None:
    made, entry = answer
    assert entry["verdict"]["host"] == made.late
    assert entry["verdict"]["primary"] == "host"
    assert entry["lateness"] is not None
    first, *others = entry["lateness"]["hosts"]
    assert first["host"] == made.late
    assert first["cost_ps"] > 10 * sum(late["cost_ps"] for late in others)


def test_the_cost_does_not_depend_on_the_number_of_hosts(answer: tuple[Made, ReportEntry]) -> None:
    _, entry = answer
    (two,) = [run_document(analyze(run)) for run in discover([str(SAMPLE)]).runs]
    assert two["lateness"] is not None
    assert entry["lateness"] is not None
    cost = two["lateness"]["hosts"][0]["cost_ps"]
    assert entry["lateness"]["hosts"][0]["cost_ps"] == pytest.approx(cost, rel=0.02)


def test_clocks_agree_to_a_few_milliseconds(answer: tuple[Made, ReportEntry]) -> None:
    made, entry = answer
    assert clock_error_ms(entry, made) < 3
    said = " ".join(note["text"] for note in entry["notes"])
    assert "common collectives" in said and "apart" in said


def test_the_report_says_which_host_is_cut_and_which_is_missing(
    answer: tuple[Made, ReportEntry],
) -> None:
    made, entry = answer
    (missing,) = made.missing
    assert entry["cluster"] is not None
    assert entry["cluster"]["missing"] == [f"worker {missing.rpartition('-')[2]}"]
    (cut,) = made.cut
    told = [note for note in entry["notes"] if cut in note["where"]]
    assert any("cut off" in note["text"] for note in told)
