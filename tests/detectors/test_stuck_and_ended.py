"""What is said first about a stuck run: whether its process is still there to look at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests import captures as write
from tests.captures import NS, START_NS
from tests.detectors.stalls import STARVED, before, judged, stall

ENDED_S = 31.0
NEVER = "is waiting in queue.Queue.get() and will never continue."


def said_of_its_end(folder: Path, *end: bytes, read_s: float = 1000.0) -> str:
    log = write.read(folder, [*before(), *stall(*STARVED), *end])
    verdict = judged(replace(log, read_ns=START_NS + round(read_s * NS)))[2]
    assert verdict.status == "stuck"
    return verdict.sentence.partition(NEVER)[2].strip()


def test_a_process_that_was_told_to_end_is_not_there_anymore(tmp_path: Path) -> None:
    end = write.record("end", ENDED_S, reason="sigterm")
    assert said_of_its_end(tmp_path, end) == (
        "The process ended at 2023-11-14 22:13:51: it received SIGTERM."
    )


def test_a_process_that_wrote_no_end_was_killed(tmp_path: Path) -> None:
    assert said_of_its_end(tmp_path) == (
        "The process was killed: its last record is from 2023-11-14 22:13:49."
    )


def test_a_process_that_still_writes_was_running_then(tmp_path: Path) -> None:
    assert said_of_its_end(tmp_path, read_s=30.0) == (
        "The process was still running at 2023-11-14 22:13:49."
    )


@pytest.mark.parametrize("ended", [True, False])
def test_the_finding_and_the_verdict_say_the_same(tmp_path: Path, ended: bool) -> None:
    end = [write.record("end", ENDED_S, reason="sigterm")] if ended else []
    log = replace(
        write.read(tmp_path, [*before(), *stall(*STARVED), *end]), read_ns=START_NS + 1000 * NS
    )
    _, finding, verdict = judged(log)
    assert finding is not None
    assert finding.explanation.endswith(verdict.sentence.partition(NEVER)[2].strip())
