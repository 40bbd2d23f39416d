"""The terminal view: what a person sees, and that nothing in a log file can spoil it."""

from __future__ import annotations

import io
from typing import Any

import documents
import pytest
from documents import MS, SCHEMA
from jsonschema import Draft202012Validator
from rich.console import Console

from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.format import between, percent, seconds
from stall_analyzer.report.glyphs import ASCII, bar, cells_per_part, sparkline
from stall_analyzer.report.palette import BUCKET_COLOURS, BUCKET_LETTERS, STATUS_COLOURS
from stall_analyzer.report.text import render


def shown(document: dict[str, Any], *, width: int = 80, encoding: str = "utf-8") -> str:
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
        (0, 100, "0 %"),
        (62, 100, "62 %"),
        (1, 1_000_000, "<1 %"),
        (999_999, 1_000_000, ">99 %"),
        (5, 5, "100 %"),
        (0, 0, "0 %"),
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
    drawn = shown(documents.document(*(example() for example in documents.EXAMPLES)))
    assert drawn.translate(ASCII).isascii()


# ---------------------------------------------------------------- the view


@pytest.mark.parametrize("example", documents.EXAMPLES)
def test_the_examples_are_valid_documents(example: Any) -> None:
    Draft202012Validator(SCHEMA).validate(documents.document(example()))


def test_the_schema_demands_all_nine_buckets() -> None:
    document = documents.document(documents.healthy())
    del document["runs"][0]["buckets_ps"]["memory"]
    assert not Draft202012Validator(SCHEMA).is_valid(document)


def test_every_bucket_and_status_has_its_colour_and_letter() -> None:
    statuses = SCHEMA["$defs"]["status"]["enum"]
    assert tuple(BUCKET_COLOURS) == tuple(BUCKET_LETTERS) == BUCKETS
    assert set(STATUS_COLOURS) == set(statuses)
    assert len(set(BUCKET_COLOURS.values())) == len(set(BUCKET_LETTERS.values())) == len(BUCKETS)


def test_the_verdict_comes_first_then_the_window() -> None:
    lines = shown(documents.document(documents.compile_bound())).splitlines()
    assert lines[0].startswith("compile_bound ──")
    assert lines[1].startswith("Slow once: 62 % of the first epoch makes code")
    assert lines[2] == (
        "first epoch 2.95 s · later epochs 410 ms · one-time 1.86 s · recurring 1.09 s"
    )


def test_buckets_are_sorted_by_size_with_their_causes_and_without_zeros() -> None:
    lines = shown(documents.document(documents.compile_bound())).splitlines()
    table = lines[4 : lines.index("", 4)]
    assert [line.split()[0] for line in table] == [
        "compile", "tracing", "xla", "input", "compute", "host", "profiler",
    ]  # fmt: skip
    assert table[0].endswith("1.84 s   62 %")
    assert table[1].endswith("1.24 s   42 %")
    assert "memory" not in "".join(table)


def test_a_slow_step_names_its_bucket_and_what_stood_behind_it() -> None:
    text = shown(documents.document(documents.compile_bound()))
    assert "step 0  1.87 s  compile 98 %, tracing: train_step" in text


def test_even_steps_are_said_to_be_even() -> None:
    assert "none above 2 times the median" in shown(documents.document(documents.healthy()))


def test_phases_are_shown_only_when_there_is_more_than_training() -> None:
    assert "startup   120 ms  host 100 %" in shown(documents.document(documents.compile_bound()))
    assert "phases" not in shown(documents.document(documents.input_bound()))


def test_a_finding_says_what_it_costs_what_to_change_and_what_that_wins() -> None:
    lines = shown(documents.document(documents.input_bound())).splitlines()
    start = lines.index("findings")
    assert lines[start + 1 : lines.index("", start)] == [
        "  act       ST001  py_function in MapDataset:3 takes 205 ms a batch",
        "    costs 8.20 s; the change should win 6.56–7.80 s, in every epoch",
        "    Write the map with TensorFlow ops, so that it runs in parallel.",
        "      - ds = ds.map(lambda x: tf.py_function(load, [x], tf.float32))",
        "      + ds = ds.map(",
        "      +     load,",
        "      +     num_parallel_calls=tf.data.AUTOTUNE,",
        "      + )",
        "  consider  ST101  Tracing takes 610 ms",
        "    costs 610 ms; the change should win 200–400 ms, in the first epoch only",
        "    Trace once.",
        "  note      ST403  The profiler takes 1 % of the epoch (costs 90.0 ms)",
        "  do these, in this order: ST001, ST101: first epoch 10.6 s -> 2.42–3.86 s,",
        "  later epochs 9.70 s -> 1.90–3.14 s",
        "  stall-analyze --explain ST001 tells how this is found and measured",
    ]


def test_only_the_first_two_findings_are_shown_in_full() -> None:
    many = [documents.finding(f"ST00{n}", "input", "Slow", 9, change=f"C{n}") for n in range(4)]
    text = shown(documents.document(documents.input_bound() | {"findings": many, "plan": None}))
    assert "C0" in text and "C1" in text
    assert "C2" not in text and "C3" not in text
    assert "act       ST003  Slow (costs 9.00 ms)" in text


def test_a_finding_without_seconds_to_win_promises_none() -> None:
    text = shown(documents.document(documents.learning_nothing()))
    assert "act       ST301  The loss became NaN at step 15" in text
    assert "Look at batch 15 first" in text
    assert "win" not in text


def test_a_gain_says_in_which_epochs_it_comes() -> None:
    def worth(gain_ms: tuple[int, int], later_ms: tuple[int, int]) -> str:
        made = documents.finding("ST001", "input", "Slow", 900, gain_ms=gain_ms, later_ms=later_ms)
        run = documents.input_bound() | {"findings": [made]}
        text = shown(documents.document(run), width=100)
        return text.partition("the change should win ")[2].partition("\n")[0]

    assert worth((700, 900), (700, 900)) == "700–900 ms, in every epoch"
    assert worth((700, 900), (0, 0)) == "700–900 ms, in the first epoch only"
    assert worth((700, 900), (300, 400)) == "700–900 ms, and 300–400 ms in each later epoch"
    assert worth((0, 0), (300, 400)) == "300–400 ms in each later epoch"


def test_a_plan_says_so_when_later_epochs_stay_as_they_are() -> None:
    run = documents.input_bound()
    run["plan"] |= {"findings": ["ST101"], "later_epoch_ps": documents.forecast(410, 410, 410)}
    text = shown(documents.document(run), width=100)
    assert "with ST101 done: first epoch 10.6 s -> 2.42–3.86 s, later epochs 410 ms as now" in text


def test_a_healthy_run_is_told_that_there_is_nothing_to_change() -> None:
    assert "Nothing to change" in shown(documents.document(documents.healthy()))
    assert "Nothing to change" not in shown(documents.document(documents.events_only()))


def test_without_a_trace_the_view_says_so_and_claims_no_one_time_cost() -> None:
    text = shown(documents.document(documents.events_only()))
    assert "event files only" in text
    assert "one-time" not in text
    assert "warning  No profile was captured" in text


def test_a_run_without_an_epoch_has_no_bars() -> None:
    text = shown(documents.document(documents.no_epoch()))
    assert "The job ended before its first epoch did." in text
    assert "no first epoch was found" in text
    assert "█" not in text


def test_hosts_are_compared_and_an_unreadable_one_is_named() -> None:
    text = shown(documents.document(documents.unreadable_host()))
    assert "worker-0  =====xxxxxxx  communication 57 %" in text
    assert "worker-1  ????????????  unknown 100 %, no training thread" in text
    assert "error  The trace of worker-1 is not an XSpace" in text


def test_many_runs_begin_with_a_table_of_all_of_them() -> None:
    runs = [documents.healthy() | {"run": f"sweep/{i}", "attempt": i} for i in range(1, 13)]
    lines = shown(documents.document(*runs)).splitlines()
    assert lines[0].startswith("12 runs")
    assert lines[1].split()[:5] == ["sweep/1", "healthy", "53.2", "s", "compute"]
    assert lines[2].startswith("sweep/2 (attempt 2)")
    assert lines[13] == "i input  c compile  = compute"


def test_a_long_run_name_keeps_its_end() -> None:
    name = "experiments/2026/" + "very_long_directory/" * 6 + "lr_0.01"
    text = shown(documents.document(documents.healthy() | {"run": name}, documents.events_only()))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "lr_0.01  " in text.splitlines()[1]


@pytest.mark.parametrize("width", [72, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_every_example_fits_its_terminal(width: int, encoding: str) -> None:
    document = documents.document(*(example() for example in documents.EXAMPLES))
    lines = shown(document, width=width, encoding=encoding).splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert all(len(line) <= width for line in lines)


def test_names_out_of_log_files_can_neither_steer_the_terminal_nor_be_markup() -> None:
    hostile = "[red]a\x1b[2Jb\nc\x07[/red]"
    run = documents.healthy() | {
        "run": hostile,
        "notes": [documents.note("info", hostile, hostile)],
    }
    text = shown(documents.document(run))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[red]a?[2Jb?c?[/red]" in text


def test_notes_on_the_whole_directory_come_last() -> None:
    note = documents.note("warning", "x.riegeli is not supported", "logs/x.riegeli")
    lines = shown(documents.document(documents.healthy(), notes=(note,))).splitlines()
    assert lines[-2].startswith("all paths ─")
    assert lines[-1] == "warning  x.riegeli is not supported (logs/x.riegeli)"
