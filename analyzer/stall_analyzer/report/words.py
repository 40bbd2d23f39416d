"""Phrases about a run that the terminal and Markdown share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stall_analyzer.model.format import between, percent, seconds
from stall_analyzer.model.kinds import LAST_RECORD, Bucket
from stall_analyzer.report.facts import by_size, figures

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import (
        CodeLineEntry,
        FindingEntry,
        ForecastEntry,
        ReportEntry,
    )

LINES_SHOWN = 8  # of the user's code
CAUSE_FROM_SHARE = 200  # a cause below 1/200 of the window is not worth a line
# If no more than this was traced and there is no estimate, nobody knows what recurs later.
LITTLE_COVERED = 0.5

SEEN_SHARE = 0.5  # of the window: with less, a run is never called fine


def about(text: str, estimated: bool) -> str:
    """`~2.10 s`: marks an estimated figure."""
    return f"~{text}" if estimated else text


def main_cost(run: ReportEntry) -> str:
    """`input 62%`, `input ~62%` if it is estimated, or `input or compile?`"""
    window_ps, primary = run["window"]["duration_ps"], run["verdict"]["primary"]
    if undecided(run):
        return undecided(run)
    if not window_ps:
        return "–"
    share = percent(figures(run)["buckets_ps"][primary], window_ps)
    return f"{primary} {about(share, run['estimate'] is not None)}"


def undecided(run: ReportEntry) -> str:
    """`input, compile or host?`; empty if the verdict is sure."""
    *others, last = ("", *run["verdict"]["candidates"])
    before = ", ".join(filter(None, others))
    return f"{before} or {last}?" if before else last and f"{last}?"


def bucket_range(run: ReportEntry, bucket: Bucket) -> str:
    """`1.40–2.60 s`: how long it may have taken; empty if that was measured."""
    known = run["estimate"] and run["estimate"]["ranges_ps"].get(bucket)
    if not known or known["low"] == known["high"]:
        return ""
    return between(known["low"], known["high"])


def traced_share(run: ReportEntry) -> str:
    """`only 3% of the epoch was traced`."""
    covered_ps, window_ps = run["window"]["covered_ps"], run["window"]["duration_ps"]
    share = f"only {percent(covered_ps, window_ps)}" if covered_ps else "none"
    return f"{share} of the epoch was traced"


def first_epoch(run: ReportEntry) -> str:
    """How long it took, for a table: `4.20 s`, or `> 4.20 s` if it is not over."""
    window_ps = run["window"]["duration_ps"]
    more = "> " if _is_unfinished(run) else ""
    return f"{more}{seconds(window_ps)}" if window_ps else "–"


def window_noun(run: ReportEntry) -> str:
    """What to call the time that the ledger divides."""
    if _is_unfinished(run):
        return "so far"
    return "trace" if run["window"]["epoch"] is None else "first epoch"


def _is_unfinished(run: ReportEntry) -> bool:
    """The epoch is still running, or was abandoned before its end."""
    return run["verdict"]["status"] == "running" or run["window"]["end_source"] == LAST_RECORD


def may_enjoy(run: ReportEntry) -> bool:
    """Whether a run without findings may be called fine: most of its training was seen."""
    window = run["window"]
    seen = (
        window["epoch"] is not None and window["covered_ps"] >= SEEN_SHARE * window["duration_ps"]
    )
    return run["verdict"]["status"] == "healthy" and seen


def epoch_times(run: ReportEntry) -> list[str]:
    window, later_ps = run["window"], run["later_epochs"]["median_ps"]
    parts = [f"{window_noun(run)} {seconds(window['duration_ps'])}"]
    if later_ps is not None:
        parts.append(f"later epochs {seconds(later_ps)}")
    spent, estimated = figures(run), run["estimate"] is not None
    if estimated or window["covered_ps"] > LITTLE_COVERED * window["duration_ps"]:
        parts.append(f"one-time {about(seconds(spent['one_time_ps']), estimated)}")
        # What a stuck or dead run waited for says nothing about other epochs.
        if not (_is_unfinished(run) and run["verdict"]["status"] in ("stuck", "dead")):
            parts.append(f"recurring {about(seconds(spent['recurring_ps']), estimated)}")
    return parts


def causes_in(run: ReportEntry, bucket: Bucket) -> list[tuple[str, int]]:
    """Largest first; `input.first_element` is `first element`, since the bucket is named anyway."""
    smallest_ps = run["window"]["duration_ps"] // CAUSE_FROM_SHARE
    return [
        (cause.partition(".")[2].replace("_", " "), ps)
        for cause, ps in by_size(figures(run)["causes_ps"])
        if cause.startswith(f"{bucket}.") and ps >= smallest_ps
    ]


def worth(finding: FindingEntry) -> str:
    """`costs 1.29 s; the change should save 1.03–1.29 s in every epoch`"""
    lost = finding["lost_ps"]
    slows = " and slows down other work" if _saves_more_than(lost, finding) else ""
    cost = f"costs {seconds(lost)}{slows}" if lost else ""
    return "; ".join(part for part in (cost, _gain(finding)) if part)


def _saves_more_than(lost_ps: int, finding: FindingEntry) -> bool:
    """As the figures are read: a saving beyond the cost calls for a reason."""
    high = finding["gain_ps"]["high"]
    return high > lost_ps and seconds(high) != seconds(lost_ps)


def _gain(finding: FindingEntry) -> str:
    first, later = finding["gain_ps"], finding["later_gain_ps"]
    if not first["high"] and not later["high"]:
        return ""
    said = "the change should save "
    saves, saves_later = (between(gain["low"], gain["high"]) for gain in (first, later))
    if finding["later_gain_at_least"] and later["high"]:
        saves_later = f"at least {seconds(later['low'])}" if later["low"] else "an unknown amount"
    if not first["high"]:
        return f"{said}{saves_later} in each later epoch"
    if not later["high"]:
        return f"{said}{saves}, in the first epoch only"
    if saves == saves_later:
        return f"{said}{saves} in every epoch"
    return f"{said}{saves}, and {saves_later} in each later epoch"


def forecast(epoch: ForecastEntry, arrow: str) -> str:
    if epoch["low"] == epoch["now"]:
        return f"{seconds(epoch['now'])}, unchanged"
    low, high = epoch["low"], epoch["high"]
    after = between(low, high) if low else f"at most {seconds(high)}"
    return f"{seconds(epoch['now'])} {arrow} {after}"


def code_place(line: CodeLineEntry) -> str:
    """`train.py:25 load`"""
    file = line["path"].replace("\\", "/").rpartition("/")[2]
    return f"{file}:{line['line']} {line['function']}"


def code_cost(line: CodeLineEntry) -> str:
    """`4.10 s`, and whether it ran in the background."""
    beside = " in the background, holding up training" if line["background"] else ""
    return f"{seconds(line['ps'])}{beside}"


def costly_lines(run: ReportEntry) -> list[CodeLineEntry]:
    """The lines worth showing."""
    least_ps = run["window"]["duration_ps"] // CAUSE_FROM_SHARE
    return [line for line in run["lines"] if line["ps"] >= least_ps][:LINES_SHOWN]


def largest_parts(buckets_ps: Mapping[Bucket, int], whole_ps: int) -> str:
    """`input 62%, compile 20%, host 9%`"""
    largest = by_size(buckets_ps)[:3]
    return ", ".join(f"{name} {percent(ps, whole_ps)}" for name, ps in largest)
