"""Beyond one machine: compares a Dask cluster and an object store on loopback with a local pass.

    python benchmarks/cluster.py [--runs 300]

Both must give the same result as the local disk, byte for byte, and each object must be fetched
once, although one of the two workers is killed on the way, and every twentieth connection to the
store is cut. Needs the extra [test]. Exits with 1 if anything differs. The times show what the
detour costs here, not what a real cluster or store would take: everything shares one machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from fleet import make_fleet  # noqa: E402  next to this file

from tests.batch.dask_cluster import cluster, variables  # noqa: E402
from tests.batch.object_store import BUCKET, object_store  # noqa: E402

CUT_EVERY = 20
KILL_AFTER = 0.3  # share of the runs


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "stall_analyzer", *map(str, arguments)]


def timed(arguments: list[str], environment: dict[str, str]) -> float:
    begin = time.perf_counter()
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 4}:  # some of the runs contain garbage
        raise RuntimeError(done.stderr[-2000:])
    return time.perf_counter() - begin


def on_disk(folder: Path, fleet: Path) -> Path:
    output = folder / "disk.jsonl"
    arguments = command(fleet, "--store", folder / "disk", "--jsonl", output)
    seconds = timed(arguments, variables())
    print(f"disk, processes here     {seconds:7.1f} s", flush=True)
    return output


def on_dask(folder: Path, fleet: Path, runs: int) -> Path:
    output, store = folder / "dask.jsonl", folder / "dask"
    begin = time.perf_counter()
    with cluster(workers=2) as (address, workers):
        job = subprocess.Popen(
            command(fleet, "--store", store, "--jsonl", output, "--scheduler", address),
            env=variables(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while len(list(store.glob("*/[0-9a-f]*.result"))) < KILL_AFTER * runs:
            time.sleep(0.05)
        done_before = len(list(store.glob("*/[0-9a-f]*.result")))
        workers[0].send_signal(signal.SIGKILL)
        job.wait()
    seconds = time.perf_counter() - begin
    print(f"disk, 2 Dask workers     {seconds:7.1f} s, start included; one worker killed "
          f"after {done_before} runs", flush=True)  # fmt: skip
    return output


def on_object_store(folder: Path, fleet: Path) -> tuple[Path, list[str]]:
    output = folder / "store.jsonl"
    with object_store(fleet) as (proxy, environment):
        proxy.cut_every = CUT_EVERY
        arguments = command(f"s3://{BUCKET}", "--store", folder / "s3", "--jsonl", output)
        seconds = timed(arguments, {**variables(), **environment})
    files = [path for pattern in ("*.xplane.pb", "*tfevents*") for path in fleet.rglob(pattern)]
    whole = sum(path.stat().st_size for path in files)
    fetched, twice = sum(proxy.fetched.values()), sum(n > 1 for n in proxy.gets.values())
    print(f"object store            {seconds:7.1f} s; {proxy.lists} listings, {len(files):,} files "
          f"of {whole / 1e6:.1f} MB, fetched {fetched / 1e6:.1f} MB in "
          f"{sum(proxy.gets.values()):,} requests, {twice} objects twice; {proxy.cut} "
          "connections cut", flush=True)  # fmt: skip
    missed = [] if (fetched, twice) == (whole, 0) else ["objects were not fetched exactly once"]
    return output, missed


def _remove_empty_folders(fleet: Path) -> None:
    """An object store has none; on a disk, a session without a trace would add a note."""
    for folder, _, _ in os.walk(fleet, topdown=False):
        if not os.listdir(folder):  # noqa: PTH208
            Path(folder).rmdir()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        fleet = folder / "fleet"
        make_fleet(fleet, options.runs)
        _remove_empty_folders(fleet)
        disk = on_disk(folder, fleet)
        dask = on_dask(folder, fleet, options.runs)
        store, missed = on_object_store(folder, fleet)
        if dask.read_bytes() != disk.read_bytes():
            missed.append("Dask gives a different result than the disk")
        # Notes name the file they are about, which has a different name in the store.
        as_disk = store.read_bytes().replace(f"s3://{BUCKET}".encode(), os.fsencode(fleet))
        if as_disk != disk.read_bytes():
            missed.append("the object store gives a different result than the disk")
    for miss in missed:
        print(f"MISSED {miss}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
