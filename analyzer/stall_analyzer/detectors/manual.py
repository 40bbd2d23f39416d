"""The manual pages of the findings, read from the source of the detectors.

Read, not imported: a detector needs numpy, and `--explain` should not have to wait for it.
"""

from __future__ import annotations

import ast
from difflib import get_close_matches
from pathlib import Path

from stall_analyzer.errors import UsageError
from stall_analyzer.model.records import dataclass

DETECTORS = Path(__file__).parent
NEAR_MATCHES = 3
HEADINGS = (
    "What it finds",
    "Why it stalls",
    "How it is measured",
    "Example",
    "What to do",
    "Blind spots",
)


@dataclass(frozen=True)
class Page:
    """The manual page of a finding."""

    id: str  # "ST104"
    name: str  # "retracing"
    bucket: str
    text: str

    @property
    def summary(self) -> str:
        return self.text.partition("\n")[0]

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """Heading and text of each section."""
        lines = self.text.splitlines()
        at = [i for i, line in enumerate(lines) if line in HEADINGS]
        ends = [*at[1:], len(lines)]
        return tuple(
            (lines[i], "\n".join(lines[i + 1 : end]).strip())
            for i, end in zip(at, ends, strict=True)
        )


def pages() -> tuple[Page, ...]:
    """All of them, by id."""
    found = map(_page_of, DETECTORS.glob("*/*.py"))
    return tuple(sorted((page for page in found if page), key=lambda page: page.id))


def page(wanted: str) -> Page:
    """The page of a finding, by its id or its name in any case."""
    every = pages()
    key = wanted.strip().lower().replace("-", "_")
    for candidate in every:
        if key in (candidate.id.lower(), candidate.name):
            return candidate
    raise UsageError(
        f"there is no finding {wanted}{_perhaps(key, every)}; --list-findings lists them all"
    )


def _page_of(path: Path) -> Page | None:
    """None for a module that is not a detector."""
    module = ast.parse(path.read_bytes())
    constants = {
        target.id: node.value.value
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    if not {"ID", "BUCKET"} <= constants.keys():
        return None
    text = ast.get_docstring(module) or ""
    return Page(str(constants["ID"]), path.stem, str(constants["BUCKET"]), text)


def _perhaps(key: str, every: tuple[Page, ...]) -> str:
    labels = {
        word: f"{page.id} ({page.name})"
        for page in every
        for word in (page.id.lower(), page.name, *page.name.split("_"))
    }
    near = [labels[word] for word in get_close_matches(key, labels, NEAR_MATCHES)]
    return f"; similar: {', '.join(dict.fromkeys(near))}" if near else ""
