"""The built page. Its files are listed once: a request is a lookup and cannot reach other files."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tb_stall_plugin.stand_in import script_that_says

FOLDER = Path(__file__).parent / "static"
# Given explicitly: on some systems, the registry says that .js is plain text.
TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".woff2": "font/woff2",
}
MISSING = (
    "The page of the Stall tab is missing from this installation (tb_stall_plugin/static/index.js)."
    "\n\nInstall the package again, or run `make frontend` in a checkout. The command line works "
    "without it: stall-analyze <logdir>"
)


@dataclass(frozen=True)
class Asset:
    type: str
    zipped: bytes


class Assets:
    """Reads the files when one is first asked for, so that TensorBoard starts without them."""

    @cached_property
    def _files(self) -> dict[str, Asset]:
        found = {"index.js": _asset(".js", script_that_says(MISSING).encode())}
        for path in FOLDER.rglob("*") if FOLDER.is_dir() else ():
            if path.is_file() and path.suffix in TYPES:
                name = path.relative_to(FOLDER).as_posix()
                found[name] = _asset(path.suffix, path.read_bytes())
        return found

    def find(self, name: str) -> Asset | None:
        return self._files.get(name)


def _asset(suffix: str, data: bytes) -> Asset:
    return Asset(TYPES[suffix], gzip.compress(data, mtime=0))
