"""Throw damaged traces at the native decoder: every cut of each seed, then random mutations.

    python tests/fuzz_decode.py [--mutations N] [--seed N] TRACE...

Whatever the bytes, the decoder must return a trace or raise UnreadableFile. To see reads out of
bounds and undefined behaviour too, build the decoder with the sanitizers (one line, from the root):

    gcc -shared -fPIC -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all \
        -DPy_LIMITED_API=0x030A0000 $(python3-config --includes) \
        analyzer/stall_analyzer/decode/_xplane.c -o "$DIR/_xplane.abi3.so"

and run this with

    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
        ASAN_OPTIONS=detect_leaks=0 \
        python tests/fuzz_decode.py --core "$DIR/_xplane.abi3.so" TRACE...
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import os
import random
import tempfile
from pathlib import Path
from typing import cast

from stall_analyzer.decode import xplane
from stall_analyzer.decode.event_columns import Core
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.model.runs import HostFile

CUTS = 20_000  # at most, of each trace; smaller traces are cut at every byte
# Bytes at which formats break: ends of varints, lengths, keys.
NASTY = (0x00, 0x01, 0x07, 0x22, 0x7F, 0x80, 0xFF)


def load_core(path: str | None) -> Core:
    if path is None:
        from stall_analyzer.decode import _xplane  # noqa: PLC0415  absent without a compiler

        return _xplane.read_plane
    loader = importlib.machinery.ExtensionFileLoader("_xplane", path)
    spec = importlib.util.spec_from_file_location("_xplane", path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return cast(Core, module.read_plane)


def mutate(data: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(damaged))
        kind = rng.randrange(4)
        if kind == 0:
            damaged[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            damaged[at] = rng.choice(NASTY)
        elif kind == 2:
            damaged[at : at + rng.randint(1, 9)] = bytes([0xFF]) * rng.randint(1, 9)
        else:
            other = rng.randrange(len(damaged))
            size = rng.randint(1, 64)
            damaged[at : at + size] = damaged[other : other + size]
    return bytes(damaged)


class Target:
    """Feeds bytes to the decoder through one file that is written again and again."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.file = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the process
        self.read = self.refused = 0

    def try_bytes(self, data: bytes) -> None:
        fd = self.file.fileno()
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, data)
        try:
            xplane.read(fd, HostFile("fuzz", "fuzz", "xplane", len(data)), self.core)
            self.read += 1
        except UnreadableFile:
            self.refused += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--core", help="another build of _xplane, say with sanitizers")
    parser.add_argument("--mutations", type=int, default=10_000, help="of each trace")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    target = Target(load_core(options.core))
    for path in options.traces:
        data = path.read_bytes()
        for cut in range(0, len(data), max(1, len(data) // CUTS)):
            target.try_bytes(data[:cut])
        for _ in range(options.mutations):
            target.try_bytes(mutate(data, rng))
        print(f"{path}: {target.read:,} read, {target.refused:,} refused", flush=True)


if __name__ == "__main__":
    main()
