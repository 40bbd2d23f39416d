"""How sure a verdict from an estimate is: "Probably", or a list of candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from stall_analyzer.diagnose.how_sure import MOST_CANDIDATES, MOST_SURE, weighed
from stall_analyzer.diagnose.primary import ACT_SHARE, ACTIONABLE
from stall_analyzer.model.causes import BUCKETS, CAUSES, bucket_of, code
from stall_analyzer.model.estimate import Estimate, Range
from stall_analyzer.model.findings import Verdict
from stall_analyzer.model.kinds import Bucket, Status
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.timeline import Phase, Timeline, Window
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.signals import Signals
from tests import event_files
from tests.detectors.training import diagnosed
from tests.ordinary_logs import KerasLog
from tests.test_estimate import KERAS, profile
from tests.test_foreign import START_S, analyzed, loss, version

WINDOW_S = 10
Known = Mapping[Bucket, tuple[float, float, float]]  # low, likely, high, in seconds


def estimate_of(known: Known) -> Estimate:
    likely = {bucket: known.get(bucket, (0.0, 0.0, 0.0)) for bucket in BUCKETS}
    causes = [next(c for c in CAUSES if bucket_of(c) == bucket) for bucket in BUCKETS]
    bounds = np.cumsum([0, *(round(s * PS_PER_S) for _, s, _ in likely.values())])
    ledger = Ledger(bounds, np.array(list(map(code, causes)), np.uint8), np.zeros(9, np.bool_))
    ranges = {
        b: Range(round(lo * PS_PER_S), round(hi * PS_PER_S)) for b, (lo, _, hi) in likely.items()
    }
    return Estimate(ledger, ranges, ("…",), 9 * PS_PER_S, 1, None)


def weigh(
    primary: Bucket,
    known: Known,
    phases: tuple[Phase, ...] = (),
    later_s: float | None = None,
    status: Status = "slow_always",
) -> Verdict:
    """What a verdict that blames `primary` for most of ten seconds becomes."""
    window = Window(0, WINDOW_S * PS_PER_S, "", "")
    signals = SimpleNamespace(
        estimate=estimate_of(known),
        window_ps=window.duration_ps,
        timeline=Timeline(window, (), (), phases, (), None),
        later_epoch_ps=None if later_s is None else round(later_s * PS_PER_S),
        keras=object(),
    )
    said = Verdict(status, primary, "Slow in every epoch: it is.", 0.9)
    return weighed(said, cast(Signals, signals), ACTIONABLE, ACT_SHARE)


SURE: Known = {"input": (6, 7, 8), "compute": (1, 2, 3), "host": (0.5, 1, 1.5)}
UNSURE: Known = {"input": (1, 4, 7), "host": (1, 3.5, 6), "compute": (1, 2.5, 5)}


def test_a_bucket_that_costs_most_at_both_ends_of_its_range_is_probably_it() -> None:
    verdict = weigh("input", SURE)
    assert verdict.sentence == "Probably slow in every epoch: it is."
    assert (verdict.status, verdict.primary, verdict.candidates) == ("slow_always", "input", ())


def test_the_narrower_the_range_the_surer_and_never_quite() -> None:
    wide: Known = {**SURE, "input": (5, 7, 9)}
    exact: Known = {**SURE, "input": (7, 7, 7)}
    assert weigh("input", wide).confidence < weigh("input", SURE).confidence
    assert weigh("input", exact).confidence == MOST_SURE


def test_otherwise_the_candidates_are_named_in_order_with_what_would_decide() -> None:
    verdict = weigh("input", UNSURE)
    assert verdict.candidates == ("input", "host", "compute")
    assert verdict.primary == "input"
    assert verdict.status == "unknown"
    assert verdict.confidence < 0.5
    assert verdict.sentence == (
        "Input, host or compute cost the most: the first epoch took 10.0 s. "
        "Possible times: input 1.00–7.00 s, host 1.00–6.00 s, compute 1.00–5.00 s. "
        "A profile of the whole first epoch would settle it: StallCallback takes one."
    )


def test_there_are_at_most_three() -> None:
    four: Known = {
        "input": (0, 2.6, 9),
        "compile": (0, 2.5, 9),
        "host": (0, 2.4, 9),
        "memory": (0, 2.3, 9),
    }
    verdict = weigh("input", four)
    assert verdict.candidates == ("input", "compile", "host")
    assert len(verdict.candidates) == MOST_CANDIDATES


def test_the_model_itself_is_a_candidate_where_the_cost_may_be_too_small_to_act_on() -> None:
    """At the low end, input costs less than a fifth of the epoch."""
    verdict = weigh("input", {"input": (1, 3, 4), "compute": (6, 7, 9)})
    assert verdict.candidates == ("input", "compute")


def test_a_healthy_run_may_have_a_cost_that_was_not_seen() -> None:
    verdict = weigh("compute", {"compute": (4, 8, 9), "input": (0, 1, 4), "host": (0, 1, 1.5)})
    assert verdict.candidates == ("compute", "input")
    sure = weigh("compute", {"compute": (8, 9, 10), "input": (0, 1, 1.5)})
    assert sure.candidates == ()
    assert sure.sentence.startswith("Probably")


def test_what_is_unlikely_even_at_the_high_end_is_no_candidate() -> None:
    """Three seconds of input may belong to host; host then has less than the rest of input."""
    verdict = weigh("input", {"input": (5, 8, 9), "host": (0.5, 1, 4), "compute": (0, 1, 2)})
    assert verdict.candidates == ()


def test_where_no_bucket_stands_out_the_likeliest_are_named() -> None:
    assert weigh("unknown", UNSURE).candidates == ("input", "host", "compute")


def test_what_came_once_stays_one_time_whatever_it_was() -> None:
    assert weigh("input", UNSURE, status="slow_once").status == "slow_once"
    assert weigh("input", UNSURE, status="slow_always").status == "unknown"


def test_later_epochs_are_shown_next_to_the_first_one() -> None:
    assert (
        "took 10.0 s (later ones 2.00 s). Possible times:"
        in weigh("input", UNSURE, later_s=2).sentence
    )


@pytest.mark.parametrize("known", [SURE, UNSURE])
def test_a_long_validation_is_mentioned_whatever_its_time_went_to(known: Known) -> None:
    long = Phase("validation", 6 * PS_PER_S, 10 * PS_PER_S)
    assert " Validation alone took 4.00 s (40%)." in weigh("input", known, (long,)).sentence
    short = replace(long, start_ps=8 * PS_PER_S)
    assert "Validation" not in weigh("input", known, (short,)).sentence


# ---------------------------------------------------------------- whole logs


def test_steps_that_wait_in_an_ordinary_log_are_probably_slow_for_input(tmp_path: Path) -> None:
    report = diagnosed(KERAS.timeline(tmp_path, profile(45, 10), profile_s=3.0))
    assert report.verdict.primary == "input"
    assert report.verdict.sentence.startswith("Probably slow in every epoch: ")
    assert "estimated from 5 profiled steps" in report.verdict.sentence


def test_one_short_step_decides_nothing(tmp_path: Path) -> None:
    """As far as was seen, it is healthy, but that is not said."""
    report = diagnosed(KERAS.timeline(tmp_path, profile(), profile_s=3.0))
    assert {"compile", "compute"} <= set(report.verdict.candidates)
    assert "ealthy" not in report.verdict.sentence


def test_event_files_alone_give_a_short_list(tmp_path: Path) -> None:
    report = diagnosed(KERAS.timeline(tmp_path))
    assert 1 < len(report.verdict.candidates) <= MOST_CANDIDATES
    assert "Probably" not in report.verdict.sentence


def test_what_learns_nothing_is_sure_of_it_and_only_estimates_the_time(tmp_path: Path) -> None:
    log = replace(KERAS, loss=float("nan"))
    verdict = diagnosed(log.timeline(tmp_path, profile(), profile_s=3.0)).verdict
    assert verdict.status == "learning_nothing"
    assert "5.25 s of the first epoch was wasted, estimated from" in verdict.sentence


def test_nothing_is_said_about_a_first_epoch_of_a_loop_without_epochs(tmp_path: Path) -> None:
    log = KerasLog(model=False, others={"my/loss": [(n, 3.0 + n) for n in range(8)]})
    verdict = diagnosed(log.timeline(tmp_path)).verdict
    assert "the logged part took 9.75 s" in verdict.sentence
    assert "StallCallback (or watch(), in a custom loop) takes one." in verdict.sentence


def test_a_foreign_run_gets_neither_candidates_nor_our_callback(tmp_path: Path) -> None:
    """Scalars of PyTorch's SummaryWriter."""
    losses = b"".join(loss(10 * n, START_S + n) for n in range(31))
    (tmp_path / event_files.file_name()).write_bytes(version(START_S) + losses)
    run = analyzed(tmp_path)
    assert run["verdict"]["candidates"] == []
    assert run["estimate"] is None
    assert run["window"]["duration_ps"] == 0
    assert "StallCallback" not in run["verdict"]["sentence"]
