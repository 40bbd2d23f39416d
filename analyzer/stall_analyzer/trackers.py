"""A report attached to a run in a tracker: `stall_analyzer.log_to("mlflow", analysis)`.

MLflow gets the figures, the verdict and the page. Any other tracker that reads TensorBoard's
scalars gets the figures from an event file.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from os import fspath
from pathlib import Path
from socket import gethostname
from typing import Any, Literal, TypeAlias, get_args

from tensorboard.compat.proto import event_pb2

from stall_analyzer.api import Analysis, LogPath, analyze
from stall_analyzer.errors import UsageError
from stall_analyzer.files.output import write_file
from stall_analyzer.files.tfrecord import framed

Tracker: TypeAlias = Literal["mlflow", "tensorboard"]

FOLDER = "stall"  # for the artifacts
MOST_CHARACTERS = 5000  # in a tag: MLflow's own limit


def log_to(tracker: Tracker, analysis: Analysis | LogPath, to: LogPath = "") -> str:
    """Attaches the analysis of one run, or of the run in a log directory, to a run in a tracker.

    `to` is the id of a run in MLflow (by default the active run, or a new one), or the folder for
    TensorBoard's event file, which must not be inside the logs that were read. Returns the run's
    id, or the file."""
    if tracker not in get_args(Tracker):
        raise UsageError(f"{tracker} is not a tracker: use {' or '.join(get_args(Tracker))}")
    report = analysis if isinstance(analysis, Analysis) else analyze(analysis)
    if tracker == "mlflow":
        return _to_mlflow(report, fspath(to))
    return _to_tensorboard(report, fspath(to))


def scalars_of(report: Analysis) -> dict[str, float]:
    """Seconds of the first epoch, each bucket, and each finding, by tag."""
    figures = {
        "stall/first_epoch_s": report.duration_s,
        "stall/confidence": report.verdict.confidence,
        "stall/findings": float(len(report.findings)),
    }
    figures.update({f"stall/{bucket}_s": took for bucket, took in report.buckets_s.items()})
    for finding in report.findings:
        figures[f"stall/{finding.id}/lost_s"] = finding.lost_s
        figures[f"stall/{finding.id}/gain_low_s"] = finding.gain_s[0]
        figures[f"stall/{finding.id}/gain_high_s"] = finding.gain_s[1]
    return figures


# ---------------------------------------------------------------- MLflow


def _to_mlflow(report: Analysis, run_id: str) -> str:
    try:
        mlflow = import_module("mlflow")
    except ImportError as error:
        hint = "pip install 'tensorboard-plugin-stall[mlflow]'"
        raise UsageError(f'log_to("mlflow") needs MLflow: {hint}') from error
    # Refuses several runs before MLflow starts one.
    tags, scalars = _tags(report), scalars_of(report)
    try:
        active = mlflow.active_run()
        if run_id or active is not None:
            return _attach(mlflow, run_id or active.info.run_id, report, tags, scalars)
        with mlflow.start_run(run_name=_name(report)) as begun:
            return _attach(mlflow, begun.info.run_id, report, tags, scalars)
    except mlflow.exceptions.MlflowException as error:
        raise UsageError(f"MLflow: {error}") from error


def _name(report: Analysis) -> str:
    """A run that is the log directory itself has no name in it: its folder's name is used."""
    if report.name != "." or not report.paths:
        return report.name
    return Path(report.paths[0]).absolute().name


def _attach(
    mlflow: Any,
    run_id: str,
    report: Analysis,
    tags: Mapping[str, str],
    scalars: Mapping[str, float],
) -> str:
    client, entities, now_ms = mlflow.MlflowClient(), mlflow.entities, time.time_ns() // 10**6
    client.log_batch(
        run_id,
        metrics=[entities.Metric(tag, value, now_ms, 0) for tag, value in scalars.items()],
        tags=[entities.RunTag(name, text) for name, text in tags.items()],
    )
    with tempfile.TemporaryDirectory(prefix="stall-") as folder:
        for name in ("report.html", "report.md", "report.json"):
            report.save(Path(folder, name))
        client.log_artifacts(run_id, folder, FOLDER)
    return run_id


def _tags(report: Analysis) -> dict[str, str]:
    verdict = report.verdict
    return {
        "stall.verdict": verdict.sentence[:MOST_CHARACTERS],
        "stall.status": verdict.status,
        "stall.primary": verdict.primary,
        "stall.findings": " ".join(finding.id for finding in report.findings),
    }


# ---------------------------------------------------------------- TensorBoard


def _to_tensorboard(report: Analysis, folder: str) -> str:
    if not folder:
        raise UsageError('log_to("tensorboard", …) needs a folder for the event file')
    target = Path(folder).absolute()
    for read in report.paths:
        if _is_within(target, Path(read).absolute()):
            raise UsageError(f"cannot write into {folder}: it is inside the logs that were read")
    scalars = scalars_of(report)
    # Processes in different containers may have the same id.
    name = f"events.out.tfevents.{time.time_ns() // 10**9}.stall-{gethostname()}.{os.getpid()}"
    file = target / name
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write into {folder}: {error.strerror}") from error
    write_file(file, _records(scalars))
    return str(file)


def _is_within(target: Path, read: Path) -> bool:
    """Follows links, and includes the folder of a single file that was read."""
    if read.is_file():
        read = read.parent
    return target.resolve().is_relative_to(read.resolve())


def _records(scalars: Mapping[str, float]) -> Iterator[bytes]:
    now_s = time.time()
    yield framed(event_pb2.Event(wall_time=now_s, file_version="brain.Event:2").SerializeToString())
    event = event_pb2.Event(wall_time=now_s, step=0)
    for tag, value in scalars.items():
        event.summary.value.add(tag=tag, simple_value=value)
    yield framed(event.SerializeToString())
