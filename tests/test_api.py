"""The public API: what `import stall_analyzer` offers to scripts and notebooks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stall_analyzer as stall

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_logs"
API = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def everything() -> stall.Analysis:
    return stall.analyze(SAMPLES)


@pytest.fixture(scope="module")
def one(everything: stall.Analysis) -> stall.Analysis:
    return everything["input_py_function"]


def test_the_exported_names_are_the_documented_ones() -> None:
    documented = set(re.findall(r"`(?:stall\.|stall_analyzer\.)?(\w+)", API))
    assert set(stall.__all__) <= documented
    assert all(getattr(stall, name) for name in stall.__all__)
    assert re.findall(r"^## `(?:stall\.)?(\w+)", API, re.MULTILINE) == [
        name for name in stall.__all__ if name != "__version__" and not name.endswith("Error")
        if name != "NothingFound"
    ]  # fmt: skip


def test_every_property_of_an_analysis_is_documented() -> None:
    public = {name for name in vars(stall.Analysis) if not name.startswith("_")}
    assert public <= set(re.findall(r"`(\w+)", API))


def test_a_path_may_be_text_a_path_or_several() -> None:
    folder = SAMPLES / "healthy"
    assert stall.analyze(str(folder)).verdict == stall.analyze(folder).verdict
    assert len(stall.analyze([folder, SAMPLES / "numerics_nan"])) == 2


def test_everything_is_available_for_a_single_run(one: stall.Analysis) -> None:
    assert one.name == "input_py_function"
    assert one.verdict.primary == "input"
    assert one.findings[0].id == "ST001"
    first = one.findings[0]
    assert 0 < first.lost_s <= one.duration_s
    assert 0 < first.gain_s[0] <= first.gain_s[1] <= one.duration_s
    assert first.later_gain_s[0] <= first.later_gain_s[1]
    assert sum(one.buckets_s.values()) == pytest.approx(one.duration_s)
    assert sum(one.causes_s.values()) == pytest.approx(one.duration_s)
    step = one.steps[-1]
    assert sum(step.buckets_s.values()) == pytest.approx(step.duration_s)


def test_many_runs_are_a_sequence_of_analyses(everything: stall.Analysis) -> None:
    assert [run.name for run in everything] == sorted(path.parent.name for path in _expected())
    assert everything[0].verdict == everything[everything[0].name].verdict
    assert len(everything[1:3]) == 2


def test_many_runs_have_no_single_verdict_and_say_so(everything: stall.Analysis) -> None:
    with pytest.raises(stall.UsageError, match="8 runs; choose one by name: communication"):
        _ = everything.verdict
    with pytest.raises(KeyError, match="no run is named nobody"):
        _ = everything["nobody"]


def test_repr_is_one_line(everything: stall.Analysis, one: stall.Analysis) -> None:
    assert len(repr(everything)) < 200
    assert repr(one) == f"<Analysis of input_py_function: {one.verdict.sentence}>"


def test_a_dataframe_has_a_row_for_each_step(one: stall.Analysis) -> None:
    pytest.importorskip("pandas")
    frame = one.to_dataframe()
    assert len(frame) == len(one.steps)
    assert frame["input_s"].sum() > frame["compute_s"].sum()


def test_without_pandas_a_dataframe_says_what_is_missing(
    one: stall.Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(stall.UsageError, match="pip install pandas"):
        one.to_dataframe()


def test_a_notebook_shows_verdict_and_change(one: stall.Analysis) -> None:
    shown = one._repr_html_()
    assert one.findings[0].id in shown
    assert one.findings[0].change.text.split("`")[0][:20] in shown
    assert "<script" not in shown


def test_saved_as_json_it_is_the_document(everything: stall.Analysis, tmp_path: Path) -> None:
    everything.save(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text()) == everything.document


def test_the_command_writes_the_same_about_each_run(everything: stall.Analysis) -> None:
    command = [sys.executable, "-m", "stall_analyzer", str(SAMPLES), "--json", "--fresh"]
    printed = subprocess.run(command, capture_output=True, check=False).stdout
    assert json.loads(printed)["runs"] == everything.document["runs"]


def test_saved_as_html_it_contains_the_timeline(one: stall.Analysis, tmp_path: Path) -> None:
    one.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert one.verdict.sentence in page
    assert '"lanes":' in page


def test_saved_as_markdown_it_can_be_read(one: stall.Analysis, tmp_path: Path) -> None:
    one.save(str(tmp_path / "report.md"))
    assert one.verdict.sentence in (tmp_path / "report.md").read_text()


def test_an_unknown_format_is_refused(one: stall.Analysis, tmp_path: Path) -> None:
    with pytest.raises(stall.UsageError, match=r"use \.html, \.md or \.json"):
        one.save(tmp_path / "report.pdf")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_an_error_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(stall.NothingFound):
        stall.analyze(tmp_path)


def _expected() -> list[Path]:
    return list(SAMPLES.glob("*/expected.json"))
