"""Which files next to the logs count as the console of which run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import fsspec
import pytest

from stall_analyzer.api import analyze
from stall_analyzer.cli.main import main
from stall_analyzer.discover.console_files import MOST_FILES, with_named_console
from stall_analyzer.discover.discover import discover
from stall_analyzer.errors import UsageError
from stall_analyzer.files.caches import version_of
from stall_analyzer.model.runs import Run
from tests.console_texts import PLAIN_ERROR
from tests.event_files import file_name
from tests.logdirs import NOON, lay_out


def consoles(runs: Iterable[Run]) -> dict[str, list[str]]:
    return {run.name: [Path(c.path).name for c in run.consoles] for run in runs}


def test_a_console_in_the_folder_of_a_run_belongs_to_that_run(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path, f"a/train/{file_name()}", "a/job.out", "a/job.err", "a/notes.txt",
        f"b/{file_name()}", "b/nohup.out",
    )  # fmt: skip
    runs = discover([root]).runs
    assert consoles(runs) == {"a": ["job.err", "job.out"], "b": ["nohup.out"]}
    assert all(console.is_own for run in runs for console in run.consoles)


def test_a_console_above_is_that_of_the_only_run_below_it(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        f"one/tb/{file_name()}", "one/slurm-1.out",
        f"two/tb/train/{file_name()}", "two/slurm-2.out",
        f"both/x/{file_name()}", f"both/y/{file_name()}", "both/slurm-3.out",
    )  # fmt: skip
    assert consoles(discover([root]).runs) == {
        "one/tb": ["slurm-1.out"], "two/tb": ["slurm-2.out"], "both/x": [], "both/y": [],
    }  # fmt: skip


def test_a_console_above_several_runs_belongs_to_the_one_it_names(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path, f"resnet/{file_name()}", f"resnet2/{file_name()}", "train-resnet.log"
    )  # fmt: skip
    assert consoles(discover([root]).runs) == {"resnet": ["train-resnet.log"], "resnet2": []}


def test_next_to_a_console_that_names_the_run_others_are_those_of_other_runs(
    tmp_path: Path,
) -> None:
    root = lay_out(tmp_path, f"resnet/{file_name()}", "resnet.out", f"vgg/{file_name()}", "vgg.out")
    assert consoles(discover([str(Path(root, "resnet"))]).runs) == {".": ["resnet.out"]}


def test_a_run_inside_of_another_run_shares_no_console_with_it(tmp_path: Path) -> None:
    root = lay_out(tmp_path, file_name(), "job.out", f"inner/{file_name(n=1)}")
    assert consoles(discover([root]).runs) == {".": ["job.out"], "inner": []}


def test_the_folder_that_holds_the_logdir_is_looked_at_and_nothing_else(tmp_path: Path) -> None:
    lay_out(tmp_path, f"job/logs/run/{file_name()}", "job/slurm-7.out", "job/other/far.out")
    lay_out(tmp_path, "higher.out")
    assert consoles(discover([str(tmp_path / "job/logs")]).runs) == {"run": ["slurm-7.out"]}


def test_files_in_large_numbers_belong_to_no_single_run(tmp_path: Path) -> None:
    lay_out(tmp_path, f"logs/{file_name()}", *(f"j{n}.out" for n in range(MOST_FILES + 1)))
    assert consoles(discover([str(tmp_path / "logs")]).runs) == {".": []}


def test_event_files_pipes_and_empty_files_are_not_consoles(tmp_path: Path) -> None:
    root = lay_out(tmp_path, f"{file_name()}.out")
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / "empty.log").write_bytes(b"")
    assert consoles(discover([root]).runs) == {".": []}


def test_each_attempt_has_the_console_that_was_written_in_its_time(tmp_path: Path) -> None:
    lay_out(tmp_path, file_name(NOON), file_name(NOON + 600, pid=2), "1.out", "2.out", "old.out")
    for name, time_s in {"1.out": NOON + 300, "2.out": NOON + 900, "old.out": NOON - 900}.items():
        os.utime(tmp_path / name, (time_s, time_s))
    runs = discover([str(tmp_path)]).runs
    assert [[Path(c.path).name for c in run.consoles] for run in runs] == [["1.out"], ["2.out"]]


def test_consoles_are_found_at_a_url_as_on_a_disk() -> None:
    store = fsspec.filesystem("memory")
    for name in (f"logs/run/{file_name()}", "logs/run/job.err", "job.out"):
        store.pipe_file(f"/consoles/{name}", b"x")
    (run,) = discover(["memory://consoles/logs"]).runs
    assert [c.path for c in run.consoles] == [
        "memory://consoles/job.out", "memory://consoles/logs/run/job.err",
    ]  # fmt: skip
    assert [c.written_unix_s for c in run.consoles] == [None, None]


def test_a_console_that_grows_is_another_version_of_its_run(tmp_path: Path) -> None:
    root = lay_out(tmp_path, file_name(), "job.out")
    before = version_of(discover([root]).runs[0])
    (tmp_path / "job.out").write_text("more")
    assert version_of(discover([root]).runs[0]) != before


# ---------------------------------------------------------------- named by the user


def test_a_console_that_is_named_is_that_of_the_only_run(tmp_path: Path) -> None:
    root = lay_out(tmp_path, f"logs/run/{file_name()}", "logs/run/other.out", "far/console.txt")
    (run,) = with_named_console(discover([f"{root}/logs"]).runs, f"{root}/far/console.txt")
    assert [(c.path, c.is_named) for c in run.consoles] == [(f"{root}/far/console.txt", True)]


def test_a_named_console_belongs_to_the_run_next_to_it(tmp_path: Path) -> None:
    root = lay_out(tmp_path, f"a/{file_name()}", f"b/{file_name()}", "b/console.txt")
    runs = with_named_console(discover([root]).runs, f"{root}/b/console.txt")
    assert consoles(runs) == {"a": [], "b": ["console.txt"]}


@pytest.mark.parametrize(
    ("console", "reason"),
    [
        ("console.txt", "is not next to any of the runs"),
        ("gone.txt", "does not exist"),
        ("a", "cannot be read"),
    ],
)
def test_a_named_console_that_cannot_be_placed_or_read_is_refused(
    tmp_path: Path, console: str, reason: str
) -> None:
    root = lay_out(tmp_path, f"a/{file_name()}", f"b/{file_name()}", "console.txt")
    with pytest.raises(UsageError, match=reason):
        analyze(root, console=f"{root}/{console}")


def test_on_the_command_line_it_is_that_of_the_run_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = lay_out(tmp_path, f"logs/a/{file_name()}", f"logs/b/{file_name()}")
    (tmp_path / "console.txt").write_text(PLAIN_ERROR)
    command = [f"{root}/logs", "--console", f"{root}/console.txt", "--store", f"{root}/store"]
    assert main(command) == 2
    assert "is not next to any of the runs" in capsys.readouterr().err
    main([*command, "--run", "a"])
    assert "FileNotFoundError: [Errno 2] No such file" in capsys.readouterr().out
