"""Limits: what counts as over, and what cannot be limited."""

from __future__ import annotations

import pytest

from stall_analyzer.batch.limits import Limits, check_causes, over, parse
from stall_analyzer.errors import UsageError
from tests.batch.fleets import facts

RUN = facts(causes_ms={"input.wait": 2500, "compile.xla": 500, "compute.step": 7000})


@pytest.mark.parametrize(
    ("limit", "measured"),
    [
        ("input=20%", "25%, 2.50 s"),
        ("input=25%", ""),  # over it, not at it
        ("input=2s", "2.50 s"),
        ("input=3s", ""),
        ("compile.xla=4%", "5%, 500 ms"),
        ("compile.tracing=0%", ""),  # there was none
        ("epoch=9s", "10.0 s"),
        ("epoch=1m", ""),
        ("status=slow_always", "slow_always"),
        ("status=stuck", ""),
    ],
)
def test_what_is_over_a_limit(limit: str, measured: str) -> None:
    assert over(parse(limit), RUN) == measured


def test_a_run_without_a_window_is_over_no_share() -> None:
    empty = facts(causes_ms={"compute.step": 0})
    assert over(parse("input=0%"), empty) == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("inputs=20%", "'inputs' cannot be limited; you can limit input, compile"),
        ("status=broken", "'broken' is not a verdict; use one of healthy"),
        ("input=20", "'20' is not a duration such as 90s, 30m, 2h or 3d, nor a share such as 20%"),
        ("input>20%", "'input>20%' is not a limit such as input=20%"),
        ("input", "'input' is not a limit"),
        ("epoch=20%", "'20%' is not a duration"),
    ],
)
def test_a_limit_that_could_never_be_exceeded_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        parse(text)


@pytest.mark.parametrize("text", ["input=200%", "compile.xla=100%"])
def test_a_share_that_no_run_can_exceed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="use less than 100%"):
        parse(text)
    assert parse("input=99.5%").share == 0.995


def test_a_cause_that_does_not_exist_is_refused() -> None:
    check_causes([parse("compile.xla=1s"), parse("input=1s")])
    with pytest.raises(UsageError, match=r"no cause compile.xlb; use one of compile.tracing"):
        check_causes([parse("compile.xlb=1s")])


def test_every_limit_is_checked_on_every_run() -> None:
    limits = Limits([parse("input=20%"), parse("epoch=9s")])
    limits.check(RUN)
    limits.check(facts("fine", {"compute.step": 1000}))
    assert [(one.run, one.limit) for one in limits.in_order()] == [
        ("r", "epoch=9s"), ("r", "input=20%"),
    ]  # fmt: skip
