"""What users read is plain American English: spelling, one term per thing, whole sentences."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from scripts.refresh_outputs import pages as documentation
from stall_analyzer.detectors.manual import Page, pages
from tests.real_documents import ROOT, every_sample

DETECTORS = ROOT / "analyzer" / "stall_analyzer" / "detectors"
# What was said before, and what is said instead; docs/glossary.md has the terms.
INSTEAD = {
    r"\bw(in|ins|on|inning)\b": "save",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bnobody recorded\b": "not recorded",
    r"\bdata sets?\b": "dataset",
    r"\bfor ever\b": "forever",
    r"\banew\b": "again",
    r"\bin vain\b": "wasted, without success",
    r"\bby heart\b": "memorize",
    r"\bof one's own\b": "custom",
    r"\b(is|are) no (numbers?|result|share)\b": "is not a",
    r"\b(is|was) summed up\b": "summarized",
    r"\bTODO\b": "the text itself",
    r"\banalys(e|ed|ing)\b": "analyze",
    r"\bjust now\b": "right now",
}
SENTENCE_END = (".", ":", "?", "!", "…")


def found(text: str) -> list[str]:
    return [
        f"{match[0]} -> {better}"
        for pattern, better in INSTEAD.items()
        for match in re.finditer(pattern, text)
    ]


def literals(path: Path) -> Iterator[str]:
    """Texts in a module that are sentences, and not names, code or documentation of the code."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value


def test_everything_is_spelled_as_in_american_english() -> None:
    pytest.importorskip("codespell_lib")
    run = subprocess.run(
        [sys.executable, "-m", "codespell_lib"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.id)
def test_manual_pages_say_it_in_our_words(page: Page) -> None:
    assert found(page.text) == []
    assert "  " not in page.text.replace("\n    ", "\n"), "two spaces"
    for _, text in page.sections:
        assert text.rstrip('`)"').endswith(SENTENCE_END), text[-60:]


@pytest.mark.parametrize("path", sorted(DETECTORS.rglob("*.py")), ids=lambda path: path.stem)
def test_findings_say_it_in_our_words(path: Path) -> None:
    assert [odd for text in literals(path) for odd in found(text)] == []


@cache
def reports() -> list[tuple[str, str]]:
    """Every sentence about the sample logs, and where it stands."""
    said = []
    for run in every_sample()["runs"]:
        said.append(("sentence", run["verdict"]["sentence"]))
        said += [("note", note["text"]) for note in run["notes"]]
        for finding in run["findings"]:
            said.append(("title", finding["title"]))
            said += [("sentence", finding["explanation"]), ("sentence", finding["change"]["text"])]
    return said


@pytest.mark.parametrize(("kind", "text"), reports(), ids=lambda text: text[:40])
def test_reports_are_made_of_whole_sentences(kind: str, text: str) -> None:
    assert found(text) == []
    first = text.partition(" ")[0]
    assert text[0] == text[0].upper() or re.search(r"[-_/.:]", first), "a name may begin it"
    assert "  " not in text and " ," not in text and " ." not in text and ".." not in text
    assert text.endswith(SENTENCE_END) is (kind != "title"), text


@pytest.mark.parametrize("page", list(documentation()), ids=lambda page: page.name)
def test_the_documentation_says_it_in_our_words(page: Path) -> None:
    assert found(page.read_text("utf-8")) == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("frontend/src/**/*.ts*")), ids=lambda p: p.name)
def test_the_page_says_it_in_our_words(path: Path) -> None:
    texts = re.findall(r'"[^"\n]* [^"\n]*"|`[^`]* [^`]*`|>[^<>{}]+<', path.read_text("utf-8"))
    assert [odd for text in texts for odd in found(text)] == []
