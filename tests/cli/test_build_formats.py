"""What builds and reviews get: annotations of GitHub, SARIF, JUnit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema.validators import validator_for

from stall_analyzer.cli import main as cli
from stall_analyzer.report import github, junit, sarif
from stall_analyzer.report.problems import Place, Problem, RunProblems, in_checkout, problems_of
from tests.batch.fleets import copy_sample
from tests.event_files import file_name
from tests.junit_rules import broken_rules
from tests.published_schemas import published
from tests.real_documents import ROOT, SAMPLES, finding, sample

Capsys = pytest.CaptureFixture[str]
LOGS = ROOT / "sample_logs"
PARTIAL, OVER_LIMIT, WORSE = 4, 5, 6
HOSTILE = "a]]>\x00\x1b[2J<&\"'\n::stop-commands::x\ud800, 100%: é"


def line(path: str, number: int = 25) -> dict[str, Any]:
    return {
        "bucket": "input", "cause": "input.wait", "path": path, "line": number,
        "function": "load", "ps": 10**12, "source": "", "name": "", "background": False,
    }  # fmt: skip


def problem(**changes: Any) -> Problem:
    fields = {"run": "r", "rule": "ST001", "gravity": "warning", "title": "slow", "text": "why"}
    return Problem(**(fields | changes))


def printed(capsys: Capsys, *arguments: str) -> str:
    cli.main(arguments)
    return capsys.readouterr().out


def checked_sarif(text: str) -> Any:
    document = json.loads(text)
    schema = published("sarif-2.1.0")
    assert list(validator_for(schema)(schema).iter_errors(document)) == []
    return document["runs"][0]


def checked_junit(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text.encode())
    assert broken_rules(root) == []
    return root


# ---------------------------------------------------------------- problems


def test_a_finding_is_at_the_costliest_line_of_the_users_code(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").touch()
    found = finding(lines=[line("/home/me/project/src/train.py"), line("other.py")])
    (made,) = problems_of(sample("input_py_function", findings=[found]), tmp_path)
    assert made.place == Place("src/train.py", 25)


def test_a_line_that_is_not_in_the_checkout_keeps_its_path(tmp_path: Path) -> None:
    assert in_checkout("/home/me/train.py", tmp_path) == ""
    assert in_checkout("../../etc/passwd", tmp_path) == ""
    found = finding(lines=[line("/home/me/train.py")])
    (made,) = problems_of(sample("input_py_function", findings=[found]), tmp_path)
    assert made.place == Place("/home/me/train.py", 25)


def test_a_hang_is_at_the_innermost_line_in_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "data.py").touch()
    stack = ["/usr/lib/python3.11/queue.py:171 Queue.get", "/home/me/data.py:12 batches"]
    (made,) = problems_of(sample("healthy", findings=[finding(stack=stack)]), tmp_path)
    assert made.place == Place("data.py", 12)


def test_a_training_in_vain_is_a_problem_even_without_a_finding(tmp_path: Path) -> None:
    dead = sample("healthy", findings=[])
    dead["verdict"] |= {"status": "dead", "sentence": "It was killed."}
    (made,) = problems_of(dead, tmp_path)
    assert (made.rule, made.heading) == ("verdict", "The run is dead")
    assert list(problems_of(sample("healthy", findings=[]), tmp_path)) == []


# ---------------------------------------------------------------- formats


def test_github_shows_a_finding_beside_its_line() -> None:
    (command,) = github.render([problem(place=Place("src/train.py", 25))])
    assert command == "::warning file=src/train.py,line=25,title=ST001 slow::r: why\n"


def test_github_gets_what_fails_the_build_first() -> None:
    many = [problem(gravity="note"), problem(), problem(gravity="error")]
    assert [one.split()[0] for one in github.render(many)] == ["::error", "::warning", "::notice"]


def test_nothing_in_a_log_can_be_a_command_or_end_a_document() -> None:
    strange = problem(run=HOSTILE, title=HOSTILE, text=HOSTILE, place=Place(HOSTILE, 0))
    (command,) = github.render([strange])
    assert command.count("\n") == 1
    assert re.match(r"::warning file=[^,:]+,line=0,title=[^,:]+::", command)
    checked_sarif(sarif.render([strange]))
    root = checked_junit("".join(junit.render([RunProblems(HOSTILE, 1.0, [strange])])))
    assert "<&\"'" in root[0].attrib["name"]


def test_sarif_has_a_rule_with_the_manual_page_of_each_finding() -> None:
    run = checked_sarif(sarif.render([problem(), problem(rule="over-limit", gravity="error")]))
    rules = run["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == [
        "ST001", "over-limit",
    ]  # fmt: skip
    assert "What to do" in rules[0]["help"]["text"]


def test_sarif_names_the_line_from_the_top_of_the_checkout() -> None:
    def place(path: str) -> Any:
        run = checked_sarif(sarif.render([problem(place=Place(path, 7))]))
        return run["results"][0]["locations"][0]["physicalLocation"]

    assert place("src/my train.py") == {
        "artifactLocation": {"uri": "src/my%20train.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 7},
    }
    assert place("/home/me/train.py")["artifactLocation"] == {"uri": "file:///home/me/train.py"}
    assert place("C:\\me\\train.py")["artifactLocation"] == {"uri": "file:///C:/me/train.py"}


def test_sarif_knows_a_finding_again_when_its_line_has_moved() -> None:
    def fingerprint(**changes: Any) -> Any:
        run = checked_sarif(sarif.render([problem(**changes)]))
        return run["results"][0]["partialFingerprints"]

    assert fingerprint(place=Place("a.py", 1)) == fingerprint(place=Place("a.py", 9))
    assert fingerprint(rule="ST002") != fingerprint()


def test_junit_has_a_suite_for_each_run_and_fails_what_is_worth_acting_on() -> None:
    runs = [
        RunProblems("well", 4.4504, []),
        RunProblems("slow", 2.0, [problem(place=Place("a.py", 3)), problem(gravity="note")]),
    ]
    well, slow = checked_junit("".join(junit.render(runs)))
    assert (well.attrib["time"], well.attrib["failures"]) == ("4.450", "0")
    assert slow.attrib["failures"] == "1"
    (failure,) = slow.iter("failure")
    assert failure.attrib["message"] == "a.py:3: slow"


def test_a_test_in_junit_has_the_same_name_in_every_build() -> None:
    """Titles contain seconds, and a server tracks a test by its name."""
    runs = [RunProblems("r", 1.0, [problem(title=f"took {n} s", name="tracing") for n in (1, 2)])]
    (suite,) = checked_junit("".join(junit.render(runs)))
    assert [case.attrib["name"] for case in suite] == ["ST001 tracing", "ST001 tracing"]


def test_junit_has_no_success_for_a_run_whose_verdict_is_open(capsys: Capsys) -> None:
    text = printed(capsys, str(LOGS / "event_files_only"), "--format", "junit")
    (suite,) = checked_junit(text)
    assert suite.attrib["skipped"] == "1"
    assert [case.attrib["name"] for case in suite] == ["undecided"]
    (skipped,) = suite.iter("skipped")
    assert skipped.attrib["message"].startswith("Compile, input or host cost the most:")


# ---------------------------------------------------------------- the command


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda path: path.name)
def test_every_sample_is_valid_in_every_format(folder: Path, capsys: Capsys) -> None:
    run = checked_sarif(printed(capsys, str(folder), "--format", "sarif"))
    root = checked_junit(printed(capsys, str(folder), "--format", "junit"))
    commands = printed(capsys, str(folder), "--format", "github").splitlines()
    told = [*root.iter("failure"), *root.iter("system-out")]
    assert len(run["results"]) == len(commands) == len(told)
    assert all(re.match("::(error|warning|notice) ", command) for command in commands)


def test_what_is_over_a_limit_or_worse_is_an_error(tmp_path: Path, capsys: Capsys) -> None:
    before = tmp_path / "before.jsonl"
    healthy = sample("healthy", run=".")
    before.write_text(json.dumps(healthy) + "\n")
    slow = str(LOGS / "input_py_function")
    checks = ("--fail-over", "input=20%", "--baseline", str(before))
    assert cli.main([slow, "--format", "github", *checks]) == OVER_LIMIT
    errors = [one for one in capsys.readouterr().out.splitlines() if one.startswith("::error")]
    limit, worse = errors
    assert limit.startswith("::error title=Over the limit input=20%25::")
    assert limit.endswith("input_py_function: input took 75%25, 1.51 s.")
    assert "title=Worse than the baseline::input_py_function: Faster by 2.4" in worse
    assert "input wait is new" in worse
    assert cli.main([slow, "--format", "junit", *checks[2:]]) == WORSE
    (failure,) = checked_junit(capsys.readouterr().out).findall(".//*[@name='baseline']/failure")
    assert failure.attrib["message"] == "Worse than the baseline"


def test_each_limit_is_a_test_of_each_run_whether_it_passes_or_not(capsys: Capsys) -> None:
    def outcomes(name: str, *limits: str) -> dict[str, list[str]]:
        asked = [part for limit in limits for part in ("--fail-over", limit)]
        (suite,) = checked_junit(printed(capsys, str(LOGS / name), "--format", "junit", *asked))
        cases = {case.attrib["name"]: [part.tag for part in case] for case in suite}
        return {test: tags for test, tags in cases.items() if test.startswith("limit ")}

    limits = "input=20%", "epoch=10m", "status=stuck"
    passed: list[str] = []
    assert outcomes("healthy", *limits) == {f"limit {limit}": passed for limit in limits}
    assert outcomes("input_py_function", *limits) == {
        "limit input=20%": ["failure"], "limit epoch=10m": passed, "limit status=stuck": passed,
    }  # fmt: skip


def test_a_limit_on_an_epoch_that_was_not_read_is_skipped(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / file_name()).write_bytes(bytes(range(7, 256)) * 20)
    checks = ("--fail-over", "input=20%", "--fail-over", "status=stuck")
    (suite,) = checked_junit(printed(capsys, str(tmp_path), "--format", "junit", *checks))
    skipped = {case.attrib["name"]: part.attrib["message"] for case in suite for part in case}
    assert skipped["limit input=20%"] == "It is not known how long the first epoch took."
    assert skipped["limit status=stuck"] == "The verdict is unknown."


def test_a_limit_on_the_unknown_verdict_itself_is_exceeded(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / file_name()).write_bytes(bytes(range(7, 256)) * 20)
    checks = ("--format", "junit", "--fail-over", "status=unknown")
    root = checked_junit(printed(capsys, str(tmp_path), *checks))
    assert root.find(".//*[@name='limit status=unknown']/failure") is not None


def test_a_limit_on_what_nobody_could_measure_is_skipped(tmp_path: Path, capsys: Capsys) -> None:
    copy_sample("healthy", tmp_path / "cut")
    (trace,) = (tmp_path / "cut").rglob("*.xplane.pb")
    trace.write_bytes(trace.read_bytes()[:100_000])
    limits = ("--fail-over", "input=20%", "--fail-over", "epoch=1h")
    assert cli.main([str(tmp_path), "--format", "junit", *limits]) == 0
    (suite,) = ElementTree.fromstring(capsys.readouterr().out)
    skipped = {case.attrib["name"] for case in suite if case.find("skipped") is not None}
    assert skipped == {"limit input=20%", "undecided"}


def test_the_baseline_is_a_test_of_each_run_and_skipped_where_the_run_is_new(
    tmp_path: Path, capsys: Capsys
) -> None:
    before = tmp_path / "before.jsonl"
    cli.main([str(LOGS), "--run", "healthy", "--jsonl", str(before)])
    capsys.readouterr()
    both = (str(LOGS), "--run", "healthy", "--run", "input_py_function")
    text = printed(capsys, *both, "--format", "junit", "--baseline", str(before))
    cases = checked_junit(text).findall(".//*[@name='baseline']")
    assert {case.attrib["classname"]: [part.tag for part in case] for case in cases} == {
        "healthy": [], "input_py_function": ["skipped"],
    }  # fmt: skip


def test_a_path_that_cannot_be_read_is_told_too(tmp_path: Path, capsys: Capsys) -> None:
    absent = str(tmp_path / "absent")
    root = checked_junit(printed(capsys, str(LOGS / "healthy"), absent, "--format", "junit"))
    (failure,) = root.iter("failure")
    assert failure.attrib["type"] == "unreadable" and "does not exist" in (failure.text or "")


def test_a_damaged_file_fails_the_build_and_is_an_error(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / file_name()).write_bytes(bytes(range(7, 256)) * 20)
    assert cli.main([str(tmp_path), "--format", "github"]) == PARTIAL
    assert "::error title=Could not be fully read::" in capsys.readouterr().out
