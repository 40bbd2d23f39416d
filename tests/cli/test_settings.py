"""Settings in files and in the environment: which of them applies, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.cli import main as cli
from stall_analyzer.cli import settings
from stall_analyzer.cli.options import parser
from stall_analyzer.errors import UsageError
from tests.real_documents import ROOT

Capsys = pytest.CaptureFixture[str]
SLOW = str(ROOT / "sample_logs" / "input_py_function")
OK, USAGE, OVER_LIMIT = 0, 2, 5
Filled = Callable[..., Any]


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Filled:
    """The arguments of a command line, in a folder with these files."""

    def fill(*words: str, **files: str) -> Any:
        for name, text in files.items():
            (tmp_path / f"{name}.toml").write_text(text)
        monkeypatch.chdir(tmp_path)
        arguments = parser().parse_args(["logs", *words])
        settings.fill(arguments)
        return arguments

    return fill


def test_without_a_file_the_defaults_hold(filled: Filled) -> None:
    arguments = filled()
    assert (arguments.fail_over, arguments.jobs, arguments.full) == ([], None, False)
    assert (arguments.tolerance, arguments.deadline) == (0.1, 1800)


def test_every_setting_is_an_option_of_the_command(filled: Filled) -> None:
    known = {name for action in parser()._actions for name in action.option_strings}
    assert {f"--{name}" for name in settings.SETTINGS} <= known


def test_every_setting_is_in_the_manual() -> None:
    manual = (ROOT / "docs" / "how-to" / "ci.md").read_text("utf-8")
    for name in settings.SETTINGS:
        assert f"| `{name}` | `{settings.variable(name)}` |" in manual


def test_the_command_line_beats_the_environment_and_that_the_file(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"stall": "jobs = 2\n"}
    assert filled(**files).jobs == 2
    monkeypatch.setenv("STALL_JOBS", "3")
    assert filled(**files).jobs == 3
    assert filled("--jobs", "4", **files).jobs == 4


def test_limits_of_the_command_line_replace_those_of_the_file(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limits(*words: str) -> list[str]:
        return [one.text for one in filled(*words, stall='fail-over = ["input=20%"]').fail_over]

    assert limits() == ["input=20%"]
    assert limits("--fail-over", "status=stuck") == ["status=stuck"]
    monkeypatch.setenv("STALL_FAIL_OVER", "epoch=10m, status=dead")
    assert limits() == ["epoch=10m", "status=dead"]


def test_a_project_keeps_them_in_its_pyproject(filled: Filled) -> None:
    text = '[project]\nname = "x"\n[tool.stall]\ntolerance = "5%"\nfull = true\n'
    arguments = filled(pyproject=text)
    assert (arguments.tolerance, arguments.full) == (0.05, True)


def test_the_nearest_file_holds_alone_and_stall_toml_before_pyproject(
    filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = filled(stall="jobs = 2", pyproject="[tool.stall]\njobs = 3\nfull = true")
    assert (arguments.jobs, arguments.full) == (2, False)
    below = tmp_path / "src" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    arguments = parser().parse_args(["logs"])
    settings.fill(arguments)
    assert arguments.jobs == 2


def test_a_path_in_a_file_is_meant_from_that_file_on(filled: Filled, tmp_path: Path) -> None:
    arguments = filled(stall='baseline = "ci/last.jsonl"\nstore = "/shared/stall"')
    assert arguments.baseline == tmp_path / "ci" / "last.jsonl"
    assert arguments.store == Path("/shared/stall")


def test_a_file_may_be_named(
    filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.toml").write_text("jobs = 7")
    assert filled("--config", "other.toml", stall="jobs = 2").jobs == 7
    monkeypatch.setenv("STALL_CONFIG", str(tmp_path / "other.toml"))
    assert filled(stall="jobs = 2").jobs == 7


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("job = 2", r"stall\.toml: there is no setting 'job'; use one of fail-over, baseline, "),
        ("jobs = 0", r"stall\.toml: jobs: '0' is not a positive whole number"),
        ("jobs = [1, 2]", "is not a single value"),
        ('fail-over = ["inputs=20%"]', "'inputs' cannot be limited"),
        ("fail-over = {input = 20}", "is not a list of strings"),
        ('full = "perhaps"', "neither true nor false"),
        ("jobs = ", "is not TOML"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(
    filled: Filled, text: str, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        filled(stall=text)


def test_a_variable_that_makes_no_sense_is_named(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STALL_TOLERANCE", "a bit")
    with pytest.raises(UsageError, match="STALL_TOLERANCE: 'a bit' is not a share"):
        filled()


def test_a_build_fails_on_a_limit_in_the_projects_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.stall]\nfail-over = "input=20%"\n')
    monkeypatch.chdir(tmp_path)
    assert cli.main([SLOW]) == OVER_LIMIT
    assert cli.main([SLOW, "--fail-over", "input=90%"]) == OK
    capsys.readouterr()
    (tmp_path / "stall.toml").write_text("fail_ower = 1\n")
    assert cli.main([SLOW]) == USAGE
    assert "there is no setting 'fail-ower'" in capsys.readouterr().err
