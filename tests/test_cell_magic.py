"""`%load_ext stall_analyzer` in a real kernel, and how a cell shows a report."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import stall_analyzer as stall
from stall_analyzer import cell_magic
from stall_analyzer.report import notebook as view

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

SAMPLES = Path(__file__).resolve().parents[1] / "sample_logs"
KERNEL_S = 600  # on a slow machine, importing TensorFlow takes minutes

TRAINING = """
import numpy as np
import keras
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
fit_before = keras.Model.fit
x, y = np.zeros((64, 4), "float32"), np.zeros((64, 1), "float32")
"""


def run_cells(folder: Path, *cells: str, errors: bool = False) -> list[str]:
    """What each cell of a new notebook shows, as text."""
    codes = [nbformat.v4.new_code_cell(cell) for cell in ("%load_ext stall_analyzer", *cells)]
    notebook = nbformat.v4.new_notebook(cells=codes)
    place = {"metadata": {"path": str(folder)}}
    client = nbclient.NotebookClient(
        notebook, timeout=KERNEL_S, resources=place, allow_errors=errors
    )
    client.execute()
    return ["\n".join(map(_text, cell.outputs)) for cell in notebook.cells[1:]]


def _text(output: Any) -> str:
    shown = output.get("data", {})
    return str(shown.get("text/html") or shown.get("text/plain") or dict(output))


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.addresses: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_cell_that_trains_shows_its_verdict_and_leaves_fit_as_it_was(tmp_path: Path) -> None:
    trained, after, again = run_cells(
        tmp_path,
        TRAINING,
        "%%stall --logdir logs/run1 -o report\nmodel.fit(x, y, verbose=0)\n'the last value'",
        "print(keras.Model.fit is fit_before, type(report).__name__)",
        "%stall logs/run1",
    )[1:]
    assert "the last value" in trained
    assert "border-left" in trained
    assert "%tensorboard --logdir logs/run1" in trained
    assert "True Analysis" in after
    assert "border-left" in again
    assert list((tmp_path / "logs" / "run1").glob("*.stall"))


def test_what_is_imported_within_the_cell_is_captured_as_well(tmp_path: Path) -> None:
    (shown,) = run_cells(tmp_path, f"%%stall\n{TRAINING}\nmodel.fit(x, y, verbose=0);")
    assert "border-left" in shown
    assert len(list((tmp_path / "stall-logs").iterdir())) == 1


def test_a_cell_that_fails_shows_its_verdict_and_its_error(tmp_path: Path) -> None:
    failing = (
        "class Fails(keras.callbacks.Callback):\n"
        "    def on_train_batch_end(self, batch, logs=None):\n"
        "        raise ValueError('in a callback')\n"
    )
    shown = run_cells(
        tmp_path,
        TRAINING + failing,
        "%%stall\nmodel.fit(x, y, verbose=0, callbacks=[Fails()])",
        "print(keras.Model.fit is fit_before)",
        errors=True,
    )
    assert "border-left" in shown[1]
    assert "in a callback" in shown[1]
    assert shown[1].index("border-left") < shown[1].index("'output_type': 'error'")
    assert "True" in shown[2]


def test_a_cell_without_fit_says_how_loops_are_captured(tmp_path: Path) -> None:
    shown, wrong, nothing = run_cells(
        tmp_path, "%%stall\nprint('done')", "%%stall --what\n1", "%stall nowhere", errors=True
    )
    assert "done" in shown
    assert "tb_stall_plugin.watch" in shown
    assert "unrecognized arguments: --what" in wrong
    assert "nowhere" in nothing


def test_without_the_plugin_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_magic, "find_spec", lambda _: None)
    shell = _Shell()
    cell_magic.load_ipython_extension(shell)
    error = pytest.importorskip("IPython.core.error").UsageError
    with pytest.raises(error, match="tensorboard-plugin-stall"):
        shell.magics_manager.magics["cell"]["stall"]("", "model.fit(x)")


def test_unloaded_it_is_gone() -> None:
    shell = _Shell()
    cell_magic.load_ipython_extension(shell)
    cell_magic.unload_ipython_extension(shell)
    assert shell.magics == {"line": {}, "cell": {}}


def test_loading_the_extension_loads_neither_the_plugin_nor_tensorflow(tmp_path: Path) -> None:
    (shown,) = run_cells(
        tmp_path, "import sys; print({'tb_stall_plugin', 'tensorflow'} & set(sys.modules))"
    )
    assert "set()" in shown


@pytest.mark.parametrize(
    "name", sorted(path.parent.name for path in SAMPLES.glob("*/expected.json"))
)
def test_a_report_in_a_cell_is_small_and_needs_nothing_from_elsewhere(name: str) -> None:
    shown = stall.analyze(SAMPLES / name)._repr_html_()
    tags = _Tags()
    tags.feed(shown)
    assert tags.open == []
    assert tags.names <= {"div", "b", "br", "span", "details", "summary", "pre", "code", "ul", "li"}
    assert tags.addresses == []
    assert len(shown) < 16_000


def test_text_takes_the_color_of_the_notebook() -> None:
    """Otherwise, it could not be read on a dark page, or on a light one."""
    shown = stall.analyze(SAMPLES / "input_py_function")._repr_html_()
    assert ";color:" not in shown
    assert '"color:' not in shown


def test_a_run_is_named_where_there_may_be_others() -> None:
    every = stall.analyze(SAMPLES)
    assert "<b>healthy</b>" in every["healthy"]._repr_html_()
    assert "<b>.</b>" not in stall.analyze(SAMPLES / "healthy")._repr_html_()


def test_of_very_many_runs_a_cell_shows_the_first() -> None:
    run = stall.analyze(SAMPLES / "healthy").document["runs"][0]
    shown = view.render([run] * (view.MOST_RUNS + 7))
    assert shown.count("border-left") == view.MOST_RUNS
    assert "7 more runs" in shown


class _Shell:
    def __init__(self) -> None:
        self.magics: dict[str, dict[str, Any]] = {"line": {}, "cell": {}}
        self.magics_manager = self

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        for each in kind.split("_"):
            self.magics[each][name] = function
