"""Python frames as a capture records them, and whose code they are in.

Quick to import: this also runs inside the user's training process.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass

FRAME = pattern(r"(?P<path>.+):(?P<line>\d+) (?P<function>.+)")
# Where Python keeps code that the user did not write. A notebook's cells have no path at all.
STANDARD = pattern(
    r"/lib(64)?/python3[^/]*/(?!(site|dist)-packages/)|/Lib/(?!site-packages/)|^<frozen "
)
# Packages may be anywhere (`pip install --target`); some have folders that no program has.
INSTALLED = pattern(r"/(site|dist)-packages/|/(tf_)?keras/src/|/tensorflow/python/")
TENSORFLOW = pattern(r"/(tensorflow|keras|tf_keras|tensorflow_core)/(?!examples/)")
# Programs that wait for their user, or for requests: nothing is expected to happen in them.
RESTS = pattern(
    r"/asyncio/(base_events|runners)\.py$|/socketserver\.py$|/(pdb|bdb|cmd|code)\.py$|/idlelib/"
    r"|/(ipykernel|IPython|tornado|debugpy|werkzeug|uvicorn|gunicorn|waitress|prompt_toolkit)/"
)
# The call of one of these is that of the whole training.
TRAINS = frozenset({"fit", "fit_generator", "train_on_batch"})
OURS = pattern(r"/(tb_stall_plugin|stall_analyzer)/")


@dataclass(frozen=True)
class Frame:
    """A line of code on a stack."""

    path: str
    line: int
    function: str

    @property
    def name(self) -> str:
        """The name of the function, without its class."""
        return self.function.rpartition(".")[2]

    @property
    def place(self) -> str:
        """`train.py:41`."""
        return f"{PurePosixPath(self.path.replace(chr(92), '/')).name}:{self.line}"

    @property
    def is_standard(self) -> bool:
        return bool(STANDARD.search(_slashes(self.path)))

    @property
    def is_tensorflow(self) -> bool:
        path = _slashes(self.path)
        return bool(TENSORFLOW.search(path) and INSTALLED.search(path))

    @property
    def is_users(self) -> bool:
        """Neither Python's own nor installed. An installed library that hangs is named all the
        same."""
        path = _slashes(self.path)
        return not (self.is_standard or INSTALLED.search(path) or OURS.search(path))

    @property
    def trains(self) -> bool:
        return self.name in TRAINS and self.is_tensorflow

    def is_of(self, kind: re.Pattern[str]) -> bool:
        return bool(kind.search(_slashes(self.path)))


def frame_of(text: str) -> Frame | None:
    """From "path:line function"."""
    match = FRAME.fullmatch(text)
    return Frame(match["path"], int(match["line"]), match["function"]) if match else None


def _slashes(path: str) -> str:
    return path.replace("\\", "/")
