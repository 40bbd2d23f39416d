"""The scorer itself: it must not let a wrong answer pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.report.document import run_document
from tests import captures, event_files
from tests.captures import GENERATOR, QUEUE, thread
from tests.detectors.stalls import MAIN_WAITS, before, stall
from tests.real_documents import analyzed
from tests.scenarios.hangs.score import judged

STUCK = {"name": "n", "status": "stuck", "bucket": "input", "place": "read", "signal": "kill"}
SLOW = {**STUCK, "status": "slow"}
DEAD = {**STUCK, "status": "dead", "bucket": "communication"}


def answer(status: str, primary: str, explanation: str = "The thread was at /x.py:3 read") -> Any:
    finding = {"id": "ST510", "explanation": explanation}
    return {"verdict": {"status": status, "primary": primary}, "findings": [finding]}


@pytest.mark.parametrize(
    ("truth", "run", "is_right"),
    [
        (STUCK, answer("stuck", "input"), True),
        (STUCK, answer("stuck", "host"), False),
        (STUCK, answer("dead", "input"), False),
        (STUCK, answer("stuck", "input", "The thread was at /x.py:9 other"), False),
        (DEAD, answer("dead", "communication", ""), True),
        (DEAD, answer("stuck", "communication"), False),
        (SLOW, answer("dead", "unknown"), True),
        (SLOW, answer("stuck", "input"), False),
    ],
)
def test_answers(truth: Any, run: Any, is_right: bool) -> None:
    assert (judged(truth, run) == "") == is_right


@pytest.mark.parametrize(
    ("place", "problem"),
    [("batches", ""), ("batch", "batch is not named"), ("read", "read is not named")],
)
def test_the_words_of_the_analyzer_name_the_place(tmp_path: Path, place: str, problem: str) -> None:
    """The stack of the blamed thread ends in `data.py:12 batches`."""
    records = before() + stall(MAIN_WAITS, thread(*QUEUE, *GENERATOR))
    path = tmp_path / captures.file_name()
    path.write_bytes(event_files.framed(event_files.file_version()) + b"".join(records))
    run: Any = run_document(analyzed(tmp_path))
    assert judged({**STUCK, "place": place}, run) == problem
