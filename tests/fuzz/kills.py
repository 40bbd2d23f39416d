"""A batch that is killed at random moments, and started again each time: is anything lost or twice?

    python -m tests.fuzz.kills [--kills 200] [--signal KILL|INT|TERM] [--runs N] [--seed N]

Each batch is killed until one gets to its end. Its JSON lines must then be, byte for byte, those of
a batch that nobody disturbed, and no half-written file may lie in the store.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.batch.fleets import command, copy_sample

KINDS = ("event_files_only", "input_py_function", "healthy", "compile_tracing")
MOST_KILLS_OF_ONE = 6  # then a batch may go to its end


class Batches:
    def __init__(self, folder: Path, runs: int, number: int) -> None:
        self.folder = folder
        self.number = number
        self.killed = self.finished = self.wrong = 0
        for i in range(runs):
            copy_sample(KINDS[i % len(KINDS)], folder / "logs" / f"run{i:03}")
        began_s = time.monotonic()
        self.expected = self._to_its_end("undisturbed")
        self.takes_s = time.monotonic() - began_s

    def _command(self, store: str) -> list[str]:
        out = self.folder / f"{store}.jsonl"
        return command(
            self.folder / "logs", "--jsonl", out, "--store", self.folder / store, "--jobs", "2"
        )

    def _to_its_end(self, store: str) -> bytes:
        subprocess.run(self._command(store), check=True, capture_output=True)
        return (self.folder / f"{store}.jsonl").read_bytes()

    def disturb(self, after_s: float, store: str) -> None:
        """Kills its process and all that it started, as a batch system does."""
        process = subprocess.Popen(
            self._command(store), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        time.sleep(after_s)
        os.killpg(process.pid, self.number)
        _, said = process.communicate(timeout=60)
        self.killed += 1
        if b"Traceback" in said:
            self.wrong += 1
            print(said.decode(errors="replace"), file=sys.stderr)

    def check(self, store: str) -> None:
        self.finished += 1
        lines = self._to_its_end(store)
        left = [path for path in self.folder.rglob("*.partial") if self.number != signal.SIGKILL]
        if lines != self.expected or left:
            self.wrong += 1
            print(f"{store} differs, or left {left}", file=sys.stderr, flush=True)
        shutil.rmtree(self.folder / store)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--signal", choices=("KILL", "INT", "TERM"), default="KILL")
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    number = signal.Signals[f"SIG{options.signal}"]
    with tempfile.TemporaryDirectory(prefix="stall-kills-") as scratch:
        batches = Batches(Path(scratch), options.runs, number)
        while batches.killed < options.kills:
            store = f"store{batches.finished}"
            for _ in range(min(rng.randint(1, MOST_KILLS_OF_ONE), options.kills - batches.killed)):
                batches.disturb(rng.uniform(0, batches.takes_s), store)
            batches.check(store)
    print(
        f"{batches.killed} times SIG{options.signal}, {batches.finished} batches of {options.runs} "
        f"runs brought to their end: {batches.wrong} wrong"
    )
    return 1 if batches.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
