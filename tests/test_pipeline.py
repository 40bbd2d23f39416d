"""A stage that fails costs what it reads, never the run."""

from __future__ import annotations

from typing import NoReturn

import pytest

from stall_analyzer import pipeline
from stall_analyzer.discover.discover import discover
from stall_analyzer.model.findings import Report
from tests.real_documents import ROOT


def fails(*_: object) -> NoReturn:
    raise ZeroDivisionError("division by zero")


def analyzed() -> Report:
    [run] = discover([str(ROOT / "sample_logs" / "input_py_function")]).runs
    return pipeline.analyze(run)


def test_without_its_event_files_a_trace_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "read_events", fails)
    report = analyzed()
    assert report.verdict.primary == "input"
    assert any("The event files could not be read" in note.text for note in report.notes)


def test_without_its_trace_event_files_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "read_trace", fails)
    report = analyzed()
    assert report.timeline.window.epoch is not None
    assert any("This is a bug in stall-analyze" in note.text for note in report.notes)
