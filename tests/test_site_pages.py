"""Pages next to the code: found in a checkout, and on the site under their own address."""

from __future__ import annotations

import posixpath
import re
from typing import Any

import pytest

from tests.real_documents import ROOT

site_pages: Any = pytest.importorskip("scripts.site_pages", reason="mkdocs is not installed")
PAGES = list(site_pages.SHOWN.items())
LINK_ELSEWHERE = re.compile(r"\]\(((?:\.\./)+tb_stall_plugin/[^)#]+)")


class Site:
    """The files of the site."""

    def get_file_from_path(self, path: str) -> str | None:
        return path if path in site_pages.SHOWN.values() else None


def on_site(link: str, source: str, page: str) -> str:
    found = site_pages.LINK.search(link)
    return str(site_pages.site_link(found, source, page, Site()))


@pytest.mark.parametrize("source", [source for source, _ in PAGES])
def test_the_readme_of_a_checkout_leads_to_each(source: str) -> None:
    assert f"]({source})" in (ROOT / "README.md").read_text("utf-8")


def test_a_link_in_the_docs_works_in_a_checkout_and_on_the_site() -> None:
    linked = set()
    for page in (ROOT / "docs").rglob("*.md"):
        source = page.relative_to(ROOT).as_posix()
        here = page.relative_to(ROOT / "docs").as_posix()
        for target in LINK_ELSEWHERE.findall(page.read_text("utf-8")):
            assert (page.parent / target).is_file()
            shown = on_site(f"[it]({target})", source, here)
            reached = posixpath.normpath(posixpath.join(posixpath.dirname(here), shown[5:-1]))
            linked.add(reached)
    assert linked == {"reference/http-api.md", "reference/capture-format.md"}


def test_a_link_to_what_the_site_lacks_is_plain_text() -> None:
    link = "[the samples](../sample_logs)"
    assert on_site(link, "docs/tutorial.md", "tutorial.md") == "the samples"
