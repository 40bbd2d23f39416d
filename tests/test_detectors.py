"""What every detector owes: one suite for all of them."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

import stall_analyzer.detectors
from stall_analyzer.attribute.attribute import attribute
from stall_analyzer.detectors.base import Detector, detector_of
from stall_analyzer.detectors.manual import HEADINGS
from stall_analyzer.detectors.registry import DETECTORS
from stall_analyzer.diagnose.diagnose import signals_of
from stall_analyzer.discover.discover import discover
from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.pipeline import analyze
from stall_analyzer.signals.signals import Signals
from tests.traces import TRAIN_OPS, call, host, ops, timeline_of

ROOT = Path(__file__).resolve().parents[1]
ALL = [detector_of(module) for module in DETECTORS]
each = pytest.mark.parametrize("detector", ALL, ids=lambda d: f"{d.id}-{d.name}")


def signals_for(timeline: Timeline) -> Signals:
    return signals_of(timeline, attribute(timeline))


def test_no_module_is_left_out() -> None:
    package = stall_analyzer.detectors
    families = [m.name for m in pkgutil.iter_modules(package.__path__) if m.ispkg]
    found = {
        f"{package.__name__}.{family}.{m.name}"
        for family in families
        for m in pkgutil.iter_modules([str(Path(package.__path__[0], family))])
    }
    assert found == {module.__name__ for module in DETECTORS}


def test_ids_and_names_are_unique() -> None:
    assert len({d.id for d in ALL}) == len({d.name for d in ALL}) == len(ALL)


@each
def test_the_manual_page_has_all_headings_in_order(detector: Detector) -> None:
    found = [line for line in detector.page.splitlines() if line in HEADINGS]
    assert found == list(HEADINGS)
    assert detector.summary and detector.summary.endswith(".")
    assert re.fullmatch(r"ST\d{3}", detector.id)
    assert re.fullmatch(r"[a-z_]+", detector.name)
    assert detector.bucket in BUCKETS


@each
def test_it_is_silent_on_a_run_of_which_nothing_is_known(detector: Detector) -> None:
    from stall_analyzer.align.align import align  # noqa: PLC0415

    assert detector.check(signals_for(align([], None))) is None
    empty = EventLog({}, {}, None, None, None, None, 0)
    assert detector.check(signals_for(align([], empty))) is None


@each
def test_it_is_silent_on_a_healthy_run(detector: Detector, tmp_path: Path) -> None:
    calls = [e for n in range(20) for e in call(n * 10, n * 10 + 10, run=n + 1)]
    work = [e for n in range(20) for e in ops(n * 10, n * 10 + 10, n + 1, *TRAIN_OPS)]
    healthy = timeline_of(tmp_path, host(("python", calls), ("tf_Compute", work)))
    assert detector.check(signals_for(healthy)) is None
    finding = detector.check(signals_for(analyze(_sample("healthy")).timeline))
    assert finding is None or finding.severity == "note"


@each
@pytest.mark.parametrize("sample", sorted(p.name for p in (ROOT / "sample_logs").iterdir()))
def test_a_finding_keeps_its_word(detector: Detector, sample: str) -> None:
    report = analyze(_sample(sample))
    signals = signals_for(report.timeline)
    finding = detector.check(signals)
    if finding is None:
        return
    window = signals.window_ps
    assert (finding.id, finding.name, finding.bucket) == (
        detector.id,
        detector.name,
        detector.bucket,
    )
    assert finding.severity in ("act", "consider", "note")
    assert 0 <= finding.gain.low_ps <= finding.gain.high_ps <= finding.lost_ps <= window
    assert 0 < finding.confidence <= 1
    assert finding.title and finding.explanation and finding.change.text
    for piece in finding.evidence:
        assert 0 <= piece.start_ps <= piece.end_ps <= window
    for text in (finding.title, finding.explanation, finding.change.text):
        assert not re.search(r"</?[a-z]+>", text), "markup belongs to the views"


def _sample(name: str):  # type: ignore[no-untyped-def]
    (run,) = discover([str(ROOT / "sample_logs" / name)]).runs
    return run
