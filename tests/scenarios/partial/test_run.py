from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.scenarios.partial.programs import Program, ledger_programs
from tests.scenarios.partial.report import Result, as_json, markdown
from tests.scenarios.partial.run import judge, main
from tests.scenarios.partial.score import Case
from tests.scenarios.partial.test_cut import BATCHES, BEGIN_NS, EPOCH, MS, logs_in
from tests.scenarios.partial.test_score import CASE

TRUTH = {
    "epoch_start_unix_ns": BEGIN_NS,
    "epoch_end_unix_ns": BEGIN_NS + 3100 * MS,
    "expected_primary": "input",
    "buckets_s": {"input": 2.0, "compute": 1.1},
}


def test_without_captures_it_says_what_to_run_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--ledger", str(tmp_path / "a"), "--faults", str(tmp_path / "b")]) == 2
    assert "run make scenarios first" in capsys.readouterr().err


def test_a_program_is_scored_once_for_each_kind_of_cut(tmp_path: Path) -> None:
    logs_in(tmp_path / "ledger" / "program", *BATCHES, EPOCH)
    (tmp_path / "ledger" / "program" / "truth.json").write_text(json.dumps(TRUTH))
    (program,) = ledger_programs(tmp_path / "ledger")
    cases = judge(program, tmp_path / "cut")
    assert [(case.name, case.kind) for case in cases if isinstance(case, Case)] == [
        ("program", "one_batch"),
        ("program", "ten_batches"),
        ("program", "events_only"),
    ]


def test_a_program_that_cannot_be_cut_gives_its_reason(tmp_path: Path) -> None:
    logs = logs_in(tmp_path, EPOCH)
    assert judge(Program("none", logs, reason="of the group cluster"), tmp_path / "cut") == (
        "of the group cluster"
    )
    assert "no primary bucket is known" in judge(Program("empty", logs), tmp_path / "cut")


def test_the_report_names_the_half_and_the_targets_that_were_missed() -> None:
    kinds = ("one_batch", "ten_batches", "events_only")
    result = Result(
        "development", [Case("a", "development", k, CASE.truth, CASE.said) for k in kinds]
    )
    text = result.text(verbose=True)
    assert "half: development" in text
    assert "missed: one_batch: misattr. median 10.0%, not 0% to 5%" in text
    assert "| one_batch | 1 | 100.0% |" in markdown([result])
    assert json.loads(as_json([result]))["development"]["kinds"]["one_batch"]["right"] == 1.0
