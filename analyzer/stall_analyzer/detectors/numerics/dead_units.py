"""A layer is dead: it outputs nothing but zeros, or its weights no longer change.

What it finds
Layers with relu whose units are all dead: whatever the input, they output zero. Trainable layers
whose weights have stopped changing while other weights still change. And models in which no layer
at all gets a gradient although the loss has not reached its minimum.

Why it stalls
Where relu outputs zero, its gradient is zero, too. A unit that is zero for all inputs never gets an
update again, and if all units of a layer are zero, no gradient reaches the layers before it either:
the steps run, but nothing is learned. A single update that is too large can put a whole layer into
that state.

How it is measured
In a capture, by the share of each layer's units whose gradient was exactly zero over a batch; at
least the last eight measured steps must agree. If no unit of a layer has a gradient while the last
layer does, the layer is dead (a later layer that is fed only zeros looks the same); if 90% of its
units have no gradient, that is worth a note. If no layer gets a gradient, not even the last, and
the loss stays above its minimum, that is reported instead. A dump of TensorFlow's debugger in
FULL_HEALTH (or FULL_TENSOR) mode counts the zeros in every tensor: at least the last 20 outputs of
each Relu are examined. In a healthy layer, half of the values are zeros, and in a sparse one, nine
tenths; so only layers that output nothing but zeros count as dead, and 99% zeros are worth a note.
Histograms in event files show two signs: activations (recognized by their tag) that are all zero in
the last five records; and a trainable layer whose kernel has the same histogram, to the last bit,
in the last five records, while that of another weight changes.

Example
Pixels from 0 to 255 and SGD at 0.1: in the last 58 of 90 steps, all 1,024 outputs of the hidden
layer are zero, and the loss stays at the lowest value that the last layer's bias alone can reach.

What to do
Lower the learning rate, scale the inputs and start with He initialization. leaky_relu, elu and gelu
let a gradient through on their negative side, so units can recover. Units that were dead in the
first step were not killed by any update: look at the inputs and at the initial weights and biases.

Blind spots
Without a capture, a dump or histograms, nothing is known about activations. A dump cannot show dead
units among live ones: zeros are counted per tensor, not per unit. Ops that run eagerly have no
names to go by.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from stall_analyzer.detectors.numerics.rate_turns import turned_to
from stall_analyzer.model.event_log import KerasConfig
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import at_least
from stall_analyzer.model.units import Float64s
from stall_analyzer.signals.numerics.layer_series import LayerSeries
from stall_analyzer.signals.numerics.learning import FLAT_LEAST_STEPS
from stall_analyzer.signals.numerics.model_settings import CROSS_ENTROPIES
from stall_analyzer.signals.numerics.trend import trend_of
from stall_analyzer.signals.signals import Signals

ID = "ST312"
BUCKET = "numerics"

# A few batches may happen to leave a narrow layer without a positive value; this many do not.
LEAST_RUN = 20
# Usually there is one histogram per epoch.
LEAST_HISTOGRAMS = 5
# Each covers a whole batch, and they are not all consecutive.
LEAST_MEASURED = 8
# In a healthy layer with relu up to half of the units may be silent over a batch.
ALL, MOST = 0.999, 0.9
NAMED_MOST = 4
# A loss that moves by less than this, and by less than its scatter, is not moving.
STILL = 0.005
# Measured before any update can have killed a unit.
FIRST_STEPS = 2
# Losses that are 0 where the model is right, and how close to 0 float32 leaves no gradient.
ENDS_AT_ZERO = frozenset(
    {*CROSS_ENTROPIES, "mean_squared_error", "mean_absolute_error", "huber", "log_cosh"}
)
AT_ITS_END = 0.01

LOOK_AT_INPUTS = Change(
    "Check a batch, as the model receives it, for inputs that are all zero, NaN or far from 1; "
    "then check the initial weights and biases.",
    before="model.fit(x, y)",
    after="print(np.isfinite(x).all(), x.min(), x.max(), x.std())\nmodel.fit(x, y)",
)
LET_IT_THROUGH = Change(
    "Look for what blocks the gradient between the outputs and the loss: argmax, round, a cast to "
    "integers, tf.stop_gradient, or outputs that are clipped or saturated.",
    before="loss = loss_of(labels, tf.round(model(x)))",
    after="loss = loss_of(labels, model(x))",
)


def check(signals: Signals) -> Finding | None:
    return _of_capture(signals) or _of_dump(signals) or _of_histograms(signals)


def _of_capture(signals: Signals) -> Finding | None:
    shares = signals.layers.dead
    if shares is None or len(shares) < LEAST_MEASURED or len(shares.layers) < 2:
        return None
    *hidden, last = shares.layers
    alive = shares.value[:, -1:] < ALL
    if not alive[-LEAST_MEASURED:].all():
        return _nowhere(signals, shares)
    all_dead, most_dead = (shares.value >= ALL) & alive, (shares.value >= MOST) & alive
    runs = {layer: shares.last_run(layer, all_dead) for layer in hidden}
    dead = [layer for layer, run in runs.items() if run >= LEAST_MEASURED]
    if dead:
        run = max(runs[layer] for layer in dead)
        everywhere = len(dead) == len(hidden)
        from_start = run == len(shares) and shares.step[0] <= FIRST_STEPS
        still = everywhere or _stands_still(signals, int(shares.step[-1] - shares.step[-run]))
        return Finding(
            "act" if still else "consider",
            f"All units of {_named(dead)} are dead and get no gradient",
            f"In the last {run} measured steps, from step {shares.step[-run]:,} on, the gradient "
            f"of every unit of {_named(dead)} was exactly zero over the whole batch, while {last} "
            f"still had gradients. A layer that outputs only zeros lets no gradient through."
            + (f" Only {last} can still learn." if everywhere else "")
            + (
                " This was already the case before the first update, so no update caused it."
                if from_start
                else ""
            ),
            LOOK_AT_INPUTS if from_start else _change(signals),
            confidence=0.95,
        )
    mostly = [layer for layer in hidden if shares.last_run(layer, most_dead) >= LEAST_MEASURED]
    if not mostly:
        return None
    recent = shares.value[-LEAST_MEASURED:, shares.layers.index(mostly[0])]
    share = float(recent.min())
    learned_nothing = signals.learned_nothing
    return Finding(
        "act" if learned_nothing else "note",
        f"{at_least(share)} of the units of {mostly[0]} are dead",
        f"In at least the last {LEAST_MEASURED} measured steps, they got no gradient from any "
        f"example in the batch. "
        + (
            "The loss agrees: nothing is learned."
            if learned_nothing
            else "Some models are meant to be that sparse; if this one is not, the layer could do "
            "the same with a tenth of its units."
        ),
        _change(signals),
        confidence=0.7,
    )


def _nowhere(signals: Signals, shares: LayerSeries) -> Finding | None:
    """No layer has a gradient. At the minimum of the loss, that is as it should be."""
    learning, loss = signals.learning, signals.learning.last_loss
    if not (shares.value[-LEAST_MEASURED:] >= ALL).all() or loss is None or loss < AT_ITS_END:
        return None
    if not learning.is_flat(STILL) and not signals.learned_nothing:
        return None
    known = learning.settings.loss in ENDS_AT_ZERO
    return Finding(
        "act" if known else "consider",
        f"No layer gets a gradient, and the loss stays at {loss:.3g}",
        f"In at least the last {LEAST_MEASURED} measured steps, the gradient of every unit in "
        f"every layer was exactly zero over the whole batch."
        + (" The minimum of this loss is 0, so the model has not converged." if known else ""),
        LET_IT_THROUGH,
        confidence=0.9 if known else 0.6,
    )


def _of_dump(signals: Signals) -> Finding | None:
    dead = [zeros for zeros in signals.zero_outputs if zeros.all_run >= LEAST_RUN]
    nearly = [zeros for zeros in signals.zero_outputs if zeros.nearly_all_run >= LEAST_RUN]
    if dead:
        worst = max(dead, key=lambda zeros: zeros.all_run)
        rest = [zeros for zeros in dead if zeros is not worst]
        layers = _named([_layer_of(zeros.op, signals.keras) for zeros in (worst, *rest)])
        still = _stands_still(signals, worst.all_run)
        return Finding(
            "act" if still else "consider",
            f"All units of {layers} are dead: they output only zeros",
            f"In {_often(worst.all_run, worst.records)}, {worst.op} output only zeros. "
            "Where relu is zero, so is its gradient: this layer gets no updates, and neither do "
            "those that reach the loss only through it."
            + (" The loss has not moved in that time." if still else ""),
            _change(signals),
            confidence=0.9,
        )
    if nearly:
        worst = max(nearly, key=lambda zeros: zeros.nearly_all_run)
        return Finding(
            "note",
            f"At least 99% of the outputs of {_layer_of(worst.op, signals.keras)} are zero",
            f"That was the case in {_often(worst.nearly_all_run, worst.records)}. Some models are "
            "meant to be that sparse; if this one is not, most units of the layer are probably "
            "dead.",
            _change(signals),
            confidence=0.6,
        )
    return None


def _of_histograms(signals: Signals) -> Finding | None:
    histograms = signals.histograms
    for tag, sums in sorted(histograms.zero_activations.items()):
        if sums.zero_run >= LEAST_HISTOGRAMS:
            often = _often(sums.zero_run, sums.records, "records")
            return Finding(
                "consider",
                f"All activations of {tag} are zero",
                f"Its histogram contains nothing but zeros in {often}. Units that are zero for "
                f"every input get no gradient and never change again.",
                _change(signals),
                confidence=0.8,
            )
    kernels = histograms.still_kernels.items()
    still = [(layer, sums) for layer, sums in kernels if sums.same_run >= LEAST_HISTOGRAMS]
    if not still:
        return None
    layer, sums = still[0]  # the one next to the input
    loss_is_still = _is_same(signals.learning.epoch_losses[1 - sums.same_run :])
    return Finding(
        "act" if loss_is_still else "consider",
        f"The weights of {_named([layer for layer, _ in still])} no longer change",
        f"The histogram of {layer}'s kernel is the same in the last {sums.same_run} of "
        f"{sums.records} records, while other weights move. The layer is not frozen, so it "
        "must be getting no gradient: its units or those after it are dead, or it is not connected "
        "to the loss." + (" The loss has not moved in that time." if loss_is_still else ""),
        _change(signals),
        confidence=0.8,
    )


def _named(layers: Sequence[str]) -> str:
    if len(layers) > NAMED_MOST:
        return f"{layers[0]} and {len(layers) - 1} more layers"
    *most, last = layers
    return f"{', '.join(most)} and {last}" if most else last


def _often(run: int, count: int, what: str = "executions") -> str:
    return f"all {count:,} {what}" if run == count else f"the last {run:,} of {count:,} {what}"


def _stands_still(signals: Signals, steps: int) -> bool:
    """Has the loss stayed the same over the last `steps` steps?"""
    trend = trend_of(signals.learning.steps.value[-steps:])
    if trend is None or trend.count < FLAT_LEAST_STEPS:
        return False
    return abs(trend.fall) <= 2 * trend.error + STILL * abs(trend.early)


def _is_same(epoch_losses: Float64s) -> bool:
    """Has the loss stayed the same in these epochs, which run over the same data?"""
    if len(epoch_losses) < LEAST_HISTOGRAMS - 1 or not np.isfinite(epoch_losses).all():
        return False
    return bool(np.ptp(epoch_losses) <= STILL * abs(epoch_losses[0]))


def _layer_of(op: str, keras: KerasConfig | None) -> str:
    """`model/dense_1/Relu` is the output of model/dense_1.

    Keras appends a number to the scope of a layer that was called before: where the model is
    stored, its own name for the layer is used.
    """
    scope = op.rpartition("/")[0] or op
    last = scope.rpartition("/")[2]
    layers = [str(layer.get("name")) for layer in keras.layers] if keras is not None else []
    named = [name for name in layers if re.fullmatch(rf"{re.escape(name)}(_\d+)?", last)]
    return named[0] if len(named) == 1 else scope


def _change(signals: Signals) -> Change:
    rate, optimizer = signals.learning.rate, signals.learning.settings.optimizer or "Adam"
    to = signals.learning.lower_rate
    before = 'keras.layers.Dense(units, activation="relu")'
    after = 'keras.layers.Dense(units, activation="leaky_relu", kernel_initializer="he_normal")'
    lower = "Lower the learning rate"
    if rate is not None:
        lower += f" from {rate:.3g} to {to:.3g}"
        before += f"\nkeras.optimizers.{optimizer}(learning_rate={rate:.3g})"
        after += f"\nkeras.optimizers.{optimizer}(learning_rate={to:.3g})"
    return Change(
        f"{lower}, scale the inputs and start with He initialization; use an activation that lets "
        f"a gradient through on its negative side.",
        before,
        after,
        turned_to(to),
    )
