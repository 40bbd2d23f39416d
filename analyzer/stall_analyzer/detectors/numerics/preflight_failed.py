"""The checks before the first epoch found a problem.

What it finds
What `stall-analyze check` or `StallCallback(preflight=True)` found by trying one batch: NaN in the
data, labels or outputs that do not fit the loss, layers without a gradient, or a few examples that
the model cannot memorize.

Why it stalls
A model that cannot learn sixteen examples will not learn the rest either, however long it trains.

How it is measured
The checks run before the first step, and everything that they change is restored. A batch is run
through the model, and the model is trained on a few examples with the capture's own optimizer, for
up to 150 steps at each of up to three learning rates. The loss must fall below the cost of an
answer that ignores the inputs.

Example
Biases of -0.6 before relu: "gradients: none in dense", and the loss of sixteen examples stays at
1.92, while always giving the same answer costs 1.91.

What to do
Fix the problem that is named first: later checks often fail for the same reason as earlier ones.
Then check again; it takes seconds.

Blind spots
The checks cannot show anything that depends on your optimizer and its learning rate. With a custom
train_step, only the data is checked; under a distribution strategy or in a custom loop, nothing is.
The minimum of a custom loss is not known.
"""

from __future__ import annotations

from stall_analyzer.captures.capture_format import CHECK_TITLES, CheckFault, CheckResult
from stall_analyzer.captures.capture_records import PreflightCheck
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.signals import Signals

ID = "ST329"
BUCKET = "numerics"

# Training cannot succeed with one of these.
HOPELESS = (CheckFault.NOT_FINITE, CheckFault.NO_GRADIENT, CheckFault.CANNOT_FIT)

CHANGES = {
    CheckFault.NOT_FINITE: "Find out where the NaN or infinity comes from, and remove it.",
    CheckFault.SAME_INPUTS: "Look at the examples as they leave the input pipeline.",
    CheckFault.LABELS: "Make the labels, the last layer and the loss fit together.",
    CheckFault.OUTPUTS: "Make the last activation and the loss fit together.",
    CheckFault.NO_GRADIENT: "Look for what cuts the loss off from the weights.",
    CheckFault.UNREACHED: "Make the loss depend on these layers, or do not train them.",
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
        title=f"Before the first epoch, a check failed: {_title(first)}",
        explanation=" ".join(f"{_begun(_title(check))}: {check.text}." for check in found),
        change=Change(
            CHANGES.get(first.fault, "Fix what the checks found."),
            after="stall-analyze check train.py",
        ),
        confidence=0.9 if is_hopeless else 0.7,
    )


def _failed(signals: Signals) -> list[PreflightCheck]:
    """The checks that failed, in the first fit that was checked."""
    capture = signals.capture
    records = capture.preflights if capture is not None else ()
    checks = records[0].checks if records else ()
    return [check for check in checks if check.result == CheckResult.FAILED]


def _title(check: PreflightCheck) -> str:
    return CHECK_TITLES.get(check.name, check.name)


def _begun(name: str) -> str:
    return name[:1].upper() + name[1:]
