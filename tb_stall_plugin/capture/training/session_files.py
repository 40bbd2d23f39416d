"""Where a profile goes: it is written to a hidden folder and, once complete, moved to where
TensorBoard looks.

So a killed job leaves no incomplete trace, and two profiles within one second stay two.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from typing import Any

import tensorflow as tf

XPLANE = ".xplane.pb"


class SessionFiles:
    def __init__(self, logdir: str) -> None:
        self._target = f"{logdir.rstrip('/')}/plugins/profile"
        is_remote = "://" in logdir
        parent = tempfile.gettempdir() if is_remote else logdir.rstrip("/")
        self._is_remote = is_remote
        # The folder for the profiler. The random part is needed because containers that share a
        # folder may have the same process ids.
        self.staging = f"{parent}/.stall-{os.getpid()}-{os.urandom(4).hex()}"

    def publish(self) -> tuple[str, int]:
        """Returns the name of the session and the size of its file."""
        written = tf.io.gfile.glob(f"{self.staging}/plugins/profile/*/*{XPLANE}")
        if not written:
            raise FileNotFoundError("the profiler wrote no trace")
        source = written[0]
        size = int(tf.io.gfile.stat(source).length)
        name = source.rpartition("/")[2].removesuffix(XPLANE) + _task_suffix() + XPLANE
        session = self._free_session(name)
        target = f"{self._target}/{session}/{name}"
        tf.io.gfile.makedirs(f"{self._target}/{session}")
        if self._is_remote:
            tf.io.gfile.copy(source, target)
        else:
            tf.io.gfile.rename(source, target)
        self.discard()
        return session, size

    def discard(self) -> None:
        """Deletes the hidden folder."""
        if tf.io.gfile.exists(self.staging):
            tf.io.gfile.rmtree(self.staging)

    def _free_session(self, name: str) -> str:
        """A name made from the time, as in TensorFlow; from a later time if it is taken."""
        moment_s = time.time()
        while True:
            session = time.strftime("%Y_%m_%d_%H_%M_%S", time.localtime(moment_s))
            if not tf.io.gfile.exists(f"{self._target}/{session}/{name}"):
                return session
            moment_s += 1


def _task_suffix() -> str:
    """Workers of a cluster may share a host and a log directory."""
    try:
        task: Any = json.loads(os.environ.get("TF_CONFIG", "{}"))["task"]
        return f"-{task['type']}-{task['index']}"
    except (ValueError, KeyError, TypeError):
        return ""
