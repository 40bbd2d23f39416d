"""Runs the jobs and compares what was injected with what the analyzer says.

python -m tests.scenarios.clusters.run [names…] [--workdir DIR] [--list] [--only-score]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.scenarios.clusters.plans import JOBS, Job, WorkerPlan
from tests.scenarios.clusters.score import LASTED, score, table
from tests.scenarios.runner import (
    ROOT,
    all_known,
    emptied,
    free_addresses,
    parser,
    started,
    tf_config,
    tf_config_of,
)

JOB_TIMEOUT_S = 300
TERM_TIMEOUT_S = 30
ATTEMPTS = 3
PACKAGES = ROOT / "build/harm/packages/tf_keras"


def main(arguments: Sequence[str] | None = None) -> int:
    known_options = parser("tests.scenarios.clusters", __doc__, "job", also_scores=True)
    options = known_options.parse_args(arguments)
    if not all_known(options.names, {job.name for job in JOBS}, "job"):
        return 2
    chosen = [job for job in JOBS if job.name in options.names] or [
        job for job in JOBS if not job.for_scale
    ]
    if options.list:
        for job in chosen:
            print(f"{job.name:16} {job.workers} workers  {job.description}")
        return 0
    workdir = options.workdir or Path(tempfile.mkdtemp(prefix="stall-clusters-"))
    for job in chosen:
        if not options.only_score:
            run_job(job, workdir / job.name)
    scores = [score(job, workdir / job.name) for job in chosen if (workdir / job.name).exists()]
    print(table(scores))
    return 0 if scores and all(s.passed for s in scores) else 1


def run_job(job: Job, folder: Path) -> None:
    """All workers of a job, each in its own process; then their traces in one session.

    TensorFlow 2.21 now and then crashes when it stops its profiler: such a job is run again.
    """
    for _ in range(ATTEMPTS):
        if _run_once(job, emptied(folder)):
            break
        print(f"{job.name}: a worker crashed", file=sys.stderr)
    _bring_together(job, folder)


def _run_once(job: Job, folder: Path) -> bool:
    """Whether every worker ended as it was meant to."""
    if job.coordinated:
        return _run_coordinated(job, folder)
    began_s = time.monotonic()
    addresses = free_addresses(job.workers)
    plans = [job.plans.get(index, WorkerPlan()) for index in range(job.workers)]
    processes = {
        index: _start(job, index, addresses, folder)
        for index, plan in enumerate(plans)
        if plan.starts
    }
    killed = {index for index, plan in enumerate(plans) if plan.dies_before is not None}
    until_s = time.monotonic() + (job.stopped_after_s or JOB_TIMEOUT_S)
    living = {i: process for i, process in processes.items() if i not in killed}
    codes = {i: _wait(process, until_s - time.monotonic()) for i, process in living.items()}
    for i in killed:
        processes[i].kill()  # one that only stands still
    _end_all(list(processes.values()))
    (folder / LASTED).write_text(str(time.monotonic() - began_s))
    crashed = any(code is not None and code < 0 for code in codes.values())
    died = all("died" in (folder / f"diary-{i}.txt").read_text() for i in killed)
    return died and not crashed


def _run_coordinated(job: Job, folder: Path) -> bool:
    """Servers never end by themselves."""
    count = {"worker": job.workers, "ps": 1, "chief": 1}
    cluster = {kind: free_addresses(number) for kind, number in count.items()}
    processes = [
        started(
            ["tests.scenarios.clusters.ps_worker", job.name, kind, str(index), str(folder)],
            folder / f"output-{kind}-{index}.txt",
            tf_config_of(cluster, kind, index),
        )
        for kind, number in count.items()
        for index in range(number)
    ]
    code = _wait(processes[-1], JOB_TIMEOUT_S)
    for process in processes:
        process.kill()
        process.wait()
    return code == 0


def _end_all(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Together, as a scheduler does it: all have the same time for their last words."""
    until_s = time.monotonic() + TERM_TIMEOUT_S
    for process in processes:
        process.terminate()
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=max(until_s - time.monotonic(), 0))
    for process in processes:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """How it ended; None if it did not, and is told to."""
    try:
        return process.wait(timeout=max(seconds, 0))
    except subprocess.TimeoutExpired:
        process.terminate()  # as a scheduler does it
        return None


def _start(job: Job, index: int, addresses: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    command = ["tests.scenarios.clusters.worker", job.name, str(index), str(folder)]
    environment = tf_config(addresses, index) | (keras_2() if job.fit else {})
    return started(command, folder / f"output-{index}.txt", environment)


def keras_2() -> dict[str, str]:
    """As `make harm` installs it beside the environment."""
    found = [str(PACKAGES), os.environ.get("PYTHONPATH", "")]
    return {"TF_USE_LEGACY_KERAS": "1", "PYTHONPATH": os.pathsep.join(filter(None, found))}


def _bring_together(job: Job, folder: Path) -> None:
    """On one machine all workers bear one name; in a cluster each writes its own file."""
    if job.watched:
        return  # they have one log directory
    session = folder / "logs" / "plugins" / "profile" / "2026_01_01_00_00_00"
    session.mkdir(parents=True)
    for index in range(job.workers):
        for trace in (folder / f"worker-{index}").glob("plugins/profile/*/*.xplane.pb"):
            shutil.copy(trace, session / f"host-worker-{index}.xplane.pb")


if __name__ == "__main__":
    sys.exit(main())
