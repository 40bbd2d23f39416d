"""Sums over many runs, and the tables that show them."""

from __future__ import annotations

import random

from jsonschema import Draft202012Validator
from rich.console import Console

from stall_analyzer.batch import view
from stall_analyzer.report.document_types import FleetEntry
from stall_analyzer.report.facts import Facts
from stall_analyzer.report.fleet import ERRORS_SHOWN, WORST_RUNS, Fleet
from stall_analyzer.report.terminal import Terminal
from tests.batch.fleets import facts
from tests.real_documents import MS, SCHEMA, document, finding

HOUR_MS = 3_600_000


def summary(*all_facts: Facts) -> FleetEntry:
    fleet = Fleet()
    for one in all_facts:
        fleet.add(one)
    return fleet.summary()


def serial_map(name: str, lost_ms: int, hosts: int = 1) -> Facts:
    return facts(
        name,
        {"input.wait": lost_ms, "compute.step": 1000},
        hosts=[f"worker-{number}" for number in range(hosts)],
        findings=[finding(id="ST004", name="serial_map", lost_ps=lost_ms * MS)],
    )


def text(tables: list[view.Table]) -> str:
    console = Console(width=100, color_system=None, highlight=False)
    with console.capture() as captured:
        view.show(tables, Terminal(console))
    return captured.get()


# ---------------------------------------------------------------- sums


def test_every_host_of_a_run_waits_with_it() -> None:
    made = summary(serial_map("one", 2000), serial_map("four", 500, hosts=4))
    assert (made["runs"], made["hosts"]) == (2, 5)
    assert made["buckets_ps"]["input"] == 4000 * MS
    (found,) = made["findings"]
    assert (found["runs"], found["machine_ps"]) == (2, 4000 * MS)


def test_a_run_without_a_trace_was_one_machine() -> None:
    assert summary(facts(hosts=[]))["hosts"] == 1


def test_verdicts_and_main_costs_are_counted() -> None:
    made = summary(
        facts("a", status="healthy", primary="compute"),
        facts("b", status="healthy", primary="compute"),
        facts("c", status="stuck", primary="input"),
    )
    assert [(one["status"], one["runs"]) for one in made["statuses"]] == [
        ("healthy", 2), ("stuck", 1),
    ]  # fmt: skip
    assert made["primaries"] == {"compute": 2, "input": 1}


def test_the_costliest_come_first_and_only_a_few_of_them() -> None:
    made = summary(*(serial_map(f"run-{number:02d}", 1000 * number) for number in range(30)))
    assert [run["run"] for run in made["costliest_runs"]] == [
        f"run-{number:02d}" for number in range(29, 29 - WORST_RUNS, -1)
    ]
    assert made["findings"][0]["worst"]["run"] == "run-29"


def test_the_time_of_stuck_runs_is_a_cost_and_what_was_not_traced_is_none() -> None:
    def unknown(name: str, id: str, severity: str) -> Facts:
        found = finding(id=id, bucket="unknown", severity=severity, lost_ps=9000 * MS)
        return facts(name, {"unknown.not_traced": 9000}, findings=[found])

    made = summary(unknown("stuck", "ST510", "act"), unknown("untraced", "ST412", "note"))
    assert {one["id"]: one["machine_ps"] for one in made["findings"]} == {
        "ST510": 9000 * MS,
        "ST412": 0,
    }
    shown = text(view.fleet_tables(made))
    assert "ST510" in shown and "ST412" not in shown


def test_traced_time_without_a_step_is_a_cost_even_if_it_is_only_a_note() -> None:
    found = finding(id="ST510", bucket="unknown", severity="note", lost_ps=9000 * MS)
    made = summary(*(facts(name, {"input.wait": 9000}, findings=[found]) for name in "ab"))
    assert [(one["runs"], one["machine_ps"]) for one in made["findings"]] == [(2, 18_000 * MS)]


def test_days_are_those_of_the_first_epochs() -> None:
    def on(day: int, status: str) -> Facts:
        made = facts(f"{day} {status}", status=status)
        return made | {"started_unix_ns": (20_000 + day) * 86_400 * 10**9}

    clockless = facts("clockless") | {"started_unix_ns": None}
    made = summary(on(1, "stuck"), on(0, "healthy"), on(1, "healthy"), clockless)
    assert [(day["day"], day["statuses"]) for day in made["days"]] == [
        (None, {"slow_always": 1}),
        ("2024-10-04", {"healthy": 1}),
        ("2024-10-05", {"healthy": 1, "stuck": 1}),
    ]


def test_the_order_in_which_runs_come_changes_nothing() -> None:
    runs = [serial_map(f"run-{number}", 100 * (number % 7)) for number in range(300)]
    runs += [facts(f"bad-{number}") | {"errors": ["unreadable"]} for number in range(300)]
    forward = summary(*runs)
    random.Random(1).shuffle(runs)
    assert summary(*runs) == forward
    assert len(forward["errors"]) == ERRORS_SHOWN
    assert forward["runs_with_errors"] == 300


def test_what_is_kept_does_not_grow_with_the_runs() -> None:
    few = summary(*(serial_map(f"run-{number:05d}", 1000) for number in range(20)))
    many = summary(*(serial_map(f"run-{number:05d}", 1000) for number in range(2000)))
    assert len(str(many)) < 1.2 * len(str(few))


# ---------------------------------------------------------------- tables


def test_a_finding_is_told_with_its_runs_and_machine_hours() -> None:
    made = summary(serial_map("exp-1/a", HOUR_MS), serial_map("exp-1/b", 37 * HOUR_MS))
    assert "ST004  serial map     2   38 h 00 min  exp-1/b\n" in text(view.fleet_tables(made))


def test_the_headline_says_how_much_was_lost() -> None:
    made = summary(serial_map("a", 3000), serial_map("b", 0))
    assert view.headline(made) == (
        "2 runs: their first epochs took 5.00 s of machine time; 3.00 s of it (60%) was lost."
    )


def test_markdown_has_the_same_tables() -> None:
    made = view.markdown(view.fleet_tables(summary(serial_map("a|b", 3000))))
    assert "### costliest findings" in made
    assert "a\\|b" in made


def test_a_fleet_of_nothing_has_no_tables() -> None:
    assert view.fleet_tables(summary()) == []
    assert "0 runs: their first epochs" in view.headline(summary())


def test_the_sums_fit_their_schema() -> None:
    made = summary(serial_map("a", 3000), facts("b") | {"errors": ["unreadable"]})
    Draft202012Validator(SCHEMA).validate(document(fleet=made))
