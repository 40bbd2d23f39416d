"""What `stall-analyze` says before any work: the help, and what to do after a mistake."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stall_analyzer.cli import main as cli
from stall_analyzer.cli.options import parser
from tests.event_files import file_name

Capsys = pytest.CaptureFixture[str]
NOTHING_FOUND, PARTIAL = 3, 4


def printed(capsys: Capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 0
    return capsys.readouterr().out


def test_help_fits_a_screen_and_names_the_rest(capsys: Capsys) -> None:
    lines = printed(capsys, "--help").splitlines()
    assert 24 <= len(lines) <= 40
    assert all(len(line) < 80 for line in lines)
    assert "--help-all" in lines[-1]


def test_help_names_only_options_that_exist(capsys: Capsys) -> None:
    known = {name for action in parser()._actions for name in action.option_strings}
    assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", printed(capsys, "-h"))) <= known


def test_help_all_names_every_option(capsys: Capsys) -> None:
    text = printed(capsys, "--help-all")
    names = (action.option_strings[-1] for action in parser()._actions if action.option_strings)
    assert [name for name in names if name not in text] == []


def test_a_wrong_path_gets_one_line_and_the_way_on(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "logs").mkdir()
    assert cli.main([str(tmp_path / "lgos")]) == NOTHING_FOUND
    what, way_on = capsys.readouterr().err.splitlines()
    assert what.endswith(f"it does not exist (did you mean {tmp_path / 'logs'}?).")
    assert "stall-analyze --help" in way_on


def test_an_event_file_of_random_bytes_is_a_file_that_could_not_be_read(
    tmp_path: Path, capsys: Capsys
) -> None:
    (tmp_path / file_name()).write_bytes(bytes(range(7, 256)) * 20)
    assert cli.main([str(tmp_path)]) == PARTIAL
    assert "does not begin with a record" in " ".join(capsys.readouterr().out.split())
