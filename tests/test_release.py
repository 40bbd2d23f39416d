"""What is published: one version everywhere, a README for PyPI, workflows that are valid."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from jsonschema.validators import validator_for

from scripts.prepare_release import LINK, PLACEHOLDER, problem, version, with_absolute_links
from tests.published_schemas import published
from tests.real_documents import ROOT

GITHUB = ROOT / ".github"


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_one_version_everywhere() -> None:
    assert f"\nversion: {version()}\n" in text_of("CITATION.cff")
    assert json.loads(text_of("frontend/package.json"))["version"] == version()
    lock = json.loads(text_of("frontend/package-lock.json"))
    assert lock["version"] == lock["packages"][""]["version"] == version()
    newest = re.search(r"^## \[(.*?)\]", text_of("CHANGELOG.md"), re.MULTILINE)
    assert newest and newest[1] == version()


def test_this_version_can_be_released() -> None:
    assert problem(f"v{version()}") == ""


def test_a_tag_that_is_not_the_version_is_refused() -> None:
    assert problem("v9.9.9") == f"the tag is v9.9.9, but the version is {version()}"


def test_the_readme_on_pypi_has_absolute_links_only() -> None:
    shown = with_absolute_links(text_of("README.md"), "someone/stall", "v1.2.3")
    assert not LINK.search(shown)
    picture = "https://raw.githubusercontent.com/someone/stall/v1.2.3/docs/images/run.png"
    assert f"]({picture})" in shown
    assert "(https://github.com/someone/stall/blob/v1.2.3/docs/tutorial.md)" in shown


def test_only_the_project_file_waits_to_be_told_where_the_repository_is() -> None:
    assert text_of("pyproject.toml").count(PLACEHOLDER) == 4
    assert PLACEHOLDER not in text_of("README.md") + text_of("CITATION.cff")


@pytest.mark.parametrize("path", sorted((GITHUB / "workflows").glob("*.yml")), ids=lambda p: p.name)
def test_workflows_are_what_github_accepts(path: Path) -> None:
    schema = published("github-workflow")
    workflow = yaml.safe_load(path.read_text("utf-8"))
    workflow["on"] = workflow.pop(True)  # YAML 1.1 reads `on` as a boolean
    assert list(validator_for(schema)(schema).iter_errors(workflow)) == []


@pytest.mark.parametrize(
    "path", sorted((GITHUB / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda p: p.name
)
def test_issue_templates_are_valid_and_ask_for_a_bundle(path: Path) -> None:
    schema = published("github-issue-forms")
    assert list(validator_for(schema)(schema).iter_errors(yaml.safe_load(path.read_text()))) == []
    assert "stall-analyze LOGDIR --bundle report.zip" in path.read_text("utf-8")


def test_what_is_cited_is_a_valid_citation() -> None:
    cited = yaml.safe_load(text_of("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= set(cited)


def test_every_file_that_ci_names_exists() -> None:
    for line in text_of("tests/without_tensorflow.txt").split():
        assert (ROOT / line).exists(), line
    for workflow in (GITHUB / "workflows").glob("*.yml"):
        for module in re.findall(r"python -m (scripts\.\w+)", workflow.read_text("utf-8")):
            assert (ROOT / (module.replace(".", "/") + ".py")).exists()
