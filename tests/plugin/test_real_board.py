"""The `tensorboard` command itself starts with us, and it starts when we are broken."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from tests.patience import PATIENCE_S
from tests.plugin.boards import ROOT, SAMPLES

ADDRESS = re.compile(r"http://(?:127\.0\.0\.1|localhost):\d+\S*")


class RealBoard:
    def __init__(self, address: str, log: Path) -> None:
        self._address = address.rstrip("/")
        self._log = log

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def text(self, path: str, **arguments: str) -> str:
        with urlopen(f"{self._address}/{path}?{urlencode(arguments)}") as answer:
            return str(answer.read().decode())

    def answer(self, route: str, **arguments: str) -> dict[str, Any]:
        return dict(json.loads(self.text(f"data/plugin/stall/{route}", **arguments)))

    def report(self, run: str) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            answer = self.answer("report", run=run)
            if answer["state"] in {"ready", "failed"}:
                return answer
            time.sleep(0.1)
        raise AssertionError(answer)

    def is_listed(self) -> bool:
        return bool(json.loads(self.text("data/plugins_listing"))["stall"]["enabled"])


@contextmanager
def tensorboard(
    *options: str, code: Path | None = None, cwd: Path | None = None
) -> Iterator[RealBoard]:
    """Starts TensorBoard on a free port, with the packages in `code` instead of ours."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        paths = [str(code), str(ROOT)] if code else [str(ROOT / "analyzer"), str(ROOT)]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "STALL_CACHE_DIR": folder,
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        command = [sys.executable, "-m", "tensorboard.main", "--host", "127.0.0.1", "--port", "0"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, *options],
                env=environment,
                stdout=output,
                stderr=output,
                cwd=cwd or folder,
            )
        try:
            yield RealBoard(_address(process, log), log)
        finally:
            process.terminate()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and process.poll() is None:
        found = ADDRESS.search(log.read_text(encoding="utf-8", errors="replace"))
        if found:
            return found.group()
        time.sleep(0.1)
    raise AssertionError(f"TensorBoard did not start:\n{log.read_text()}")


# ---------------------------------------------------------------- as it should be


@pytest.mark.parametrize(
    "options",
    [
        ("--logdir", SAMPLES.name, "--load_fast", "true"),
        ("--logdir", SAMPLES.name, "--load_fast", "false"),
        ("--logdir", SAMPLES.name, "--path_prefix", "/deep/board"),
    ],
    ids=["load_fast", "not load_fast", "prefix"],
)
def test_the_tab_works_however_tensorboard_is_started(options: tuple[str, ...]) -> None:
    with tensorboard(*options, cwd=SAMPLES.parent) as board:
        assert board.is_listed()
        assert board.report("healthy")["report"]["verdict"]["status"] == "healthy"


def test_several_logdirs(tmp_path: Path) -> None:
    spec = f"x:{SAMPLES / 'healthy'},{SAMPLES / 'numerics_nan'}"
    with tensorboard("--logdir_spec", spec) as board:
        assert board.is_listed()
        names = [run["run"] for run in board.answer("runs")["runs"]]
        assert names == [".", "x"]
        assert board.report("x")["report"]["verdict"]["status"] == "healthy"


# ---------------------------------------------------------------- broken on purpose


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A copy of both packages, to be damaged."""
    ignored = shutil.ignore_patterns("__pycache__")
    for source in (ROOT / "tb_stall_plugin", ROOT / "analyzer" / "stall_analyzer"):
        shutil.copytree(source, tmp_path / "code" / source.name, ignore=ignored)
    return tmp_path / "code"


def test_without_its_page_the_tab_says_so(code: Path) -> None:
    shutil.rmtree(code / "tb_stall_plugin" / "static")
    with tensorboard("--logdir", str(SAMPLES), code=code) as board:
        assert board.is_listed()
        assert "is missing from this installation" in board.text("data/plugin/stall/index.js")
        assert board.report("healthy")["state"] == "ready"


@pytest.mark.parametrize("module", ["tb_stall_plugin/plugin.py", "stall_analyzer/model/runs.py"])
def test_what_cannot_be_imported_leaves_the_other_tabs_alone(code: Path, module: str) -> None:
    (code / module).write_text("raise ImportError('no longer there')\n")
    with tensorboard("--logdir", str(SAMPLES), code=code) as board:
        assert board.is_listed()
        page = board.text("data/plugin/stall/index.js")
        assert "The Stall tab could not be loaded." in page
        assert "no longer there" in page
        assert "could not be loaded; the other tabs are not affected" in board.log()
        assert json.loads(board.text("data/runs"))


def test_the_page_says_that_an_analysis_failed(code: Path) -> None:
    path = code / "stall_analyzer" / "align" / "align.py"
    path.write_text(
        path.read_text() + "\n\ndef align(*_):\n    raise RuntimeError('out of tune')\n"
    )
    with tensorboard("--logdir", str(SAMPLES), code=code) as board:
        failed = board.report("healthy")
        assert failed["state"] == "failed"
        assert "RuntimeError: out of tune" in failed["error"]
        assert "out of tune" in board.log()
        assert json.loads(board.text("data/runs"))


def test_the_page_says_that_a_worker_cannot_run(code: Path) -> None:
    worker = code / "stall_analyzer" / "results" / "worker_process.py"
    worker.write_text(worker.read_text() + "\n\ndef main():\n    sys.exit(3)\n")
    with tensorboard("--logdir", str(SAMPLES), code=code) as board:
        assert "exit code 3" in board.report("healthy")["error"]
        with pytest.raises(HTTPError, match="404"):
            board.answer("report", run="nobody")
