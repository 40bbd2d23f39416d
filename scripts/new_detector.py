"""Writes a detector and its test as a starting point: `scripts/new_detector FAMILY NAME CAUSE`.

    scripts/new_detector host slow_eager_ops host.eager

The result passes lint, type checks and its own test at once: it finds a cause that takes a large
share of the first epoch. Make it say more than the ledger does, and replace every TODO.

The families `ending` and `profiling` have no range of ids, and no template: their findings do not
rest on a cause. The model's own work is not a stall, so its causes are not offered.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from stall_analyzer.model.causes import CAUSES, bucket_of

ROOT = Path(__file__).resolve().parents[1]
FIRST_ID = {"input": 1, "compile": 101, "memory": 201, "numerics": 301, "host": 401, "cluster": 501}
IDS_EACH = 99
NO_STALL = ("compute", "unknown")
ID = re.compile(r'^ID = "ST(\d{3})"', re.MULTILINE)

DETECTOR = '''\
"""TODO: one sentence that says what it finds.

What it finds
TODO: in which programs, in a user's words.

Why it stalls
TODO: why training cannot continue meanwhile.

How it is measured
The ledger's time in {cause}. TODO: what else must hold.

Example
TODO: a program, what it cost, and what the change saved.

What to do
TODO: the change.

Blind spots
TODO: what looks the same and is not, and what cannot be seen.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, removed
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding, Gain
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "{id}"
BUCKET = "{bucket}"
CAUSE = "{cause}"


def check(signals: Signals) -> Finding | None:
    lost = signals.causes_ps[CAUSE]
    again = signals.comes_again(CAUSE)
    severity = severity_of(signals.share(lost), None if again else lost)
    if severity is None:
        return None
    gain = removed(lost)
    return Finding(
        severity=severity,
        title=f"TODO: what it is takes {{seconds(lost)}}",
        explanation=f"TODO: what was seen took {{signals.with_share(lost)}}.",
        change=Change("TODO: what to do.", "before = TODO", "after = TODO"),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals) if again else Gain(),
        confidence=0.7,
        evidence=signals.evidence_of(CAUSE, "TODO: what these events are"),
    )
'''

TEST = '''\
"""{name} is found in its own case, and not in a near miss."""

from __future__ import annotations

from pathlib import Path

from stall_analyzer.detectors.{family} import {name}
from tests.detectors.training import found, training, with_cause


def test_a_large_share_of_the_epoch_is_found_with_its_cost(tmp_path: Path) -> None:
    run = with_cause(training(tmp_path), {name}.CAUSE, share=0.5)
    finding = found({name}.check(run))
    assert finding.lost_ps == run.causes_ps[{name}.CAUSE]
    assert finding.evidence


def test_a_small_share_is_not_worth_mentioning(tmp_path: Path) -> None:
    run = with_cause(training(tmp_path), {name}.CAUSE, share=0.01)
    assert {name}.check(run) is None
'''


def write_detector(family: str, name: str, cause: str, root: Path = ROOT) -> list[Path]:
    """Returns the files that were written. Raises ValueError if a name does not fit."""
    if not re.fullmatch(r"[a-z][a-z_]+", name):
        raise ValueError(
            f"{name} cannot be a name: use lowercase letters and _, such as slow_eager_ops"
        )
    if cause not in CAUSES:
        raise ValueError(f"{cause} is not a cause; docs/reference/buckets.md lists them all")
    if bucket_of(cause) in NO_STALL:
        raise ValueError(
            f"{cause} is no lost time. For a finding about the model's own work, or one that does "
            "not rest on a cause, start from another cause, then set BUCKET and remove CAUSE"
        )
    folder = root / "analyzer" / "stall_analyzer" / "detectors" / family
    detector = folder / f"{name}.py"
    test = root / "tests" / "detectors" / f"test_{name}.py"
    for path in (detector, test):
        if path.exists():
            raise ValueError(f"{path} already exists")
    words = {
        **{"family": family, "name": name, "cause": cause},
        **{"id": next_id(folder.parent, family), "bucket": bucket_of(cause)},
    }
    detector.write_text(DETECTOR.format(**words), encoding="utf-8")
    test.write_text(TEST.format(**words), encoding="utf-8")
    return [detector, test]


def next_id(detectors: Path, family: str) -> str:
    """The id after the last one of the family: ids are never reused."""
    first = FIRST_ID[family]
    texts = [path.read_text("utf-8") for path in detectors.glob("*/*.py")]
    taken = [int(number) for text in texts for number in ID.findall(text)]
    number = max((n for n in taken if first <= n < first + IDS_EACH), default=first - 1) + 1
    if number >= first + IDS_EACH:
        raise ValueError(f"the family {family} has no ids left after ST{number - 1:03}")
    return f"ST{number:03}"


def main() -> int:
    known = argparse.ArgumentParser(
        description="Writes a detector and its test as a starting point."
    )
    known.add_argument("family", choices=sorted(FIRST_ID))
    known.add_argument("name", help="name of the finding and its file, such as slow_eager_ops")
    known.add_argument("cause", help="such as host.eager; docs/reference/buckets.md lists them")
    given = known.parse_args()
    try:
        written = write_detector(given.family, given.name, given.cause)
    except ValueError as error:
        print(f"new_detector: {error}", file=sys.stderr)
        return 2
    for path in written:
        print(f"wrote {path.relative_to(ROOT)}")
    print(
        "Next: replace every TODO, add the finding to docs/reference/symptoms.md, and run "
        "`make docs` and `make test`; see CONTRIBUTING.md."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
