"""Judges what the analyzer says about a program that nobody tuned it for.

Works on JSON alone: the program's truth, what its clocks saw, and the analyzer's document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]

PS_PER_S = 1e12
# Two runs of one program differ by this share of the epoch, and more on a busy machine.
NOISE_SHARE = 0.03
ON_TRAINING_THREAD = ("callback", "predict")


@dataclass(frozen=True)
class Score:
    """One program. None: there is nothing to compare with."""

    name: str
    truth: str
    said: str = "no verdict"
    right: bool = False
    right_before: bool = False  # by the label that was written before its first run
    hit: bool | None = None
    false_acts: tuple[str, ...] = ()
    measured_s: float | None = None
    promised_s: tuple[tuple[float, float], ...] = ()
    gain_inside: bool | None = None
    errors: Mapping[str, float] = field(default_factory=dict)  # shares of the window
    others_cpu: float | None = None


def score(name: str, truth: Json, runs: Sequence[Json], clocks: Json, fixed: Json | None) -> Score:
    """`fixed` is what the clocks saw of the fixed form."""
    timed = [run for run in runs if run["window"]["duration_ps"]]
    if not timed:
        return Score(name, truth["primary"])
    run = timed[-1]
    primary, findings = run["verdict"]["primary"], run["findings"]
    expected = truth["expected_findings"]
    allowed = {*expected, *truth["acceptable_findings"]}
    hits = [finding for finding in findings if finding["id"] in expected]
    promised = tuple(
        (finding["gain_ps"]["low"] / PS_PER_S, finding["gain_ps"]["high"] / PS_PER_S)
        for finding in hits
    )
    measured = clocks["epoch_s"] - fixed["epoch_s"] if fixed and hits else None
    acts = (finding["id"] for finding in findings if finding["severity"] == "act")
    return Score(
        name=name,
        truth=truth["primary"],
        said=f"{run['verdict']['status']}/{primary}",
        right=primary in truth["acceptable"],
        right_before=primary in truth["before_any_run"]["acceptable"],
        hit=bool(hits) if expected else None,
        false_acts=tuple(act for act in acts if act not in allowed),
        measured_s=measured,
        promised_s=promised,
        gain_inside=_is_inside(measured, promised, NOISE_SHARE * clocks["epoch_s"]),
        errors=_errors(run, truth, clocks),
        others_cpu=clocks["others_cpu"],
    )


def _is_inside(
    measured: float | None, promised: Iterable[tuple[float, float]], noise: float
) -> bool | None:
    if measured is None:
        return None
    return any(low - noise <= measured <= high + noise for low, high in promised)


def _errors(run: Json, truth: Json, clocks: Json) -> dict[str, float]:
    """By what share of the window the analyzer is off what the clocks saw."""
    window = run["window"]["duration_ps"] / PS_PER_S
    causes, buckets = run["causes_ps"], run["buckets_ps"]
    traced = causes.get("compile.tracing", 0) + causes.get("compile.retracing", 0)
    off = {"tracing": traced / PS_PER_S - clocks["tracing_main_s"]}
    ready, steps = clocks.get("one_batch_in_train_s"), clocks["steps"]
    if ready and steps and truth["input_measured"]:
        usual = ready / steps * (steps - 1)
        least = max(0.0, clocks["in_train_s"] - clocks["first_batch_s"] - usual)
        off["input"] = buckets["input"] / PS_PER_S - least
    spans = [
        span
        for what, span in clocks["spans"].items()
        if what in ON_TRAINING_THREAD and span["on_training_thread"]
    ]
    if spans:  # graphs that a callback builds may be counted as either
        most = sum(span["s"] for span in spans)
        least = most - sum(span["tracing_s"] for span in spans)
        host = buckets["host"] / PS_PER_S
        off["host"] = host - min(max(host, least), most)
    return {what: seconds / window for what, seconds in off.items()}


# ---------------------------------------------------------------- as text


def table(scores: Sequence[Score]) -> str:
    return "\n".join([*map(_row, scores), summary(scores)])


def _row(score: Score) -> str:
    gain = ""
    if score.measured_s is not None:
        ranges = " or ".join(f"{low:.2f}-{high:.2f}" for low, high in score.promised_s)
        gain = f"{score.measured_s:.2f} of {ranges}{'' if score.gain_inside else ' OUTSIDE'}"
    errors = " ".join(f"{what} {share:+.0%}" for what, share in score.errors.items())
    verdict = "right" if score.right else "WRONG"
    found = {None: "", True: "found", False: "MISSED"}[score.hit]
    acts = " ".join(score.false_acts)
    return (
        f"{score.name:30} {score.truth:9} {score.said:24} {verdict:6} {found:7} {acts:12} "
        f"{gain:34} {errors}"
    ).rstrip()


def summary(scores: Sequence[Score]) -> str:
    inside = [s.gain_inside for s in scores if s.gain_inside is not None]
    hits = [s.hit for s in scores if s.hit is not None]
    acts = sum(len(s.false_acts) for s in scores)
    return (
        f"{len(scores)} programs: primary right {sum(s.right for s in scores)} "
        f"(by the labels before any run {sum(s.right_before for s in scores)}); "
        f"expected finding {sum(hits)} of {len(hits)}; false act findings {acts}; "
        f"gain inside {sum(inside)} of {len(inside)}; {_error_summary(scores)}"
    )


def _error_summary(scores: Sequence[Score]) -> str:
    told = []
    for what in ("input", "tracing", "host"):
        shares = [abs(s.errors[what]) for s in scores if what in s.errors]
        if shares:
            told.append(f"{what} off by {median(shares):.1%} (worst {max(shares):.0%})")
    return ", ".join(told)
