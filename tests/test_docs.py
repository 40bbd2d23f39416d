"""The documentation: every command in it works, and the outputs it shows are real.

Commands of `stall-analyze` are run on logs that are where the pages say. Those that need a cluster,
an object store, a hanging process or minutes of training have their own tests; here, only their
options are checked.
"""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.refresh_outputs import pages, refreshed
from stall_analyzer.cli import main as cli
from stall_analyzer.cli import options, settings
from stall_analyzer.cli.help_texts import EPILOG
from stall_analyzer.detectors import manual
from stall_analyzer.model.causes import CAUSES
from tests.real_documents import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGES = [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "RELEASE.md"]
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
OF_OTHERS = ("s3://", "--scheduler")
SLOW = ("attach", "check", "try", "watch")
# Exit codes that a report may have: done, over a limit, worse than the baseline.
GOOD_CODES = (0, 5, 6)


def blocks(*kinds: str) -> list[Any]:
    return [
        pytest.param(text, id=f"{page.name}: {text.strip().splitlines()[0][:60]}")
        for page in PAGES
        for kind, text in BLOCK.findall(page.read_text(encoding="utf-8"))
        if kind in kinds
    ]


def commands(program: str) -> list[Any]:
    """Each call of a program, without pipes and comments."""
    arguments = r"((?:\\\n|'[^'\n]*'|[^\n|>#'&])*)"
    call = re.compile(rf"(?:^|[;'&|] *){re.escape(program)} {arguments}", re.MULTILINE)
    calls = [words for block in blocks("sh") for words in call.findall(block.values[0])]
    split = [shlex.split(words.replace("\\\n", " ")) for words in calls]
    return [pytest.param(words, id=" ".join([program, *words])) for words in split]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands find what they name."""
    place = tmp_path_factory.mktemp("reader")
    (place / "sample_logs").symlink_to(ROOT / "sample_logs")
    for run in ("logs/run1", "logs/run2", "logs/stuck", "shared/logs/a", "logs/team/a", "job/a"):
        shutil.copytree(ROOT / "sample_logs" / "input_py_function", place / run)
    shutil.copytree(ROOT / "sample_logs" / "healthy", place / "logs/fixed")
    (place / "job.out").write_text("epoch 1\n")
    (place / "train.py").write_text("print('trained')\n")
    cli.main([str(place / "logs"), "--jsonl", str(place / "last-release.jsonl"), "-o", "/dev/null"])
    return place


def as_here(word: str, place: Path) -> str:
    for there, here in (("/shared", "shared"), ("/logs/team", "logs/team"), ("$LOGDIR", "job")):
        if word.startswith(there):
            return str(place / here) + word[len(there) :]
    return word.replace("$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT", "0/2")


@pytest.mark.parametrize("words", commands("stall-analyze"))
def test_every_command_works(
    words: list[str],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place)
    if words[0] == "capture":
        run = [sys.executable, "-m", "stall_analyzer", *words]
        assert b"trained" in subprocess.run(run, capture_output=True, check=True).stdout
    elif words[0] in SLOW:
        run = [sys.executable, "-m", "stall_analyzer", words[0], "--help"]
        said = subprocess.run(run, capture_output=True, check=True, text=True).stdout
        ours = words[: words.index("--")] if "--" in words else words
        assert all(word in said for word in ours if word.startswith("-"))
    elif any(word.startswith(OF_OTHERS) for word in words):
        options.parser().parse_args(words)
    else:
        assert cli.main([as_here(word, place) for word in words]) in GOOD_CODES
        printed = capsys.readouterr()
        assert printed.out or "wrote" in printed.err or "-o" in words


@pytest.mark.parametrize("words", commands("pip"))
def test_every_extra_exists(words: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for extras in re.findall(r"tensorboard-plugin-stall\[(.*?)\]", " ".join(words)):
        assert set(extras.split(",")) <= set(project["optional-dependencies"])


@pytest.mark.parametrize("words", commands("make"))
def test_every_target_exists(words: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in (word for word in words if "=" not in word):
        assert re.search(rf"^{target}[ a-z-]*:", makefile, re.MULTILINE)


@pytest.mark.parametrize("words", commands("python"))
def test_every_script_exists_and_knows_its_options(words: list[str]) -> None:
    script = ROOT / words[0] if words[0] != "-m" else ROOT / (words[1].replace(".", "/") + ".py")
    if words[0] == "train.py":
        return  # the reader's own script
    text = script.read_text("utf-8")
    assert all(f'"{word}"' in text for word in words if word.startswith("--"))


@pytest.mark.parametrize("text", blocks("python"))
def test_every_piece_of_python_is_python(text: str) -> None:
    ast.parse("\n".join(line for line in text.splitlines() if not line.startswith("%")))


@pytest.mark.parametrize("text", blocks("yaml"))
def test_every_piece_of_yaml_is_yaml(text: str) -> None:
    assert yaml.safe_load(text)


@pytest.mark.parametrize("text", blocks("toml"))
def test_every_setting_is_known(text: str) -> None:
    stall = tomllib.loads(text)["tool"]["stall"]
    assert set(stall) <= set(settings.SETTINGS)


def test_the_api_is_used_as_it_is(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    page = (ROOT / "docs/reference/api.md").read_text("utf-8")
    exec(next(text for kind, text in BLOCK.findall(page) if kind == "python"), {})
    assert (place / "report.html").exists()


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in pages()])
def test_outputs_are_what_is_printed(page: Path) -> None:
    if page.name == "command.md" and sys.version_info >= (3, 13):
        pytest.skip("argparse shows options differently since Python 3.13")
    text = page.read_text("utf-8")
    assert refreshed(text) == text, "run `make docs`"


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text("utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


def test_every_finding_is_among_the_symptoms() -> None:
    text = (ROOT / "docs/reference/symptoms.md").read_text("utf-8")
    listed = set(re.findall(r"\[(ST\d+)\]\(../findings/ST\d+.md\) ([a-z ]*[a-z])", text))
    known = {(page.id, page.name.replace("_", " ")) for page in manual.pages()}
    assert listed == known, "see docs/reference/symptoms.md: [ID](…/ID.md) name, with spaces"


def test_the_page_and_the_help_have_the_same_exit_codes() -> None:
    page = (ROOT / "docs/reference/command.md").read_text("utf-8")
    table = re.findall(r"^\| (\d+) \|", page, re.MULTILINE)
    assert table == re.findall(r"^  (\d+) ", EPILOG.partition("exit codes:")[2], re.MULTILINE)


def test_every_cause_is_described() -> None:
    text = (ROOT / "docs/reference/buckets.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+\.\w+)` \|", text, re.MULTILINE) == list(CAUSES)


def test_the_readme_fits_on_one_screen() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 60


def test_the_site_has_every_page() -> None:
    """`make docs` fails if a page is missing; this finds it without building the site."""
    nav = (ROOT / "mkdocs.yml").read_text("utf-8")
    for page in pages():
        if page.is_relative_to(ROOT / "docs"):
            assert f": {page.relative_to(ROOT / 'docs').as_posix()}\n" in nav
