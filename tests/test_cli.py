"""`stall-analyze` as its user meets it: what it prints, where, and the code it exits with."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import documents
import pytest
from documents import SCHEMA
from jsonschema import Draft202012Validator

from stall_analyzer import batch, cli
from stall_analyzer.model import HostFile, Note, Run, Session
from stall_analyzer.outcome import Outcome
from stall_analyzer.progress import Progress

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = sorted(path.parent for path in (ROOT / "sample_logs").glob("*/expected.json"))

OK, USAGE, NOTHING_FOUND, PARTIAL = 0, 2, 3, 4


class FakeDiscovery(NamedTuple):
    runs: tuple[Run, ...]
    notes: tuple[Note, ...] = ()


def fake_run(name: str, size: int = 1) -> Run:
    host = HostFile("worker-0", f"{name}/worker-0.xplane.pb", "xplane", size)
    return Run(name, f"logs/{name}", (Session(f"{name}/s", f"{name}/s", (host,)),), ())


def fake_document(reports: Sequence[dict[str, Any]], notes: Sequence[Note] = ()) -> dict[str, Any]:
    return documents.document(*reports, notes=tuple(asdict(note) for note in notes))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the runs that exist and, by name, the entry (or the error) that analysing each gives."""

    def set_up(entries: dict[str, Any], notes: tuple[Note, ...] = ()) -> None:
        def analyze(run: Run, progress: Progress) -> dict[str, Any]:
            entry = entries[run.name]
            if isinstance(entry, BaseException):
                raise entry
            return dict(entry) | {"run": run.name}

        found = FakeDiscovery(tuple(fake_run(name) for name in entries), notes)
        monkeypatch.setattr("stall_analyzer.discover.discover", lambda paths: found)
        monkeypatch.setattr("stall_analyzer.outcome.analyze", analyze)
        monkeypatch.setattr("stall_analyzer.outcome.document", fake_document)
        monkeypatch.setattr("stall_analyzer.report.json.document", fake_document)

    return set_up


# ---------------------------------------------------------------- the report


def test_text_goes_to_stdout(world: Any, capsys: pytest.CaptureFixture[str]) -> None:
    world({"a": documents.healthy()})
    assert cli.main(["logs"]) == OK
    output = capsys.readouterr()
    assert "Healthy: 98 % of the first epoch" in output.out
    assert output.err == ""


def test_json_is_one_valid_document(world: Any, capsys: pytest.CaptureFixture[str]) -> None:
    world({"a": documents.healthy(), "b": documents.compile_bound()})
    assert cli.main(["logs", "--json"]) == OK
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(document)
    assert [run["run"] for run in document["runs"]] == ["a", "b"]


def test_a_bad_verdict_is_not_an_error(world: Any) -> None:
    world({"a": documents.learning_nothing()})
    assert cli.main(["logs"]) == OK


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [(["a*"], ["a1", "a2"]), (["b", "a2"], ["a2", "b"]), (["?1"], ["a1"])],
)
def test_run_chooses_by_name_or_pattern(
    world: Any, capsys: pytest.CaptureFixture[str], patterns: list[str], chosen: list[str]
) -> None:
    world({name: documents.healthy() for name in ("a1", "a2", "b")})
    options = [option for pattern in patterns for option in ("--run", pattern)]
    assert cli.main(["logs", "--json", *options]) == OK
    assert [run["run"] for run in json.loads(capsys.readouterr().out)["runs"]] == chosen


# ---------------------------------------------------------------- what can go wrong


def test_nothing_found_is_said_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([str(tmp_path), "--json"]) == NOTHING_FOUND
    output = capsys.readouterr()
    assert output.out == ""
    assert str(tmp_path) in output.err


def test_no_matching_run_lists_those_there_are(
    world: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    world({"a": documents.healthy(), "b": documents.healthy()})
    assert cli.main(["logs", "--run", "c"]) == NOTHING_FOUND
    assert "no run is called c; there are: a, b" in capsys.readouterr().err


def test_an_unreadable_host_makes_the_report_partial_but_prints_it(
    world: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    world({"a": documents.unreadable_host()})
    assert cli.main(["logs"]) == PARTIAL
    assert "57 % of the first epoch waits for other workers" in capsys.readouterr().out


def test_an_unreadable_path_makes_the_report_partial(world: Any) -> None:
    world({"a": documents.healthy()}, notes=(Note("error", "There is no logs2."),))
    assert cli.main(["logs", "logs2"]) == PARTIAL


def test_our_own_fault_in_one_run_does_not_hide_the_others(
    world: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    world({"broken": ZeroDivisionError("by nothing"), "fine": documents.healthy()})
    assert cli.main(["logs", "--json"]) == PARTIAL
    output = capsys.readouterr()
    document = json.loads(output.out)
    Draft202012Validator(SCHEMA).validate(document)
    broken, fine = document["runs"]
    assert broken["verdict"]["status"] == "unknown"
    assert "ZeroDivisionError: by nothing" in broken["notes"][0]["text"]
    assert fine["verdict"]["status"] == "healthy"
    assert "Traceback" not in output.err


def test_verbose_shows_the_traceback(world: Any, capsys: pytest.CaptureFixture[str]) -> None:
    world({"broken": ZeroDivisionError("by nothing")})
    assert cli.main(["logs", "-v"]) == PARTIAL
    assert "Traceback" in capsys.readouterr().err


def test_a_fault_outside_the_runs_is_an_internal_error_without_traceback(
    world: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def discover(paths: Sequence[str]) -> None:
        raise RuntimeError("lost")

    world({})
    monkeypatch.setattr("stall_analyzer.discover.discover", discover)
    assert cli.main(["logs"]) == cli.INTERNAL_ERROR
    assert capsys.readouterr().err == (
        "stall-analyze: internal error: RuntimeError: lost (-v shows where)\n"
    )


def test_ctrl_c_ends_quietly(world: Any, capsys: pytest.CaptureFixture[str]) -> None:
    world({"a": KeyboardInterrupt()})
    assert cli.main(["logs"]) == cli.INTERRUPTED
    assert capsys.readouterr().err == "stall-analyze: interrupted\n"


@pytest.mark.parametrize("arguments", [[], ["logs", "--jobs", "0"], ["logs", "--what"]])
def test_a_wrong_command_line_exits_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == USAGE


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_leaves_early_is_no_error(
    world: Any, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    world({"a": documents.healthy()})
    with os.fdopen(writer, "w", encoding="utf-8") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert cli.main(["logs", *options]) == OK


# ---------------------------------------------------------------- files


def test_output_replaces_the_file_and_leaves_nothing_else(world: Any, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    world({"a": documents.healthy()})
    assert cli.main(["logs", "--json", "-o", str(target)]) == OK
    assert json.loads(target.read_text())["runs"][0]["run"] == "a"
    assert list(tmp_path.iterdir()) == [target]


def test_text_in_a_file_is_plain(world: Any, tmp_path: Path) -> None:
    target = tmp_path / "report.txt"
    world({"a": documents.healthy()})
    assert cli.main(["logs", "-o", str(target)]) == OK
    text = target.read_text(encoding="utf-8")
    assert "compute step" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("name", "reason"), [("no/such/report.txt", "there is no directory"), (".", "is a directory")]
)
def test_an_impossible_output_is_refused_before_the_work(
    world: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, reason: str
) -> None:
    world({"a": AssertionError("analysed in vain")})
    assert cli.main(["logs", "-o", str(tmp_path / name)]) == USAGE
    assert reason in capsys.readouterr().err


def test_a_device_is_written_to_and_not_replaced(world: Any) -> None:
    world({"a": documents.healthy()})
    assert cli.main(["logs", "-o", os.devnull]) == OK
    assert not Path(os.devnull).is_file()


# ---------------------------------------------------------------- processes


def kills_its_process_on_b(run: Run, also: object, progress: Progress) -> Outcome:
    progress(0.5, "half way")
    if run.name == "b":
        os._exit(1)
    return Outcome({"run": run.name, "process": os.getpid()})


def test_a_killed_worker_costs_only_its_own_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stall_analyzer.outcome.analyze_one", kills_its_process_on_b)
    shares: dict[int, float] = {}
    outcomes = batch.analyze_all([fake_run(name) for name in "abc"], 2, shares.__setitem__)
    assert [outcome.entry["run"] for outcome in outcomes] == ["a", "b", "c"]
    assert outcomes[0].entry["process"] != os.getpid()
    assert "its process was killed" in outcomes[1].entry["notes"][0]["text"]
    assert shares == {0: 1.0, 1: 1.0, 2: 1.0}


def test_processes_are_started_only_when_they_pay_off() -> None:
    few_bytes, many_bytes = 1 << 20, 1 << 30
    assert cli._processes(runs=50, size=few_bytes) == 1
    assert cli._processes(runs=1, size=many_bytes) == 1
    assert 1 <= cli._processes(runs=50, size=many_bytes) <= cli.MOST_PROCESSES


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_moves_while_one_large_run_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with cli._progress([fake_run("[/] a", cli.WORTH_PROCESSES_BYTES)]) as watch:
        watch(0, 0.5)
        watch(0, 0.25)  # a process looked at late
    assert "reading [/] a" in terminal.getvalue()
    assert "50%" in terminal.getvalue()
    assert "75%" not in terminal.getvalue()


def test_small_runs_and_pipes_have_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with cli._progress([fake_run("a", cli.WORTH_PROCESSES_BYTES)]) as watch:
        watch(0, 0.5)
    assert capsys.readouterr().err == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with cli._progress([fake_run("a")]) as watch:
        watch(0, 0.5)
    assert terminal.getvalue() == ""


# ---------------------------------------------------------------- the real program


def test_help_teaches_the_capture_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert stopped.value.code == OK
    assert "tf.profiler.experimental.Profile(" in text
    for code in ("0 ", "1 ", "2 ", "3 ", "4 ", "130 "):
        assert f"\n  {code}" in text


def test_version_names_the_decoder(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--version"])
    assert stopped.value.code == OK
    assert re.fullmatch(r"stall-analyze \S+ \(decoder: .+\)\n", capsys.readouterr().out)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_every_sample_gives_a_valid_document(
    sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main([str(sample), "--json"])
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(document)
    for run in document["runs"]:
        assert sum(run["buckets_ps"].values()) == run["window"]["duration_ps"]
