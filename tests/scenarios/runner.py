"""What the runners share: the choice of programs, and separate processes for them."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}


def parser(
    package: str,
    description: str | None,
    what: str,
    also_scores: bool = False,
    workdir: Path | None = None,
) -> argparse.ArgumentParser:
    """For `python -m <package>.run`, whose programs are called `what`."""
    result = argparse.ArgumentParser(
        prog=f"python -m {package}.run",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("names", nargs="*", help=f"{what}s to run (all of them by default)")
    place = f"where the captures go ({workdir or 'a temporary folder'} by default)"
    result.add_argument("--workdir", type=Path, default=workdir, help=place)
    result.add_argument("--list", action="store_true", help=f"list the {what}s and stop")
    if also_scores:
        result.add_argument("--only-score", action="store_true", help="score what --workdir holds")
    return result


def all_known(names: Sequence[str], known: Container[str], what: str) -> bool:
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no such {what}: {', '.join(unknown)} (see --list)", file=sys.stderr)
    return not unknown


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def started(
    command: Sequence[str],
    output: Path,
    environment: Mapping[str, str],
    own_session: bool = False,
) -> subprocess.Popen[bytes]:
    """`python -m` with this command; what it prints goes to a file."""
    with output.open("w") as file:
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env={**os.environ, **QUIET, **environment},
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=own_session,
        )


def finished(
    command: Sequence[str], folder: Path, timeout_s: float, environment: Mapping[str, str]
) -> int:
    """Runs the command again, with its output next to its logs; returns its exit code."""
    process = started(command, emptied(folder) / "output.txt", environment)
    try:
        return process.wait(timeout_s)
    finally:
        process.kill()
        process.wait()


def free_addresses(workers: int) -> list[str]:
    return [f"localhost:{_free_port()}" for _ in range(workers)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


def tf_config(addresses: Sequence[str], index: int) -> dict[str, str]:
    """The environment of one worker of a cluster."""
    return tf_config_of({"worker": addresses}, "worker", index)


def tf_config_of(cluster: Mapping[str, Sequence[str]], kind: str, index: int) -> dict[str, str]:
    """The environment of one task of a cluster."""
    task = {"type": kind, "index": index}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}
