"""The native decoder against the pure one, on damaged traces: the same trace, or the same refusal.

python -m tests.fuzz.decoders [--cases N] [--seconds S] [--seed N]
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from stall_analyzer.decode import decode, pure, xplane
from stall_analyzer.decode.event_columns import Core
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.model.trace import Trace
from tests.fuzz.mutations import bytes_damaged
from tests.fuzz.seeds import seeds
from tests.xspace import host_file


def read(core: Core, fd: int) -> Trace | str:
    try:
        return xplane.read(fd, host_file("fuzzed"), core)
    except UnreadableFile as error:
        return str(error)


def differ(one: Trace | str, other: Trace | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one != other
    columns = ("start_ps", "end_ps", "name", "parent")
    same = all(
        (getattr(one.events, column) == getattr(other.events, column)).all() for column in columns
    )
    return not same or one.notes != other.notes or one.names != other.names


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=sys.maxsize)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    native = decode._native()
    if native is None:
        print("C against Python: NOT RUN, because the native decoder is not built")
        return 0
    rng = random.Random(options.seed)
    traces = [data for log in seeds().values() for name, data in log.items() if "xplane" in name]
    until_s = time.monotonic() + options.seconds
    cases = refused = 0
    with tempfile.TemporaryFile(buffering=0) as file:
        while cases < options.cases and time.monotonic() < until_s:
            data = bytes_damaged(rng.choice(traces), rng)
            os.ftruncate(file.fileno(), 0)
            os.pwrite(file.fileno(), data, 0)
            one, other = read(native, file.fileno()), read(pure.read_plane, file.fileno())
            cases += 1
            refused += isinstance(one, str)
            if differ(one, other):
                Path("build/fuzz").mkdir(parents=True, exist_ok=True)
                Path("build/fuzz/differs.xplane.pb").write_bytes(data)
                print(f"case {cases} differs: build/fuzz/differs.xplane.pb", file=sys.stderr)
                return 1
    print(f"C against Python: {cases:,} cases, {refused:,} refused by both, 0 differ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
