"""A disk that fails on demand, for processes that a test starts: bad_disk.c before libc."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_suffix(".c")
SHORT_READS = 0
STALE, BROKEN, FULL = errno.ESTALE, errno.EIO, errno.ENOSPC


@dataclass(frozen=True)
class BadDisk:
    """It works until `fail` is called."""

    library: Path
    switch: Path

    def environment(self, file: str, from_byte: int = 0, writes: bool = False) -> dict[str, str]:
        """For a process in which files whose path contains `file` fail."""
        chosen = {
            "LD_PRELOAD": str(self.library),
            "BAD_DISK_FILE": file,
            "BAD_DISK_SWITCH": str(self.switch),
            "BAD_DISK_FROM": str(from_byte),
        }
        return {**os.environ, **chosen, **({"BAD_DISK_WRITES": "1"} if writes else {})}

    def fail(self, error: int) -> None:
        self.switch.write_text(f"{error}\n", encoding="ascii")

    def heal(self) -> None:
        self.switch.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def bad_disk_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs Linux and a C compiler")
    library = tmp_path_factory.mktemp("bad_disk") / "bad_disk.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", str(SOURCE), "-o", str(library), "-ldl"], check=True
    )
    return library


@pytest.fixture
def bad_disk(bad_disk_library: Path, tmp_path: Path) -> BadDisk:
    return BadDisk(bad_disk_library, tmp_path / "bad_disk.switch")
