"""What counts as worse than before, and what an earlier result may be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.batch.baseline import Comparison, read
from stall_analyzer.errors import UsageError
from tests.batch.fleets import facts
from tests.real_documents import MS, divided, document

BEFORE = {"input.wait": 1000, "compute.step": 8800, "compile.tracing": 200}


def written(path: Path, *entries: dict[str, Any]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    else:
        path.write_text(json.dumps(document(*entries)))
    return path


def compared(tmp_path: Path, before: dict[str, Any], now: dict[str, Any]) -> Comparison:
    made = Comparison(read(written(tmp_path / "before.jsonl", before)), tolerance=0.1)
    made.check(facts(**now))
    return made


def grown(
    tmp_path: Path, now_ms: dict[str, int], before: Any = None, **more: Any
) -> list[dict[str, int]]:
    """What has grown, in milliseconds, if the run is worse."""
    entry = divided("r", BEFORE, **(before or {}))
    made = compared(tmp_path, entry, {"name": "r", "causes_ms": now_ms, **more})
    return [{name: ps // MS for name, ps in worse.grown_ps.items()} for worse in made.worse]


def test_a_bucket_is_worse_beyond_the_tolerance_of_the_epoch(tmp_path: Path) -> None:
    assert grown(tmp_path, BEFORE | {"input.wait": 2001}) == [{"input": 1001}]
    assert grown(tmp_path, BEFORE | {"input.wait": 2000}) == []


def test_a_small_bucket_that_doubles_is_noise(tmp_path: Path) -> None:
    assert grown(tmp_path, BEFORE | {"compile.tracing": 400}) == []


def test_time_that_moved_to_another_bucket_is_told(tmp_path: Path) -> None:
    assert grown(tmp_path, BEFORE | {"compute.step": 6000, "memory.transfer": 2800}) == [
        {"memory": 2800}
    ]


def test_many_small_growths_are_one_longer_epoch(tmp_path: Path) -> None:
    now = {"input.wait": 1600, "compute.step": 9500, "compile.tracing": 200}
    assert grown(tmp_path, now) == [{}]


def test_less_traced_is_not_slower(tmp_path: Path) -> None:
    now = {"input.wait": 500, "compute.step": 1000, "unknown.not_traced": 8500}
    assert grown(tmp_path, now) == []


def test_later_epochs_count_too(tmp_path: Path) -> None:
    assert grown(tmp_path, BEFORE, {"later_ms": 5000}, later_ms=6000) == [{"later epochs": 1000}]
    assert grown(tmp_path, BEFORE, {"later_ms": 5000}, later_ms=5400) == []


@pytest.mark.parametrize(
    ("before", "now", "is_worse"),
    [
        ("healthy", "slow_always", True),
        ("slow_once", "stuck", True),
        ("slow_always", "healthy", False),
        ("stuck", "dead", False),
        ("healthy", "unknown", False),
        ("unknown", "dead", False),
    ],
)
def test_a_verdict_may_fall(tmp_path: Path, before: str, now: str, is_worse: bool) -> None:
    made = compared(
        tmp_path,
        divided("r", BEFORE, status=before),
        {"name": "r", "causes_ms": BEFORE, "status": now},
    )
    assert bool(made.worse) is is_worse


def said(tmp_path: Path, now_ms: dict[str, int], **more: Any) -> str:
    made = compared(tmp_path, divided("r", BEFORE), {"name": "r", "causes_ms": now_ms, **more})
    (one,) = made.worse or made.better
    return one.sentence


def test_what_has_changed_is_said_by_cause(tmp_path: Path) -> None:
    assert said(tmp_path, BEFORE | {"compile.retracing": 3100}) == (
        "slower by 3.10 s: retracing is new (3.10 s)"
    )
    assert said(tmp_path, BEFORE | {"input.wait": 2500}) == "slower by 1.50 s: input wait +1.50 s"
    assert said(tmp_path, BEFORE | {"compute.step": 4400, "input.wait": 0}) == (
        "faster by 5.40 s: compute step -4.40 s, input wait is gone (1.00 s)"
    )


def test_what_is_a_small_part_of_the_change_does_not_explain_it(tmp_path: Path) -> None:
    now = BEFORE | {"host.callback": 9000, "compile.tracing": 260}
    assert said(tmp_path, now) == "slower by 9.06 s: callback is new (9.00 s)"


def test_a_faster_run_that_is_worse_by_its_later_epochs_says_so(tmp_path: Path) -> None:
    now = BEFORE | {"input.wait": 0}
    made = compared(
        tmp_path,
        divided("r", BEFORE, later_ms=5000),
        {"name": "r", "causes_ms": now, "later_ms": 6000},
    )
    assert [one.sentence for one in made.worse] == [
        "faster by 1.00 s: input wait is gone (1.00 s); but each later epoch takes 1.00 s longer"
    ]


def test_a_verdict_that_has_changed_is_told(tmp_path: Path) -> None:
    assert said(tmp_path, BEFORE, status="stuck") == "as fast as before: slow always -> stuck"


def test_a_run_is_better_only_beyond_the_tolerance(tmp_path: Path) -> None:
    made = compared(
        tmp_path, divided("r", BEFORE), {"name": "r", "causes_ms": BEFORE | {"input.wait": 500}}
    )
    assert not made.better and not made.worse
    now = {"name": "r", "causes_ms": BEFORE, "status": "healthy"}
    assert [one.status for one in compared(tmp_path, divided("r", BEFORE), now).better] == [
        "healthy"
    ]


def test_runs_are_matched_by_name_and_attempt(tmp_path: Path) -> None:
    path = written(
        tmp_path / "before.json",
        divided("a", BEFORE), divided("b", BEFORE), divided("c", BEFORE),
    )  # fmt: skip
    made = Comparison(read(path), tolerance=0.1)
    made.check(facts("a", BEFORE))
    made.check(facts("b", BEFORE | {"input.wait": 9000}))
    made.check(facts("new", BEFORE))
    assert (made.compared, made.new, made.gone) == (2, 1, 1)
    assert [worse.run for worse in made.in_order()] == ["b"]


def test_a_folder_holds_results_of_which_the_last_by_name_counts(tmp_path: Path) -> None:
    written(tmp_path / "2026-11-01.jsonl", divided("a", {"input.wait": 1000}))
    written(tmp_path / "2026-11-02.json", divided("a", {"input.wait": 3000}))
    (tmp_path / "notes.txt").write_text("not a result")
    assert read(tmp_path)["a", 1].duration_ps == 3000 * MS


@pytest.mark.parametrize("content", ["", "{}", '{"runs": [{}]}', "[1]", '{"runs": []}'])
def test_what_is_no_result_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "before.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=r"is not a result of stall-analyze|contains no run"):
        read(path)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"run": "a"}\n', "it is JSON, but not a report"),
        (b"\n[1\n", "line 2 is not JSON"),
        (b"\xff\xfe", "it is not text"),
    ],
)
def test_why_it_is_no_result_is_said_in_words(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "before.jsonl"
    path.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        read(path)
    assert str(refused.value).endswith(f"(--json or --jsonl): {why}")


@pytest.mark.parametrize("value", ["abc", None, True, 1.5, -1, 10**400])
@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_a_time_that_is_no_number_of_picoseconds_is_refused(
    tmp_path: Path, suffix: str, value: object
) -> None:
    entry = divided("a", BEFORE)
    entry["window"]["duration_ps"] = value
    with pytest.raises(UsageError, match="it is JSON, but not a report"):
        read(written(tmp_path / f"before{suffix}", entry))


@pytest.mark.parametrize("changes", [{"run": 1}, {"attempt": "1"}, {"buckets_ps": [1]}])
def test_an_entry_with_something_else_in_place_of_a_value_is_refused(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match="it is JSON, but not a report"):
        read(written(tmp_path / "before.jsonl", divided("a", BEFORE) | changes))


def test_a_result_of_another_schema_version_is_refused(tmp_path: Path) -> None:
    entry, path = divided("a", BEFORE), tmp_path / "before.json"
    path.write_text(json.dumps(document(entry, schema_version=2)))
    for one in (path, written(tmp_path / "b.jsonl", entry | {"schema_version": 2})):
        with pytest.raises(UsageError, match="its schema_version is 2, but only 1 can be compared"):
            read(one)


def test_a_result_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the baseline"):
        read(tmp_path / "absent.jsonl")
