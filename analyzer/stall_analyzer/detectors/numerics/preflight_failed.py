"""The checks before the first epoch have found something.

What it finds
What `stall-analyze check` or `StallCallback(preflight=True)` found by trying one batch: NaN in the
data, labels or outputs that do not fit the loss, layers without a gradient, a batch that cannot be
memorized.

Why it stalls
A model that cannot learn sixteen examples will not learn the others either, however long it trains.

How it is measured
Before the first step, on copies: a batch goes through the model, and the model is trained on few
examples for up to 150 steps, at three rates, by an optimizer of the capture's own. The loss must
fall below what an answer costs that does not look at the inputs.

Example
Biases of -0.6 in front of relu: "gradients: none in dense", and the loss of sixteen examples stays
at 1.92, where always answering the same costs 1.91.

What to do
Fix what is named first: later checks fail for the reason of earlier ones. Then check again; it
takes seconds.

Blind spots
Whatever depends on the optimizer and its rate. Models with a train_step of their own, distribution
strategies and custom loops are not tried; custom losses have no known minimum.
"""

from __future__ import annotations

from stall_analyzer.captures.capture_format import CheckFault, CheckResult
from stall_analyzer.captures.capture_records import PreflightCheck
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.signals import Signals

ID = "ST329"
BUCKET = "numerics"

# Nothing can come of a training with one of these.
HOPELESS = (CheckFault.NOT_FINITE, CheckFault.NO_GRADIENT, CheckFault.CANNOT_FIT)

CHANGES = {
    CheckFault.NOT_FINITE: "Find out where NaN or infinity comes from, and take it out.",
    CheckFault.SAME_INPUTS: "Look at what the input pipeline makes of the examples.",
    CheckFault.LABELS: "Bring labels, last layer and loss together.",
    CheckFault.OUTPUTS: "Bring the last activation and the loss together.",
    CheckFault.NO_GRADIENT: "Look for what cuts the loss off from the weights.",
    CheckFault.UNREACHED: "Let the loss depend on these layers, or do not train them.",
    CheckFault.CANNOT_FIT: "Look for what keeps the inputs from reaching the outputs.",
}


def check(signals: Signals) -> Finding | None:
    found = _failed(signals)
    if not found:
        return None
    first = found[0]
    is_hopeless = any(check.fault in HOPELESS for check in found)
    return Finding(
        severity="act" if is_hopeless else "consider",
        title=f"Before the first epoch, a check failed: {first.name}",
        explanation=" ".join(f"{_begun(check.name)}: {check.text}." for check in found),
        change=Change(
            CHANGES.get(first.fault, "Fix what the checks have found."),
            after="stall-analyze check train.py",
        ),
        confidence=0.9 if is_hopeless else 0.7,
    )


def _failed(signals: Signals) -> list[PreflightCheck]:
    """Of the first fit that was checked."""
    capture = signals.capture
    records = capture.preflights if capture is not None else ()
    checks = records[0].checks if records else ()
    return [check for check in checks if check.result == CheckResult.FAILED]


def _begun(name: str) -> str:
    return name[:1].upper() + name[1:]
