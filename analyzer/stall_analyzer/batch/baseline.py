"""What has changed since an earlier result, run by run, matched by name and attempt.

A run is worse when its verdict is, or when its first epoch, a later epoch or a bucket takes longer
by more than the tolerance. For a bucket, the tolerance is a share of the earlier first epoch: a
bucket that goes from one hundredth of it to two hundredths is noise, not twice as bad. `unknown` is
left out: a run that was traced less than before has not become slower. Measured buckets are not
compared with estimated ones. `what_changed` names the causes: "slower by 3.10 s: retracing is new
(2.90 s)"; if only the later epochs are worse, it says that as well. A run is better when nothing
about it is worse, and its verdict has improved or its first epoch is shorter by more than the
tolerance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from stall_analyzer.errors import UsageError
from stall_analyzer.model.format import seconds
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.records import dataclass
from stall_analyzer.report.facts import SCHEMA_VERSION, Facts, figures

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import ReportEntry

# From good to bad; a run that is unknown, or not over, is neither better nor worse than any other.
RANKS = {
    "healthy": 0, "slow_once": 1, "slow_always": 2,
    "learning_nothing": 3, "stuck": 3, "dead": 3,
}  # fmt: skip
BUCKETS_COMPARED: tuple[Bucket, ...] = (
    "input", "compile", "memory", "numerics", "compute", "communication", "host",
)  # fmt: skip
RESULTS = (".json", ".jsonl")
NOTHING = 0.005  # of the earlier epoch: less than this counts as absent
EXPLAINS = 0.1  # of the largest change: less than this explains nothing
CAUSES_TOLD = 3
LATER_EPOCHS = "later epochs"
MOST = 2**63  # picoseconds: more than a hundred days
# Causes whose names are clear without the bucket's name.
SAY_ALONE = (
    "retracing",
    "tracing",
    "shuffle_fill",
    "first_element",
    "checkpoint",
    "callback",
    "xla",
)

Identity: TypeAlias = tuple[str, int]


@dataclass(frozen=True)
class Former:
    """What is needed about a run in the earlier result."""

    status: str
    duration_ps: int
    later_epoch_ps: int | None
    estimated: bool
    buckets_ps: Mapping[Bucket, int]
    causes_ps: Mapping[str, int]


@dataclass(frozen=True)
class Changed:
    """A run that has become worse, or better."""

    run: str
    attempt: int
    status_before: str
    status: str
    before_ps: int  # the first epoch
    now_ps: int
    grown_ps: Mapping[str, int]  # what takes longer, largest first: buckets, "later epochs"
    sentence: str  # by how much, and because of which cause


@dataclass
class Comparison:
    """Runs compared with an earlier result."""

    former: dict[Identity, Former]
    tolerance: float
    selected: bool = False  # only some of the runs were wanted: the others need not be gone
    compared: int = 0
    new: int = 0
    worse: list[Changed] = field(default_factory=list)
    better: list[Changed] = field(default_factory=list)

    def check(self, facts: Facts) -> None:
        before = self.former.get((facts["run"], facts["attempt"]))
        if before is None:
            self.new += 1
            return
        self.compared += 1
        longer = grown(before, facts, self.tolerance)
        made = Changed(
            facts["run"],
            facts["attempt"],
            before.status,
            facts["status"],
            before.duration_ps,
            facts["duration_ps"],
            longer,
            what_changed(before, facts, longer),
        )
        if _is_worse(made, self.tolerance):
            self.worse.append(made)
        elif _is_better(made, self.tolerance):
            self.better.append(made)

    def in_order(self) -> list[Changed]:
        """Runs that have grown the most first."""
        return sorted(
            self.worse, key=lambda one: (one.before_ps - one.now_ps, one.run, one.attempt)
        )

    def better_in_order(self) -> list[Changed]:
        """Runs that have shrunk the most first."""
        return sorted(
            self.better, key=lambda one: (one.now_ps - one.before_ps, one.run, one.attempt)
        )

    @property
    def is_of_other_runs(self) -> bool:
        """Whether no run here has the name of one there, so that nothing can be compared."""
        return bool(self.new) and not self.compared

    @property
    def gone(self) -> int:
        """Runs that are only in the earlier result; if not all runs were wanted, they may still
        be there."""
        return len(self.former) - self.compared


def grown(before: Former, facts: Facts, tolerance: float) -> dict[str, int]:
    """What takes longer than before by more than the tolerance, largest first."""
    if not before.duration_ps:  # nothing was known: nothing can have grown
        return {}
    least_ps = tolerance * before.duration_ps
    comparable = BUCKETS_COMPARED if facts["estimated"] == before.estimated else ()
    found: dict[str, int] = {
        bucket: facts["buckets_ps"][bucket] - before.buckets_ps.get(bucket, 0)
        for bucket in comparable
    }
    found = {bucket: ps for bucket, ps in found.items() if ps > least_ps}
    later, later_before = facts["later_epoch_ps"], before.later_epoch_ps
    if later is not None and later_before and later - later_before > tolerance * later_before:
        found[LATER_EPOCHS] = later - later_before
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _is_worse(one: Changed, tolerance: float) -> bool:
    longer = one.before_ps and one.now_ps - one.before_ps > tolerance * one.before_ps
    return bool(one.grown_ps or longer or _fell(one.status_before, one.status))


def _is_better(one: Changed, tolerance: float) -> bool:
    if not one.before_ps or not one.now_ps:
        return False
    shorter = one.before_ps - one.now_ps > tolerance * one.before_ps
    return shorter or _fell(one.status, one.status_before)


def _fell(before: str, now: str) -> bool:
    ranks = RANKS.get(before), RANKS.get(now)
    return ranks[0] is not None and ranks[1] is not None and ranks[1] > ranks[0]


# ---------------------------------------------------------------- in words


def what_changed(before: Former, facts: Facts, longer: Mapping[str, int]) -> str:
    """`slower by 3.10 s: retracing is new (2.90 s), input wait +210 ms`. `longer`: what takes
    longer by more than the tolerance, which may be something other than the first epoch."""
    change_ps = facts["duration_ps"] - before.duration_ps
    if not before.duration_ps or not facts["duration_ps"]:
        said = "the first epoch cannot be compared"
    elif not change_ps:
        said = "as fast as before"
    else:
        said = f"{'slower' if change_ps > 0 else 'faster'} by {seconds(abs(change_ps))}"
    causes = _causes(before, facts)
    fell = before.status != facts["status"]
    verdict = f"{_words(before.status)} -> {_words(facts['status'])}" if fell else ""
    said = ": ".join(filter(None, (said, ", ".join(filter(None, (*causes, verdict))))))
    but = "and" if change_ps > 0 else "but"
    later = longer.get(LATER_EPOCHS)
    return f"{said}; {but} each later epoch takes {seconds(later)} longer" if later else said


def _causes(before: Former, facts: Facts) -> list[str]:
    """The causes that explain the change, largest first, without small ones."""
    if facts["estimated"] != before.estimated:
        return ["only one of the two epochs was measured in full"]
    was, now = before.causes_ps, facts["causes_ps"]
    names = [name for name in {*was, *now} if not name.startswith("unknown.")]
    changes = {name: now.get(name, 0) - was.get(name, 0) for name in names}
    largest_ps = max((abs(ps) for ps in changes.values()), default=0)
    least_ps = max(EXPLAINS * largest_ps, NOTHING * before.duration_ps)
    told = [name for name, ps in changes.items() if abs(ps) > least_ps]
    told.sort(key=lambda name: (-abs(changes[name]), name))
    nothing_ps = NOTHING * before.duration_ps
    return [
        _cause(name, was.get(name, 0), now.get(name, 0), nothing_ps) for name in told[:CAUSES_TOLD]
    ]


def _cause(name: str, was_ps: int, now_ps: int, nothing_ps: float) -> str:
    bucket, _, what = name.partition(".")
    called = _words(what) if what in SAY_ALONE else f"{bucket} {_words(what)}"
    if was_ps <= nothing_ps:
        return f"{called} is new ({seconds(now_ps)})"
    if now_ps <= nothing_ps:
        return f"{called} is gone ({seconds(was_ps)})"
    sign = "+" if now_ps > was_ps else "-"
    return f"{called} {sign}{seconds(abs(now_ps - was_ps))}"


def _words(name: str) -> str:
    return name.replace("_", " ")


# ---------------------------------------------------------------- an earlier result


def read(path: Path) -> dict[Identity, Former]:
    """The runs in a document (.json), in JSON lines (.jsonl), or in all such files of a folder; if
    a run is in several files, the last file by name counts. Raises UsageError."""
    found: dict[Identity, Former] = {}
    for file in _files(path):
        found.update(_read_file(file))
    if not found:
        raise UsageError(f"the baseline {path} contains no runs")
    return found


def _read_file(path: Path) -> dict[Identity, Former]:
    try:
        return {
            (_text(entry["run"]), _whole(entry["attempt"])): _former(entry)
            for entry in _entries(path)
        }
    except OSError as error:
        raise UsageError(f"cannot read the baseline {path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise _no_result(path, f"line {error.lineno} is not JSON") from error
    except UnicodeDecodeError as error:
        raise _no_result(path, "it is not text") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise _no_result(path, "it is JSON, but not a report") from error


def _no_result(path: Path, why: str) -> UsageError:
    return UsageError(f"{path} is not a result of stall-analyze (--json or --jsonl): {why}")


def _former(entry: ReportEntry) -> Former:
    later_ps, spent = entry["later_epochs"]["median_ps"], figures(entry)
    return Former(
        _text(entry["verdict"]["status"]),
        _whole(entry["window"]["duration_ps"]),
        None if later_ps is None else _whole(later_ps),
        entry["estimate"] is not None,
        {bucket: _whole(ps) for bucket, ps in spent["buckets_ps"].items()},
        {cause: _whole(ps) for cause, ps in spent["causes_ps"].items()},
    )


def _whole(value: object) -> int:
    """Raises TypeError: a damaged file may have anything in place of a number."""
    if type(value) is not int or not 0 <= value < MOST:
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in RESULTS)
    return [path]


def _entry(path: Path, number: int, line: str) -> ReportEntry:
    try:
        entry: ReportEntry = json.loads(line)
    except json.JSONDecodeError as error:
        raise _no_result(path, f"line {number} is not JSON") from error
    _check_version(path, entry)
    return entry


def _check_version(path: Path, read: Any) -> None:
    """A document has a version; a line of a .jsonl file has none so far."""
    version = read.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        why = f"its schema_version is {version!r}, but only {SCHEMA_VERSION} can be compared"
        raise _no_result(path, why)


def _entries(path: Path) -> Iterator[ReportEntry]:
    with path.open(encoding="utf-8") as file:
        if path.suffix == ".jsonl":
            yield from (_entry(path, *line) for line in enumerate(file, 1) if line[1].strip())
        else:
            document = json.load(file)
            _check_version(path, document)
            yield from document["runs"]
