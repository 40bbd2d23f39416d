"""Writes docs/findings/ from the docstrings of the detectors: `make docs`.

One Markdown file for each finding, and an index. What `--explain` prints is the same text.
"""

from __future__ import annotations

from pathlib import Path

from stall_analyzer.detectors.manual import HEADINGS, Page, pages

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "findings"
NOTICE = "<!-- Written by `make docs` from the docstring of the detector: change it there. -->"


def documents() -> dict[str, str]:
    """The files by name, with their content."""
    every = pages()
    return {"README.md": _index(every), **{f"{page.id}.md": _markdown(page) for page in every}}


def _index(every: tuple[Page, ...]) -> str:
    rows = [
        f"| [{page.id}]({page.id}.md) | `{page.bucket}` | {page.name} | {page.summary} |"
        for page in every
    ]
    return "\n".join(
        [
            "# What Stall can find",
            "",
            NOTICE,
            "",
            "To start from what you see, use [findings by symptom](../reference/symptoms.md).",
            "`stall-analyze --explain ST101` shows the same pages, by id or name, in the terminal.",
            "",
            "| finding | bucket | name | what it is |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _markdown(page: Page) -> str:
    lines = [
        f"## {line}\n" if line in HEADINGS else line for line in page.text.rstrip().splitlines()
    ]
    head = [f"# {page.id} {page.name}", "", NOTICE, "", f"Bucket: `{page.bucket}`", ""]
    return "\n".join([*head, *lines, ""])


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = documents()
    for path in FOLDER.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
