"""Patterns are regular expressions, whenever they are compiled."""

from __future__ import annotations

import re

import pytest

from stall_analyzer.model.patterns import pattern


def test_they_answer_as_compiled_ones() -> None:
    digits = pattern(r"(?P<number>\d+)")
    found = digits.search("step 12")
    assert found is not None and found["number"] == "12"
    assert digits.fullmatch("12a") is None
    assert digits.sub("n", "1 and 2") == "n and n"
    assert pattern("NAN", re.IGNORECASE).match("nan")
    assert pattern(rb"\d").search(b"a1")


def test_they_are_compiled_once_they_are_used_and_not_before() -> None:
    broken = pattern("(")
    with pytest.raises(re.error):
        broken.search("")
