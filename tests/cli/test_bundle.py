"""`--bundle`: what a bug report needs, and a log only when the user says so."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from stall_analyzer import __version__
from stall_analyzer.cli.main import main
from tests.real_documents import ROOT

SAMPLE = ROOT / "sample_logs" / "input_py_function"
Capsys = pytest.CaptureFixture[str]
USAGE = 2


def bundled(tmp_path: Path, *options: str, logs: Path = SAMPLE) -> dict[str, bytes]:
    target = tmp_path / "report.zip"
    assert main([str(logs), "--bundle", str(target), *options]) == 0
    with zipfile.ZipFile(target) as bundle:
        assert bundle.testzip() is None
        return {name: bundle.read(name) for name in bundle.namelist()}


def test_a_bundle_holds_report_and_versions_but_no_log(tmp_path: Path, capsys: Capsys) -> None:
    held = bundled(tmp_path)
    assert set(held) == {"README.txt", "versions.json", "report.json", "report.txt"}
    (run,) = json.loads(held["report.json"])["runs"]
    assert run["verdict"]["primary"] == "input"
    assert "ST001" in held["report.txt"].decode()
    versions = json.loads(held["versions.json"])
    assert versions["stall-analyze"] == __version__ and versions["numpy"]
    assert "--with-logs" in held["README.txt"].decode()
    assert "wrote" in capsys.readouterr().err


def test_with_logs_adds_the_files_that_were_read_and_nothing_else(tmp_path: Path) -> None:
    held = bundled(tmp_path, "--with-logs")
    logs = {name.split("/", 2)[2]: content for name, content in held.items() if "/" in name}
    assert len(logs) == 2
    for name, content in logs.items():
        assert content == (SAMPLE / name).read_bytes()
    assert {Path(name).suffixes[-1] for name in logs} == {".pb", ".v2"}


def test_what_was_logged_can_be_analyzed_again_from_a_bundle(tmp_path: Path) -> None:
    bundled(tmp_path, "--with-logs")
    with zipfile.ZipFile(tmp_path / "report.zip") as bundle:
        bundle.extractall(tmp_path / "out")
    again = tmp_path / "again.json"
    assert main([str(tmp_path / "out" / "logs"), "--json", "-o", str(again)]) == 0
    (run,) = json.loads(again.read_text())["runs"]
    assert [found["id"] for found in run["findings"]] == ["ST001"]


def test_logs_without_a_bundle_are_a_mistake(capsys: Capsys) -> None:
    assert main([str(SAMPLE), "--with-logs"]) == USAGE
    assert "--with-logs needs --bundle FILE" in capsys.readouterr().err


def test_a_bundle_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, capsys: Capsys
) -> None:
    assert main([str(SAMPLE), "--bundle", str(tmp_path)]) == USAGE
    assert "it is a directory" in capsys.readouterr().err
