"""A disk that fails: an errno is reported, and a failure that may pass is not stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.decode import decode, pure
from stall_analyzer.decode.event_columns import Core
from tests.batch.fleets import LONG_AGO_S, copy_sample
from tests.robust.bad_disk import BROKEN, SHORT_READS, STALE, BadDisk

CORES = [
    pytest.param(pure.read_plane, id="pure"),
    pytest.param(
        decode._native(), id="native", marks=pytest.mark.skipif(not decode._native(), reason="none")
    ),
]


def analyzed(
    logdir: Path, store: Path, environment: dict[str, str] | None = None
) -> dict[str, Any]:
    """The run's entry, as the command gives it; its exit code is the documented one."""
    command = [sys.executable, "-m", "stall_analyzer", str(logdir), "--json", "--store", str(store)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in ran.stderr
    (entry,) = json.loads(ran.stdout)["runs"]
    has_errors = any(note["level"] == "error" for note in entry["notes"])
    assert ran.returncode == (4 if has_errors else 0), ran.stderr
    result: dict[str, Any] = entry
    return result


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    folder = copy_sample("input_py_function", tmp_path / "logs")
    for path in folder.rglob("*"):  # long ago: it is not live
        os.utime(path, (LONG_AGO_S, LONG_AGO_S))
    return folder


@pytest.mark.parametrize("core", CORES)
def test_a_read_error_is_no_end_of_the_file(core: Core, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(bytes(100))
    fd = os.open(path, os.O_WRONLY)
    columns = (tuple(bytearray() for _ in range(5)), ())
    tables = (b"", b"", b"", b"", b"", b"", b"", 0)
    line = b"".join(number.to_bytes(8, "little") for number in (0, 100, 0))
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            core(fd, line, tables, columns, 0, lambda _: None)  # type: ignore[arg-type]
    finally:
        os.close(fd)


@pytest.mark.parametrize("error", [BROKEN, STALE])
@pytest.mark.parametrize("file", [".xplane.pb", "tfevents"])
@pytest.mark.parametrize("from_byte", [0, 3_000])
def test_what_a_disk_refused_is_asked_for_again(
    bad_disk: BadDisk, logdir: Path, tmp_path: Path, error: int, file: str, from_byte: int
) -> None:
    whole = analyzed(logdir, tmp_path / "other")
    bad_disk.fail(error)
    environment = bad_disk.environment(file, from_byte)
    refused = analyzed(logdir, tmp_path / "store", environment)
    said = " ".join(note["text"] for note in refused["notes"])
    assert os.strerror(error).lower() in said.lower()
    assert "damaged" not in said and "bug in stall-analyze" not in said
    bad_disk.heal()
    assert analyzed(logdir, tmp_path / "store", environment) == whole


def test_short_reads_change_nothing(bad_disk: BadDisk, logdir: Path, tmp_path: Path) -> None:
    whole = analyzed(logdir, tmp_path / "other")
    bad_disk.fail(SHORT_READS)
    assert analyzed(logdir, tmp_path / "store", bad_disk.environment(str(logdir))) == whole
