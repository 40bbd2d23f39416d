"""Completion in a shell: the script that `--completion` prints, used by a real bash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from stall_analyzer.cli import main as cli

Capsys = pytest.CaptureFixture[str]
USAGE = 2
PROBE = """
source ./script
COMP_WORDS=(stall-analyze {words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_shtab_stall_analyze
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def script(shell: str, capsys: Capsys) -> str:
    pytest.importorskip("shtab", reason="comes with the extra [completion]")
    assert cli.main(["--completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("--form", {"--format"}),
        ("logs --format s", {"sarif"}),
        ("logs --status st", {"stuck"}),
        ("wat", {"watch"}),
        ("lo", {"logs"}),
        ("logs lo", {"logs"}),
        ("logs wat", {""}),
        ("logs --store lo", {"logs"}),
    ],
)
def test_bash_completes_options_values_subcommands_and_paths(
    words: str, completed: set[str], tmp_path: Path, capsys: Capsys
) -> None:
    (tmp_path / "script").write_text(script("bash", capsys))
    (tmp_path / "logs").mkdir()
    probe = PROBE.format(words=words)
    done = subprocess.run(
        ["bash", "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert {word.rstrip("/ ") for word in done.stdout.splitlines()} == completed


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_get_a_script_that_knows_the_options(shell: str, capsys: Capsys) -> None:
    text = script(shell, capsys)
    assert "stall-analyze" in text and "fail-over" in text


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["--completion", "bash"]) == USAGE
    assert "tensorboard-plugin-stall[completion]" in capsys.readouterr().err
