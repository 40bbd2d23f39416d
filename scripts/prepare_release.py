"""Makes a checkout ready to be published: `python -m scripts.prepare_release OWNER/NAME vX.Y.Z`.

PyPI shows the README without the repository around it, so links and pictures must be absolute. The
address is not in the checkout: only the workflow that publishes it knows where the repository is.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACEHOLDER = "OWNER/REPOSITORY"
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")
VERSION = re.compile(r'^__version__ = "([^"]+)"', re.MULTILINE)


def with_absolute_links(markdown: str, repository: str, tag: str) -> str:
    pages = f"https://github.com/{repository}/blob/{tag}"
    pictures = f"https://raw.githubusercontent.com/{repository}/{tag}"
    return LINK.sub(
        lambda found: f"{found[1]}[{found[2]}]({pictures if found[1] else pages}/{found[3]})",
        markdown,
    )


def version() -> str:
    found = VERSION.search((ROOT / "analyzer/stall_analyzer/__init__.py").read_text("utf-8"))
    assert found
    return found[1]


def problem(tag: str) -> str:
    """Why this cannot be released; empty if it can."""
    if tag != f"v{version()}":
        return f"the tag is {tag}, but the version is {version()}"
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    if not re.search(
        rf"^## \[{re.escape(version())}\] - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE
    ):
        return f"CHANGELOG.md has no section with a date for {version()}"
    return ""


def main() -> int:
    repository, tag = sys.argv[1:]
    wrong = problem(tag)
    if wrong:
        print(f"prepare_release: {wrong}", file=sys.stderr)
        return 1
    readme, project = ROOT / "README.md", ROOT / "pyproject.toml"
    absolute = with_absolute_links(readme.read_text("utf-8"), repository, tag)
    readme.write_text(absolute, encoding="utf-8")
    filled = project.read_text("utf-8").replace(PLACEHOLDER, repository)
    project.write_text(filled, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
