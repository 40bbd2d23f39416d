"""The inputs are the same in every row, or contain NaN.

What it finds
Inputs without information: every feature has the same value in all rows of a batch, such as images
that are all zero, or texts in which every word is unknown. Also inputs that contain NaN or
infinities.

Why it stalls
From inputs that do not differ, the model can only learn how frequent each label is. One NaN among
the inputs makes every number computed from it NaN. In graphs on a CPU, relu turns NaN into 0, so
the loss looks healthy although the weights before the relu are lost.

How it is measured
A capture samples some batches on their way into the loss: up to 64 rows and 256 features of each.
Inputs that are not finite are always more than a note. Inputs without information are more than a
note only where the loss agrees, that is, where it does not move or does not get below the cost of a
constant answer.

Example
Pixels were divided by 255 twice and cast to integers: every pixel of every batch is 0, and the loss
stays at ln(10).

What to do
Print one batch as it leaves the input pipeline, after all scaling and encoding.

Blind spots
Models whose input is deliberately a placeholder get a note. Rare features that happen to be
constant in the sample cause no false alarm: all features must be constant.
"""

from __future__ import annotations

from stall_analyzer.detectors.numerics.loss_agrees import learns_nothing
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import percent
from stall_analyzer.signals.numerics.batch_look import LEAST_LOOKS, BatchLook, Values
from stall_analyzer.signals.signals import Signals

ID = "ST317"
BUCKET = "numerics"

PRINT_ONE = Change(
    "Look at one batch as it leaves the input pipeline, after all scaling and encoding.",
    before="model.fit(data)",
    after="x, y = next(iter(data))\n"
    "print(x.dtype, tf.reduce_min(x), tf.reduce_max(x), tf.math.reduce_std(x))",
)
REMOVE_NAN = Change(
    "Remove or replace NaN and infinite values before they reach the model.",
    before="model.fit(x, y)",
    after="x = np.nan_to_num(x)\nassert np.isfinite(x).all()\nmodel.fit(x, y)",
)


def check(signals: Signals) -> Finding | None:
    batches = signals.batches
    if batches is None or batches.inputs is None:
        return None
    if batches.inputs.not_finite_step is not None:
        return _not_finite(signals, batches.inputs, batches.inputs.not_finite_step)
    constant = batches.constant_inputs
    if len(constant) < LEAST_LOOKS or batches.rows < 2 or constant.min() < 1:
        return None
    return _constant(signals, batches, batches.inputs)


def _constant(signals: Signals, batches: BatchLook, inputs: Values) -> Finding:
    agrees = learns_nothing(signals)
    if inputs.is_constant:
        title = f"All inputs are {inputs.smallest:.4g}"
    else:
        title = "The inputs are the same in every row of a batch"
    return Finding(
        severity="act" if agrees else "note",
        title=title,
        explanation=(
            f"In each of the {batches.looks} sampled batches, every feature is the same in all "
            f"rows. From such inputs a model can only learn how frequent each label "
            f"is.{_outputs(batches)}"
        ),
        change=PRINT_ONE,
        confidence=0.95 if agrees else 0.6,
    )


def _outputs(batches: BatchLook) -> str:
    constant = batches.constant_outputs
    is_same = len(constant) > 0 and constant.min() == 1
    return " The outputs are the same for all rows, too." if is_same else ""


def _not_finite(signals: Signals, inputs: Values, step: int) -> Finding:
    agrees = learns_nothing(signals)
    share = percent(inputs.not_finite, 1)
    return Finding(
        severity="act" if agrees else "consider",
        title=f"The inputs contain NaN or infinite values (first seen in step {step})",
        explanation=(
            f"In the worst sampled batch, {share} of the inputs are NaN or infinite, and so is "
            f"what is computed from them. If the loss still looks healthy, relu has turned NaN "
            f"into 0, and the weights before the relu are lost."
        ),
        change=REMOVE_NAN,
        confidence=0.95,
    )
