"""Whether one page of a report contradicts itself: rules over a run's entry of the JSON document.

Each rule is a function that yields a sentence for whatever cannot be true together. They know
nothing about how a report is made, only what a reader of the whole page would notice.

python -m tests.contradictions PATH…    log directories, or documents that --json wrote
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

from stall_analyzer.discover.discover import discover
from stall_analyzer.model.causes import bucket_of
from stall_analyzer.model.format import between, percent, seconds
from stall_analyzer.model.timeline import SLOWER_LATER
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.outcome import analyze_one

Entry: TypeAlias = Mapping[str, Any]
Said: TypeAlias = Iterator[str]

# How much the epochs of one run may differ: the machine has other work, caches are warm.
# They may differ by this much, however short they are: files are written between them.
NOISE = 0.25
NOISE_PS = PS_PER_S // 10
# The share of a later epoch that somebody who is told "it passes" would notice.
LARGE_SHARE = 0.2
# A bucket is "slow always" if at least this share of its time comes again.
RECURRING_SHARE = 0.4
# One wait may be an accident, two a coincidence.
OFTEN = 3
# What the instruments cost is in the ledger and left out of the verdict.
INSTRUMENTS = ("host.summary", "profiler.start", "profiler.stop")
# These come once in every epoch, by the nature of a training.
ONCE_AN_EPOCH = ("validation_in_epoch", "summaries_in_steps", "pipeline_made_each_epoch")
# Figures, as sentences write them.
TIME = r"(?:\d+ h \d+ min|\d+ min \d+ s|[\d.]+ (?:s|ms|µs|ns))"
PART_OF_WHOLE = re.compile(rf"({TIME}) of ({TIME}) \(([<>]?\d+%)\) of the [a-z ]+ went to (\w+)")
COMPUTES = re.compile(rf"([<>]?\d+%) of the [a-z ]+ \(({TIME})\) is the model's own computation")
AFTER_ALL = re.compile(r"After ([\d,]+) training steps")
SELDOM = re.compile(r"\bin (?:one|each of 2|2) (?:wait|pause)s?\b")
STEPS = re.compile(
    r"(?:[Oo]f|[Oo]ver|[Bb]etween|[Ii]n|[Aa]fter) ([\d,]+) (?:training |profiled )?steps\b(?! took)"
)


def contradictions(entry: Entry) -> list[str]:
    """What cannot be true together on one run's page; empty if everything can."""
    return [text for rule in RULES for text in rule(entry)]


def _shown(entry: Entry) -> Entry:
    """The figures that every view shows: those of the estimate, if there is one."""
    return entry["estimate"] or entry


def _later_ps(entry: Entry) -> int | None:
    known: int | None = entry["later_epochs"]["median_ps"]
    return known


def _training_steps(entry: Entry) -> int:
    return sum(step["phase"] == "training" for step in entry["steps"])


# ---------------------------------------------------------------- sums


def _bounds(entry: Entry) -> Said:
    for name, part in (("the verdict", entry["verdict"]), *_named(entry["findings"])):
        if not 0 <= part["confidence"] <= 1:
            yield f"{name} has a confidence of {part['confidence']}"
    if entry["window"]["duration_ps"] == 0:
        if "%" in entry["verdict"]["sentence"]:
            yield "a window of 0 has shares"
        if entry["plan"] or any(finding["lost_ps"] for finding in entry["findings"]):
            yield "a window of 0 has time to save"


def _named(findings: Sequence[Entry]) -> Iterator[tuple[str, Entry]]:
    return ((finding["id"], finding) for finding in findings)


def _sums(entry: Entry) -> Said:
    for name, part in (("the ledger", entry), ("the estimate", entry["estimate"])):
        if part is None:
            continue
        whole, buckets = entry["window"]["duration_ps"], part["buckets_ps"]
        if sum(buckets.values()) != whole:
            yield f"the buckets of {name} do not sum to the window"
        for bucket, ps in buckets.items():
            causes = part["causes_ps"].items()
            if sum(of for cause, of in causes if bucket_of(cause) == bucket) != ps:
                yield f"the causes of {bucket} in {name} do not sum to it"
        if part["one_time_ps"] + part["recurring_ps"] != whole:
            yield f"what happens once and what recurs of {name} do not sum to the window"


def _estimate(entry: Entry) -> Said:
    if entry["estimate"] is None:
        return
    for bucket, likely in entry["estimate"]["buckets_ps"].items():
        known = entry["estimate"]["ranges_ps"][bucket]
        if not known["low"] <= likely <= known["high"] <= entry["window"]["duration_ps"]:
            yield f"the likely {bucket} lies outside of its range"
        traced = entry["buckets_ps"][bucket]
        if bucket != "unknown" and known["low"] < traced:
            yield f"the estimate may have less {bucket} than was traced ({seconds(traced)})"


# ---------------------------------------------------------------- findings


def _costs(entry: Entry) -> Said:
    for finding in entry["findings"]:
        lost, gain = finding["lost_ps"], finding["gain_ps"]
        most = sum(_most_ps(entry, bucket, finding["title"]) for bucket in finding["blames"])
        if lost > most:
            blamed = ", ".join(finding["blames"])
            yield f"{finding['id']} costs {seconds(lost)}, but {blamed} took {seconds(most)}"
        if finding["bucket"] == "input" and lost > _most_ps(entry, "input", finding["title"]):
            yield f"{finding['id']} costs {seconds(lost)}, which is more than all input"
        # Besides the cost, other work that it slows down may be saved, if the finding blames that,
        # too.
        savable = lost if finding["blames"] == [finding["bucket"]] else most
        if not gain["low"] <= gain["high"] <= savable:
            yield f"{finding['id']} saves {seconds(gain['high'])} of {seconds(savable)} lost"


def _most_ps(entry: Entry, bucket: str, title: str = "") -> int:
    """What a bucket may have taken. Others wait for a straggler, whose own wait is short; and a
    title may name the host whose time it is."""
    if entry["estimate"] is not None:
        return int(entry["estimate"]["ranges_ps"][bucket]["high"])
    is_any = bucket == "communication"
    hosts = [h for h in entry["host_ledgers"] if is_any or title.endswith(f", on {h['host']}")]
    return int(max(part["buckets_ps"][bucket] for part in (entry, *hosts)))


def _every_epoch(entry: Entry) -> Said:
    """A gain in every epoch fits into each of them, and was seen more than once."""
    for finding in entry["findings"]:
        gain = finding["later_gain_ps"]["high"]
        later, again = _later_ps(entry), _shown(entry)["recurring_ps"]
        if gain > min(_window_ps(entry), again if later is None else later):
            epoch = f"one takes {seconds(later or again)}"
            yield f"{finding['id']} saves {seconds(gain)} in every epoch, {epoch}"
        if gain and finding["severity"] != "note" and _seen_once(finding):
            yield f"{finding['id']} saves in every epoch what was seen once or twice"


def _window_ps(entry: Entry) -> int:
    return int(entry["window"]["duration_ps"])


def _seen_once(finding: Entry) -> bool:
    seldom = 0 < len(finding["evidence"]) < OFTEN or SELDOM.search(finding["title"]) is not None
    return seldom and finding["name"] not in ONCE_AN_EPOCH


def _advice(entry: Entry) -> Said:
    """Two changes never turn one knob different ways."""
    for one, other in combinations(entry["findings"], 2):
        turns, against = one["change"]["turns"], other["change"]["turns"]
        for knob in turns.keys() & against.keys():
            if turns[knob] != against[knob]:
                ways = f"{turns[knob]} and {against[knob]}"
                yield f"{one['id']} and {other['id']} turn the {knob} {ways}"


def _steps(entry: Entry) -> Said:
    estimate, listed = entry["estimate"], _training_steps(entry)
    all_steps = estimate["steps"] if estimate else None
    if all_steps is not None and listed > all_steps:
        yield f"{listed} training steps are listed, the estimate counts {all_steps}"
    known = {listed, len(entry["steps"]), all_steps, *_host_steps(entry)}
    if estimate:
        known.add(estimate["profiled_steps"])
    for where, text in _sentences(entry):
        for count in STEPS.findall(text):
            if int(count.replace(",", "")) not in known and listed:
                yield f"{where} speaks of {count} steps; training steps listed: {listed}"
        for count in AFTER_ALL.findall(text):
            if all_steps is not None and int(count.replace(",", "")) != all_steps:
                yield f"{where} ends training after {count} steps, the estimate after {all_steps}"


def _host_steps(entry: Entry) -> Iterator[int]:
    for member in (entry["cluster"] or {"members": ()})["members"]:
        yield member["steps"]


def _sentences(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "the verdict", entry["verdict"]["sentence"]
    for finding in entry["findings"]:
        if finding["bucket"] != "numerics":  # its steps are those that were logged or measured
            yield finding["id"], finding["title"]
            yield finding["id"], finding["explanation"]


# ---------------------------------------------------------------- plan


def _plan(entry: Entry) -> Said:
    plan = entry["plan"]
    if plan is None:
        return
    findings = dict(_named(entry["findings"]))
    for id in plan["findings"]:
        if id not in findings or findings[id]["severity"] == "note":
            yield f"the plan has {id}, which is no finding to act on"
    chosen = [findings[id] for id in plan["findings"] if id in findings]
    first, later = plan["first_epoch_ps"], plan["later_epoch_ps"]
    yield from _forecast("first", first, _window_ps(entry), [f["gain_ps"] for f in chosen])
    known = _later_ps(entry) or 0
    is_forecast = 0 < known <= SLOWER_LATER * _window_ps(entry)
    if (later is not None) != is_forecast:
        yield "the plan and the run do not know the same of later epochs"
    elif later is not None:
        gains = [finding["later_gain_ps"] for finding in chosen]
        yield from _forecast("later", later, _later_ps(entry) or 0, gains)


def _forecast(name: str, forecast: Entry, now_ps: int, gains: Sequence[Entry]) -> Said:
    if forecast["now"] != now_ps:
        yield f"a {name} epoch takes {seconds(now_ps)}, in the plan {seconds(forecast['now'])}"
    most = sum(gain["high"] for gain in gains)
    if not 0 <= forecast["low"] <= forecast["high"] <= forecast["now"]:
        yield f"the forecast of the {name} epoch is not in order"
    elif forecast["now"] - forecast["low"] > most:
        yield f"the forecast of the {name} epoch saves more than its findings: {seconds(most)}"


# ---------------------------------------------------------------- verdict


def _status(entry: Entry) -> Said:
    verdict, acts = entry["verdict"], [f for f in entry["findings"] if f["severity"] == "act"]
    if verdict["status"] == "healthy" and acts:
        yield f"healthy, but {acts[0]['id']} is to be acted on"
    spent = _shown(entry)["buckets_ps"]
    if verdict["status"] == "healthy" and spent["compute"] < spent["unknown"]:
        yield "healthy, but more of the epoch is unknown than was seen to compute"
    if verdict["status"] == "running" and entry["later_epochs"]["count"]:
        yield "the first epoch is still running, but later ones are over"
    if verdict["status"] == "running" and "first epoch took" in verdict["sentence"]:
        yield "the first epoch is still running, but it is said how long it took"
    if verdict["candidates"] and verdict["primary"] not in (*verdict["candidates"], "unknown"):
        yield f"{verdict['primary']} is primary and no candidate"
    learns_nothing = any(f["bucket"] == "numerics" for f in acts) or "wasted" in verdict["sentence"]
    if verdict["status"] == "learning_nothing" and not learns_nothing:
        yield "learning nothing, but no finding says why"


def _passes(entry: Entry) -> Said:
    """Whoever is told to wait is also told what will not pass."""
    verdict = entry["verdict"]
    if verdict["status"] != "slow_once" or "in every epoch" in verdict["sentence"]:
        return
    epoch = _later_ps(entry) or _shown(entry)["recurring_ps"]
    for finding in entry["findings"]:
        gain = finding["later_gain_ps"]["high"]
        if finding["severity"] == "act" and gain >= LARGE_SHARE * epoch:
            yield f"slow once, but {finding['id']} saves {seconds(gain)} in every epoch"


def _recurs(entry: Entry) -> Said:
    """What is slow in every epoch comes again, and fits into a later epoch's time."""
    verdict, shown, later = entry["verdict"], _shown(entry), _later_ps(entry)
    if verdict["status"] != "slow_always" or verdict["host"] is not None:
        return
    cost = shown["buckets_ps"][verdict["primary"]]
    acts = [f for f in entry["findings"] if _says_why(f, verdict)]
    if acts and not any(finding["later_gain_ps"]["high"] for finding in acts):
        yield f"slow always, but {acts[0]['id']} saves nothing in later epochs"
    if shown["recurring_ps"] < RECURRING_SHARE * cost:
        yield f"slow always, but only {seconds(shown['recurring_ps'])} come again"
    again = cost - shown["one_time_ps"]
    if later is not None and again > (1 + NOISE) * later + NOISE_PS:
        yield f"{seconds(again)} of {verdict['primary']} come again, later epochs {seconds(later)}"


def _says_why(finding: Entry, verdict: Entry) -> bool:
    return bool(finding["severity"] == "act" and finding["bucket"] == verdict["primary"])


def _once_and_later(entry: Entry) -> Said:
    """A first epoch consists of what happens once, and an epoch like the others."""
    later, once = _later_ps(entry), _shown(entry)["one_time_ps"]
    # A later epoch that takes longer than the first has its own reasons.
    if later is None or later > _window_ps(entry):
        return
    if once + later > (1 + NOISE) * _window_ps(entry) + NOISE_PS:
        yield (
            f"{seconds(once)} come once and a later epoch takes {seconds(later)}, the first "
            f"{seconds(_window_ps(entry))}"
        )


def _figures(entry: Entry) -> Said:
    """The verdict's figures are those of the bars."""
    shown, window = _shown(entry), _window_ps(entry)
    for said, whole, share, bucket in PART_OF_WHOLE.findall(entry["verdict"]["sentence"]):
        cost, causes = shown["buckets_ps"].get(bucket, 0), shown["causes_ps"]
        without = cost - sum(causes.get(c, 0) for c in INSTRUMENTS if bucket_of(c) == bucket)
        figures = [(seconds(ps), percent(ps, window)) for ps in (cost, without)]
        if whole != seconds(window):
            yield f"the verdict's epoch takes {whole}, the window {seconds(window)}"
        elif (said, share) not in figures:
            yield f"the verdict gives {bucket} {said} ({share}), the bar {seconds(cost)}"


def _healthy_figures(entry: Entry) -> Said:
    """They are shares of the epoch, or of the epoch without what the instruments cost."""
    shown, window = _shown(entry), _window_ps(entry)
    measured = sum(shown["causes_ps"].get(cause, 0) for cause in INSTRUMENTS)
    compute = shown["buckets_ps"]["compute"]
    for share, whole in COMPUTES.findall(entry["verdict"]["sentence"]):
        if whole != seconds(window):
            yield f"the verdict's epoch takes {whole}, the window {seconds(window)}"
        if share not in [percent(compute, ps) for ps in (window, window - measured)]:
            yield f"the verdict computes for {share}, the bar for {percent(compute, window)}"


def _candidates(entry: Entry) -> Said:
    """The candidates that a verdict names have the ranges that the page shows."""
    verdict, estimate = entry["verdict"], entry["estimate"]
    if estimate is None or "Possible times: " not in verdict["sentence"]:
        return
    for bucket in verdict["candidates"]:
        known = estimate["ranges_ps"][bucket]
        range_ = between(known["low"], known["high"])
        if f"{bucket} {range_}" not in verdict["sentence"]:
            yield f"the verdict does not give {bucket} its range, {range_}"


Rule: TypeAlias = Callable[[Entry], Said]
RULES: tuple[Rule, ...] = (
    _bounds, _sums, _estimate, _costs, _every_epoch, _advice, _steps, _plan, _status, _passes,
    _recurs, _once_and_later, _figures, _healthy_figures, _candidates,
)  # fmt: skip


# ---------------------------------------------------------------- command


def report(found: Mapping[str, Sequence[str]]) -> str:
    """`contradictions: 0`, or how many and which."""
    lines = [f"  {name}: {text}" for name, texts in found.items() for text in texts]
    return "\n".join([f"contradictions: {len(lines)}", *lines])


def _entries(path: str) -> Iterator[Entry]:
    if path.endswith(".json"):
        yield from json.loads(Path(path).read_text("utf-8"))["runs"]
    else:
        yield from (analyze_one(run).entry for run in discover([path]).runs)


def main(paths: Sequence[str]) -> int:
    found = {
        f"{path} {entry['run']}#{entry['attempt']}": contradictions(entry)
        for path in paths
        for entry in _entries(path)
    }
    print(report(found))
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
