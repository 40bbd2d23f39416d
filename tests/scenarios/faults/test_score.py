"""The scoring of the fault matrix, on made documents."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.faults.accuracy import as_json, line, markdown, summary, write_section
from tests.scenarios.faults.score import (
    Expected,
    Judgment,
    Reliability,
    Target,
    confusion,
    judge,
    passed,
    reliabilities,
    targets,
)

S = 10**12
BUCKETS = {"ST001": "input", "ST101": "compile", "ST102": "compile", "ST301": "numerics"}
PY_MAP = Expected("py_map", "input", "ST001", "input")
HEALTHY = Expected("healthy", "input", None, "compute", healthy=True)


def run(
    seconds: float, primary: str = "input", findings: dict[str, Any] | None = None
) -> dict[str, Any]:
    """`findings`: id -> (severity, low s, high s)."""
    return {
        "window": {"duration_ps": round(seconds * S)},
        "verdict": {"primary": primary},
        "findings": [
            {"id": id, "severity": severity, "bucket": BUCKETS[id],
             "gain_ps": {"low": round(low * S), "high": round(high * S)}}
            for id, (severity, low, high) in (findings or {}).items()
        ],
    }  # fmt: skip


FAULTY = run(3.0, findings={"ST001": ("act", 1.6, 2.0), "ST101": ("act", 0.1, 0.2)})
FIXED = run(1.1, "compile", {"ST101": ("act", 0.1, 0.2), "ST102": ("note", 0.0, 0.0)})
RIGHT = judge(PY_MAP, FAULTY, FIXED)
MISSED = judge(PY_MAP, run(3.0, "host"), FIXED)


def by_name(judgments: list[Judgment]) -> dict[str, Target]:
    return {target.what: target for target in targets(judgments)}


# ---------------------------------------------------------------- one fault


def test_a_fault_that_was_found() -> None:
    assert RIGHT.found and RIGHT.primary_right
    assert RIGHT.predicted_s == (1.6, 2.0)
    assert RIGHT.measured_s == pytest.approx(1.9)
    assert RIGHT.in_range is True
    assert RIGHT.relative_error == pytest.approx(0.1 / 1.9)


def test_other_findings_are_named_and_notes_are_not() -> None:
    assert RIGHT.other_acts == ("ST101",)
    assert RIGHT.fixed_acts == ("ST101",)


def test_a_fault_that_was_missed_has_no_prediction() -> None:
    assert not MISSED.found and not MISSED.primary_right
    assert MISSED.in_range is None and MISSED.relative_error is None
    assert MISSED.measured_s == pytest.approx(1.9)


@pytest.mark.parametrize(
    ("fixed_s", "said"),
    [(1.5, "outside"), (1.48, "within noise"), (1.3, "inside"), (0.92, "within noise"),
     (0.9, "outside")],
)  # fmt: skip
def test_the_range_has_two_ends_and_runs_have_noise(fixed_s: float, said: str) -> None:
    judgment = judge(PY_MAP, FAULTY, run(fixed_s))  # 1.6 to 2.0 of 3.0 s
    assert judgment.in_range is (said != "outside")
    assert said in line(judgment)


def test_a_change_that_made_it_slower_is_infinitely_wrong() -> None:
    slower = judge(PY_MAP, FAULTY, run(3.5))
    assert slower.relative_error == inf
    assert slower.in_range is False


def test_a_finding_that_promises_nothing_is_not_held_to_seconds() -> None:
    nan = judge(
        Expected("nan", "numerics", "ST301", "numerics"),
        run(3.0, "numerics", {"ST301": ("act", 0.0, 0.0)}),
        run(3.2, "compute"),
    )
    assert nan.found and nan.predicted_s is None and nan.in_range is None


def test_a_healthy_program_has_nothing_to_compare_with() -> None:
    calm = judge(HEALTHY, run(3.0, "compute"), None)
    assert calm.measured_s is None and calm.fixed_acts == ()


@pytest.mark.parametrize(
    ("id", "primary", "right", "false"),
    [("ST101", "compile", True, ()), ("ST301", "numerics", False, ("ST301",))],
)
def test_a_program_may_be_healthy_in_one_respect_alone(
    id: str, primary: str, right: bool, false: tuple[str, ...]
) -> None:
    learns = Expected("learns", "numerics", None, "numerics", healthy=True)
    answer = judge(learns, run(3.0, primary, {id: ("act", 1.0, 2.0)}), None)
    assert answer.primary_right is right
    assert answer.other_acts == false
    assert confusion([answer]) == {"not numerics": {primary: 1}}


# ---------------------------------------------------------------- all of them


def test_the_targets_count_what_they_can_be_measured_on() -> None:
    met = by_name([RIGHT, MISSED, judge(HEALTHY, run(3.0, "compute"), None)])
    assert met["primary bucket right"].value == pytest.approx(2 / 3)
    assert (met["faults found"].value, met["faults found"].count) == (0.5, 2)
    assert met["measured gain inside the predicted range"].count == 1
    assert met["median error of the predicted gain"].value == pytest.approx(0.1 / 1.9)


def test_a_finding_to_act_on_in_a_healthy_program_fails() -> None:
    calm = judge(HEALTHY, run(3.0, "compute", {"ST001": ("consider", 0, 0)}), None)
    alarmed = judge(HEALTHY, run(3.0, "compute", {"ST001": ("act", 0, 0)}), None)
    assert passed([RIGHT, calm])
    assert not passed([RIGHT, alarmed])


def test_one_miss_in_few_fails_and_nothing_measured_does_not() -> None:
    assert passed([RIGHT])
    assert not passed([RIGHT, MISSED])
    assert by_name([judge(HEALTHY, run(3.0, "compute"), None)])["faults found"].met


def test_a_program_that_did_not_run_fails() -> None:
    assert not passed([RIGHT] * 99 + [Judgment(PY_MAP, problem="it crashed")])


def test_the_confusion_matrix_has_expected_against_answered() -> None:
    matrix = confusion([RIGHT, RIGHT, MISSED])
    assert matrix == {"input": {"input": 2, "host": 1}}


def test_precision_counts_alarms_on_faulty_and_on_fixed_programs() -> None:
    tracing = Expected("trace", "compile", "ST101", "compile")
    found = judge(tracing, run(3.0, "compile", {"ST101": ("act", 1.0, 2.0)}), run(1.5))
    known = reliabilities([RIGHT, MISSED, found])
    assert known["ST001"] == Reliability(expected=2, found=1, elsewhere=0)
    assert known["ST101"] == Reliability(expected=1, found=1, elsewhere=3)
    assert (known["ST001"].recall, known["ST001"].precision) == (0.5, 1.0)
    assert (known["ST101"].recall, known["ST101"].precision) == (1.0, 0.25)


# ---------------------------------------------------------------- as it is read


def test_the_line_of_a_fault_says_all_of_it() -> None:
    said = line(RIGHT)
    for part in ("py_map", "primary input", "1.60–2.00 s", "1.90 s", "inside", "also act: ST101"):
        assert part in said
    assert "**host** (made for: input)" in line(MISSED)
    assert line(Judgment(PY_MAP, problem="it crashed")).endswith("FAILED: it crashed")


def test_the_summary_ends_with_the_answer() -> None:
    assert summary([RIGHT]).endswith("PASS")
    assert summary([MISSED]).endswith("FAIL")


def test_tables_are_whole_in_markdown() -> None:
    rows = [row for row in markdown([RIGHT, MISSED]).splitlines() if row.startswith("|")]
    assert (
        "| py_map | ST001 | yes | input | 1.60–2.00 s | 1.90 s | inside | ST101 | ST101 |" in rows
    )
    assert "| expected \\ reported | host | input |" in rows
    assert "| ST001 | 2 | 50.0% | 100.0% |" in rows


def test_json_has_no_infinity() -> None:
    document = json.loads(as_json([judge(PY_MAP, FAULTY, run(3.5))]))
    assert document["faults"][0]["relative_error"] is None
    assert document["passed"] is False


def test_a_section_replaces_the_one_of_its_name_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "ACCURACY.md"
    write_section(path, "One", "first")
    write_section(path, "Two", "second")
    write_section(path, "One", "third \\1")
    assert path.read_text() == "# How accurate it is\n\n## One\n\nthird \\1\n\n## Two\n\nsecond\n"
