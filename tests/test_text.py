"""The terminal view: what a person sees, and that nothing in a log file can spoil it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.format import between, percent, seconds
from stall_analyzer.model.kinds import LAST_RECORD
from stall_analyzer.report.document import run_document
from stall_analyzer.report.document_types import FindingEntry
from stall_analyzer.report.glyphs import ASCII, bar, cells_per_part, sparkline
from stall_analyzer.report.palette import BUCKET_COLORS, BUCKET_LETTERS, STATUS_COLORS
from stall_analyzer.report.terminal import Terminal
from stall_analyzer.report.text import render
from stall_analyzer.report.words import worth
from tests.logdirs import PROFILE, lay_out
from tests.real_documents import MS, SCHEMA, analyzed, document, every_sample, finding, sample
from tests.stuck_job import write_job


def shown(document: Any, *, width: int = 80, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="strict", newline="\n")
    render(document, Console(file=stream, width=width, color_system=None))
    stream.flush()
    return raw.getvalue().decode(encoding)


# ---------------------------------------------------------------- figures


@pytest.mark.parametrize(
    ("ps", "text"),
    [
        (0, "0 s"),
        (7, "<1 ns"),
        (850_000, "850 ns"),
        (4_120_000, "4.12 µs"),
        (412 * MS, "412 ms"),
        (9_996 * MS // 1000, "10.0 ms"),  # rounds up into fewer decimals
        (999_600 * MS // 1000, "1.00 s"),  # never "1000 ms"
        (1_843 * MS, "1.84 s"),
        (14_200 * MS, "14.2 s"),
        (59_960 * MS, "1 min 00 s"),  # never "60.0 s"
        (192_000 * MS, "3 min 12 s"),
        (3_599_700 * MS, "1 h 00 min"),  # never "60 min 00 s"
        (7_500_000 * MS, "2 h 05 min"),
    ],
)
def test_times_have_three_digits_and_the_unit_that_fits(ps: int, text: str) -> None:
    assert seconds(ps) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 100, "0%"),
        (62, 100, "62%"),
        (1, 1_000_000, "<1%"),
        (999_999, 1_000_000, ">99%"),
        (5, 5, "100%"),
        (0, 0, "0%"),
    ],
)
def test_a_share_is_0_or_100_only_when_it_is_exactly_that(part: int, whole: int, text: str) -> None:
    assert percent(part, whole) == text


@pytest.mark.parametrize(
    ("low_ms", "high_ms", "text"),
    [
        (1030, 1290, "1.03–1.29 s"),
        (850, 1290, "850 ms to 1.29 s"),
        (0, 1290, "up to 1.29 s"),
        (1290, 1290, "1.29 s"),
        (62_000, 135_000, "1 min 02 s to 2 min 15 s"),
    ],
)
def test_a_range_says_its_unit_once_where_it_can(low_ms: int, high_ms: int, text: str) -> None:
    assert between(low_ms * MS, high_ms * MS) == text


# ---------------------------------------------------------------- bars


def test_a_bar_is_as_long_as_its_share_and_never_empty_for_something() -> None:
    assert bar(50, 100, 10) == "█████"
    assert bar(100, 100, 10) == "█" * 10
    assert bar(1, 1_000_000, 10) == "▏"
    assert bar(0, 100, 10) == ""


def test_a_sparkline_keeps_the_spike_when_many_steps_share_a_cell() -> None:
    durations = [1] * 1000
    durations[777] = 8
    line = sparkline(durations, 10)
    assert "".join(cell for cell, _ in line) == "▂▂▂▂▂▂▂█▂▂"
    assert line[7][1] == 777


def test_a_sparkline_of_nothing_is_empty_and_of_zeros_is_flat() -> None:
    assert sparkline([], 10) == []
    assert sparkline([0, 0], 10) == [("▁", 0), ("▁", 1)]


def test_small_bars_are_always_full() -> None:
    cells = cells_per_part({"input": 1, "compile": 1, "host": 1, "memory": 0}, 16)
    assert sum(cells.values()) == 16
    assert "memory" not in cells
    assert cells_per_part({"input": 0}, 16) == {}


def test_ascii_stands_in_for_every_glyph_that_the_view_draws() -> None:
    drawn = shown(every_sample())
    assert drawn.translate(ASCII).isascii()


# ---------------------------------------------------------------- the view


def test_every_bucket_and_status_has_its_color_and_letter() -> None:
    statuses = SCHEMA["$defs"]["status"]["enum"]
    assert tuple(BUCKET_COLORS) == tuple(BUCKET_LETTERS) == BUCKETS
    assert set(STATUS_COLORS) == set(statuses)
    assert len(set(BUCKET_COLORS.values())) == len(set(BUCKET_LETTERS.values())) == len(BUCKETS)


def test_the_verdict_comes_first_then_the_window() -> None:
    lines = shown(document(sample("compile_tracing")), width=100).splitlines()
    assert lines[0].startswith("compile_tracing ──")
    assert lines[1].startswith("Slow once, not again: 1.29 s of 1.48 s (87%) of the first epoch")
    assert lines[3] == (
        "first epoch 1.48 s · later epochs 64.9 ms · one-time 1.36 s · recurring 121 ms"
    )


def test_buckets_are_sorted_by_size_with_their_causes_and_without_zeros() -> None:
    lines = shown(document(sample("compile_tracing"))).splitlines()
    table = lines[5 : lines.index("", 5)]
    assert [line.split()[0] for line in table] == [
        "compile", "tracing", "instantiate", "compute", "warm", "step", "profiler", "host",
        "dispatch", "python", "input",
    ]  # fmt: skip
    assert table[0].endswith("1.29 s   87%")
    assert table[1].endswith("1.24 s   84%")
    assert "memory" not in "".join(table)


def test_a_slow_step_names_its_bucket() -> None:
    text = shown(document(sample("compile_tracing")))
    assert "step 0  1.42 s  compile 91%\n" in text


def test_even_steps_are_said_to_be_even() -> None:
    entry = sample("healthy")
    entry["steps"] = entry["steps"][1:]
    assert "none took over 2 times the median" in shown(document(entry))


def test_phases_are_shown_only_when_there_is_more_than_training() -> None:
    entry = sample("healthy")
    assert "startup    8.41 ms  input 86%, host 14%" in shown(document(entry))
    entry["phases"] = [phase for phase in entry["phases"] if phase["name"] == "training"]
    assert "phases" not in shown(document(entry))


def test_a_finding_says_what_it_costs_what_to_change_and_what_that_wins() -> None:
    lines = shown(document(sample("compile_tracing"))).splitlines()
    start = lines.index("findings")
    assert lines[start + 1 : lines.index("", start)] == [
        "  consider  ST101  Python code in the Keras training step runs for 1.24 s during",
        "                   tracing",
        "    costs 1.24 s; the change should save 381 ms to 1.22 s, in the first epoch",
        "    only",
        "    Move slow Python (reading files, numpy, network, logging) from call() and",
        "    from the loss into __init__() or build().",
        "      - def call(self, x):",
        "      -     table = read_table(path)",
        "      -     return x * table",
        "      + def __init__(self, path):",
        "      +     super().__init__()",
        "      +     self.table = read_table(path)",
        "      +",
        "      + def call(self, x):",
        "      +     return x * self.table",
        "  with ST101 done: first epoch 1.48 s -> 266 ms to 1.10 s, later epochs 64.9 ms,",
        "  unchanged",
        "  stall-analyze --explain ST101 explains how this is found and measured",
    ]


def test_only_the_first_two_findings_are_shown_in_full() -> None:
    change = finding()["change"]
    many = [finding(id=f"ST00{n}", change=change | {"text": f"C{n}"}) for n in range(4)]
    text = shown(document(sample("input_py_function", findings=many)))
    assert "C0" in text and "C1" in text
    assert "C2" not in text and "C3" not in text
    assert "act       ST003  The Python function in MapDataset:2 takes 78.8 ms a batch" in text


def test_of_what_the_plan_asks_for_the_change_is_always_shown() -> None:
    change = finding()["change"]
    many = [finding(id=f"ST00{n}", change=change | {"text": f"C{n}"}) for n in range(4)]
    run = sample("input_py_function", findings=many)
    run["plan"] |= {"findings": ["ST000", "ST003"]}
    text = shown(document(run))
    assert "C3" in text and "C2" not in text


def test_a_plan_of_several_findings_names_their_order() -> None:
    text = shown(document(sample("mixed_host_and_input")))
    assert "with ST002, ST401 done, in this order: first epoch 1.94 s -> at most 1.62 s\n" in text


def test_a_finding_without_seconds_to_win_promises_none() -> None:
    text = shown(document(sample("numerics_nan")))
    assert "act       ST301  The loss is NaN or infinite from step 5 on" in text
    assert "Check batch 5 for NaN" in text
    assert "should save" not in text


def test_a_gain_says_in_which_epochs_it_comes() -> None:
    def saves(gain_ms: tuple[int, int], later_ms: tuple[int, int]) -> str:
        gain_ps, later_gain_ps = (
            {"low": low * MS, "high": high * MS} for low, high in (gain_ms, later_ms)
        )
        made = finding(gain_ps=gain_ps, later_gain_ps=later_gain_ps)
        text = shown(document(sample("input_py_function", findings=[made])), width=100)
        return text.partition("the change should save ")[2].partition("\n")[0]

    assert saves((700, 900), (700, 900)) == "700–900 ms in every epoch"
    assert saves((700, 900), (0, 0)) == "700–900 ms, in the first epoch only"
    assert saves((700, 900), (300, 400)) == "700–900 ms, and 300–400 ms in each later epoch"
    assert saves((0, 0), (300, 400)) == "300–400 ms in each later epoch"


def test_a_saving_that_reads_as_more_than_the_cost_has_a_reason() -> None:
    def cost(high_ms: float) -> str:
        made = finding(lost_ps=2000 * MS, gain_ps={"low": MS, "high": round(high_ms * MS)})
        return worth(cast("FindingEntry", made)).partition(";")[0]

    assert cost(2100) == "costs 2.00 s and slows down other work"
    assert cost(2001) == cost(1500) == "costs 2.00 s"


def test_a_hang_shows_the_stack_that_proves_it(tmp_path: Path) -> None:
    text = shown(document(run_document(analyzed(write_job(tmp_path)))))
    assert (
        "      /usr/lib/python3.11/threading.py:320 Condition.wait\n"
        "      /usr/lib/python3.11/queue.py:171 Queue.get\n"
        "      /home/me/data.py:12 batches\n"
    ) in text


def test_a_healthy_run_is_told_that_there_is_nothing_to_change() -> None:
    assert "Nothing to change" in shown(document(sample("healthy")))
    assert "Nothing to change" not in shown(document(sample("event_files_only")))


def test_only_training_that_was_seen_is_called_well() -> None:
    little, none = sample("healthy"), sample("healthy")
    little["window"]["covered_ps"] = little["window"]["duration_ps"] // 10
    none["window"]["epoch"] = None
    assert "Enjoy" in shown(document(sample("healthy")))
    assert "Enjoy" not in shown(document(little, none))


def test_what_is_no_finished_epoch_is_not_called_one() -> None:
    trace, running = sample("healthy"), sample("healthy")
    trace["window"]["epoch"] = None
    running["verdict"]["status"] = "running"
    assert "\ntrace " in shown(document(trace))
    text = shown(document(running, trace))
    assert "\nso far " in text
    assert "> " in text  # in the table: it takes longer than it has until now


def test_of_a_run_that_died_in_its_first_epoch_nothing_is_said_to_come_again() -> None:
    dead = sample("input_py_function")
    assert " · recurring " in shown(document(dead))
    dead["verdict"]["status"] = "dead"
    dead["window"]["end_source"] = LAST_RECORD
    text = shown(document(dead))
    assert "\nso far " in text and " · recurring " not in text


def test_without_a_trace_the_view_says_so_and_calls_its_figures_estimated() -> None:
    text = shown(document(sample("event_files_only")))
    assert "event files only" in text
    assert "one-time ~" in text
    assert "estimated; none of the epoch was traced" in text
    assert "Capture the first epoch." in text


def test_a_run_without_an_epoch_has_no_bars(tmp_path: Path) -> None:
    lay_out(tmp_path, f"{PROFILE}/2026_01_01_00_00_00/host.xplane.pb")
    text = shown(document(run_document(analyzed(tmp_path))))
    assert "no first epoch was found" in text
    assert "error  " in text
    assert "█" not in text


def test_hosts_are_compared_and_the_one_without_training_is_named() -> None:
    entry = sample("communication_straggler")
    entry["host_ledgers"][0]["training_thread"] = None
    text = " ".join(shown(document(entry)).split())
    assert "host-worker-1 c=xhhhhhhhhh the others waited 1.22 s for it, host 77%" in text
    assert "communication 79%, compile 12%, compute 7%, no training thread" in text


def test_hosts_that_are_alike_share_a_row_and_the_late_one_stands_out() -> None:
    entry = sample("communication_straggler")
    waits, late = sorted(entry["host_ledgers"], key=lambda ledger: str(ledger["host"]))
    entry["host_ledgers"] = [late, *(waits | {"host": f"worker-{n}"} for n in range(63))]
    lines = shown(document(entry), width=100).splitlines()
    start = lines.index("hosts  64: 63 wait, 1 is late")
    assert lines[start + 1].split()[0] == "host-worker-1"
    assert lines[start + 2].startswith("  63 alike       c=xxxxxxxxxx  communication 79%")
    assert lines[start + 3] == ""


def test_hosts_that_differ_have_a_row_each() -> None:
    entry = sample("communication_straggler", lateness=None)
    lines = shown(document(entry)).splitlines()
    assert "  host-worker-0" in lines[lines.index("hosts  2") + 1]


def test_a_narrow_terminal_shows_figures_without_bars_and_ranges_below_them() -> None:
    lines = shown(document(sample("event_files_only")), width=40).splitlines()
    at = lines.index("compile tracing            676 ms   48%")
    assert lines[at + 1].strip() == "(203 ms to 1.08 s)"
    assert "█████" not in "".join(lines)


def test_a_figure_and_its_unit_stay_on_one_line() -> None:
    lines = shown(every_sample(), width=40).splitlines()
    assert not [line for line in lines if line.split()[:1] in (["s"], ["ms"], ["%"])]


def test_paragraphs_are_no_wider_than_can_be_read_but_names_and_code_are() -> None:
    name = "experiments/2026/" + "very_long_directory/" * 6 + "lr_0.01"
    few = shown(document(sample("input_py_function")), width=200)
    assert all(len(line) <= 100 for line in few.splitlines())
    lines = shown(document(sample("compile_tracing", run=name), sample("healthy")), width=200)
    assert f"\n{name}  slow once" in lines


def test_code_is_broken_between_words_or_else_between_names() -> None:
    console = Console(width=60, color_system=None, highlight=False)
    with console.capture() as captured:
        terminal = Terminal(console)
        terminal.code("loss = tf.reduce_mean((model(x) - y) ** 2)  # of all samples", "+", indent=6)
        terminal.code(
            "    tf.config.experimental.set_memory_growth(devices[0],True)", "+", indent=6
        )
    assert captured.get().splitlines() == [
        "      + loss = tf.reduce_mean((model(x) - y) ** 2)  # of all",
        "        samples",
        "      +     tf.config.experimental.set_memory_growth(",
        "            devices[0],True)",
    ]


def test_many_runs_end_with_a_table_of_all_of_them() -> None:
    runs = [sample("healthy", run=f"sweep/{i}", attempt=i) for i in range(1, 13)]
    lines = shown(document(*runs)).splitlines()
    assert lines[-15].startswith("12 runs")
    assert lines[-13].split()[:5] == ["sweep/1", "healthy", "4.45", "s", "compute"]
    assert lines[-12].startswith("sweep/2 (attempt 2)")
    assert lines[-1] == "i input  c compile  = compute  h host  p profiler"


def test_runs_in_need_come_before_healthy_ones_and_costly_before_cheap_ones() -> None:
    names = (
        "healthy",
        "compile_tracing",
        "input_py_function",
        "numerics_nan",
        "mixed_host_and_input",
    )
    lines = shown(document(*(sample(name) for name in names)), width=100).splitlines()
    (start,) = (number for number, line in enumerate(lines) if line.startswith("5 runs"))
    assert [line.split()[0] for line in lines[start + 2 : start + 7]] == [
        "numerics_nan", "input_py_function", "mixed_host_and_input", "compile_tracing", "healthy",
    ]  # fmt: skip
    headings = [line.split()[0] for line in lines[:start] if "────" in line]
    assert headings[0] == "numerics_nan" and headings[-1] == "healthy"


def test_a_log_directory_that_is_a_run_is_called_by_its_folder() -> None:
    entry = sample("healthy", run=".", folder="run1")
    assert shown(document(entry)).startswith("run1 ──")
    assert shown(document(entry | {"attempt": 2})).startswith("run1 (attempt 2) ──")


def test_a_long_run_name_keeps_its_end() -> None:
    name = "experiments/2026/" + "very_long_directory/" * 6 + "lr_0.01"
    text = shown(document(sample("healthy", run=name), sample("event_files_only")))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "lr_0.01  slow" in text or "lr_0.01  healthy" in text


@pytest.mark.parametrize("width", [40, 56, 72, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_every_sample_fits_its_terminal(width: int, encoding: str) -> None:
    lines = shown(every_sample(), width=width, encoding=encoding).splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert all(len(line) <= width for line in lines)


def test_candidates_that_do_not_fit_into_the_table_are_cut_at_their_end() -> None:
    undecided = sample("event_files_only")
    undecided["verdict"]["candidates"] = ["communication", "numerics", "compute"]
    healthy = sample("healthy")
    healthy["verdict"]["status"] = "learning_nothing"
    lines = shown(document(undecided, healthy), width=72).splitlines()
    assert all(len(line) <= 72 for line in lines)
    assert any("…? " in line for line in lines[-5:])


def test_names_out_of_log_files_can_neither_steer_the_terminal_nor_be_markup() -> None:
    hostile = "[red]a\x1b[2Jb\nc\x07[/red]"
    note = {"level": "info", "text": hostile, "where": hostile}
    text = shown(document(sample("healthy", run=hostile, notes=[note])))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[red]a?[2Jb?c?[/red]" in text


def test_notes_on_the_whole_directory_come_last() -> None:
    note = {"level": "warning", "text": "x.riegeli is not supported", "where": "logs/x.riegeli"}
    lines = shown(document(sample("healthy"), notes=[note])).splitlines()
    assert lines[-2].startswith("all paths ─")
    assert lines[-1] == "warning  x.riegeli is not supported (logs/x.riegeli)"


def test_names_have_room_before_a_long_list_of_candidates() -> None:
    runs = document(sample("event_files_only"), sample("communication_straggler"))
    last = shown(runs, width=80).splitlines()[-6:]
    assert any(line.startswith("communication_straggler  slow always") for line in last)
    assert any("…?" in line for line in last)
