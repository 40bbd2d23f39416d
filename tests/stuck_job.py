"""A log directory as a job of three workers leaves it when it hangs: worker 1 was killed, worker 0
has waited ever since, and nothing came from worker 2.

`python -m tests.stuck_job FOLDER` writes it, for the tests in a browser.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests import captures
from tests import event_files as write
from tests.captures import GENERATOR, IN_THE_STEP, QUEUE, thread
from tests.detectors.stalls import before, stall


def write_job(folder: Path) -> Path:
    waits = thread(*IN_THE_STEP, main=True), thread(*QUEUE, *GENERATOR)
    _write_worker(folder, 0, stall(*waits, seconds=100))
    _write_worker(folder, 1, [])
    return folder


def _write_worker(folder: Path, index: int, then: Sequence[bytes]) -> None:
    host, task = f"node{index}", {"type": "worker", "index": index}
    begun = before(task=task, workers=3, host=host)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / captures.file_name(host=host)
    path.write_bytes(write.framed(write.file_version()) + b"".join([*begun, *then]))


if __name__ == "__main__":
    write_job(Path(sys.argv[1]))
