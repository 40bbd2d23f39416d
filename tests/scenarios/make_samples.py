"""Captures sample_logs/ again: `python -m tests.scenarios.make_samples [names…]`.

What would name the machine is taken out: the logdir is relative while capturing, and the host is
called "host", in file names and inside the traces.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.scenarios.catalogue import LIMITED, Scenario
from tests.scenarios.runner import QUIET, ROOT

HOST = "host"
# A share of the window that the analyzer must find again, against the one that was measured.
SAFE_SHARE = 0.9
ABSOLUTE_PATH = re.compile(rb"/(?:home|root|tmp|work|usr|opt|Users|mnt)/[\w.\-/]+")


@dataclass(frozen=True)
class Sample:
    scenario: Scenario
    status: tuple[str, ...]  # acceptable answers of the verdict
    readme: str
    # Of several hosts: whose clocks tell the truth, and which one is to blame.
    hosts: tuple[str, str] | None = None


def _sample(
    name: str,
    primary: str,
    status: tuple[str, ...],
    readme: str,
    hosts: tuple[str, str] | None = None,
    **options: object,
) -> Sample:
    scenario = Scenario(name, "samples", primary, readme, **options)  # type: ignore[arg-type]
    return Sample(scenario, status, readme, hosts)


SAMPLES = (
    _sample(
        "input_py_function", "input", ("slow_always",),
        "A `py_function` in `Dataset.map` takes 80 ms a batch; the step waits for it.",
    ),
    _sample(
        "compile_tracing", "compile", ("slow_once",),
        "Python in `Layer.call` takes a second each time the step is traced.",
    ),
    _sample(
        "memory_allocator_wait", "memory", ("slow_once", "slow_always"),
        "One step waits 1.5 s for memory that another thread holds.",
        mode="memory", env=LIMITED,
    ),
    _sample(
        "numerics_nan", "numerics", ("learning_nothing",),
        "Batch 4 holds a NaN; every later step computes for nothing.",
    ),
    _sample(
        "healthy", "compute", ("healthy",),
        "Ready batches and heavy steps: nothing to save.",
    ),
    _sample(
        "event_files_only", "compile", ("slow_once", "unknown"),
        "No profile at all: three epochs of scalars, the first one slow.",
    ),
    _sample(
        "mixed_host_and_input", "host", ("slow_always",),
        "A callback sleeps 50 ms a batch and the generator 90 ms; they overlap in part.",
    ),
    _sample(
        "communication_straggler", "host", ("slow_always",),
        "Two workers, each with its trace; the second one pauses 80 ms before its steps.",
        hosts=("host-worker-0", "host-worker-1"),
    ),
)  # fmt: skip


def main(names: Sequence[str]) -> int:
    chosen = [s for s in SAMPLES if not names or s.scenario.name in names]
    for sample in chosen:
        with tempfile.TemporaryDirectory() as work:
            _capture(sample.scenario, Path(work))
            target = ROOT / "sample_logs" / sample.scenario.name
            shutil.rmtree(target, ignore_errors=True)
            _publish(Path(work), target, sample)
        print(f"{target.relative_to(ROOT)}: {_size(target) // 1000} kB")
    return 0


def _capture(scenario: Scenario, work: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "tests.scenarios.child", scenario.name, "."],
        check=True,
        cwd=work,
        env={**os.environ, **QUIET, **scenario.env, "PYTHONPATH": str(ROOT)},
    )


def _publish(work: Path, target: Path, sample: Sample) -> None:
    for source in sorted((work / "logs").rglob("*")):
        if not source.is_file() or source.name.endswith(".profile-empty"):
            continue
        place = target / source.relative_to(work / "logs")
        place = place.with_name(place.name.replace(socket.gethostname(), HOST))
        place.parent.mkdir(parents=True, exist_ok=True)
        content = source.read_bytes()
        if place.name.endswith(".xplane.pb"):
            content = _with_neutral_host(content, place.name.removesuffix(".xplane.pb"))
        _check_harmless(content, place)
        place.write_bytes(content)
    truth = json.loads((work / "truth.json").read_text())
    (target / "expected.json").write_text(json.dumps(_expected(sample, truth), indent=1) + "\n")
    (target / "README.md").write_text(sample.readme + "\n")


def _with_neutral_host(content: bytes, host: str) -> bytes:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2  # noqa: PLC0415 (slow to import)

    space = xplane_pb2.XSpace.FromString(content)
    space.hostnames[:] = [host] * len(space.hostnames)
    return bytes(space.SerializeToString())


def _check_harmless(content: bytes, place: Path) -> None:
    found = ABSOLUTE_PATH.search(content) or re.search(
        rb"\b" + re.escape(socket.gethostname().encode()) + rb"\b(?=[.:/])", content
    )
    if found:
        raise SystemExit(f"{place.name} names this machine: {found.group()!r}")


def _expected(sample: Sample, truth: dict[str, object]) -> dict[str, object]:
    buckets = truth["buckets_s"]
    assert isinstance(buckets, dict)
    whole = sum(buckets.values())
    primary = sample.scenario.primary
    shares = {bucket: round(SAFE_SHARE * s / whole, 2) for bucket, s in buckets.items()}
    truth_host, late_host = sample.hosts or (None, None)
    return {
        "primary": primary,
        "status": list(sample.status),
        "host": late_host,
        "min_share": {}
        if sample.hosts or "unknown" in sample.status  # it may be left open
        else {primary: shares[primary]}
        if primary in shares
        else {},
        "truth_host": truth_host,
        "truth": {key: truth[key] for key in ("epoch_start_unix_ns", "epoch_end_unix_ns", "steps")},
        "truth_s": {bucket: round(seconds, 4) for bucket, seconds in buckets.items()},
    }


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
