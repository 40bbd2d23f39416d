"""`stall-analyze` as users see it: what it prints, where, and its exit code."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from stall_analyzer.batch import batch
from stall_analyzer.cli import main as cli
from stall_analyzer.cli.options import MOST_PROCESSES
from stall_analyzer.model.findings import Report
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import HostFile, ProfileSession, Run
from stall_analyzer.progress import Progress
from tests.real_documents import ROOT, SAMPLES, SCHEMA, report_of

Capsys = pytest.CaptureFixture[str]
OK, USAGE, NOTHING_FOUND, PARTIAL, OVER_LIMIT, WORSE = 0, 2, 3, 4, 5, 6


def fake_run(name: str, size: int = 1) -> Run:
    host = HostFile("worker-0", f"{name}/worker-0.xplane.pb", "xplane", size)
    return Run(name, f"logs/{name}", (ProfileSession(f"{name}/s", f"{name}/s", (host,)),), ())


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the runs that exist and, by name, the report (or the error) that analyzing each gives:
    that of a sample, where it is its name."""

    def set_up(reports: Mapping[str, Any], notes: tuple[Note, ...] = ()) -> None:
        def analyze(run: Run, progress: Progress, kept_in: Path | None) -> Report:
            report = reports[run.name]
            if isinstance(report, BaseException):
                raise report
            return replace(report_of(report) if isinstance(report, str) else report, run=run)

        def stream_runs(paths: Sequence[str], found: list[Note]) -> Iterator[Run]:
            yield from (fake_run(name) for name in reports)
            found.extend(notes)

        monkeypatch.setattr(batch, "stream_runs", stream_runs)
        monkeypatch.setattr("stall_analyzer.outcome.analyze", analyze)

    return set_up


def half_unreadable() -> Report:
    return replace(
        report_of("communication_straggler"), notes=(Note("error", "A trace is not an XSpace."),)
    )


# ---------------------------------------------------------------- the report


def test_text_goes_to_stdout(world: Any, capsys: Capsys) -> None:
    world({"a": "healthy"})
    assert cli.main(["logs"]) == OK
    output = capsys.readouterr()
    assert "Healthy: 88% of the first epoch" in output.out
    assert output.err == ""


def test_json_is_one_valid_document(world: Any, capsys: Capsys) -> None:
    world({"a": "healthy", "b": "compile_tracing"})
    assert cli.main(["logs", "--json"]) == OK
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(document)
    assert [run["run"] for run in document["runs"]] == ["a", "b"]


def test_a_bad_verdict_is_not_an_error(world: Any) -> None:
    world({"a": "numerics_nan"})
    assert cli.main(["logs"]) == OK


@pytest.mark.parametrize(
    ("patterns", "chosen"), [(["a*"], ["a1", "a2"]), (["b", "a2"], ["a2", "b"]), (["?1"], ["a1"])]
)
def test_run_chooses_by_name_or_pattern(
    world: Any, capsys: Capsys, patterns: list[str], chosen: list[str]
) -> None:
    world(dict.fromkeys(("a1", "a2", "b"), "healthy"))
    options = [option for pattern in patterns for option in ("--run", pattern)]
    assert cli.main(["logs", "--json", *options]) == OK
    assert [run["run"] for run in json.loads(capsys.readouterr().out)["runs"]] == chosen


# ---------------------------------------------------------------- what can go wrong


def test_nothing_found_is_said_on_stderr(tmp_path: Path, capsys: Capsys) -> None:
    assert cli.main([str(tmp_path), "--json"]) == NOTHING_FOUND
    output = capsys.readouterr()
    assert output.out == ""
    assert str(tmp_path) in output.err


def test_an_empty_folder_beside_a_good_one_is_said(tmp_path: Path, capsys: Capsys) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert cli.main([str(empty), str(ROOT / "sample_logs" / "healthy"), "--json"]) == OK
    output = capsys.readouterr()
    assert f"no training run was found in {empty}\n" in output.err
    (note,) = json.loads(output.out)["notes"]
    assert (note["level"], note["where"]) == ("warning", str(empty))
    assert note["text"] == "No training run was found in this folder."


def test_no_matching_run_lists_those_there_are(world: Any, capsys: Capsys) -> None:
    world({"a": "healthy", "b": "healthy"})
    assert cli.main(["logs", "--run", "c"]) == NOTHING_FOUND
    assert "no run is named c; the runs are: a, b" in capsys.readouterr().err


def test_an_unreadable_host_makes_the_report_partial_but_prints_it(
    world: Any, capsys: Capsys
) -> None:
    world({"a": half_unreadable()})
    assert cli.main(["logs"]) == PARTIAL
    assert "host-worker-1 made the others wait 1.22 s" in capsys.readouterr().out


def test_an_unreadable_path_makes_the_report_partial(world: Any) -> None:
    world({"a": "healthy"}, notes=(Note("error", "There is no logs2."),))
    assert cli.main(["logs", "logs2"]) == PARTIAL


def test_a_bug_that_one_run_triggers_does_not_hide_the_others(world: Any, capsys: Capsys) -> None:
    world({"broken": ZeroDivisionError("by nothing"), "fine": "healthy"})
    assert cli.main(["logs", "--json"]) == PARTIAL
    output = capsys.readouterr()
    document = json.loads(output.out)
    Draft202012Validator(SCHEMA).validate(document)
    broken, fine = document["runs"]
    assert broken["verdict"]["status"] == "unknown"
    assert "ZeroDivisionError: by nothing" in broken["notes"][0]["text"]
    assert fine["verdict"]["status"] == "healthy"
    assert "Traceback" not in output.err


def test_verbose_shows_the_traceback(world: Any, capsys: Capsys) -> None:
    world({"broken": ZeroDivisionError("by nothing")})
    assert cli.main(["logs", "-v"]) == PARTIAL
    assert "Traceback" in capsys.readouterr().err


def test_a_fault_outside_the_runs_is_an_internal_error_without_traceback(
    world: Any, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    def stream_runs(paths: Sequence[str], notes: list[Note]) -> Iterator[Run]:
        raise RuntimeError("lost")

    world({})
    monkeypatch.setattr(batch, "stream_runs", stream_runs)
    assert cli.main(["logs"]) == cli.INTERNAL_ERROR
    assert capsys.readouterr().err == (
        "stall-analyze: internal error: RuntimeError: lost (-v shows where)\n"
    )


def test_ctrl_c_ends_quietly(world: Any, capsys: Capsys) -> None:
    world({"a": KeyboardInterrupt()})
    assert cli.main(["logs"]) == cli.INTERRUPTED
    assert capsys.readouterr().err == "stall-analyze: interrupted\n"


@pytest.mark.parametrize("arguments", [[], ["logs", "--jobs", "0"], ["logs", "--what"]])
def test_a_wrong_command_line_gets_one_line_and_exits_2(
    arguments: list[str], capsys: Capsys
) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("(see stall-analyze --help-all)")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_leaves_early_is_not_an_error(
    world: Any, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    world({"a": "healthy"})
    with os.fdopen(writer, "w", encoding="utf-8") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert cli.main(["logs", *options]) == OK


# ---------------------------------------------------------------- files


def test_output_replaces_the_file_and_leaves_nothing_else(world: Any, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    world({"a": "healthy"})
    assert cli.main(["logs", "--json", "-o", str(target)]) == OK
    assert json.loads(target.read_text())["runs"][0]["run"] == "a"
    assert list(tmp_path.iterdir()) == [target]


def test_text_in_a_file_is_plain(world: Any, tmp_path: Path) -> None:
    target = tmp_path / "report.txt"
    world({"a": "healthy"})
    assert cli.main(["logs", "-o", str(target)]) == OK
    text = target.read_text(encoding="utf-8")
    assert "profiler logging" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("name", "reason"), [("no/such/report.txt", "there is no directory"), (".", "is a directory")]
)
def test_an_impossible_output_is_refused_before_the_work(
    world: Any, tmp_path: Path, capsys: Capsys, name: str, reason: str
) -> None:
    world({"a": AssertionError("analyzed in vain")})
    assert cli.main(["logs", "-o", str(tmp_path / name)]) == USAGE
    assert reason in capsys.readouterr().err


def test_a_device_is_written_to_and_not_replaced(world: Any) -> None:
    world({"a": "healthy"})
    assert cli.main(["logs", "-o", os.devnull]) == OK
    assert not Path(os.devnull).is_file()


# ---------------------------------------------------------------- processes


def test_processes_are_started_only_when_they_pay_off() -> None:
    few_bytes, many_bytes = 1 << 20, 1 << 30
    assert cli._processes(runs=10, size=few_bytes) == 1
    assert cli._processes(runs=1, size=many_bytes) == 1
    assert 1 <= cli._processes(runs=50, size=few_bytes) <= MOST_PROCESSES
    assert 1 <= cli._processes(runs=10, size=many_bytes) <= MOST_PROCESSES


# ---------------------------------------------------------------- many runs


def many(count: int) -> dict[str, str]:
    return {f"run-{number:03d}": "input_py_function" for number in range(count)}


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process would not see the made-up world."""
    monkeypatch.setattr(cli, "_processes", lambda runs, size: 1)
    monkeypatch.setattr(cli, "MOST_AT_ONCE", 1000)


def test_many_runs_are_summarized(world: Any, in_this_process: None, capsys: Capsys) -> None:
    world(many(30))
    assert cli.main(["logs"]) == OK
    output = capsys.readouterr()
    assert "30 runs: their first epochs" in output.out
    assert "costliest findings" in output.out
    assert "(75%) of the first epoch went to input" not in output.out
    assert "30 runs: 30 to read, 0 unchanged" in output.err


def test_full_shows_each_of_many_runs(world: Any, in_this_process: None, capsys: Capsys) -> None:
    world(many(30))
    assert cli.main(["logs", "--full"]) == OK
    text = capsys.readouterr().out
    assert "30 runs: their first epochs" in text
    assert text.count("(75%) of the first epoch went to input") == 30


def test_a_named_run_is_shown_in_full(world: Any, capsys: Capsys) -> None:
    world(many(30))
    assert cli.main(["logs", "--run", "run-007"]) == OK
    assert "(75%) of the first epoch went to input" in capsys.readouterr().out


def test_markdown_has_a_summary_too(world: Any, in_this_process: None, capsys: Capsys) -> None:
    world(many(30))
    assert cli.main(["logs", "--markdown"]) == OK
    assert "### costliest findings" in capsys.readouterr().out


def test_json_holds_the_runs_and_their_sums(
    world: Any, in_this_process: None, capsys: Capsys
) -> None:
    world(many(30))
    assert cli.main(["logs", "--json"]) == OK
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(document)
    assert len(document["runs"]) == document["fleet"]["runs"] == 30


def test_results_are_written_beside_the_report(world: Any, tmp_path: Path, capsys: Capsys) -> None:
    pytest.importorskip("duckdb", reason="DuckDB comes with the extra [parquet]")
    world({"b": "healthy", "a": "healthy"})
    lines, folder = tmp_path / "all.jsonl", tmp_path / "tables"
    assert cli.main(["logs", "--jsonl", str(lines), "--parquet", str(folder)]) == OK
    assert [json.loads(line)["run"] for line in lines.read_text().splitlines()] == ["a", "b"]
    assert sorted(path.name for path in folder.iterdir()) == [
        "causes.parquet", "findings.parquet", "runs.parquet",
    ]  # fmt: skip
    assert f"wrote {lines}" in capsys.readouterr().err


# ---------------------------------------------------------------- builds that should fail


def test_a_run_over_a_limit_fails_the_build(world: Any, capsys: Capsys) -> None:
    world({"bad": "input_py_function", "good": "healthy"})
    assert cli.main(["logs", "--fail-over", "input=20%"]) == OVER_LIMIT
    output = capsys.readouterr()
    assert "over a limit: 1 run" in output.out
    assert re.search(r"input=20%\s+75%, 1.51 s\s+bad", output.out)


def test_runs_within_their_limits_do_not(world: Any) -> None:
    world({"good": "healthy"})
    assert cli.main(["logs", "--fail-over", "input=20%", "--fail-over", "status=stuck"]) == OK


def test_a_limit_beats_a_file_that_could_not_be_read(world: Any) -> None:
    world({"a": half_unreadable()})
    assert cli.main(["logs", "--fail-over", "host=5%"]) == OVER_LIMIT
    assert cli.main(["logs", "--fail-over", "host=99%"]) == PARTIAL


def test_a_run_worse_than_the_baseline_fails_the_build(
    world: Any, tmp_path: Path, capsys: Capsys
) -> None:
    baseline = tmp_path / "before.jsonl"
    world({"a": "healthy"})
    assert cli.main(["logs", "--jsonl", str(baseline)]) == OK
    capsys.readouterr()
    assert cli.main(["logs", "--baseline", str(baseline)]) == OK
    same = capsys.readouterr().out
    assert "worse than the baseline: 0 runs\n  1 compared, 0 new, 0 gone.\n" in same
    world({"a": "input_py_function"})
    assert cli.main(["logs", "--baseline", str(baseline), "--json", "--fresh"]) == WORSE
    (worse,) = json.loads(capsys.readouterr().out.splitlines()[-1])["worse"]
    assert (worse["run"], worse["status_before"], worse["status"]) == (
        "a",
        "healthy",
        "slow_always",
    )


@pytest.mark.parametrize(
    "option",
    [
        ("--fail-over", "inputs=20%"), ("--fail-over", "compile.nothing=20%"),
        ("--baseline", "absent.json"), ("--since", "yesterday"), ("--shard", "3/3"),
        ("--deadline", "soon"), ("--tolerance", "a bit"), ("--tolerance", "20%"),
    ],
)  # fmt: skip
def test_an_option_that_makes_no_sense_is_refused_before_the_work(
    world: Any, option: tuple[str, str]
) -> None:
    world({"a": AssertionError("analyzed in vain")})
    try:
        code: object = cli.main(["logs", *option])
    except SystemExit as stopped:
        code = stopped.code
    assert code == USAGE


def test_nothing_new_is_not_an_error(world: Any, capsys: Capsys) -> None:
    world({"a": "healthy"})
    assert cli.main(["logs", "--since", "2020-01-01"]) == OK  # it is not known when it changed
    assert "Healthy" in capsys.readouterr().out


# ---------------------------------------------------------------- the real program


def test_help_all_teaches_the_capture_and_the_exit_codes(capsys: Capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--help-all"])
    text = capsys.readouterr().out
    assert stopped.value.code == OK
    assert "tf.profiler.experimental.Profile(" in text
    for code in ("0 ", "1 ", "2 ", "3 ", "4 ", "5 ", "6 ", "7 ", "130 "):
        assert f"\n  {code}" in text


def test_version_names_the_decoder(capsys: Capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--version"])
    assert stopped.value.code == OK
    assert re.fullmatch(r"stall-analyze \S+ \(decoder: .+\)\n", capsys.readouterr().out)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_every_sample_gives_a_valid_document(sample: Path, capsys: Capsys) -> None:
    cli.main([str(sample), "--json"])
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(document)
    for run in document["runs"]:
        assert sum(run["buckets_ps"].values()) == run["window"]["duration_ps"]
