"""What every detector must do: one suite for all of them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from stall_analyzer import detectors
from stall_analyzer.align.align import align
from stall_analyzer.detectors.manual import HEADINGS, Page, pages
from stall_analyzer.detectors.registry import DETECTORS, Detector
from stall_analyzer.discover.discover import discover
from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.pipeline import analyze
from stall_analyzer.signals.signals import Signals
from tests.detectors.training import signals_for
from tests.traces import steps, timeline_of, trainer

SAMPLES = Path(__file__).resolve().parents[1] / "sample_logs"


def found_in(signals: Signals) -> list[Finding]:
    every = (detector.check(signals) for detector in DETECTORS)
    return [finding for finding in every if finding is not None]


def test_no_module_is_left_out() -> None:
    sources = Path(detectors.__path__[0]).glob("*/*.py")
    with_a_check = {path.stem for path in sources if "\ndef check(" in path.read_text("utf-8")}
    modules = {detector.unsigned_check.__module__ for detector in DETECTORS}
    assert {module.rpartition(".")[2] for module in modules} == with_a_check


def test_ids_and_names_are_unique() -> None:
    assert len({d.id for d in DETECTORS}) == len({d.name for d in DETECTORS}) == len(DETECTORS)


def test_a_detector_signs_what_its_module_finds() -> None:
    unsigned = Finding("note", "a title", "an explanation", Change("a change"))
    nothing_known = signals_for(align([], None))
    finding = Detector("ST999", "made_up", "host", lambda _: unsigned).check(nothing_known)
    assert finding is not None
    assert (finding.id, finding.name, finding.bucket) == ("ST999", "made_up", "host")
    assert Detector("ST999", "made_up", "host", lambda _: None).check(nothing_known) is None


@pytest.mark.parametrize("page", pages(), ids=lambda page: f"{page.id}-{page.name}")
def test_the_manual_page_has_all_headings_in_order(page: Page) -> None:
    assert [line for line in page.text.splitlines() if line in HEADINGS] == list(HEADINGS)
    assert page.summary and page.summary.endswith(".")
    assert re.fullmatch(r"ST\d{3}", page.id)
    assert re.fullmatch(r"[a-z_]+", page.name)
    assert page.bucket in BUCKETS


@pytest.mark.parametrize("events", [None, EventLog({}, {}, None, None, None, None, 0)])
def test_all_are_silent_on_a_run_about_which_nothing_is_known(events: EventLog | None) -> None:
    assert found_in(signals_for(align([], events))) == []


def test_all_are_silent_on_a_healthy_run(tmp_path: Path) -> None:
    calls, work = steps(0, 20)
    healthy = timeline_of(tmp_path, trainer(calls, work))
    assert found_in(signals_for(healthy)) == []


@cache
def signals_of_sample(name: str) -> Signals:
    (run,) = discover([str(SAMPLES / name)]).runs
    return signals_for(analyze(run).timeline)


def test_the_healthy_sample_gets_notes_at_most() -> None:
    assert {finding.severity for finding in found_in(signals_of_sample("healthy"))} <= {"note"}


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir()))
def test_a_finding_keeps_its_word(sample: str) -> None:
    signals = signals_of_sample(sample)
    for finding in found_in(signals):
        assert finding.severity in ("act", "consider", "note")
        gain, lost = finding.gain, finding.lost_ps
        blamed = sum(signals.buckets_ps[bucket] for bucket in finding.blames)
        assert 0 <= gain.low_ps <= gain.high_ps <= max(lost, blamed) <= signals.window_ps
        assert finding.bucket != "input" or lost <= signals.buckets_ps["input"]
        assert 0 < finding.confidence <= 1
        assert finding.title and finding.explanation and finding.change.text
        for piece in finding.evidence:
            assert 0 <= piece.start_ps <= piece.end_ps <= signals.window_ps
        for text in (finding.title, finding.explanation, finding.change.text):
            assert not re.search(r"</?[a-z]+>", text), "markup belongs to the views"
