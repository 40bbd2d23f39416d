"""One epoch measured twice at once: by the books of a capture, and by a profile of all of it.

python -m tests.scenarios.agreement [names…] [--workdir DIR] [--list] [--only-score]

What both have is compared; the time that either takes for itself is not. A profile of everything
slows a program down: two runs, each measured in one of the ways, would differ in what is measured.
Other load on the machine does no harm here.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.scenarios.catalogue import SCENARIOS
from tests.scenarios.run import capture_once
from tests.scenarios.runner import all_known, parser
from tests.scenarios.score import analyze, as_clocked

LIMIT = 0.03  # of the epoch


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser("tests.scenarios.agreement", __doc__, "scenario", also_scores=True).parse_args(
        arguments
    )
    known = {scenario.name: scenario for scenario in SCENARIOS}
    if not all_known(options.names, known, "scenario"):
        return 2
    chosen = options.names or list(known)
    if options.list:
        print("\n".join(chosen))
        return 0
    workdir = options.workdir or Path(tempfile.mkdtemp(prefix="stall-agreement-"))
    if not options.only_score:
        for name in chosen:
            capture_once(known[name], workdir, ["books_beside"])
    return _compare(
        sorted(workdir / name for name in chosen if (workdir / name / "books").is_dir())
    )


def _compare(folders: Sequence[Path]) -> int:
    differences = []
    for folder in folders:
        moved_s, epoch_s = _moved_s(analyze(folder / "logs"), analyze(folder / "books"))
        differences.append(sum(map(abs, moved_s.values())) / 2 / epoch_s)
        large = {b: f"{s:+.3f} s" for b, s in moved_s.items() if abs(s) > 0.01 * epoch_s}
        print(f"{folder.name:32} {epoch_s:6.2f} s {differences[-1]:6.1%}  {large or ''}")
    if not differences:
        print("nothing to compare", file=sys.stderr)
        return 1
    within = sum(difference <= LIMIT for difference in differences)
    print(f"median {median(differences):.1%}, worst {max(differences):.1%}")
    print(f"{within} of {len(differences)} within {LIMIT:.0%}")
    return 0 if within == len(differences) else 1


def _moved_s(
    profile: Mapping[str, Any], books: Mapping[str, Any]
) -> tuple[dict[str, float], float]:
    """What the books have more of each bucket, and the length of the epoch without the profiler."""
    by_profile, by_books = as_clocked(profile), as_clocked(books)
    epoch_s = sum(by_profile.values()) - by_profile["profiler"]
    buckets = {*by_profile, *by_books} - {"profiler"}
    moved = {b: by_books.get(b, 0.0) - by_profile.get(b, 0.0) for b in sorted(buckets)}
    return moved, epoch_s


if __name__ == "__main__":
    sys.exit(main())
