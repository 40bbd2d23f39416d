"""Nothing is prefetched: no batch is produced while a step computes.

What it finds
A pipeline in which no stage works ahead, so that the step waits for each whole batch to be
produced.

Why it stalls
A batch that is produced only when asked for cannot be produced while the previous step is still
computing.

How it is measured
Neither a `Prefetch` nor a parallel stage is among the stages that ran. The cost is the part of the
wait that could have been hidden behind the step.

Example
A batch took 20 ms to produce and 15 ms to compute: 35 ms a step, although 20 ms would be enough.

What to do
End the pipeline with `.prefetch(tf.data.AUTOTUNE)`. tf.data usually adds a prefetch by itself, but
not where its autotuning or its graph rewrites are turned off.

Blind spots
A PyDataset with several workers fills its own queue, which no trace shows, so a pipeline that
consists of a generator alone is not reported.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding, Gain
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "ST004"
BUCKET = "input"

SURE_SHARE = 0.7  # producing while the step runs also takes cores from it


def check(signals: Signals) -> Finding | None:
    pipeline = signals.pipeline
    if pipeline.works_ahead:
        return None
    produce = signals.produce_ps()
    one_ahead = signals.hidden_if_ahead_ps(produce)
    severity = severity_of(signals.share(one_ahead))
    if severity is None:
        return None
    lost = max(one_ahead, signals.hidden_if_far_ahead_ps(produce))
    gain = Gain(round(one_ahead * SURE_SHARE), lost)
    return Finding(
        severity=severity,
        title=f"Nothing is prefetched: {seconds(lost)} of input work could hide behind the steps",
        explanation=(
            f"Producing a batch takes {seconds(produce)} and starts only when the step "
            f"asks for it; no stage of the pipeline works ahead. {seconds(lost)} of the wait "
            f"could be hidden behind the steps."
        ),
        change=Change(
            "End the pipeline with prefetch.",
            before="ds = ds.batch(n)",
            after="ds = ds.batch(n).prefetch(tf.data.AUTOTUNE)",
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.8,
        evidence=signals.evidence_of("input.wait", "waits for a batch to be produced"),
    )
