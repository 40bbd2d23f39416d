"""Every view shows the same figures: the ledger if all was traced, otherwise the estimate."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from rich.console import Console

from stall_analyzer.api import Analysis
from stall_analyzer.batch import view
from stall_analyzer.batch.baseline import Comparison, read
from stall_analyzer.batch.limits import over, parse
from stall_analyzer.batch.tables import rows_of
from stall_analyzer.report import markdown, notebook, text
from stall_analyzer.report.facts import facts_of, figures
from stall_analyzer.report.fleet import Fleet
from stall_analyzer.report.words import epoch_times, main_cost, undecided
from tests.real_documents import MS, SCHEMA, divided, document, estimated, sample

PROBABLY = {
    "input.wait": 2100, "compile.tracing": 3000, "compute.step": 900, "unknown.no_evidence": 200,
}  # fmt: skip


def partly_traced(**changes: Any) -> Any:
    """3% was traced, all of it compute; probably, compile cost most."""
    entry = estimated(sample("compile_tracing"), PROBABLY) | changes
    entry["verdict"] = entry["verdict"] | {"primary": "compile"}
    entry["phases"] = [
        phase("first_step", 0, 3200), phase("training", 3200, 5200, 500),
        phase("validation", 5200, 6200),
    ]  # fmt: skip
    return entry


def phase(name: str, start_ms: int, end_ms: int, error_ms: int = 0) -> Any:
    return {
        "name": name, "start_ps": start_ms * MS, "end_ps": end_ms * MS, "error_ps": error_ms * MS,
        "buckets_ps": {"unknown": (end_ms - start_ms) * MS},
    }  # fmt: skip


def undecided_run() -> Any:
    entry = partly_traced()
    entry["verdict"]["candidates"] = ["input", "compile"]
    return entry


def in_terminal(*entries: Any, width: int = 80) -> str:
    stream = io.StringIO()
    text.render(document(*entries), Console(file=stream, width=width, color_system=None))
    return stream.getvalue()


def test_a_hand_made_estimate_is_one_that_the_schema_describes() -> None:
    Draft202012Validator(SCHEMA).validate(document(partly_traced(), undecided_run()))


def test_where_all_was_traced_the_ledger_is_shown() -> None:
    entry = sample("compile_tracing")
    assert figures(entry)["buckets_ps"] is entry["buckets_ps"]
    assert "estimated" not in in_terminal(entry) + markdown.render(document(entry))
    assert facts_of(entry)["estimated"] is False


def test_words_are_those_of_the_estimate_and_marked() -> None:
    entry = partly_traced()
    assert main_cost(entry) == "compile ~48%"
    assert epoch_times(entry)[-2:] == ["one-time ~3.00 s", "recurring ~3.20 s"]


def test_a_sliver_without_an_estimate_does_not_tell_what_comes_back() -> None:
    entry = partly_traced(estimate=None)
    assert epoch_times(entry) == ["first epoch 6.20 s", "later epochs 64.9 ms"]


def test_event_files_alone_may_tell_what_came_once() -> None:
    entry = estimated(sample("compile_tracing"), PROBABLY, traced=0)
    entry["window"]["source"] = "events"
    shown = in_terminal(entry)
    assert "one-time ~3.00 s" in shown
    assert "estimated; none of the epoch was traced" in shown
    assert "event files only: no trace shows where the time went" in shown


def test_the_terminal_shows_the_estimate_with_ranges_and_what_it_rests_on() -> None:
    shown = in_terminal(partly_traced())
    assert "3.00 s   48%  (2.40–3.60 s)\n" in shown
    assert "200 ms    3%  (160–240 ms)\n" in shown, "unknown stays where it is"
    assert "97%" not in shown, "what was not traced does not compete with it"
    assert "estimated; only 3% of the epoch was traced\n" in shown
    assert "what this is based on\n  First step: its bounds are known.\n" in shown


@pytest.mark.parametrize("width", [72, 80, 120])
def test_ranges_fit_the_terminal(width: int) -> None:
    long = {cause: 1000 * ms for cause, ms in PROBABLY.items()}
    entry = estimated(sample("compile_tracing"), long)
    assert all(len(line) <= width for line in in_terminal(entry, width=width).splitlines())


def test_the_table_of_runs_in_the_terminal_shows_the_estimate() -> None:
    table = in_terminal(partly_traced(), sample("healthy")).split("\n\n")[-1]
    assert "compile ~48%  iiiicccccc==\n" in table
    assert "compute 88%" in table


def test_markdown_shows_the_estimate_with_ranges_and_what_it_rests_on() -> None:
    shown = markdown.render(document(partly_traced()))
    assert "| bucket | time, estimated | share | | mostly |" in shown
    assert "| compile | 3.00 s (2.40–3.60 s) | 48% |" in shown
    assert (
        "This is an estimate: only 3% of the epoch was traced. It is based on:\n\n- First step: its"
        in shown
    )


def test_a_notebook_shows_the_estimate() -> None:
    shown = notebook.render([partly_traced()])
    assert 'title="compile 3.00 s (48%)"' in shown
    assert "compile 3.00 s (2.40–3.60 s)" in shown
    assert "only 3% of the epoch was traced" in shown
    assert "<li>Steps: 1 profiled of 296.</li>" in shown


def test_a_program_gets_the_estimate_and_is_told_so() -> None:
    analysis = Analysis([undecided_run()], [None], ())
    assert analysis.estimated
    assert analysis.buckets_s["compile"] == analysis.causes_s["compile.tracing"] == 3
    assert analysis.verdict.candidates == ("input", "compile")


def test_a_verdict_that_cannot_decide_names_its_candidates_everywhere() -> None:
    entry = undecided_run()
    asked = "input or compile?"
    assert undecided(entry) == main_cost(entry) == asked
    assert facts_of(entry)["candidates"] == ["input", "compile"]
    for shown in (in_terminal(entry), markdown.render(document(entry)), notebook.render([entry])):
        assert asked in shown
    assert undecided(sample("healthy")) == ""
    entry["verdict"]["candidates"].append("host")
    assert undecided(entry) == "input, compile or host?"


def test_phases_say_how_far_off_they_may_be() -> None:
    shown = in_terminal(partly_traced())
    assert "  first step  3.20 s            not traced\n" in shown
    assert "  training    2.00 s  ± 500 ms  not traced\n" in shown
    assert "  validation  1.00 s  ± 500 ms  not traced\n" in shown, (
        "its beginning is no more certain"
    )


# ---------------------------------------------------------------- many runs


def test_facts_and_tables_hold_the_estimate() -> None:
    facts = facts_of(partly_traced())
    assert facts["buckets_ps"]["compile"] == facts["one_time_ps"] == 3000 * MS
    (row,) = (row for table, row in rows_of(facts) if table == "runs")
    assert (row["estimated"], row["compile_ps"], row["lost_ps"]) == (True, 3000 * MS, 5100 * MS)


def test_sums_say_how_many_runs_are_estimated() -> None:
    fleet = Fleet()
    for entry in (partly_traced(), sample("healthy")):
        fleet.add(facts_of(entry))
    made = fleet.summary()
    assert made["estimated_runs"] == 1
    assert made["buckets_ps"]["compile"] > 3000 * MS
    assert view.headline(made).endswith("was lost. For 1 run, these times are estimated.")
    runs = next(table for table in view.fleet_tables(made) if table.title == "costliest runs")
    assert [row[0] for row in runs.rows] == ["~5.10 s", "439 ms"]


def test_a_limit_says_that_what_exceeds_it_is_estimated() -> None:
    facts = facts_of(partly_traced())
    assert over(parse("compile=20%"), facts) == "48%, 3.00 s, estimated"
    assert over(parse("epoch=1s"), facts) == "6.20 s"


def test_estimated_buckets_are_not_held_against_measured_ones(tmp_path: Path) -> None:
    measured = divided("r", {"compute.step": 6200}, status="slow_once")
    now = facts_of(estimated(measured, PROBABLY))
    for before, worse in ((measured, 0), (estimated(measured, {"compute.step": 6200}), 1)):
        path = tmp_path / "before.jsonl"
        path.write_text(json.dumps(before), encoding="utf-8")
        comparison = Comparison(read(path), tolerance=0.1)
        comparison.check(now)
        assert (comparison.compared, len(comparison.worse)) == (1, worse)
