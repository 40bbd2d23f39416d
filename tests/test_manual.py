"""The manual pages have the same text in the terminal, in docs/findings/ and in the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.write_findings_docs import FOLDER, documents
from stall_analyzer.cli import main as cli
from stall_analyzer.detectors import manual
from stall_analyzer.detectors.manual import HEADINGS
from stall_analyzer.detectors.registry import DETECTORS
from tests.test_layers import modules_after

Capsys = pytest.CaptureFixture[str]
OK, USAGE = 0, 2


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    family = tmp_path / "family"
    family.mkdir()
    """Two detectors, and a module that is none."""

    def write(id: str, name: str, bucket: str) -> None:
        body = "\n\n".join(f"{heading}\nText." for heading in HEADINGS)
        constants = f'ID = "{id}"\nBUCKET = "{bucket}"\n'
        page = f'"""Finds {name}.\n\n{body}\n"""\n\nimport numpy\n\n{constants}'
        (family / f"{name}.py").write_text(page)

    write("ST104", "retracing", "compile")
    write("ST001", "python_map", "input")
    (family / "base.py").write_text('"""No detector."""\nID = "ST999"\n')
    monkeypatch.setattr(manual, "DETECTORS", tmp_path)


def test_the_pages_are_those_of_the_detectors() -> None:
    expected = [(d.id, d.name, d.bucket) for d in DETECTORS]
    assert [(p.id, p.name, p.bucket) for p in manual.pages()] == expected


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize("wanted", ["ST104", "st104", "retracing", "Retracing"])
def test_explain_prints_the_page_by_id_or_name(wanted: str, capsys: Capsys) -> None:
    assert cli.main(["--explain", wanted]) == OK
    output = capsys.readouterr().out
    assert output.startswith("ST104 retracing (compile)\n\nFinds retracing.\n")
    assert "What to do" in output


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("ST105", "ST104 (retracing)"),
        ("retrace", "ST104 (retracing)"),
        ("map", "ST001 (python_map)"),
    ],
)
def test_an_unknown_finding_is_an_error_that_names_the_nearest(
    wanted: str, near: str, capsys: Capsys
) -> None:
    assert cli.main(["--explain", wanted]) == USAGE
    said = capsys.readouterr().err
    assert f"there is no finding {wanted}; similar: {near}" in said
    assert "--list-findings" in said


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize("wanted", ["", "quicksilver"])
def test_there_is_no_guess_if_nothing_is_similar(wanted: str, capsys: Capsys) -> None:
    assert cli.main(["--explain", wanted]) == USAGE
    assert "similar" not in capsys.readouterr().err


@pytest.mark.usefixtures("shelf")
def test_list_findings_has_one_line_for_each_in_order_of_id(
    capsys: Capsys,
) -> None:
    assert cli.main(["--list-findings"]) == OK
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["ST001", "input", "python_map", "Finds", "python_map."]
    assert second.split() == ["ST104", "compile", "retracing", "Finds", "retracing."]


def test_without_path_and_without_question_the_usage_is_shown(
    capsys: Capsys,
) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main([])
    assert stopped.value.code == USAGE
    assert "a PATH is required" in capsys.readouterr().err


@pytest.mark.parametrize("question", [["--list-findings"], ["--explain", "ST001"]])
def test_a_question_about_findings_does_not_wait_for_numpy(question: list[str]) -> None:
    assert not modules_after(*question) & {"numpy", "rich", "fsspec"}


def test_docs_findings_is_what_make_docs_writes() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert written == documents(), "run `make docs`"


def test_the_docs_have_a_heading_for_each_part_of_a_page() -> None:
    written = documents()
    index = written["README.md"]
    for page in manual.pages():
        text = written[f"{page.id}.md"]
        assert [h for h in HEADINGS if f"\n## {h}\n" in text] == list(HEADINGS)
        assert f"[{page.id}]({page.id}.md)" in index


def test_a_page_falls_into_its_sections() -> None:
    for page in manual.pages():
        assert [heading for heading, _ in page.sections] == list(HEADINGS)
        assert all(text for _, text in page.sections)
        assert page.summary not in dict(page.sections).values()
