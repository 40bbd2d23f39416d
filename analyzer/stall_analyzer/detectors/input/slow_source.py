"""Reading the data itself is slower than the step.

What it finds
A reader of records or lines (TFRecord, text, fixed-length, CSV) that holds up the step.

Why it stalls
A reader reads one file after another on one thread. It also decompresses files, at only about 100
MB/s. Network storage is slow to respond, too.

How it is measured
While the step waits for its batch, the wait is blamed on the innermost pipeline stage that is
running. That stage is the reader. A capture also counts what the process read from its disks in the
first epoch; divided by the time that training waited for input, this gives the highest rate at
which the disks can have delivered data.

Example
A single gzip TFRecord file: 0.7 ms a record in the reader, 20 ms a batch.

What to do
Split the data into several files and read them in parallel: `interleave` or `num_parallel_reads`.
Skip compression where the disk is fast. Store smaller records.

Blind spots
The trace does not show whether the time goes to the disk, the network or decompression. A capture
recognizes a disk that could deliver more, but cannot distinguish decompression from the network.
"""

from __future__ import annotations

from stall_analyzer.detectors.input.blamed_stage import blamed_stage
from stall_analyzer.detectors.input.stage_code import reader_code
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds, size
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.input.culprit import SOURCE
from stall_analyzer.signals.input.input_pipeline import Stage
from stall_analyzer.signals.signals import Signals

ID = "ST013"
BUCKET = "input"

# A single hard disk reads at least this fast sequentially; anything newer is far faster.
HARD_DISK_BYTES_A_S = 100_000_000
# Anything this small is metadata: the data itself came from elsewhere.
NO_READING_BYTES_A_S = 1_000_000
# At least, two readers on busy cores; at most, no decompression at all.
LEAST_TIMES = 1.3
MOST_TIMES = 20
_RECORDS = "tf.data.TFRecordDataset(shards, num_parallel_reads=tf.data.AUTOTUNE)"


def check(signals: Signals) -> Finding | None:
    blamed = blamed_stage(signals, SOURCE)
    if blamed is None:
        return None
    stage = blamed.stage
    each = seconds(stage.total_ps // max(stage.count, 1))
    files = "1 file" if stage.iterators == 1 else f"{stage.iterators} files"
    at_once = any(s.kind.startswith("ParallelInterleave") for s in signals.pipeline.around(stage))
    if at_once:
        how = (
            "Several files are already read in parallel, so storage or decompression is the limit."
        )
        advice = (
            "Store the records uncompressed or make them smaller, and keep them on storage closer "
            "to the machine."
        )
    elif not reader_code(stage, at_once=True):
        how = "One thread reads it all."
        advice = "Rewrite the data once as several TFRecord files and read those in parallel."
    else:
        how = "One thread does all the reading and any decompressing."
        advice = (
            "Split the data into several files and read them in parallel, without compression if "
            "the disk is fast."
        )
    return blamed.finding(
        title=f"Reading records ({stage.label}) takes {blamed.per_batch} a batch",
        explanation=(
            f"{blamed.opening(f'the reader {stage.label}')}: {each} a record, {files}. {how}"
            f"{_from_disks(signals)}"
        ),
        change=Change(advice, *_code(stage, at_once)),
        gain=blamed.if_faster(LEAST_TIMES, MOST_TIMES),
        sureness=0.85,
    )


def _code(stage: Stage, at_once: bool) -> tuple[str, str]:
    """Nothing where files are already read as fast as possible."""
    parallel = reader_code(stage, at_once=True)
    if at_once:
        return "", ""
    return reader_code(stage, at_once=False), parallel or _RECORDS


def _from_disks(signals: Signals) -> str:
    """For a run with a capture: whether the disks are what it waited for."""
    waited = signals.causes_ps["input.wait"]
    if signals.machine is None or signals.machine.read_bytes is None or waited == 0:
        return ""
    rate = signals.machine.read_bytes * PS_PER_S // waited
    if rate < NO_READING_BYTES_A_S:
        return " Almost nothing came from a disk: the data was in memory or on the network."
    if rate < HARD_DISK_BYTES_A_S:
        return (
            f" At most {size(rate)}/s came from the disks, less than a single hard disk can "
            f"deliver: more parallel reads would be faster."
        )
    return f" Up to {size(rate)}/s came from the disks, which may be their limit."
