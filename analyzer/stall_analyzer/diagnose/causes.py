"""Which finding about learning explains which other: the right cause first.

A symptom says that nothing is learned; a cause says why. All detectors look at the run
independently, so one fault is often found three times: in the loss, in the gradients, in the stored
model. They are weighed against each other here and nowhere else. A cause silences what it explains
if it is at least as severe: a note about the model does not explain a loss that does not move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

from stall_analyzer.model.findings import Finding
from stall_analyzer.model.kinds import Severity

# Seen in the data itself, or in what the optimizer is given: certain.
MEASURED = ("ST316", "ST317", "ST318", "ST320", "ST321")
# What the stored model and its settings look like, with a loss that agrees: likely.
LINTS = ("ST323", "ST324", "ST325", "ST326", "ST328")

EXPLAINED_BY: Mapping[str, tuple[str, ...]] = {
    # The loss stays at a guess, or does not move: each of these says why.
    "ST305": ("ST307", "ST310", "ST312", "ST327", *MEASURED, *LINTS),
    # Units are dead: because the rate is too high, but not if the input is empty, batches of one
    # are normalized, biases start below zero, or the last layer lets nothing through. Saturated
    # units are not dead ones.
    "ST312": ("ST303", "ST307", "ST317", "ST320", "ST323", "ST325", "ST327", "ST328"),
    # Gradients vanish: because of saturated units or bad initial weights, or with nothing to learn.
    "ST310": ("ST317", "ST323", "ST327"),
    # The first loss is high: not because of its inputs, but because of its weights or a sum.
    "ST309": ("ST323", "ST328"),
    # The rate looks too high, or the loss explodes: a sum over the batch makes every update larger.
    # No rate is too high if clipping leaves almost nothing of the update.
    "ST303": ("ST324", "ST328"),
    "ST302": ("ST328",),
    # The rate looks too low, but it is what is left of the gradients that is too low.
    "ST304": ("ST324",),
    # The loss swings: it follows the order of the examples.
    "ST306": ("ST319", "ST328"),
    # What the model looks like matters little if the data or the rate is at fault.
    "ST307": ("ST304", "ST316"),
    **{lint: ("ST304", *MEASURED) for lint in LINTS if lint != "ST324"},
    "ST324": MEASURED,
    "ST327": ("ST323",),
    # One answer to all inputs: any other finding says why, or says it better.
    "ST330": (
        *("ST302", "ST303", "ST304", "ST305", "ST307", "ST310", "ST312", "ST327"),
        *MEASURED,
        *LINTS,
    ),
}
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # most severe first
NO_PROGRESS = "ST305"
ONE_BATCH = (
    " A one-minute test settles it: train on a single batch of 32 examples, before and after "
    "{what}. If the loss on this batch goes to 0 only after a change, that change removed the "
    "cause; if it goes to 0 either way, look at the labels."
)


def weighed(found: Mapping[str, Finding]) -> dict[str, Finding]:
    """Findings that no other explains, by id; in doubt, with the test that would decide."""
    kept = {id: finding for id, finding in found.items() if not _explained(id, found)}
    if NO_PROGRESS not in found or NO_PROGRESS in kept:
        return kept
    causes = [id for id in EXPLAINED_BY[NO_PROGRESS] if id in kept and _is_loud(kept[id])]
    if not causes or (len(causes) == 1 and causes[0] not in LINTS):
        return kept
    first, *others = causes
    titles = "; ".join(kept[id].title for id in others)
    each = "Each of these" if len(others) > 1 else "This"
    rest = f" {each} would have the same effect: {titles}." if others else ""
    what = "each change" if others else "the change"
    cause, decides = kept[first], ONE_BATCH.format(what=what)
    change = replace(cause.change, text=f"{cause.change.text}{decides}")
    explained = replace(cause, explanation=f"{cause.explanation}{rest}", change=change)
    return kept | {first: explained}


def _explained(id: str, found: Mapping[str, Finding]) -> bool:
    causes = [found[cause] for cause in EXPLAINED_BY.get(id, ()) if cause in found]
    return any(_loudness(cause) <= _loudness(found[id]) for cause in causes)


def _is_loud(finding: Finding) -> bool:
    return finding.severity != SEVERITIES[-1]


def _loudness(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)
