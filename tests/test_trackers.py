"""A report next to a run in a tracker: MLflow, and whatever reads TensorBoard's scalars."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from tensorboard.backend.event_processing import event_accumulator

import stall_analyzer as stall
from tests.patience import happens

SAMPLES = Path(__file__).resolve().parents[1] / "sample_logs"
SAMPLE = SAMPLES / "input_py_function"
SERVER_S = 600.0


@pytest.fixture(scope="module")
def report() -> stall.Analysis:
    return stall.analyze(SAMPLE)


# ---------------------------------------------------------------- TensorBoard


def test_tensorboard_gets_the_figures_as_scalars(report: stall.Analysis, tmp_path: Path) -> None:
    file = Path(stall.log_to("tensorboard", report, tmp_path / "tracked" / "run1"))
    assert file.parent == tmp_path / "tracked" / "run1"
    accumulator = event_accumulator.EventAccumulator(str(file.parent))
    accumulator.Reload()
    told = {tag: accumulator.Scalars(tag)[-1].value for tag in accumulator.Tags()["scalars"]}
    assert told["stall/first_epoch_s"] == pytest.approx(report.duration_s, rel=1e-6)
    assert told["stall/input_s"] == pytest.approx(report.buckets_s["input"], rel=1e-6)
    assert told["stall/ST001/gain_low_s"] == pytest.approx(report.findings[0].gain_s[0], rel=1e-6)


def test_a_log_directory_will_do_as_well(tmp_path: Path) -> None:
    file = stall.log_to("tensorboard", SAMPLE, tmp_path)
    assert Path(file).is_file()


@pytest.mark.parametrize("inside", [".", "stall", "plugins/stall"])
def test_nothing_is_written_into_the_logs_that_were_read(inside: str, tmp_path: Path) -> None:
    link = tmp_path / "logs"
    link.symlink_to(SAMPLE, target_is_directory=True)
    before = sorted(SAMPLE.rglob("*"))
    for folder in (SAMPLE / inside, link / inside):
        with pytest.raises(stall.UsageError, match="is inside the logs that were read"):
            stall.log_to("tensorboard", stall.analyze(SAMPLE), folder)
    assert sorted(SAMPLE.rglob("*")) == before


def test_what_cannot_be_logged_is_refused(report: stall.Analysis, tmp_path: Path) -> None:
    with pytest.raises(stall.UsageError, match="needs a folder"):
        stall.log_to("tensorboard", report)
    with pytest.raises(stall.UsageError, match="use mlflow or tensorboard"):
        stall.log_to("paper", report)  # type: ignore[arg-type]
    with pytest.raises(stall.UsageError, match="8 runs; choose one"):
        stall.log_to("tensorboard", SAMPLES, tmp_path / "many")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- MLflow


def test_without_mlflow_it_says_what_is_missing(
    report: stall.Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(stall.UsageError, match=r"pip install 'tensorboard-plugin-stall\[mlflow\]'"):
        stall.log_to("mlflow", report)


class StandIn(ModuleType):
    """The parts of MLflow that are used; it remembers what it was given."""

    class MlflowException(Exception):
        pass

    def __init__(self, active: str = "") -> None:
        super().__init__("mlflow")
        self.exceptions = SimpleNamespace(MlflowException=self.MlflowException)
        self.entities = SimpleNamespace(
            Metric=lambda tag, value, *_: (tag, value), RunTag=lambda name, text: (name, text)
        )
        self.begun: list[str] = []
        self.active_run = lambda: _run(active) if active else None
        self.logged: dict[str, Any] = {}

    def start_run(self, run_name: str) -> Any:
        self.begun.append(run_name)
        return _Begun()

    def MlflowClient(self) -> StandIn:
        return self

    def log_batch(self, run_id: str, metrics: Any, tags: Any) -> None:
        if run_id == "gone":
            raise self.MlflowException("Run 'gone' not found")
        self.logged = {"run": run_id, **dict(metrics), **dict(tags)}

    def log_artifacts(self, run_id: str, folder: str, to: str) -> None:
        self.logged["files"] = sorted(f"{to}/{path.name}" for path in Path(folder).iterdir())


def _run(run_id: str) -> Any:
    return SimpleNamespace(info=SimpleNamespace(run_id=run_id))


class _Begun:
    def __enter__(self) -> Any:
        return _run("new")

    def __exit__(self, *_: object) -> None:
        """The run ends."""


def test_mlflow_gets_tags_figures_and_the_page(
    report: stall.Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = StandIn(active="active")
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    assert stall.log_to("mlflow", report) == "active"
    assert mlflow.logged["stall.verdict"] == report.verdict.sentence
    assert mlflow.logged["stall.findings"].split()[0] == "ST001"
    assert mlflow.logged["stall/input_s"] == report.buckets_s["input"]
    assert mlflow.logged["files"] == ["stall/report.html", "stall/report.json", "stall/report.md"]


def test_a_run_is_named_or_begun(report: stall.Analysis, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = StandIn()
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    assert stall.log_to("mlflow", report, "chosen") == mlflow.logged["run"] == "chosen"
    assert stall.log_to("mlflow", report) == mlflow.logged["run"] == "new"
    assert mlflow.begun == ["input_py_function"]
    with pytest.raises(stall.UsageError, match="MLflow: Run 'gone' not found"):
        stall.log_to("mlflow", report, "gone")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        version("mlflow")  # not mlflow-skinny, which has no server
    except PackageNotFoundError:
        pytest.skip("MLflow's server is not installed")
    folder = tmp_path_factory.mktemp("mlflow")
    address = f"http://127.0.0.1:{_free_port()}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1"]
    command += ["--port", address.rpartition(":")[2]]
    command += ["--backend-store-uri", f"sqlite:///{folder}/runs.db"]
    command += ["--artifacts-destination", str(folder / "artifacts")]
    with (folder / "printed.txt").open("wb") as printed:
        started = subprocess.Popen(
            command, cwd=folder, stdout=printed, stderr=printed, start_new_session=True
        )
    try:
        answered = happens(lambda: started.poll() is not None or _answers(address), SERVER_S)
        assert answered and started.poll() is None, (folder / "printed.txt").read_text()
        yield address
    finally:
        os.killpg(started.pid, signal.SIGTERM)  # its workers, too
        started.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _answers(address: str) -> bool:
    try:
        with urlopen(f"{address}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


def test_a_real_server_shows_verdict_buckets_findings_and_page(
    server: str, report: stall.Analysis
) -> None:
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(server)
    with mlflow.start_run() as begun:
        run_id = stall.log_to("mlflow", report)
    assert run_id == begun.info.run_id
    client = mlflow.MlflowClient(server)
    kept = client.get_run(run_id).data
    assert kept.tags["stall.verdict"] == report.verdict.sentence
    assert kept.tags["stall.findings"].split() == [finding.id for finding in report.findings]
    for bucket, took in report.buckets_s.items():
        assert kept.metrics[f"stall/{bucket}_s"] == pytest.approx(took)
    page = Path(mlflow.artifacts.download_artifacts(run_id=run_id, artifact_path="stall"))
    assert report.verdict.sentence in (page / "report.html").read_text(encoding="utf-8")
    assert json.loads((page / "report.json").read_text(encoding="utf-8")) == report.document
    other = stall.log_to("mlflow", report)  # no run is active anymore
    assert other != run_id
    assert client.get_run(other).info.status == "FINISHED"
    with pytest.raises(stall.UsageError, match="MLflow: "):
        stall.log_to("mlflow", report, "0" * 32)
