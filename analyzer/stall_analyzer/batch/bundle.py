"""A zip file for a bug report: the report, versions and, if the user agrees, the logs."""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console

from stall_analyzer import __version__
from stall_analyzer.batch.batch import Batch
from stall_analyzer.batch.json_output import as_json
from stall_analyzer.batch.judge import Judge
from stall_analyzer.batch.text_output import as_text
from stall_analyzer.decode.decode import backend
from stall_analyzer.errors import UnreadableFile, UsageError
from stall_analyzer.files import files
from stall_analyzer.model.runs import Run

TEXT_WIDTH = 100
PACKAGES = (
    "tensorboard-plugin-stall", "numpy", "protobuf", "tensorboard", "tensorflow", "tensorflow-cpu",
    "keras", "tf_keras", "fsspec", "rich", "werkzeug", "py-spy", "xprof", "jax", "torch",
)  # fmt: skip
WITHOUT_LOGS = "The log files themselves are not included; --with-logs would add them."
WITH_LOGS = "logs/         the log files that were read, because --with-logs was given"
README = """\
Made by stall-analyze {version} for a bug report. Nothing was sent anywhere.

report.txt    what stall-analyze printed
report.json   the same for programs
versions.json Python, operating system, packages
{logs}

A report names runs, hosts, layers and, if a capture recorded them, lines of your code.
Look through it before you share it.
"""


def write_bundle(path: Path, batch: Batch, judge: Judge, with_logs: bool) -> None:
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
            logs = WITH_LOGS if with_logs else WITHOUT_LOGS
            bundle.writestr("README.txt", README.format(version=__version__, logs=logs))
            bundle.writestr("versions.json", json.dumps(versions(), indent=2) + "\n")
            bundle.writestr("report.json", "".join(as_json(batch, judge)))
            bundle.writestr("report.txt", _text(batch, judge))
            for run in batch.found() if with_logs else ():
                _add_logs(bundle, run)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def versions() -> dict[str, str | None]:
    """None for a package that is not installed."""
    return {
        "stall-analyze": __version__,
        "decoder": backend(),
        "python": sys.version,
        "platform": platform.platform(),
        "cores": str(os.cpu_count()),
        **{package: _version(package) for package in PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _text(batch: Batch, judge: Judge) -> str:
    console = Console(file=io.StringIO(), width=TEXT_WIDTH, color_system=None, highlight=False)
    return "".join(as_text(batch, judge, console, summed_up=False, in_full=True, threads=True))


def _add_logs(bundle: zipfile.ZipFile, run: Run) -> None:
    known = set(bundle.namelist())
    for path in log_files(run):
        name = _name_in_bundle(run, path)
        if name in known:  # attempts share a folder
            continue
        known.add(name)
        try:
            with files.open_binary(path) as log, bundle.open(name, "w") as copy:
                shutil.copyfileobj(log, copy)
        except UnreadableFile:
            continue  # the report already says so


def log_files(run: Run) -> Iterator[str]:
    for session in run.sessions:
        yield from (host.path for host in session.hosts)
    yield from (file.path for file in run.event_files)
    for dump in run.dumps:
        yield from (f"{dump.prefix}.{part}" for part in dump.parts)
    yield from (file.path for file in run.consoles if file.is_own or file.is_named)


def _name_in_bundle(run: Run, path: str) -> str:
    """Its path below the run's folder; a console from elsewhere goes to the top of that folder."""
    inside = path.removeprefix(run.path).replace(os.sep, "/").lstrip("/")
    is_inside = path.startswith(run.path) and inside
    return f"logs/{run.folder}/{inside if is_inside else Path(path).name}"
