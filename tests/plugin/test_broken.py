"""Whatever is wrong with us, TensorBoard starts and works, and the tab says what is wrong."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tb_stall_plugin import assets
from tb_stall_plugin.loader import StallLoader
from tests.plugin.boards import SAMPLES, Board

SHOW_STAND_IN = (
    "import sys\n"
    "{damage}\n"
    "from tests.plugin.boards import Board\n"
    "board = Board({logdir!r})\n"
    "listing = board.get('/data/plugins_listing').get_json()\n"
    "print(listing['stall']['enabled'], board.ask('index.js').get_data(as_text=True))\n"
)


def test_tensorboard_finds_the_loader() -> None:
    (ours,) = entry_points(group="tensorboard_plugins", name="stall")
    assert ours.load() is StallLoader


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("sys.modules['stall_analyzer'] = None", "stall_analyzer"),
        ("sys.modules['numpy'] = None", "numpy"),
        ("sys.modules['tb_stall_plugin.plugin'] = None", "tb_stall_plugin.plugin"),
    ],
)
def test_the_tab_says_what_cannot_be_imported(damage: str, reason: str) -> None:
    script = SHOW_STAND_IN.format(damage=damage, logdir=str(SAMPLES))
    shown = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=SAMPLES.parent,
    )
    assert shown.stdout.startswith("True ")
    assert "The Stall tab could not be loaded." in shown.stdout
    assert reason in shown.stdout
    assert "the other tabs are not affected" in shown.stderr


def test_the_loader_itself_imports_nothing_of_ours() -> None:
    script = "import sys, tb_stall_plugin.loader; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    modules = set(loaded.stdout.split())
    assert not modules & {"stall_analyzer", "numpy", "tb_stall_plugin.plugin", "platformdirs"}


def test_the_tab_says_that_its_page_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assets, "FOLDER", tmp_path / "static")
    board = Board(str(SAMPLES))
    response = board.ask("index.js")
    assert response.status_code == 200
    assert response.content_type.startswith("text/javascript")
    text = response.get_data(as_text=True)
    assert "export function render()" in text
    assert "is missing from this installation" in text


def test_files_of_the_page_have_their_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("index.js", "deep/style.css", "secret.key"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"this is {name}")
    monkeypatch.setattr(assets, "FOLDER", tmp_path)
    board = Board(str(SAMPLES))
    script, style = board.ask("static/index.js"), board.ask("static/deep/style.css")
    assert script.content_type.startswith("text/javascript")
    assert script.get_data(as_text=True) == "this is index.js"
    assert style.content_type.startswith("text/css")
    assert board.ask("static/secret.key").status_code == 404


def test_a_bug_in_a_route_becomes_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise RuntimeError("lost")

    board = Board(str(SAMPLES))
    monkeypatch.setattr("tb_stall_plugin.logs.Logs.find", lost)
    response = board.ask("runs")
    assert response.status_code == 500
    assert response.get_json() == {"error": "RuntimeError: lost"}
    assert board.get("/data/plugins_listing").status_code == 200
