"""How long it takes to read event files, compared with all of TensorBoard's own loaders.

    python benchmarks/events.py [--workdir DIR]

Creates two files (kept and reused with --workdir): a million scalars, and 300 MB of histograms and
images. Each measurement is a fresh process; programs take turns, and the median counts. Exits with
1 if another program loads one of them faster.

TensorBoard's loaders in Python only parse the events. To find them in the file, they load
TensorFlow if it is installed; without it, they take several times as long. `loading` excludes all
imports. TensorBoard's data server (--load_fast) reports its own loading time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.types_pb2 import DT_DOUBLE, DT_FLOAT

from stall_analyzer.files.tfrecord import framed

ROUNDS = 5
START_S = 1_700_000_000.0
TAGS = ("batch_loss", "batch_accuracy", "learning_rate", "gradient_norm")
STEPS = 250_000
LAYERS, HISTOGRAMS_EACH, BUCKETS = 50, 3500, 30
IMAGES, IMAGE_BYTES = 150, 1_000_000

OURS = """
from stall_analyzer.events.event_files import read_events
from stall_analyzer.model.runs import EventFile, Run
run = Run(".", ".", (), (EventFile(path, "train", os.path.getsize(path)),))
load = lambda: read_events(run)
"""
THEIRS = """
from tensorboard.backend.event_processing import event_file_loader
from tensorboard.compat.proto.event_pb2 import Event
event_file_loader.RawEventFileLoader(path)  # loads TensorFlow
load = lambda: [None for event in event_file_loader.{0}(path).Load() if {1}]
"""
KEPT = OURS.replace(
    "read_events(run)", "read_events(run, kept_in=pathlib.Path(os.environ['KEPT']))"
)
SERVER = """
import subprocess, tempfile, tensorboard_data_server
def load():
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(path, os.path.join(folder, "events.out.tfevents.1.host"))
        command = [tensorboard_data_server.server_binary(), "--logdir", folder, "--port", "0"]
        server = subprocess.Popen(
            [*command, "--reload", "once", "--verbose"], stderr=subprocess.PIPE, text=True,
            stdout=subprocess.DEVNULL,
        )
        loaded = next(line for line in server.stderr if "Finished load cycle" in line)
        server.kill()
    took = loaded.rpartition("(")[2].rstrip(")\\n")
    print(float(took[:-2]) / 1000 if took.endswith("ms") else took[:-1], flush=True)
    os._exit(0)
"""
PROGRAMS = {
    "stall": OURS,
    "data server": SERVER,
    "EventFileLoader": THEIRS.format("EventFileLoader", "False"),
    "LegacyEventFileLoader": THEIRS.format("LegacyEventFileLoader", "False"),
    "RawEventFileLoader": THEIRS.format("RawEventFileLoader", "not Event.FromString(event)"),
}
BEGIN = "import os, pathlib, sys, time\npath = sys.argv[1]\n"
END = "begin = time.perf_counter()\nload()\nprint(time.perf_counter() - begin)"


def scalars() -> Iterator[Event]:
    for step in range(STEPS):
        for tag in TAGS:
            event = Event(wall_time=START_S + step / 100, step=step)
            value = event.summary.value.add(tag=tag)
            value.metadata.plugin_data.plugin_name = "scalars"
            value.tensor.dtype = DT_FLOAT
            value.tensor.tensor_shape.SetInParent()
            value.tensor.tensor_content = struct.pack("<f", 1 / (step + 1))
            yield event


def histograms_and_images() -> Iterator[Event]:
    for step in range(HISTOGRAMS_EACH):
        for layer in range(LAYERS):
            event = Event(wall_time=START_S + step, step=step)
            value = event.summary.value.add(tag=f"layer_{layer}/kernel_0")
            value.metadata.plugin_data.plugin_name = "histograms"
            value.tensor.dtype = DT_DOUBLE
            for size in (BUCKETS, 3):
                value.tensor.tensor_shape.dim.add(size=size)
            rows = ((n - 15.0, n - 14.0, step + n) for n in range(BUCKETS))
            value.tensor.tensor_content = b"".join(struct.pack("<3d", *row) for row in rows)
            yield event
        if step * IMAGES // HISTOGRAMS_EACH != (step + 1) * IMAGES // HISTOGRAMS_EACH:
            event = Event(wall_time=START_S + step, step=step)
            value = event.summary.value.add(tag="picture")
            value.image.encoded_image_string = os.urandom(IMAGE_BYTES)
            yield event


FILES = {"a million scalars": scalars, "histograms and images": histograms_and_images}


def made(workdir: Path, name: str) -> Path:
    path = workdir / f"events.out.tfevents.{name.replace(' ', '_')}"
    if not path.exists():
        print(f"writing {name} …", flush=True)
        part = path.with_suffix(".part")
        with part.open("wb") as stream:
            for event in FILES[name]():
                stream.write(framed(event.SerializeToString()))
        part.rename(path)
    return path


def cut_at(path: Path, share: float) -> int:
    """The end of a record, after about this share of the file."""
    position = 0
    with path.open("rb") as stream:
        while position < share * path.stat().st_size:
            stream.seek(position)
            position += 16 + int.from_bytes(stream.read(8), "little")
    return position


def command(program: str, path: Path) -> list[str]:
    """A command that prints how many seconds the loading took."""
    code = KEPT if program == "stall, kept" else PROGRAMS[program]
    return [sys.executable, "-c", BEGIN + code + END, str(path)]


def measure(program: str, path: Path) -> tuple[float, float]:
    """Seconds for a fresh process, and for the loading in it."""
    begin = time.perf_counter()
    called = command(program, path)
    output = subprocess.run(called, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - begin, float(output.split()[-1])


def is_fastest(name: str, path: Path, rounds: int) -> bool:
    """Prints one file's figures."""
    turns = [{program: measure(program, path) for program in PROGRAMS} for _ in range(rounds)]
    print(f"\n{name}: {path.stat().st_size / 1e6:,.0f} MB")
    loading = {}
    for program in PROGRAMS:
        times = zip(*(turn[program] for turn in turns), strict=True)
        whole, loading[program] = (statistics.median(seconds) for seconds in times)
        print(f"  {program:<24}{whole:7.2f} s, loading {loading[program]:6.2f} s")
    return min(loading, key=loading.__getitem__) == "stall"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workdir", type=Path, help="where to create and keep the files")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        workdir = (options.workdir or Path(temporary)).resolve()
        workdir.mkdir(parents=True, exist_ok=True)
        slow = [n for n in FILES if not is_fastest(n, made(workdir, n), options.rounds)]
    for name in slow:
        print(f"MISSED {name}: one of TensorBoard's loaders is faster")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
