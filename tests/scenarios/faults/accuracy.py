"""The fault matrix as text, as Markdown for docs/explanation/accuracy.md and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path

from tests.scenarios.faults.score import (
    NOISE_SHARE,
    Judgment,
    Target,
    confusion,
    passed,
    reliabilities,
    targets,
)

TITLE = "Faulty programs and their fixed versions"
INTRODUCTION = """\
Each row is a real program, as people write it, and the same program with the advice applied; both
are trained under the profiler in separate processes. Where the finding promises to save seconds,
both versions of the program are trained several times, and the typical epoch of each version is
used. *Predicted* is what the finding promised to save in the first epoch, *measured* is the
difference between the first epochs of the two versions. Programs in which there is no time to be
saved (because the loss is NaN, say) have no prediction. *Within noise* means that the measured
saving is outside of the range, but by less than {noise:.0%} of the epoch; runs of the same program
differ by more than that, so it counts as within range. `make scenarios` trains them all;
`make accuracy` then writes this page."""


def line(judgment: Judgment) -> str:
    """One line for the terminal."""
    name = f"{judgment.expected.name:32}"
    if judgment.problem:
        return f"{name} FAILED: {judgment.problem}"
    cells = [
        f"{_found(judgment):14}",
        f"primary {_primary(judgment)}",
        f"predicted {_predicted(judgment)}, measured {_measured(judgment)}, {_range(judgment)}",
    ]
    if judgment.other_acts:
        cells.append(f"also act: {' '.join(judgment.other_acts)}")
    if judgment.fixed_acts:
        cells.append(f"fixed: {' '.join(judgment.fixed_acts)}")
    return f"{name} {'; '.join(cells)}"


def summary(judgments: Sequence[Judgment]) -> str:
    """Confusion matrix, findings and targets, for the terminal."""
    lines = [f"{t.what}: {_value(t)} (target {_limit(t)}, {t.count})" for t in targets(judgments)]
    end = "\n".join([*lines, "PASS" if passed(judgments) else "FAIL"])
    return "\n\n".join([_confusion(judgments), _findings(judgments), end])


def markdown(judgments: Sequence[Judgment]) -> str:
    met = [
        [target.what, _value(target), _limit(target), str(target.count)]
        for target in targets(judgments)
    ]
    programs = [
        [
            j.expected.name,
            j.expected.finding or "none",
            _found(j),
            _primary(j),
            _predicted(j),
            _measured(j),
            _range(j),
            " ".join(j.other_acts) or "–",
            " ".join(j.fixed_acts) or "–",
        ]
        for j in judgments
    ]
    return "\n\n".join(
        [
            INTRODUCTION.format(noise=NOISE_SHARE),
            table(["", "measured", "target", "programs"], met),
            table(
                ["program", "fault", "found", "primary bucket", "predicted", "measured",
                 "within range", "other findings to act on",
                 "findings left to act on after the fix"],
                programs,
            ),
            "Primary buckets: each row is the bucket that the programs were written to show, each "
            "column the one that the verdict gave. *Not numerics* are tiny programs that learn "
            "well, whatever their first epoch is spent on.",
            _confusion(judgments),
            'Findings: the precision is a lower bound. A finding rated "act" counts as wrong if '
            "the program was not written to have that problem, although a short program may well "
            "have it anyway.",
            _findings(judgments),
        ]
    )  # fmt: skip


def write_section(path: Path, title: str, text: str) -> None:
    """Puts a section into a Markdown file, in the place of the one with that title."""
    old = path.read_text(encoding="utf-8") if path.exists() else "# How accurate it is\n"
    section = f"## {title}\n\n{text.rstrip()}\n"
    pattern = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
    if pattern.search(old):
        new = pattern.sub(lambda _: f"{section}\n", old)
    else:
        new = f"{old.rstrip()}\n\n{section}"
    path.write_text(f"{new.rstrip()}\n", encoding="utf-8")


def as_json(judgments: Sequence[Judgment]) -> str:
    rows = [
        {
            **asdict(j),
            "primary_right": j.primary_right,
            "in_range": j.in_range,
            "relative_error": _finite(j.relative_error),
        }
        for j in judgments
    ]
    met = [{**asdict(t), "value": _finite(t.value), "met": t.met} for t in targets(judgments)]
    return json.dumps({"passed": passed(judgments), "targets": met, "faults": rows}, indent=1)


# ---------------------------------------------------------------- cells


def _found(judgment: Judgment) -> str:
    if judgment.expected.finding is None:
        return "–"
    return "yes" if judgment.found else "**no**"


def _primary(judgment: Judgment) -> str:
    if judgment.primary_right:
        return judgment.primary
    return f"**{judgment.primary}** (made for: {judgment.expected.made_for})"


def _predicted(judgment: Judgment) -> str:
    if judgment.predicted_s is None:
        return "–"
    low, high = judgment.predicted_s
    return f"{low:.2f}–{high:.2f} s"


def _measured(judgment: Judgment) -> str:
    return "–" if judgment.measured_s is None else f"{judgment.measured_s:.2f} s"


def _range(judgment: Judgment) -> str:
    if judgment.in_range is None:
        return "–"
    if not judgment.in_range:
        return "**outside**"
    return "within noise" if judgment.outside_s else "inside"


def _value(target: Target) -> str:
    if target.value is None:
        return "–"
    return f"{target.value:.0f}" if _is_count(target) else _percent(target.value)


def _limit(target: Target) -> str:
    if _is_count(target):
        return "none"
    return f"{'at least' if target.at_least else 'at most'} {target.limit:.0%}"


def _is_count(target: Target) -> bool:
    return target.limit == 0


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _confusion(judgments: Sequence[Judgment]) -> str:
    matrix = confusion(judgments)
    answers = sorted({answer for row in matrix.values() for answer in row})
    rows = [
        [expected, *(str(row[answer] or "") for answer in answers)]
        for expected, row in matrix.items()
    ]
    return table(["expected \\ reported", *answers], rows)


def _findings(judgments: Sequence[Judgment]) -> str:
    rows = [
        [name, str(r.expected), _percent(r.recall), _percent(r.precision)]
        for name, r in reliabilities(judgments).items()
    ]
    return table(["finding", "programs", "recall", "precision"], rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
