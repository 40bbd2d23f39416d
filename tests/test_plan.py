"""The combined plan: what the changes save together, without counting a second twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stall_analyzer.detectors.gains import every_epoch
from stall_analyzer.diagnose.plan import plan
from stall_analyzer.diagnose.sooner_ending import with_sooner_ending
from stall_analyzer.model.causes import code
from stall_analyzer.model.findings import Change, Evidence, Finding, Forecast, Gain, Plan
from stall_analyzer.model.kinds import Bucket, Severity
from stall_analyzer.model.ledger import HostLedger, Ledger
from stall_analyzer.model.timeline import Timeline, Window
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.signals import Signals

MS = PS_PER_MS


def signals(later_ms: int | None = None, **causes_ms: int) -> Signals:
    """A run whose causes follow one another; `input__wait=5` is 5 ms of input.wait."""
    causes = [name.replace("__", ".") for name in causes_ms]
    bounds = np.cumsum([0, *causes_ms.values()], dtype=np.int64) * MS
    codes = np.array([code(cause) for cause in causes], dtype=np.uint8)
    ledger = Ledger(bounds, codes, np.zeros(len(codes), dtype=np.bool_))
    host = HostLedger("worker", ledger, int(bounds[-1]), "python", {})
    window = Window(0, int(bounds[-1]), "made", "made")
    later = () if later_ms is None else (later_ms * MS,)
    return Signals(Timeline(window, (), (), (), later, None), (host,), host)


def finding(
    id: str,
    bucket: Bucket,
    low_ms: int,
    high_ms: int,
    *,
    blames_ms: tuple[int, int] | None = None,
    later_ms: tuple[int, int] = (0, 0),
    severity: Severity = "act",
    blames: tuple[Bucket, ...] = (),
) -> Finding:
    evidence: tuple[Evidence, ...] = ()
    if blames_ms:
        evidence = (Evidence("worker", "python", blames_ms[0] * MS, blames_ms[1] * MS, "seen"),)
    return Finding(
        severity,
        "a title",
        "an explanation",
        Change("a change"),
        lost_ps=high_ms * MS,
        gain=Gain(low_ms * MS, high_ms * MS),
        later_gain=Gain(later_ms[0] * MS, later_ms[1] * MS),
        evidence=evidence,
        id=id,
        bucket=bucket,
        blames=blames or (bucket,),
    )


def planned(run: Signals, *findings: Finding) -> Plan:
    made = plan(run, findings)
    assert made is not None
    return made


RUN = {"input__wait": 6000, "compile__tracing": 3000, "compute__step": 1000}


def test_different_buckets_add_up_and_the_largest_gain_comes_first() -> None:
    made = planned(
        signals(**RUN),
        finding("ST101", "compile", 2000, 2500),
        finding("ST001", "input", 4000, 5500),
    )
    assert made.findings == ("ST001", "ST101")
    assert made.first_epoch == Forecast(10_000 * MS, 2000 * MS, 4000 * MS)


def test_time_that_two_findings_blame_is_saved_once() -> None:
    made = planned(
        signals(**RUN),
        finding("ST002", "input", 3000, 4000, blames_ms=(100, 900)),
        finding("ST001", "input", 4000, 5000, blames_ms=(0, 200)),
    )
    assert made.findings == ("ST001",)
    assert made.first_epoch == Forecast(10_000 * MS, 5000 * MS, 6000 * MS)


def test_two_findings_of_a_bucket_add_up_when_they_blame_different_times() -> None:
    made = planned(
        signals(**RUN),
        finding("ST001", "input", 2000, 2500, blames_ms=(0, 100)),
        finding("ST002", "input", 1000, 1500, blames_ms=(100, 200)),  # half-open: they only touch
    )
    assert made.findings == ("ST001", "ST002")
    assert made.first_epoch == Forecast(10_000 * MS, 6000 * MS, 7000 * MS)


@pytest.mark.parametrize(
    ("blames", "planned_ids"), [(("host",), ("ST404", "ST002")), (("host", "input"), ("ST404",))]
)
def test_a_finding_that_blames_several_buckets_saves_time_in_all_of_them(
    blames: tuple[Bucket, ...], planned_ids: tuple[str, ...]
) -> None:
    made = planned(
        signals(host__python=4000, input__wait=4000),
        finding("ST404", "host", 3000, 4000, blames_ms=(0, 100), blames=blames),
        finding("ST002", "input", 2000, 3000, blames_ms=(50, 150)),
    )
    assert made.findings == planned_ids


def test_without_evidence_two_findings_of_a_bucket_are_taken_for_the_same() -> None:
    one, other = finding("ST001", "input", 1, 2, blames_ms=(0, 9)), finding("ST002", "input", 2, 3)
    assert planned(signals(**RUN), one, other).findings == ("ST002",)


def test_a_bucket_never_saves_more_than_it_cost() -> None:
    made = planned(
        signals(**RUN),
        finding("ST001", "input", 4000, 5000, blames_ms=(0, 100)),
        finding("ST002", "input", 3000, 4000, blames_ms=(200, 300)),
    )
    assert made.first_epoch == Forecast(10_000 * MS, 4000 * MS, 4000 * MS)


def test_the_forecast_never_falls_below_the_compute_time() -> None:
    made = planned(signals(later_ms=1500, **RUN), finding("ST001", "input", 1, 6000,
                                                          later_ms=(700, 1400)))  # fmt: skip
    assert made.later_epoch == Forecast(1500 * MS, 1000 * MS, 1000 * MS)


@pytest.mark.parametrize("bucket", ["memory", "compute"])
def test_a_finding_that_shortens_computing_itself_lowers_the_floor(bucket: Bucket) -> None:
    made = planned(
        signals(compute__step=1000, memory__transfer=50), finding("ST206", bucket, 200, 450)
    )
    assert made.first_epoch == Forecast(1050 * MS, 600 * MS, 850 * MS)


def test_later_epochs_have_their_own_gain_and_do_not_warm_up() -> None:
    run = signals(later_ms=5000, input__wait=6000, compute__step=500, compute__warm_up=3000)
    made = planned(run, finding("ST001", "input", 5000, 6000, later_ms=(4000, 4600)))
    assert made.later_epoch == Forecast(5000 * MS, 500 * MS, 1000 * MS)


def test_an_unknown_later_epoch_is_not_forecast() -> None:
    run = signals(**RUN)
    assert planned(run, finding("ST001", "input", 1, 2, later_ms=(1, 2))).later_epoch is None


@pytest.mark.parametrize(
    "findings",
    [
        (),
        (finding("ST001", "input", 100, 200, severity="note"),),
        (finding("ST001", "input", 0, 0),),
        (finding("ST301", "numerics", 0, 0),),
    ],
)
def test_without_seconds_to_save_there_is_no_plan(findings: tuple[Finding, ...]) -> None:
    assert plan(signals(**RUN), findings) is None


def test_what_makes_learning_impossible_comes_first_whatever_it_saves() -> None:
    hopeless, slow = finding("ST301", "numerics", 0, 0), finding("ST001", "input", 4000, 5000)
    assert planned(signals(**RUN), slow, hopeless).findings == ("ST301", "ST001")


def test_a_gain_in_every_epoch_leaves_out_what_comes_once() -> None:
    made = signals(**RUN)
    once = replace(made.host.ledger, one_time=np.array([False, True, False]))
    first = replace(made, hosts=(), host=replace(made.host, ledger=once))
    assert every_epoch(Gain(100 * MS, 9000 * MS), first) == Gain(100 * MS, 7000 * MS)
    assert every_epoch(Gain(0, 9000 * MS), signals(later_ms=500, **RUN)) == Gain(0, 500 * MS)


ENDS_SLOWLY = {"compile__retracing": 4000, "compute__step": 2000, "input__iterator_teardown": 3000}


def test_a_change_that_halves_the_epoch_may_also_save_the_slow_ending_of_its_iterator() -> None:
    retraced = with_sooner_ending(finding("ST104", "compile", 2000, 4000), signals(**ENDS_SLOWLY))
    assert retraced.gain == Gain(2000 * MS, 7000 * MS)
    assert retraced.lost_ps == 7000 * MS
    assert set(retraced.blames) == {"compile", "input"}


def test_a_change_that_saves_less_leaves_the_ending_as_it_is() -> None:
    small = finding("ST101", "compile", 1000, 2000)
    assert with_sooner_ending(small, signals(**ENDS_SLOWLY)) == small
    assert with_sooner_ending(small, signals(compile__tracing=3000)) == small


def test_a_slow_ending_is_saved_once() -> None:
    run = signals(**ENDS_SLOWLY)
    retraced = with_sooner_ending(finding("ST104", "compile", 2000, 4000), run)
    ending = finding("ST014", "input", 2400, 3000, blames_ms=(6000, 9000), severity="consider")
    assert planned(run, retraced, ending).findings == ("ST104",)
