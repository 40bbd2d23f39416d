"""The scorer itself: it must not let a wrong answer pass."""

from __future__ import annotations

from typing import Any

import pytest

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
