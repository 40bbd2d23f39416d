"""An epoch that was profiled in samples: what they say about the rest, and when they say
nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from stall_analyzer.align.align import align
from stall_analyzer.captures.capture_records import Environment, MarkRecord, WindowRecord
from stall_analyzer.decode.decode import read_trace
from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.event_log import Capture, Series
from stall_analyzer.model.findings import Change, Finding, Gain, Report
from stall_analyzer.model.runs import HostFile, ProfileSession
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.units import PS_PER_MS, PS_PER_S
from stall_analyzer.report.document import run_document
from stall_analyzer.signals.sampled import over_the_epoch
from tests.captures import START_NS, log
from tests.detectors.training import diagnosed, signals_for
from tests.traces import TRAIN_OPS, call, clock, ops, trainer, wait
from tests.xspace import Event, space

STEP_MS = 20.0
STEPS = 1000
WINDOWS = (0, 300, 600, 900)  # the step at which each begins
WIDTH = 20


def profile(folder: Path, first: int, input_ms: float) -> Trace:
    """Steps that wait for input and then compute, profiled from the given one on."""
    python: list[Event] = []
    work: list[Event] = []
    for number in range(WIDTH):
        at, run = number * STEP_MS, first + number + 1
        ready = at + input_ms
        python += call(at, at + STEP_MS, run=run)
        work += [*wait(at, ready, run), *ops(ready, at + STEP_MS, run, *TRAIN_OPS)]
    begin_ns = START_NS + round(first * STEP_MS * 1e6)
    path = folder / f"{first}.xplane.pb"
    lines = trainer(python, work)
    path.write_bytes(space(lines, clock(begin_ns, WIDTH * STEP_MS / 1e3)))
    return read_trace(HostFile("box", str(path), "xplane", path.stat().st_size))


def epoch(
    folder: Path,
    windows: Sequence[int] = WINDOWS,
    input_ms: Sequence[float] = (12.0,) * 4,
    slow_step: int | None = None,
    reason: str = "sample",
    own_s: float | None = None,
) -> Timeline:
    """The ends of all steps are known, and some of the steps were profiled."""
    lengths = np.full(STEPS, STEP_MS)
    if slow_step is not None:
        lengths[slow_step] = 50 * STEP_MS
    ends_ns = START_NS + np.cumsum(lengths * 1e6).astype(np.int64)
    marks = (
        MarkRecord(START_NS, "epoch_begin", 0, 0, own_s=own_s and 0.25),
        MarkRecord(int(ends_ns[-1]), "epoch_end", 0, STEPS, own_s=own_s and own_s + 0.25),
    )
    saved = tuple(WindowRecord(START_NS, "saved", reason, session=str(n)) for n in windows)
    capture = Capture(
        environment=Environment(host="box"),
        marks=marks,
        windows=saved,
        last_ns=int(ends_ns[-1]),
        series={"step_seconds": Series(np.arange(STEPS), ends_ns, lengths / 1e3)},
    )
    traces = [
        (ProfileSession(str(first), "", ()), profile(folder, first, ms))
        for first, ms in zip(windows, input_ms, strict=False)
    ]
    return align(traces, log(capture))


def test_the_rest_of_the_epoch_is_estimated_from_its_samples(tmp_path: Path) -> None:
    signals = signals_for(epoch(tmp_path))
    sample = signals.estimate
    assert sample is not None
    assert sample.steps == STEPS
    assert sample.profiled_steps == 17 + 3 * 19  # without warm steps and the first of each window
    likely = sample.ledger.buckets_ps
    assert sum(likely.values()) == signals.window_ps, "time is conserved"
    assert likely["input"] / signals.window_ps == pytest.approx(0.6, abs=0.01)
    exact = signals.host.ledger.buckets_ps
    assert exact["input"] == 4 * WIDTH * 12 * PS_PER_MS, "the ledger knows what was traced"
    assert exact["unknown"] == signals.window_ps - 4 * WIDTH * 20 * PS_PER_MS


@pytest.mark.parametrize("windows", [WINDOWS, (0,)])
def test_what_the_capture_took_between_its_windows_is_none_of_the_steps(
    tmp_path: Path, windows: Sequence[int]
) -> None:
    without = signals_for(epoch(tmp_path, windows)).estimate
    billed = signals_for(epoch(tmp_path, windows, own_s=2.0)).estimate
    assert without is not None and billed is not None
    assert "profiler.capture" not in {c for c, ps in without.ledger.causes_ps.items() if ps}
    assert billed.ledger.causes_ps["profiler.capture"] == pytest.approx(2 * PS_PER_S, rel=1e-6)
    assert billed.ledger.buckets_ps["input"] < without.ledger.buckets_ps["input"]
    assert billed.ledger.bounds_ps[-1] == without.ledger.bounds_ps[-1], "time is conserved"


def test_the_verdict_rests_on_the_estimate_and_says_so(tmp_path: Path) -> None:
    diagnosis = diagnosed(epoch(tmp_path))
    verdict = diagnosis.verdict
    assert (verdict.status, verdict.primary) == ("slow_always", "input")
    assert "estimated from 74 profiled steps out of 1,000" in verdict.sentence
    assert 0.8 < verdict.confidence < 0.95, "surer than nothing, less sure than a whole trace"
    window_ps = diagnosis.timeline.window.duration_ps
    assert sum(diagnosis.ledger.buckets_ps[b] for b in BUCKETS) == window_ps


def sampled_report(folder: Path) -> Report:
    return diagnosed(epoch(folder))


def test_the_document_keeps_the_estimate_apart(tmp_path: Path) -> None:
    told_run = run_document(sampled_report(tmp_path))
    estimate = told_run["estimate"]
    assert estimate is not None
    assert told_run["captured"], "by the callback, in windows"
    assert (estimate["profiled_steps"], estimate["steps"]) == (74, STEPS)
    assert sum(estimate["buckets_ps"].values()) == told_run["window"]["duration_ps"]
    assert sum(told_run["buckets_ps"].values()) == told_run["window"]["duration_ps"]
    assert told_run["buckets_ps"]["unknown"] > 10 * estimate["buckets_ps"]["unknown"]


def test_windows_that_disagree_are_doubted(tmp_path: Path) -> None:
    even = signals_for(epoch(tmp_path)).estimate
    uneven = signals_for(epoch(tmp_path, input_ms=(2.0, 16.0, 2.0, 16.0))).estimate
    assert even is not None and uneven is not None
    widths = [e.ranges["input"].high_ps - e.ranges["input"].low_ps for e in (even, uneven)]
    assert widths[1] > 2 * widths[0]


def test_no_bucket_may_hold_less_than_was_traced(tmp_path: Path) -> None:
    """However much the windows disagree."""
    signals = signals_for(epoch(tmp_path, input_ms=(0.0, 19.0, 0.0, 0.0)))
    assert signals.estimate is not None
    for bucket, traced_ps in signals.buckets_ps.items():
        assert bucket == "unknown" or signals.estimate.ranges[bucket].low_ps >= traced_ps


def test_a_step_unlike_all_that_were_seen_stays_unknown(tmp_path: Path) -> None:
    usual = signals_for(epoch(tmp_path)).estimate
    one_slow = signals_for(epoch(tmp_path, slow_step=450)).estimate
    assert usual is not None and one_slow is not None
    assert one_slow.estimated_ps < usual.estimated_ps
    unknown = one_slow.ledger.buckets_ps["unknown"]
    assert unknown >= 50 * STEP_MS * PS_PER_MS


@pytest.mark.parametrize(
    ("windows", "reason"),
    [
        ((0, 300), "sample"),  # too few
        ((0, 30, 60), "sample"),  # the rest was not sampled
        (WINDOWS, "slow_step"),  # not taken at random
    ],
)
def test_too_little_is_not_a_sample(tmp_path: Path, windows: Sequence[int], reason: str) -> None:
    """The epoch is still estimated, by more cautious rules."""
    signals, sampled = signals_for(epoch(tmp_path, windows, reason=reason)), epoch(tmp_path)
    assert signals.sample is None
    rough, fine = signals.estimate, signals_for(sampled).sample
    assert rough is not None and fine is not None
    widths = [e.ranges["input"].high_ps - e.ranges["input"].low_ps for e in (fine, rough)]
    assert widths[1] > widths[0]


def test_steps_that_were_profiled_for_being_slow_are_not_usual_ones(tmp_path: Path) -> None:
    estimate = signals_for(epoch(tmp_path, reason="slow_step")).estimate
    assert estimate is not None
    assert estimate.profiled_steps == 0
    assert "No typical step was profiled" in estimate.rests_on[0]


def test_what_is_found_in_the_profiled_steps_is_scaled_to_all(tmp_path: Path) -> None:
    diagnosis = diagnosed(epoch(tmp_path))
    window_ps = diagnosis.timeline.window.duration_ps
    for finding in diagnosis.findings:
        assert finding.id != "ST411", "samples are enough"
        if finding.estimated:
            assert finding.lost_ps > diagnosis.ledger.buckets_ps[finding.bucket]
            assert finding.lost_ps <= window_ps
            assert "profiled steps" in finding.explanation
            assert all(e.end_ps <= window_ps for e in finding.evidence)


def test_a_scaled_cost_is_no_more_than_its_bucket_may_hold(tmp_path: Path) -> None:
    signals = signals_for(epoch(tmp_path))
    assert signals.estimate is not None
    all_of_it = Finding(
        "act", "a title", "why", Change("a change"), lost_ps=signals.window_ps,
        later_gain=Gain(0, signals.window_ps), blames=("input",),
    )  # fmt: skip
    scaled = over_the_epoch(all_of_it, signals, signals.estimate)
    assert scaled.lost_ps == signals.estimate.ranges["input"].high_ps
    assert scaled.later_gain.high_ps <= signals.window_ps - signals.estimate.ledger.one_time_ps()


def test_shares_of_the_profiled_steps_are_not_called_shares_of_the_epoch(tmp_path: Path) -> None:
    signals = signals_for(epoch(tmp_path))
    assert signals.estimate is not None
    said = "It took 1 s (9% of the first epoch) of the first epoch's 2 s."
    found = Finding("act", "a title", said, Change("a change"), blames=("input",))
    scaled = over_the_epoch(found, signals, signals.estimate)
    assert scaled.explanation.startswith(
        "It took 1 s (9% of the profiled time) of the profiled 2 s."
    )
