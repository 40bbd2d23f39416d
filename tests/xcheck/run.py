"""Our figures of device traces beside XProf's of the same files, with every difference explained.

python -m tests.xcheck.run [--corpus DIR] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from stall_analyzer.decode.decode import read_trace
from stall_analyzer.decode.device_events import devices
from stall_analyzer.errors import UnreadableFile
from tests.corpus import CORPUS
from tests.scenarios.faults.accuracy import table, write_section
from tests.xcheck.explained import explanation_of
from tests.xcheck.figures import Compared, compare
from tests.xcheck.ours import our_figures
from tests.xcheck.xprof_figures import xprof_figures
from tests.xspace import host_file

TITLE = "Device traces: XProf on the same files"
TARGET = 0.95
INTRODUCTION = """\
Public traces with a device plane were read by Stall and by XProf {version} (`make xcheck`).
*Stored* marks results that TensorFlow wrote next to the trace when it was captured. A figure counts
as agreeing if its two values differ by at most 1%. In {traces} traces, {agreeing} of {compared}
figures agree ({share:.1%})."""


def device_traces(corpus: Path) -> list[Path]:
    found = []
    for path in sorted(corpus.glob("L*/**/*.xplane.pb")):
        try:
            trace = read_trace(host_file(path, path.stat().st_size))
        except UnreadableFile:
            continue
        if devices(trace):
            found.append(path)
    return found


def compared_of(corpus: Path) -> list[Compared]:
    found = []
    for path in device_traces(corpus):
        ours = our_figures(path)
        case, host = path.relative_to(corpus).parts[0][:3], path.name.partition(".xplane")[0]
        name = f"{case} {path.parent.name}/{host}"
        for source, theirs in xprof_figures(path).items():
            found += compare(name, ours, theirs, source)
    return found


def markdown(compared: Sequence[Compared], version: str) -> str:
    agreeing = sum(one.agrees for one in compared)
    introduction = INTRODUCTION.format(
        version=version,
        traces=len({one.trace for one in compared}),
        agreeing=agreeing,
        compared=len(compared),
        share=agreeing / len(compared),
    )
    return "\n\n".join([introduction, _by_subject(compared), _differences(compared)])


def _by_subject(compared: Sequence[Compared]) -> str:
    count = Counter((one.figure.subject, one.source) for one in compared)
    right = Counter((one.figure.subject, one.source) for one in compared if one.agrees)
    rows = [
        [subject, source, str(count[subject, source]), str(right[subject, source])]
        for subject, source in sorted(count)
    ]
    return table(["figure", "XProf's source", "compared", "agree within 1%"], rows)


def _differences(compared: Sequence[Compared]) -> str:
    different = [one for one in compared if not one.agrees]
    if not different:
        return "Nothing differs."
    rows = [
        [one.trace, one.figure.subject, one.figure.of[:40], f"{one.ours:,.1f}",
         f"{one.theirs:,.1f}", explanation_of(one)]
        for one in different
    ]  # fmt: skip
    head = ["trace", "figure", "of", "Stall", "XProf", "who is right"]
    return "Where they differ:\n\n" + table(head, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.xcheck.run")
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--markdown", type=Path, help="a file to write the section into")
    options = parser.parse_args(arguments)
    if not options.corpus.is_dir():
        print("xcheck: NOT RUN, because the public logs are not beside this repository")
        return 0
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from xprof import version  # noqa: PLC0415

    compared = compared_of(options.corpus)
    text = markdown(compared, version.__version__)
    print(text)
    if options.markdown:
        write_section(options.markdown, TITLE, text)
    unexplained = [one for one in compared if not one.agrees and not explanation_of(one)]
    agreeing = sum(one.agrees for one in compared)
    return int(bool(unexplained) or agreeing < TARGET * len(compared))


if __name__ == "__main__":
    sys.exit(main())
