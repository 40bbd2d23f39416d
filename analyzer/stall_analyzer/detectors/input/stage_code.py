"""The code of a stage as its user would write it, with calls and arguments that exist."""

from __future__ import annotations

from stall_analyzer.signals.input.culprit import STORES
from stall_analyzer.signals.input.input_pipeline import PipelineSignals, Stage

PARALLEL = "num_parallel_calls=tf.data.AUTOTUNE"

# Stages other than Batch that make batches of elements.
_BATCH_CALLS = {"PaddedBatch": "padded_batch(n)", "GroupByWindow": "group_by_window(**buckets)"}
_READERS = {
    "TFRecord": "tf.data.TFRecordDataset(shards{})",
    "TextLine": "tf.data.TextLineDataset(shards{})",
    "FixedLengthRecord": "tf.data.FixedLengthRecordDataset(shards, record_bytes{})",
}
_CSV = "tf.data.experimental.CsvDataset({}, record_defaults)"


def is_filter(stage: Stage) -> bool:
    return stage.kind.startswith(("Filter", "ParallelFilter"))


def is_scan(stage: Stage) -> bool:
    return stage.kind.startswith("Scan")


def call_of(stage: Stage, function: str = "f") -> str:
    """`map(f)`, without parallel calls."""
    if is_filter(stage):
        return f"filter({function})"
    return f"scan(state, {function})" if is_scan(stage) else f"map({function})"


def parallel_call_of(stage: Stage, function: str = "f") -> str:
    """`map(f, num_parallel_calls=…)`; filter and scan have no such argument."""
    if is_filter(stage) or is_scan(stage):
        return call_of(stage, function)
    return f"map({function}, {PARALLEL})"


def batch_call_around(pipeline: PipelineSignals, stage: Stage) -> str:
    """How the pipeline makes batches of the stage's output."""
    kinds = [around.kind for around in pipeline.around(stage)]
    found = (call for kind, call in _BATCH_CALLS.items() if any(k.startswith(kind) for k in kinds))
    return next(found, "batch(n)")


def cached_code(pipeline: PipelineSignals, stage: Stage, cache: str) -> tuple[str, str]:
    """A map without and with this cache after it. A shuffle goes after the cache: before it, every
    epoch would have the same order."""
    shuffles = [s for s in pipeline.below(stage) if s.kind.startswith("Shuffle")]
    shuffle = "shuffle(k)." if shuffles else ""
    batch = batch_call_around(pipeline, stage)
    return (
        f"ds.{shuffle}{call_of(stage)}.{batch}  # {stage.label}",
        f"ds.{parallel_call_of(stage)}.{cache}.{shuffle}{batch}",
    )


def is_stored(pipeline: PipelineSignals, stage: Stage) -> bool:
    """Whether a cache or a snapshot keeps the stage's output."""
    return any(around.kind.startswith(STORES) for around in pipeline.around(stage))


def reader_code(stage: Stage, *, at_once: bool) -> str:
    """A reader of many files, one after another or several at once; empty for other readers."""
    for kind, code in _READERS.items():
        if stage.kind.startswith(kind):
            return code.format(", num_parallel_reads=tf.data.AUTOTUNE" if at_once else "")
    if not stage.kind.upper().startswith("CSV"):
        return ""
    if not at_once:
        return _CSV.format("shards")
    return (
        "tf.data.Dataset.from_tensor_slices(shards).interleave(\n"
        f"    lambda path: {_CSV.format('path')},\n    {PARALLEL})"
    )
