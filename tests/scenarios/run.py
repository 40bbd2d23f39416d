"""Captures the scenarios, each in its own process, and scores the analyzer on them.

python -m tests.scenarios.run [names…] [--workdir DIR] [--list] [--only-capture|--only-score]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.scenarios.catalogue import SCENARIOS, Scenario
from tests.scenarios.runner import all_known, finished, parser
from tests.scenarios.score import as_json, passed, score, table

CAPTURE_TIMEOUT_S = 180
# A program that had to share the machine is not evidence: its clocks do not show what it lost.
QUIET_SHARE = 0.02  # of the cores, for other programs; an idle system takes a tenth of that
ATTEMPTS = 3


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    known = {scenario.name: scenario for scenario in SCENARIOS}
    if not all_known(options.names, known, "scenario"):
        return 2
    chosen = [known[name] for name in options.names] or list(SCENARIOS)
    if options.list:
        for scenario in chosen:
            print(f"{scenario.name:32} {scenario.primary:14} {scenario.description}")
        return 0
    workdir = options.workdir or Path(tempfile.mkdtemp(prefix="stall-scenarios-"))
    how = ["captured"] if options.by_capture else []
    failed = [] if options.only_score else [s.name for s in chosen if not capture(s, workdir, how)]
    if failed:
        print(f"not captured: {', '.join(failed)}", file=sys.stderr)
    if options.only_capture:
        return 1 if failed else 0
    captured = [s for s in chosen if (workdir / s.name / "truth.json").exists()]
    scores = [score(workdir / scenario.name) for scenario in captured]
    if not scores:
        print(f"nothing to score in {workdir}", file=sys.stderr)
        return 1
    print(table(scores))
    if options.json:
        options.json.write_text(as_json(scores))
    return 0 if passed(scores) and not failed else 1


def capture(scenario: Scenario, workdir: Path, how: Sequence[str] = ()) -> bool:
    """Runs one scenario, and once more if other programs took cores in the meantime."""
    for attempt in range(1, ATTEMPTS + 1):
        began_s, before_s = time.monotonic(), _taken_by_others_s()
        finished = capture_once(scenario, workdir, how)
        core_s = (time.monotonic() - began_s) * (os.cpu_count() or 1)
        share = (_taken_by_others_s() - before_s) / core_s
        if share <= QUIET_SHARE:
            break
        again = "once more" if attempt < ATTEMPTS else "taken as it is"
        print(f"{scenario.name}: others took {share:.0%} of the cores; {again}", file=sys.stderr)
    return finished


def _taken_by_others_s() -> float:
    """Seconds of cores since the machine started: all that were used, without our own."""
    with Path("/proc/stat").open() as stat:
        user, nice, system, _, _, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    used = user + nice + system + irq + softirq + steal
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return used / os.sysconf("SC_CLK_TCK") - sum(usage.ru_utime + usage.ru_stime for usage in own)


def capture_once(scenario: Scenario, workdir: Path, how: Sequence[str]) -> bool:
    folder = workdir / scenario.name
    command = ["tests.scenarios.child", scenario.name, str(folder), *how]
    try:
        return finished(command, folder, CAPTURE_TIMEOUT_S, scenario.env) == 0
    except subprocess.TimeoutExpired:
        return False


def _parser() -> argparse.ArgumentParser:
    options = parser("tests.scenarios", __doc__, "scenario")
    options.add_argument("--json", type=Path, help="also write the scores to this file")
    how = "record with StallCallback or watch alone, instead of TensorFlow's profiler"
    options.add_argument("--by-capture", action="store_true", help=how)
    group = options.add_mutually_exclusive_group()
    group.add_argument("--only-capture", action="store_true")
    group.add_argument("--only-score", action="store_true", help="score what --workdir holds")
    return options


if __name__ == "__main__":
    sys.exit(main())
