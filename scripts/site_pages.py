"""A hook for mkdocs that adds pages from elsewhere in the repository to the documentation site.

Pages that are kept next to the code they describe are shown where they belong in the site. Links to
files that are not part of the site become plain text.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
SHOWN = {  # a file in the repository, and its page
    "ARCHITECTURE.md": "explanation/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "tb_stall_plugin/capture_format.md": "reference/capture-format.md",
    "tb_stall_plugin/http_api.md": "reference/http-api.md",
}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in SHOWN.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    del config
    shown_from = {target: source for source, target in SHOWN.items()}
    here = page.file.src_uri
    source = shown_from.get(here, f"docs/{here}")
    return LINK.sub(lambda found: site_link(found, source, here, files), markdown)


def site_link(found: re.Match[str], source: str, here: str, files: Files) -> str:
    """The link as it must be in the site, or only its text if the site does not have the file."""
    text, target, anchor = found[1], found[2], found[3] or ""
    if not target or "://" in target:
        return found[0]
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    page = SHOWN.get(wanted) or wanted.removeprefix("docs/")
    if files.get_file_from_path(page) is None:
        return text
    return f"[{text}]({os.path.relpath(page, PurePosixPath(here).parent)}{anchor})"
