"""Each element is read from a separate file, and opening files is what takes the time.

What it finds
A pipeline that opens a file for every element, or nearly every one: `tf.io.read_file` in a map, or
a record dataset made of a great many tiny files.

Why it stalls
Opening and closing a small file takes longer than reading its content; on network storage it takes
milliseconds per file. Reading one large file sequentially costs next to nothing.

How it is measured
While the step waits for its batch, the wait is blamed on the innermost pipeline stage that is
running. That stage is either a record reader that read many files with only a few records each, or
a map that ran ReadFile about once per element. In such a map, ReadFile must also have taken most of
the time of the map's ops, or the elements must be so small that nearly all of the map's time goes
to opening files and calling functions.

Example
24,000 files of 256 bytes took 47 µs each: 38 ms for a batch of 800.

What to do
Rewrite the data once as TFRecord files of 100 MB or more and read those, parsing whole batches.
Until then, read several files at once: `num_parallel_calls=tf.data.AUTOTUNE`.

Blind spots
Files in the operating system's cache are fast to open; the first run after a reboot is slower.
"""

from __future__ import annotations

from stall_analyzer.detectors.input.blamed_stage import blamed_stage
from stall_analyzer.detectors.input.stage_code import reader_code
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.input.culprit import SMALL_FILES, SOURCES, elements_per_batch, is_serial
from stall_analyzer.signals.signals import Signals

ID = "ST007"
BUCKET = "input"

# Records of one file arrive at the speed of the disk; they still have to be parsed.
LEAST_TIMES = 1.5
MOST_TIMES = 20


def check(signals: Signals) -> Finding | None:
    blamed = blamed_stage(signals, SMALL_FILES)
    if blamed is None:
        return None
    stage, pipeline = blamed.stage, signals.pipeline
    from_records = stage.kind.startswith(SOURCES)
    files = stage.iterators if from_records else pipeline.ops["ReadFile"].count
    per_batch = elements_per_batch(pipeline, stage)
    often = "every few elements" if stage.count > 2 * files else "nearly every element"
    serially = " They are read one after another." if is_serial(stage) else ""
    one_by_one = "tf.data.Dataset.list_files(pattern).map(read_one_file)"
    before = (from_records and reader_code(stage, at_once=False)) or one_by_one
    return blamed.finding(
        title=f"Opening small files takes {blamed.per_batch} a batch ({files} files in all)",
        explanation=(
            f"{blamed.opening(stage.label)}. It opens a file for {often}: {files} files, "
            f"{per_batch:.0f} elements a batch.{serially}"
        ),
        change=Change(
            "Pack the files once into a few TFRecord files and read those; parse whole batches at "
            "a time. Until then, read several files at once.",
            before=f"{before}  # {stage.label}",
            after="tf.data.TFRecordDataset(shards, num_parallel_reads=tf.data.AUTOTUNE)"
            ".batch(n).map(parse_batch)",
        ),
        gain=blamed.if_faster(LEAST_TIMES, MOST_TIMES),
        sureness=0.85,
    )
