"""Later epochs that are slower than the first: nothing in the first says how they would end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stall_analyzer.diagnose.diagnose import diagnose
from stall_analyzer.report import markdown
from stall_analyzer.report.document import document, run_document
from stall_analyzer.report.words import worth
from tests.contradictions import contradictions
from tests.real_documents import report_of


def page(times_the_first: float) -> Any:
    """A sample whose input holds up every epoch, with later epochs of this length."""
    report = report_of("input_py_function")
    later_ps = round(times_the_first * report.timeline.window.duration_ps)
    timeline = replace(report.timeline, later_epochs_ps=(later_ps,))
    return run_document(diagnose(report.run, timeline, report.hosts))


@pytest.mark.parametrize("times_the_first", [0.85, 1.2])
def test_epochs_about_as_long_as_the_first_are_forecast(times_the_first: float) -> None:
    entry = page(times_the_first)
    assert entry["plan"]["later_epoch_ps"] is not None
    assert "at least" not in worth(entry["findings"][0])
    assert entry["notes"] == []
    assert contradictions(entry) == []


def test_slower_ones_are_promised_the_least_and_not_forecast() -> None:
    entry = page(3.0)
    assert entry["plan"]["later_epoch_ps"] is None
    assert worth(entry["findings"][0]).endswith(
        "the change should save 862 ms to 1.71 s, and at least 862 ms in each later epoch"
    )
    assert contradictions(entry) == []


def test_it_is_said_that_the_reason_was_not_recorded() -> None:
    (note,) = page(3.0)["notes"]
    assert note["text"] == (
        "Later epochs took 6.03 s, longer than the first (2.01 s), for reasons that were not "
        "recorded. What a change saves in them is therefore given as a minimum."
    )


def test_without_a_least_nothing_is_promised() -> None:
    entry = page(3.0)
    entry["findings"][0]["later_gain_ps"]["low"] = 0
    assert "and an unknown amount in each later epoch" in markdown.render(document([entry]))
