"""The GitHub Action: its steps are run here, against a stand-in for the API on loopback."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from jsonschema.validators import validator_for

from scripts.comment_on_pull_request import LONGEST, shortened
from tests.action_runner import ACTION, GitHub, Runner, github
from tests.published_schemas import published
from tests.real_documents import ROOT

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
MARKER = "<!-- stall-analyze: stall -->"


@pytest.fixture
def api() -> Iterator[GitHub]:
    with github() as stand_in:
        yield stand_in


@pytest.fixture
def runner(api: GitHub, tmp_path: Path) -> Runner:
    return Runner(tmp_path / "runner", api.address)


def logs(tmp_path: Path, sample: str, run: str = "resnet") -> str:
    """A log directory with one run, as a job has just trained it."""
    folder = tmp_path / "logs"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "sample_logs" / sample, folder / run)
    return str(folder)


def test_the_action_is_what_github_accepts() -> None:
    schema = published("github-action")
    action = yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))
    assert list(validator_for(schema)(schema).iter_errors(action)) == []


def test_a_pull_request_is_compared_with_its_base_branch(
    runner: Runner, api: GitHub, tmp_path: Path
) -> None:
    inputs = {"logdir": logs(tmp_path, "healthy"), "install": "none", "tolerance": "25%"}
    pushed = runner.run("push", "main", inputs)  # nothing to compare with yet
    assert not pushed.failed and "resnet" in pushed.summary
    assert api.asked == []
    inputs |= {"logdir": logs(tmp_path, "input_py_function")}
    pulled = runner.run("pull_request", "main", inputs)
    assert pulled.failed and pulled.ran[-1].startswith("Fail as")
    assert "::error title=Worse than the baseline::resnet: " in pulled.log
    (comment,) = api.comments
    assert comment["body"].startswith(f"{MARKER}\n### worse than the baseline: 1 run")
    assert "input wait is new (1.49 s)" in comment["body"]
    assert "healthy -&gt; slow always" in comment["body"]
    assert "<details><summary>the runs</summary>" in comment["body"]


def test_the_next_push_to_the_pull_request_updates_its_comment(
    runner: Runner, api: GitHub, tmp_path: Path
) -> None:
    api.comments += [{"id": number + 1, "body": "looks good"} for number in range(120)]
    inputs = {"logdir": logs(tmp_path, "input_py_function"), "install": "none"}
    runner.run("pull_request", "main", inputs)
    assert "Slow in every epoch" in api.comments[-1]["body"]
    runner.run("pull_request", "main", inputs | {"logdir": logs(tmp_path, "healthy")})
    assert len(api.comments) == 121
    assert api.comments[-1]["body"].startswith(MARKER) and "Healthy" in api.comments[-1]["body"]


def test_a_limit_fails_the_job_unless_it_should_not(
    runner: Runner, api: GitHub, tmp_path: Path
) -> None:
    inputs = {
        "logdir": logs(tmp_path, "input_py_function"), "install": "none",
        "fail-over": "input=20%\nstatus=stuck\n",
    }  # fmt: skip
    failed = runner.run("pull_request", "main", inputs)
    assert failed.failed and "::error title=Over the limit" in failed.log
    assert not runner.run("pull_request", "main", inputs | {"fail": "false"}).failed


def test_a_token_that_may_not_write_is_a_warning(
    runner: Runner, api: GitHub, tmp_path: Path
) -> None:
    api.allows = False
    job = runner.run(
        "pull_request", "main", {"logdir": logs(tmp_path, "healthy"), "install": "none"}
    )
    assert not job.failed and "::warning title=stall::could not comment" in job.log


def test_a_run_that_the_base_branch_does_not_have_is_not_a_failure(
    runner: Runner, api: GitHub, tmp_path: Path
) -> None:
    base = {"logdir": logs(tmp_path, "healthy", run="other"), "install": "none"}
    runner.run("push", "main", base)
    inputs = {"logdir": logs(tmp_path, "healthy"), "install": "none"}
    job = runner.run("pull_request", "main", inputs)
    assert not job.failed
    assert "::warning title=stall::Not compared with the base branch: stall-analyze: " in job.log


def test_a_mistyped_limit_is_not_blamed_on_the_base_branch(
    runner: Runner, api: GitHub, tmp_path: Path
) -> None:
    inputs = {"logdir": logs(tmp_path, "healthy"), "install": "none"}
    runner.run("push", "main", inputs)
    job = runner.run("pull_request", "main", inputs | {"fail-over": "inptu=20%"})
    assert job.failed and "'inptu' cannot be limited" in job.log
    assert "Not compared" not in job.log


def test_uses_with_different_names_in_one_job_do_not_interfere(
    runner: Runner, api: GitHub, tmp_path: Path
) -> None:
    inputs = {"logdir": logs(tmp_path, "healthy"), "install": "none"}
    runner.run("push", "main", inputs)
    inputs |= {"logdir": logs(tmp_path, "input_py_function"), "name": "other"}
    second = runner.run("push", "main", inputs, same_job=True)
    assert not second.failed and "Worse than the baseline" not in second.log


def test_a_log_directory_without_a_run_fails_and_comments_nothing(
    runner: Runner, api: GitHub, tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    inputs = {"logdir": str(tmp_path / "logs"), "install": "none"}
    job = runner.run("pull_request", "main", inputs)
    assert job.failed and "No training run found" in job.log
    assert api.comments == []


def test_a_long_report_is_cut_to_what_github_takes() -> None:
    report = "### worse\n\n| a |\n" + "\n## run\n\ntext" * 20_000
    text = shortened(report)
    assert len(text) < LONGEST + 200
    assert text.startswith("### worse") and text.endswith("</details>\n")
    assert shortened("## run\n\nall of it\n") == "## run\n\nall of it\n"
