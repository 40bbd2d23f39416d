"""Which runs, sessions and attempts are found in tidy and in messy logdirs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest

from stall_analyzer.captures.how_to_capture import HOW_TO_GO_ON
from stall_analyzer.discover.discover import discover, stream_runs
from stall_analyzer.errors import NothingFound
from tests import corpus
from tests.event_files import file_name
from tests.logdirs import NOON, PROFILE, lay_out, names, session_ids, texts

# ---------------------------------------------------------------- names


def test_train_and_validation_are_one_run_named_as_tensorboard_names_its_folder(
    tmp_path: Path,
) -> None:
    root = lay_out(
        tmp_path,
        f"a/b/train/{file_name()}", f"a/b/validation/{file_name(n=1)}", f"c/{file_name()}",
    )  # fmt: skip
    first, second = discover([root]).runs
    assert (first.name, [file.role for file in first.event_files]) == (
        "a/b", ["train", "validation"],
    )  # fmt: skip
    assert (second.name, [file.role for file in second.event_files]) == ("c", ["run"])


def test_the_logdir_itself_is_called_dot(tmp_path: Path) -> None:
    root = lay_out(tmp_path, f"train/{file_name()}", f"{PROFILE}/s1/box.xplane.pb")
    (run,) = discover([root]).runs
    assert (run.name, run.path) == (".", root)


def test_a_train_folder_given_by_itself_is_still_training(tmp_path: Path) -> None:
    lay_out(tmp_path, f"train/{file_name()}")
    (run,) = discover([str(tmp_path / "train")]).runs
    assert (run.name, run.event_files[0].role) == (".", "train")


def test_sessions_are_named_as_the_profile_plugin_names_them(tmp_path: Path) -> None:
    profile_plugin = pytest.importorskip("xprof.profile_plugin")
    root = lay_out(
        tmp_path,
        f"{PROFILE}/s1/box.xplane.pb", f"train/{PROFILE}/s2/box.xplane.pb",
        f"a/b c/train/{PROFILE}/s.3/box.xplane.pb", f"a/new/{PROFILE}/s4/box.xplane.pb",
    )  # fmt: skip
    context = SimpleNamespace(
        logdir=root, data_provider=None, flags=SimpleNamespace(master_tpu_unsecure_channel="")
    )
    shown = set(profile_plugin.ProfilePlugin(context).generate_runs())
    assert len(shown) == 4
    assert {session.id for run in discover([root]).runs for session in run.sessions} == shown


def test_a_linked_file_is_found_under_the_name_given(tmp_path: Path) -> None:
    lay_out(tmp_path, "real.xplane.pb")
    (tmp_path / "link.xplane.pb").symlink_to(tmp_path / "real.xplane.pb")
    (run,) = discover([str(tmp_path / "link.xplane.pb")]).runs
    assert run.sessions[0].hosts[0].path == str(tmp_path / "link.xplane.pb")


def test_several_paths_are_told_apart_by_their_last_components(tmp_path: Path) -> None:
    root = lay_out(tmp_path, f"x/logs/{file_name()}", f"y/logs/r/{file_name()}")
    discovery = discover([f"{root}/x/logs", f"{root}/y/logs"])
    assert names(discovery.runs) == ["x/logs", "y/logs/r"]
    assert names(discover([f"{root}/x", f"{root}/y"]).runs) == ["x/logs", "y/logs/r"]


# ---------------------------------------------------------------- any path


SESSION = f"run/{PROFILE}/2023_11_15_12_00_00"


@pytest.mark.parametrize(
    "given", [SESSION, f"{SESSION}/box.xplane.pb", f"run/{PROFILE}", "run/plugins"]
)
def test_a_path_inside_a_logdir_gives_the_bare_session(tmp_path: Path, given: str) -> None:
    lay_out(tmp_path, f"{SESSION}/box.xplane.pb")
    (run,) = discover([str(tmp_path / given)]).runs
    assert (run.name, session_ids([run])) == (".", [["2023_11_15_12_00_00"]])


def test_a_trace_outside_of_any_logdir(tmp_path: Path) -> None:
    root = lay_out(tmp_path, "box.1.xplane.pb")
    (run,) = discover([f"{root}/box.1.xplane.pb"]).runs
    (session,) = run.sessions
    assert (session.id, session.hosts[0].host, session.hosts[0].size) == ("box.1", "box.1", 1)
    assert session_ids(discover([root]).runs) == [[tmp_path.name]]


def test_an_event_file_given_by_itself(tmp_path: Path) -> None:
    root = lay_out(tmp_path, f"train/{file_name()}", f"train/{file_name(pid=7)}")
    (run,) = discover([f"{root}/train/{file_name()}"]).runs
    assert [(file.role, Path(file.path).name) for file in run.event_files] == [
        ("train", file_name())
    ]


def test_urls_are_read_through_fsspec() -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe(f"/logs/r/train/{file_name()}", b"abc")
    memory.pipe(f"/logs/r/{PROFILE}/s/box.xplane.pb", b"x")
    try:
        (run,) = discover(["memory://logs"]).runs
    finally:
        memory.rm("/logs", recursive=True)
    assert (run.name, run.event_files[0].size) == ("r", 3)
    assert run.sessions[0].hosts[0].path == f"memory://logs/r/{PROFILE}/s/box.xplane.pb"


def test_local_paths_do_not_import_fsspec(tmp_path: Path) -> None:
    root = lay_out(tmp_path, file_name())
    program = (
        "import sys; from stall_analyzer.discover.discover import discover; "
        "discover(sys.argv[1:]); sys.exit('fsspec' in sys.modules)"
    )
    source = str(Path(__file__).resolve().parents[1] / "analyzer")
    assert subprocess.run(
        [sys.executable, "-c", program, root], env={"PYTHONPATH": source}, check=False
    ).returncode == 0  # fmt: skip


# ---------------------------------------------------------------- nothing, and bad things


def test_nothing_found_says_what_was_looked_for_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NothingFound) as caught:
        discover([str(tmp_path), str(tmp_path / "absent")])
    message = str(caught.value)
    assert f"{tmp_path / 'absent'} could not be read: it does not exist." in message
    assert "xplane.pb" in message
    assert message.splitlines()[1:] == [HOW_TO_GO_ON]


def test_a_misspelled_path_gets_a_suggestion(tmp_path: Path) -> None:
    (tmp_path / "experiments").mkdir()
    with pytest.raises(NothingFound, match=r"did you mean .*/experiments\?"):
        discover([str(tmp_path / "expriments" / "run1")])
    with pytest.raises(NothingFound, match="it does not exist\\.\n"):
        discover([str(tmp_path / "logs")])


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5000])
def test_an_impossible_path_is_a_reason_not_a_traceback(path: str) -> None:
    with pytest.raises(NothingFound, match="could not be read"):
        discover([path])


def test_a_leftover_marker_of_a_deleted_session_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(NothingFound):
        discover([lay_out(tmp_path, f"events.out.tfevents.{NOON}.box.profile-empty")])


def test_a_pipe_is_noted_and_not_opened(tmp_path: Path) -> None:
    root = lay_out(tmp_path, f"{PROFILE}/s/box.xplane.pb")
    os.mkfifo(tmp_path / PROFILE / "s" / "pipe.xplane.pb")
    (run,) = discover([root]).runs
    assert [host.host for host in run.sessions[0].hosts] == ["box"]
    assert "not a regular file" in texts([run])


def test_one_missing_path_does_not_hide_the_others(tmp_path: Path) -> None:
    root = lay_out(tmp_path, f"a/{file_name()}")
    discovery = discover([f"{root}/a", f"{root}/b"])
    assert names(discovery.runs) == ["a"]
    assert [note.level for note in discovery.notes] == ["error"]


def test_an_unknown_kind_of_url_is_a_reason_not_a_traceback() -> None:
    with pytest.raises(NothingFound, match="nosuch"):
        discover(["nosuch://bucket/logs"])


def test_a_foreign_file_is_named_as_such(tmp_path: Path) -> None:
    root = lay_out(tmp_path, "notes.txt")
    with pytest.raises(NothingFound, match="neither a trace"):
        discover([f"{root}/notes.txt"])


def test_caches_of_the_profile_plugin_are_not_hosts(tmp_path: Path) -> None:
    session = f"{PROFILE}/s"
    root = lay_out(
        tmp_path,
        f"{session}/box.xplane.pb", f"{session}/box.trace.json.gz", f"{session}/old.trace.json.gz",
        f"{session}/.cached_tools.json", f"{session}/ALL_HOSTS.op_stats_v2.pb",
        f"{session}/jit_f.hlo_proto.pb", f"{session}/box.SSTABLE",
        f"{session}/box.memory_profile.json.gz",
    )  # fmt: skip
    (session_found,) = discover([root]).runs[0].sessions
    assert [(host.host, host.format) for host in session_found.hosts] == [
        ("box", "xplane"), ("old", "trace_json"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("local.trace", "TensorFlow 2.0 and 2.1"),
        ("box.xplane.riegeli", "riegeli"),
        ("box.overview_page.pb", "converted from a trace"),
        ("", "may still be running"),
    ],
)
def test_a_session_without_a_readable_trace_is_noted(
    tmp_path: Path, file: str, reason: str
) -> None:
    (run,) = discover([lay_out(tmp_path, f"r/{PROFILE}/s1/{file}")]).runs
    assert run.sessions == ()
    assert "session r/s1 cannot be read" in texts([run])
    assert reason in texts([run])


def test_an_empty_trace_gives_way_to_the_old_one_and_is_noted(tmp_path: Path) -> None:
    root = lay_out(tmp_path, f"{PROFILE}/s/box.trace.json.gz")
    (tmp_path / PROFILE / "s" / "box.xplane.pb").touch()
    (run,) = discover([root]).runs
    assert [host.format for host in run.sessions[0].hosts] == ["trace_json"]
    assert "A trace file is empty." in texts([run])


def test_an_empty_event_file_still_shows_that_a_process_began(tmp_path: Path) -> None:
    (tmp_path / file_name()).touch()
    (run,) = discover([str(tmp_path)]).runs
    assert [file.size for file in run.event_files] == [0]
    assert "has not done so yet" in texts([run])


def test_links_in_a_circle_end_and_a_run_keeps_its_own_name(tmp_path: Path) -> None:
    root = lay_out(tmp_path, f"runs/r1/{file_name()}")
    (tmp_path / "runs" / "r1" / "up").symlink_to(tmp_path)
    (tmp_path / "latest").symlink_to(tmp_path / "runs" / "r1")
    (tmp_path / "itself").symlink_to(tmp_path / "itself")
    assert names(discover([root]).runs) == ["runs/r1"]


def test_a_linked_run_is_found(tmp_path: Path) -> None:
    lay_out(tmp_path / "elsewhere", file_name())
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "r1").symlink_to(tmp_path / "elsewhere")
    assert names(discover([str(tmp_path / "logs")]).runs) == ["r1"]


def test_a_folder_that_may_not_be_read_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = lay_out(tmp_path, f"a/{file_name()}", f"secret/{file_name()}")
    real_scandir = os.scandir

    def scandir(path: str) -> object:
        if path.endswith("secret"):
            raise PermissionError(13, "Permission denied", path)
        return real_scandir(path)

    monkeypatch.setattr(os, "scandir", scandir)
    discovery = discover([root])
    assert names(discovery.runs) == ["a"]
    assert "permission denied" in discovery.notes[0].text


# ---------------------------------------------------------------- one after another


def test_a_run_is_returned_before_the_next_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = lay_out(tmp_path, f"a/train/{file_name()}", f"b/{file_name()}", f"c/d/{file_name()}")
    looked_into: list[str] = []
    real_scandir = os.scandir

    def scandir(path: str) -> object:
        looked_into.append(Path(path).name)
        return real_scandir(path)

    monkeypatch.setattr(os, "scandir", scandir)
    runs = stream_runs([root], [])
    assert next(runs).name == "a"
    assert "c" not in looked_into
    assert names(runs) == ["b", "c/d"]


@pytest.mark.parametrize("link", ["run/train", "run/plugins", f"run/{PROFILE}", f"run/{PROFILE}/s"])
def test_a_run_waits_for_the_links_below_it(tmp_path: Path, link: str) -> None:
    """Links come last, and this one leads to a part of the run."""
    whole = lay_out(
        tmp_path / "whole", f"run/train/{file_name()}", f"run/{PROFILE}/s/box.xplane.pb"
    )
    lay_out(tmp_path / "whole", f"z/{file_name()}")
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "whole" / link).rename(elsewhere)
    (tmp_path / "whole" / link).symlink_to(elsewhere)
    runs = discover([whole]).runs
    assert names(runs) == ["run", "z"]
    assert (len(runs[0].event_files), len(runs[0].sessions)) == (1, 1)


def test_the_newest_file_tells_when_a_run_changed(tmp_path: Path) -> None:
    root = lay_out(tmp_path, f"train/{file_name()}", f"{PROFILE}/s/box.xplane.pb")
    os.utime(tmp_path / "train" / file_name(), (NOON, NOON))
    os.utime(tmp_path / PROFILE / "s" / "box.xplane.pb", (NOON + 60, NOON + 60))
    (run,) = discover([root]).runs
    assert run.changed_unix_s == NOON + 60


# ---------------------------------------------------------------- public logs


@pytest.mark.parametrize(
    ("case", "reason", "runs"),
    [("L02", "converted from a trace", 1), ("L11", "2.0 and 2.1", 9), ("L12", "2.0 and 2.1", 3)],
)
def test_public_sessions_without_a_raw_trace(case: str, reason: str, runs: int) -> None:
    found = discover([corpus.case(case)]).runs
    assert len(found) == runs
    assert all(run.sessions == () and reason in texts([run]) for run in found)


@pytest.mark.parametrize(("case", "runs"), [("L14", 1), ("L17", 4)])
def test_public_keras_runs_have_one_session_below_train(case: str, runs: int) -> None:
    found = discover([corpus.case(case)]).runs
    assert len(found) == runs
    for run in found:
        (session,) = run.sessions
        assert session.id == f"{run.name}/train/{Path(session.path).name}"
        assert [host.format for host in session.hosts] == ["xplane"]


def test_an_evaluation_folder_is_a_separate_run() -> None:
    assert names(discover([corpus.case("L22")]).runs) == ["testdata", "testdata/eval"]
