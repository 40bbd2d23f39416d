"""The matrix of simulated stalls as a table.

python -m tests.simulated.run [--markdown FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.detectors.training import diagnosed
from tests.scenarios.faults.accuracy import table, write_section
from tests.simulated.judged import MATRIX, WITHIN, answer, trained

TITLE = "Simulated accelerators"
INTRODUCTION = """\
There was no GPU or TPU to train on, so traces with known answers were simulated: a host launches
kernels, copies and collectives into streams. The traces were written as CUDA with TensorFlow 2.10,
2.15, 2.17 and 2.21, ROCm (roctracer, rocprofiler) and a TPU would write them, with and without
jitter of 20%, and then analyzed (`make simulated`). *Misplaced* is the largest share of a window
that the ledger gives to the wrong bucket. A simulation reflects only what we know about drivers and
profilers."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulated.run")
    parser.add_argument("--markdown", type=Path, help="a file to write the section into")
    options = parser.parse_args(arguments)
    rows: dict[str, list[tuple[bool, float, bool]]] = {}
    expected = {}
    for stall, form, jitter in MATRIX:
        found = answer(trained(stall, jitter), form)
        report = diagnosed(found.timeline)
        ids = {finding.id for finding in report.findings if finding.severity != "note"}
        right = bool(ids & set(stall.findings)) if stall.findings else not ids
        misplaced = found.misplaced(report.hosts[0].ledger)
        judged = (report.verdict.primary == stall.bucket, misplaced, right)
        rows.setdefault(stall.name, []).append(judged)
        expected[stall.name] = stall.bucket
    text = "\n\n".join([INTRODUCTION, _table(rows, expected)])
    print(text)
    if options.markdown:
        write_section(options.markdown, TITLE, text)
    every = [judged for mine in rows.values() for judged in mine]
    return int(not all(primary and off <= WITHIN for primary, off, _ in every))


def _table(rows: dict[str, list[tuple[bool, float, bool]]], expected: dict[str, str]) -> str:
    lines = [
        [
            name,
            expected[name],
            str(len(mine)),
            str(sum(primary for primary, _, _ in mine)),
            f"{max(off for _, off, _ in mine):.3%}",
            str(sum(right for _, _, right in mine)),
        ]
        for name, mine in rows.items()
    ]
    every = [judged for mine in rows.values() for judged in mine]
    lines.append(
        ["all", "", str(len(every)), str(sum(primary for primary, _, _ in every)),
         f"{max(off for _, off, _ in every):.3%}", str(sum(right for _, _, right in every))]
    )  # fmt: skip
    head = ["stall", "bucket", "traces", "primary right", "misplaced at most", "finding right"]
    return table(head, lines)


if __name__ == "__main__":
    sys.exit(main())
