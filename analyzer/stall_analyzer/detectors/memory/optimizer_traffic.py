"""Most of the computation is the optimizer moving large variables through memory.

What it finds
Steps that spend most of their op time in the optimizer's element-wise updates.

Why it stalls
Adam reads and writes each variable, its gradient and two slots several times per step, whatever the
batch size. With a large embedding or dense layer and a small batch, that is far more memory traffic
than the model itself needs. Under Adam, Keras updates every row of an embedding even if the batch
used only a few; plain SGD touches only those.

How it is measured
Self time of element-wise ops under the optimizer's name (`adam/…`), compared with all ops in the
trace.

Example
An embedding of 60,000 words under Adam, with batches of 64: the optimizer took 87% of the op time.

What to do
If the model has a large embedding, use SGD, or fewer rows (a smaller vocabulary, hashing).
Otherwise, use a larger batch, which spreads the cost of the same update over more examples.

Blind spots
When XLA fuses the updates, no event names them. Changing the optimizer or the batch changes how the
model learns; only you can judge that.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.larger_batch import room_for_larger_batch
from stall_analyzer.detectors.severity import CONSIDER_SHARE
from stall_analyzer.model.event_log import KerasConfig
from stall_analyzer.model.findings import Change, Finding, Gain, Turn
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.signals.signals import Signals

ID = "ST206"
BUCKET = "compute"

# In ordinary training the optimizer takes up to a third of the op time; more than half means that
# the variables are large for such a small batch.
OPTIMIZER_SHARE = 0.5
# Optimizers whose Keras update touches only the rows of an embedding that the batch used.
ROW_WISE = frozenset({"SGD"})


def check(signals: Signals) -> Finding | None:
    ops = signals.ops
    if ops.op_ps == 0 or ops.optimizer_ps < OPTIMIZER_SHARE * ops.op_ps:
        return None
    # Ops run side by side; the optimizer's share of them is its share of the time they took.
    lost = signals.causes_ps["compute.step"] * ops.optimizer_ps // ops.op_ps
    if signals.share(lost) < CONSIDER_SHARE:
        return None
    embedding = _embedding(signals.keras)
    made = _made_for_slots_ps(signals) if embedding else 0
    again = partly(lost, 0.7, 1.0) if embedding else partly(lost, 0.3, 0.6)
    gain = again + Gain(0, made)
    return Finding(
        severity="consider",
        title=(
            f"The optimizer's updates take {seconds(lost)}, "
            f"{percent(ops.optimizer_ps, ops.op_ps)} of the op time"
        ),
        explanation=(
            f"About {seconds(lost)} of the first epoch went to element-wise ops of the "
            f"{_optimizer(signals.keras)}. In every step, these ops go through whole variables and "
            f"their slots at the speed of the memory, whatever the batch size."
            + (f" The largest embedding is {embedding}." if embedding else "")
            + room_for_larger_batch(signals)
        ),
        change=_change(embedding),
        lost_ps=lost + made,
        blames=("compute", "compile") if made else (),
        gain=gain,
        later_gain=every_epoch(again, signals),
        confidence=0.6,
        evidence=signals.evidence_of("compute.step", "ops of a step, most of them updates"),
    )


def _optimizer(keras: KerasConfig | None) -> str:
    return f"optimizer ({keras.optimizer})" if keras and keras.optimizer else "optimizer"


def _made_for_slots_ps(signals: Signals) -> int:
    """Slots are variables: creating them costs time, and often a second trace. SGD has none."""
    spare = [f.first.spare_trace_ps for f in signals.functions if f.trains and f.first is not None]
    return signals.causes_ps["compile.variable_init"] + sum(spare)


def _embedding(keras: KerasConfig | None) -> str:
    """The largest embedding of the stored model, in words, if its optimizer updates all rows."""
    if keras is None or keras.optimizer in ROW_WISE:
        return ""
    rows = {
        str(layer.get("name")): count
        for layer in keras.layers
        if layer.get("class_name") == "Embedding"
        and isinstance(count := layer.get("input_dim"), int)
    }
    if not rows:
        return ""
    widest = max(rows, key=lambda name: rows[name])
    return f"layer {widest!r} with {rows[widest]:,} rows"


def _change(embedding: str) -> Change:
    if embedding:
        return Change(
            "Use an optimizer that touches only the rows that a batch uses, or make the table "
            "smaller. Adam updates every row in every step, including those that the batch did "
            "not use.",
            'model.compile("adam", loss)',
            "model.compile(keras.optimizers.SGD(0.1), loss)\n"
            "# or fewer rows\n"
            "keras.layers.Hashing(num_bins=10_000)",
            turns=(Turn("learning rate", "0.1"),),
        )
    return Change(
        "Use a larger batch: an update costs the same for 1,000 examples as for 100. The learning "
        "rate may have to grow with it.",
        "data = data.batch(size)",
        "data = data.batch(size * 2)",
        turns=(Turn("batch size", "up"),),
    )
