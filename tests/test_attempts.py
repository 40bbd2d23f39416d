"""Restarts that wrote to one folder, and which profile session belongs to which of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stall_analyzer.discover.discover import discover
from tests import captures, corpus
from tests.event_files import file_name
from tests.logdirs import NOON, PROFILE, lay_out, texts


def attempts_of(root: str) -> list[tuple[list[str], list[str]]]:
    """For each attempt, the names of its event files and sessions."""
    return [
        (
            [Path(file.path).name for file in run.event_files],
            [Path(session.path).name for session in run.sessions],
        )
        for run in discover([root]).runs
    ]


def test_restarts_are_attempts_and_take_their_validation_with_them(tmp_path: Path) -> None:
    first, second = file_name(NOON, pid=1), file_name(NOON + 100, pid=2)
    # The first process validated after the second had begun.
    first_validation = file_name(NOON + 150, pid=1, n=1)
    second_validation = file_name(NOON + 160, pid=2, n=1)
    root = lay_out(
        tmp_path,
        f"train/{first}", f"train/{second}",
        f"validation/{first_validation}", f"validation/{second_validation}",
    )  # fmt: skip
    assert attempts_of(root) == [([first, first_validation], []), ([second, second_validation], [])]
    discovery = discover([root])
    assert [(run.name, run.attempt) for run in discovery.runs] == [(".", 1), (".", 2)]
    assert "2 attempts" in discovery.notes[0].text


def test_a_second_fit_in_the_same_process_is_not_a_restart(tmp_path: Path) -> None:
    first, second = file_name(NOON), file_name(NOON + 60, n=2)
    session = "2023_11_15_12_02_00"  # over both, exported at the end
    trace = f"{PROFILE}/{session}/box.xplane.pb"
    root = lay_out(tmp_path, f"train/{first}", f"train/{second}", trace)
    assert attempts_of(root) == [([first, second], [session])]


def test_a_process_continues_although_another_has_begun_in_the_meantime(tmp_path: Path) -> None:
    one, other = file_name(NOON, pid=1), file_name(NOON + 60, pid=2)
    again = file_name(NOON + 90, pid=1, n=2)
    root = lay_out(tmp_path, *(f"train/{name}" for name in (one, other, again)))
    assert attempts_of(root) == [([one, again], []), ([other], [])]


def test_a_restart_with_the_same_pid_numbers_its_files_from_0_again(tmp_path: Path) -> None:
    """In a container, the training always has the same pid."""
    first, second = file_name(NOON, pid=1, n=0), file_name(NOON + 60, pid=1, n=0)
    root = lay_out(tmp_path, f"train/{first}", f"train/{second}")
    assert attempts_of(root) == [([first], []), ([second], [])]


def test_two_writers_that_began_together_are_one_attempt(tmp_path: Path) -> None:
    root = lay_out(tmp_path, file_name(NOON), file_name(NOON + 1, n=1))
    assert len(attempts_of(root)) == 1


def test_workers_on_other_hosts_belong_to_the_same_attempt(tmp_path: Path) -> None:
    root = lay_out(tmp_path, file_name(NOON, host="w0"), file_name(NOON + 20, host="w1", pid=9))
    (run,) = discover([root]).runs
    assert "Several hosts began event files" in texts([run])


def test_files_that_do_not_name_their_process_stay_together(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path, f"events.out.tfevents.{NOON}.box", f"events.out.tfevents.{NOON + 500}.box"
    )
    (run,) = discover([root]).runs
    assert "may be wrong" in texts([run])


INDIA = "17_30"  # noon UTC there


@pytest.mark.parametrize("evidence", ["profile-empty", "time of the file", "best fit"])
def test_sessions_in_local_time_find_their_attempt(tmp_path: Path, evidence: str) -> None:
    first, second = file_name(NOON, pid=1), file_name(NOON + 600, pid=2)
    sessions = [f"2023_11_15_{INDIA}_20", "2023_11_15_17_40_15"]
    traces = [f"train/{PROFILE}/{session}/box.xplane.pb" for session in sessions]
    root = lay_out(tmp_path, f"train/{first}", f"train/{second}", *traces)
    if evidence == "profile-empty":
        lay_out(tmp_path, f"train/events.out.tfevents.{NOON + 20}.box.profile-empty")
    if evidence == "time of the file":
        os.utime(tmp_path / traces[0], (NOON + 22, NOON + 22))
    assert attempts_of(root) == [([first], [sessions[0]]), ([second], [sessions[1]])]


def test_a_file_with_a_strange_name_begins_no_attempt(tmp_path: Path) -> None:
    root = lay_out(tmp_path, "my.tfevents", file_name(NOON))
    assert len(attempts_of(root)) == 1


def test_the_time_of_a_file_outweighs_the_best_fit(tmp_path: Path) -> None:
    """A capture of the whole first run ends long after its start, close to the second one's."""
    first, second = file_name(NOON, pid=1), file_name(NOON + 7200, pid=2)
    session = "2023_11_15_13_50_00"  # UTC, 110 minutes into the first attempt
    trace = f"{PROFILE}/{session}/box.xplane.pb"
    root = lay_out(tmp_path, f"train/{first}", f"train/{second}", trace)
    os.utime(tmp_path / trace, (NOON + 6600, NOON + 6605))
    assert attempts_of(root) == [([first], [session]), ([second], [])]


def test_sessions_without_a_time_in_their_name_go_by_order(tmp_path: Path) -> None:
    first, second = file_name(NOON, pid=1), file_name(NOON + 600, pid=2)
    root = lay_out(
        tmp_path, first, second, f"{PROFILE}/a/box.xplane.pb", f"{PROFILE}/b/box.xplane.pb"
    )
    assert attempts_of(root) == [([first], ["a"]), ([second], ["b"])]
    lay_out(tmp_path, f"{PROFILE}/c/box.xplane.pb")
    assert attempts_of(root) == [([first], []), ([second], ["a", "b", "c"])]


def test_seven_restarts_in_one_public_folder_each_with_its_session() -> None:
    runs = discover([corpus.case("L15")]).runs
    assert [run.attempt for run in runs] == [1, 2, 3, 4, 5, 6, 7]
    assert [Path(session.path).name[-8:] for run in runs for session in run.sessions] == [
        "20_23_35", "20_24_38", "20_53_59", "20_54_59", "21_04_47", "21_11_23", "21_35_23",
    ]  # fmt: skip
    assert all(len(run.sessions) == 1 for run in runs)
    # Two of them died before their first epoch ended, so they never validated.
    assert [len(run.event_files) for run in runs] == [1, 2, 1, 2, 2, 2, 2]


# ---------------------------------------------------------------- captures


def capture_name(start_s: float, pid: int, n: int = 0, host: str = "box") -> str:
    return captures.file_name(start_s, pid, host, n)


def lay_out_worker(root: Path, start_s: int, pid: int, index: int) -> str:
    name = capture_name(start_s, pid)
    (root / name).write_bytes(captures.start({"type": "worker", "index": index}, 2, pid=pid))
    return name


def test_a_capture_belongs_to_the_event_files_of_its_process(tmp_path: Path) -> None:
    """It begins before fit() does, which may take a long time: a model is built in between."""
    first, second = file_name(NOON + 40, pid=1), file_name(NOON + 300, pid=2)
    one, two = capture_name(NOON, pid=1), capture_name(NOON + 250, pid=2)
    root = lay_out(tmp_path, f"train/{first}", f"train/{second}", one, two)
    assert attempts_of(root) == [([one, first], []), ([two, second], [])]


def test_a_second_fit_of_a_captured_process_is_not_a_restart(tmp_path: Path) -> None:
    first, second = file_name(NOON + 5), file_name(NOON + 100, n=2)
    capture = capture_name(NOON, pid=100)
    root = lay_out(tmp_path, f"train/{first}", f"train/{second}", capture)
    assert attempts_of(root) == [([capture, first, second], [])]


def test_a_process_that_never_got_to_train_is_a_separate_attempt(tmp_path: Path) -> None:
    died, lived = capture_name(NOON, pid=1), capture_name(NOON + 30, pid=2)
    trained = file_name(NOON + 35, pid=2)
    root = lay_out(tmp_path, died, lived, f"train/{trained}")
    assert attempts_of(root) == [([died], []), ([lived, trained], [])]


def test_restarts_that_left_only_captures_are_told_apart(tmp_path: Path) -> None:
    first, second = capture_name(NOON, pid=1), capture_name(NOON + 30, pid=2)
    root = lay_out(tmp_path, first, second)
    assert attempts_of(root) == [([first], []), ([second], [])]


def test_a_capture_that_continues_in_a_second_file_is_one(tmp_path: Path) -> None:
    first, second = capture_name(NOON, pid=1), capture_name(NOON + 900, pid=1, n=1)
    assert attempts_of(lay_out(tmp_path, first, second)) == [([first, second], [])]


def test_workers_on_one_machine_are_one_run(tmp_path: Path) -> None:
    """Their captures say which task they are; the names of their files do not."""
    zero = lay_out_worker(tmp_path, NOON, pid=1, index=0)
    one = lay_out_worker(tmp_path, NOON + 20, pid=2, index=1)
    assert attempts_of(str(tmp_path)) == [([zero, one], [])]


def test_a_task_that_comes_again_is_a_restart(tmp_path: Path) -> None:
    names = [
        lay_out_worker(tmp_path, NOON + later, pid, index)
        for later, pid, index in ((0, 1, 0), (3, 2, 1), (90, 3, 1), (95, 4, 0))
    ]
    assert attempts_of(str(tmp_path)) == [(names[:2], []), (names[2:], [])]


def test_workers_join_the_one_that_writes_event_files(tmp_path: Path) -> None:
    zero = lay_out_worker(tmp_path, NOON, pid=1, index=0)
    one = lay_out_worker(tmp_path, NOON + 3, pid=2, index=1)
    again_zero = lay_out_worker(tmp_path, NOON + 200, pid=3, index=0)
    again_one = lay_out_worker(tmp_path, NOON + 203, pid=4, index=1)
    boards = [file_name(NOON + 20, pid=1), file_name(NOON + 220, pid=3)]
    lay_out(tmp_path, *(f"train/{board}" for board in boards))
    assert attempts_of(str(tmp_path)) == [
        ([zero, one, boards[0]], []),
        ([again_zero, again_one, boards[1]], []),
    ]


def test_processes_that_a_training_starts_are_part_of_it(tmp_path: Path) -> None:
    """Workers of a PyDataset import TensorFlow, too."""
    names = [capture_name(NOON + later, pid) for later, pid in ((0, 1), (20, 2), (40, 3))]
    for name, pid, parent in zip(names, (1, 2, 3), (0, 1, 1), strict=True):
        (tmp_path / name).write_bytes(captures.start(pid=pid, parent=parent))
    assert attempts_of(str(tmp_path)) == [(names, [])]


def test_traces_that_are_still_being_written_are_left_alone(tmp_path: Path) -> None:
    capture = capture_name(NOON, pid=1)
    root = lay_out(tmp_path, capture, f".stall-1/{PROFILE}/2023_11_15_12_00_05/box.xplane.pb")
    assert attempts_of(root) == [([capture], [])]
