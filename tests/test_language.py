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
    r"\d %": "a number and % without a space",
    r"Keras' ": "Keras's",
    r"\bseldom\b": "rarely",
    r"\bafterwards\b": "afterward",
    r"\bper cent\b": "percent",
    r"\bany more\b(?= *[.,;:)])": "anymore",
    r"\bany other way round\b|\bway round\b": "way around",
    r"\bswitch(ed|ing)? (on|off)\b": "turn on, turn off",
    r"\bwr(ote|ites?|itten) (it |them |that )?down\b": "record",
    r"\b(is|are|was|were) not meant\b": "is not reported, does not count",
    r"\bLoud (only |where)": "more than a note",
    r"\b(ms|s|MB|GB) were (free|wasted|traced|lost|left|swapped)\b": "was",
    r"\b(steps|measured|hundredth) and more\b": "at least",
    r"\bheard of at\b": "heard from at",
    r"\bnever goes on\b": "never continues",
    r"\bfits? into memory\b": "fit in memory",
    r"\bon the console of the job\b": "on the job's console",
    r"\bby the capture's clocks?\b": "as timed by the capture",
    r"\bonly less than\b": "less than",
    r"\bgoes on\b": "continues",
    r"\btrainings\b": "runs, training",
    r"\bby turns\b": "alternating",
    r"\bbeside\b": "next to, besides, at the same time",
    r"\bat the (most|least)\b": "at most, at least",
    r"\bit stood at\b": "it was at",
    r"(?<![\d.,])1 (steps|epochs|batches|calls|hosts|workers|tasks|devices|records)\b": "1 step",
    r"\bso many (times|steps|seconds|of)\b": "this many",
    r"\b(is|are|was|were) told (by|of|so)\b": "shown by, reported",
    r"\b[Bb]ehind a URL\b": "at a URL",
    r"\bElse\b|\bwould else\b": "otherwise",
    r"\bdear(er|est)\b": "more expensive",
    r"\bas ever\b": "as usual",
}
SENTENCE_END = (".", ":", "?", "!", "…")


def found(text: str) -> list[str]:
    return [
        f"{match[0]} -> {better}"
        for pattern, better in INSTEAD.items()
        for match in re.finditer(pattern, text)
    ]


def literals(path: Path) -> Iterator[str]:
    """The strings in a module that contain a space, and so may be sentences."""
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


@pytest.mark.parametrize("package", ["analyzer/stall_analyzer", "tb_stall_plugin"])
def test_messages_and_findings_say_it_in_our_words(package: str) -> None:
    modules = sorted((ROOT / package).rglob("*.py"))
    texts = [(path.name, text) for path in modules for text in literals(path)]
    assert [(name, odd) for name, text in texts for odd in found(text)] == []


@cache
def reports() -> list[tuple[str, str]]:
    """Every sentence about the sample logs, with its kind."""
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
