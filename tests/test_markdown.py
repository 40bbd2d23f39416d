"""The report as Markdown: for an issue, a chat, a pull request."""

from __future__ import annotations

from pathlib import Path

import pytest

from stall_analyzer.cli import main as cli
from stall_analyzer.cli.help_texts import MOST_IN_FULL
from stall_analyzer.discover.discover import discover
from stall_analyzer.outcome import failure
from stall_analyzer.report.markdown import plain, render
from tests.batch.fleets import lay_out
from tests.real_documents import ROOT, document, finding, sample

SAMPLES = ROOT / "sample_logs"


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([str(SAMPLES / "input_py_function"), "--markdown"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("## input_py_function\n\n**Slow in every epoch: 1.51 s of 2.01 s")
    assert "| input | 1.51 s | 75% |" in text
    assert "### act `ST001`" in text
    assert "```diff\n- ds.map(" in text
    assert "With ST001 done: first epoch 2.01 s → 304 ms to 1.15 s" in text


def test_it_goes_into_a_file_as_well(tmp_path: Path) -> None:
    target = tmp_path / "report.md"
    assert cli.main([str(SAMPLES / "healthy"), "--markdown", "-o", str(target)]) == 0
    assert "**Healthy: 88%" in target.read_text(encoding="utf-8")


def test_a_summary_of_many_runs_names_the_path_that_could_not_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, absent = lay_out(tmp_path / "logs", map(str, range(MOST_IN_FULL + 1))), tmp_path / "no"
    assert cli.main([str(absent), str(logs), "--markdown"]) == 4
    text = capsys.readouterr().out
    assert "### verdicts" in text
    assert f"| error | {absent} could not be read: it does not exist" in text


def test_several_runs_begin_with_a_table() -> None:
    text = render(document(sample("healthy"), sample("compile_tracing")))
    head, row, *_ = (line for line in text.splitlines() if line.startswith("| "))
    assert head == "| run | verdict | first epoch | main cost |"
    assert row.count("|") == head.count("|")


def test_a_run_without_a_window_causes_no_division_by_zero() -> None:
    (run,) = discover([str(SAMPLES / "healthy")]).runs
    empty = failure(run, "its process was killed").entry
    text = render(document(empty, sample("healthy")))
    assert "| healthy | unknown | – | – |" in text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a|b", r"a\|b"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("**bold**", r"\*\*bold\*\*"),
        ("_em_ snake_case", r"\_em\_ snake_case"),
        ("two\nlines", "two lines"),
        ("[x](javascript:y)", r"\[x\](javascript:y)"),
        ("`code`", r"\`code\`"),
    ],
)
def test_names_are_shown_as_text(name: str, shown: str) -> None:
    assert plain(name) == shown
    assert f"## {shown}\n" in render(document(sample("healthy", run=name)))


def test_code_cannot_close_its_fence() -> None:
    change = {"text": "x", "before": "```", "after": "````\n# heading"}
    lines = render(document(sample("healthy", findings=[finding(change=change)]))).splitlines()
    opening = lines.index("`````diff")
    assert lines[opening : opening + 5] == ["`````diff", "- ```", "+ ````", "+ # heading", "`````"]
