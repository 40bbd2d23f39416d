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
from tests.scenarios.score import PS_PER_S, analyze, as_clocked

LIMIT = 0.03  # of the epoch
INSIDE_A_CALL = ("host.dispatch", "compile.instantiate", "compile.xla")


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
    differences, calls_as_one = [], []
    for folder in folders:
        by_profile, by_books = analyze(folder / "logs"), analyze(folder / "books")
        epoch_s = _epoch_s(by_profile)
        moved_s = _moved_s(_buckets_s(by_profile), _buckets_s(by_books))
        differences.append(_share(moved_s, epoch_s))
        as_one = _moved_s(_calls_as_one(by_profile), _calls_as_one(by_books))
        calls_as_one.append(_share(as_one, epoch_s))
        large = {b: f"{s:+.3f} s" for b, s in moved_s.items() if abs(s) > 0.01 * epoch_s}
        shares = f"{differences[-1]:6.1%} {calls_as_one[-1]:6.1%}"
        print(f"{folder.name:32} {epoch_s:6.2f} s {shares}  {large or ''}")
    if not differences:
        print("nothing to compare", file=sys.stderr)
        return 1
    _sum_up("as they are", differences)
    _sum_up("calls of the step as one", calls_as_one)
    return 0 if max(calls_as_one) <= LIMIT else 1


def _sum_up(what: str, shares: Sequence[float]) -> None:
    within = f"{sum(share <= LIMIT for share in shares)} of {len(shares)} within {LIMIT:.0%}"
    print(f"{what}: {within}, median {median(shares):.1%}, worst {max(shares):.1%}")


def _epoch_s(run: Mapping[str, Any]) -> float:
    return float(sum(_buckets_s(run).values()))


def _buckets_s(run: Mapping[str, Any]) -> dict[str, float]:
    return {bucket: s for bucket, s in as_clocked(run).items() if bucket != "profiler"}


def _calls_as_one(run: Mapping[str, Any]) -> dict[str, float]:
    """Where a call of the step ends its own work and begins to compute, no clock can tell."""
    spent = _buckets_s(run)
    inside = {cause: run["causes_ps"].get(cause, 0) / PS_PER_S for cause in INSIDE_A_CALL}
    for cause, seconds in inside.items():
        spent[cause.partition(".")[0]] -= seconds
    spent["compute"] += sum(inside.values())
    return spent


def _moved_s(by_profile: Mapping[str, float], by_books: Mapping[str, float]) -> dict[str, float]:
    """What the books have more."""
    return {b: by_books.get(b, 0.0) - by_profile.get(b, 0.0) for b in {*by_profile, *by_books}}


def _share(moved_s: Mapping[str, float], epoch_s: float) -> float:
    return sum(map(abs, moved_s.values())) / 2 / epoch_s


if __name__ == "__main__":
    sys.exit(main())
