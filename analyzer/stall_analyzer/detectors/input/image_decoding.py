"""Decoding images keeps all cores busy, and training still waits for it.

What it finds
A parallel map that holds up the step and spends most of its time in image decoding ops.

Why it stalls
The cost of decoding depends on the pixels stored, not on those used: a 4000 x 3000 photo that is
shrunk to 224 x 224 is decoded in full.

How it is measured
While the step waits for its batch, the wait is blamed on the innermost pipeline stage that is
running. That stage is a parallel map, and most of the time in map functions goes to DecodeJpeg,
DecodePng and similar ops.

Example
`decode_jpeg`, then `resize` from 700 x 700 to 128 x 128: 6 ms per image, 85% of it decoding.

What to do
Store the images at the size the model needs. Or use `tf.io.decode_jpeg` with ratio=2, 4 or 8, which
decodes to a fraction of the size; `decode_and_crop_jpeg` for crops; or `cache()` after decoding if
the result fits in memory.

Blind spots
A map that runs serially is reported as serial_map instead, because that is easier to change.
"""

from __future__ import annotations

from stall_analyzer.detectors.input.blamed_stage import blamed_stage
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import counted, percent, seconds
from stall_analyzer.signals.input.culprit import DECODE_OPS, DECODING, op_share
from stall_analyzer.signals.signals import Signals

ID = "ST008"
BUCKET = "input"

# Half the size is decoded in well under half the time; an image stored at the size needed costs
# little.
LEAST_TIMES = 1.3
MOST_TIMES = 20


def check(signals: Signals) -> Finding | None:
    blamed = blamed_stage(signals, DECODING)
    if blamed is None:
        return None
    pipeline = signals.pipeline
    share = percent(op_share(pipeline, *DECODE_OPS), 1)
    ops = [pipeline.ops[kind] for kind in DECODE_OPS if kind in pipeline.ops]
    count, spent = sum(op.count for op in ops), sum(op.total_ps for op in ops)
    cores = f" on {pipeline.cores} cores" if pipeline.cores else ""
    return blamed.finding(
        title=(
            f"Decoding an image takes {seconds(spent // max(count, 1))}, {share} of the map's time"
        ),
        explanation=(
            f"{blamed.opening(blamed.stage.label)}; it already runs in parallel{cores}, and "
            f"{share} of its time is decoding ({counted(count, 'image')})."
        ),
        change=Change(
            "Decode fewer pixels: store the images at the size the model uses, or let the decoder "
            "shrink them. If the decoded images fit in memory, cache() them for the later epochs.",
            before="tf.image.resize(tf.io.decode_jpeg(data), size)",
            after="tf.io.decode_jpeg(data_stored_at_size)\n# or decode to a fraction of the size\n"
            "tf.image.resize(tf.io.decode_jpeg(data, ratio=4), size)",
        ),
        gain=blamed.if_faster(LEAST_TIMES, MOST_TIMES),
        sureness=0.85,
    )
