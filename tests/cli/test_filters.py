"""Which of many runs are shown: by verdict, by what costs most, by finding."""

from __future__ import annotations

import json

import pytest

from stall_analyzer.cli import main as cli
from tests.real_documents import ROOT

Capsys = pytest.CaptureFixture[str]
LOGS = [
    str(ROOT / "sample_logs" / name) for name in ("healthy", "input_py_function", "numerics_nan")
]
OK, USAGE, OVER_LIMIT = 0, 2, 5


@pytest.mark.parametrize(
    ("filters", "chosen"),
    [
        (["--status", "healthy"], ["healthy"]),
        (["--status", "healthy", "--status", "learning_nothing"], ["healthy", "numerics_nan"]),
        (["--bucket", "input"], ["input_py_function"]),
        (["--finding", "ST001"], ["input_py_function"]),
        (["--finding", "python_function_in_map"], ["input_py_function"]),
        (["--finding", "ST001", "--status", "healthy"], []),
    ],
)
def test_runs_are_chosen_by_what_was_found(
    filters: list[str], chosen: list[str], capsys: Capsys
) -> None:
    for _ in range(2):  # read again, and known
        assert cli.main([*LOGS, "--json", *filters]) == OK
        output = capsys.readouterr()
        document = json.loads(output.out)
        assert [run["run"] for run in document["runs"]] == chosen
        assert f"{3 - len(chosen)} other run" in output.err


def test_runs_that_were_not_asked_for_are_over_no_limit() -> None:
    assert cli.main([*LOGS, "--fail-over", "input=20%"]) == OVER_LIMIT
    assert cli.main([*LOGS, "--fail-over", "input=20%", "--status", "healthy"]) == OK


def test_a_finding_that_does_not_exist_is_refused(capsys: Capsys) -> None:
    assert cli.main([*LOGS, "--finding", "ST999"]) == USAGE
    assert "ST999" in capsys.readouterr().err
