"""Which stage of the input pipeline kept training waiting, and what makes it slow.

Only one reason is named, and only if it explains most of the wait: advice about a stage that does
not hold up the others changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stall_analyzer.model.intervals import total
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import PS_PER_MS, PS_PER_US
from stall_analyzer.signals.input.input_pipeline import PASSING, PipelineSignals, Spans, Stage

GENERATOR = "generator"
PYTHON_FUNCTION = "Python function"
SMALL_FILES = "small files"
DECODING = "decoding"
SERIAL_MAP = "serial map"
TINY_ELEMENTS = "tiny elements"
HEAVY_MAP = "heavy map"
SOURCE = "source"
OTHER = "other"

# Less than half of the wait is not *the* reason for it.
MOST = 0.5
# If other stages keep at least this share of the other cores busy, a serial stage cannot use them.
# The saving that ST003 predicts counts on the rest.
OTHER_CORES_BUSY = 0.6
# A batch that takes less time than this is late only because threads take time to wake each other.
BATCH_LEAST_PS = PS_PER_MS
# Starting a function takes tf.data 20 to 50 µs. A map that takes little more than that spends most
# of its time starting functions.
TINY_ELEMENT_PS = 100 * PS_PER_US
# With fewer elements than this in a batch, starting a function for each of them costs little.
TINY_ELEMENTS_LEAST = 16
# At least this many files with so few elements in each are not meant to be read sequentially.
SMALL_FILES_LEAST = 50
ELEMENTS_PER_SMALL_FILE = 4

MAPS = ("Map", "ParallelMap", "Filter", "ParallelFilter", "Scan")
# Stages that give more or fewer elements than they get, besides those that make batches.
CHANGES_COUNT = ("Filter", "ParallelFilter", "FlatMap", "Interleave", "ParallelInterleave",
                 "Unbatch", "Window", "GroupBy", "Rebatch", "Zip", "Directed")  # fmt: skip
# Stages that keep what they get, for the later epochs.
STORES = ("MemoryCache", "FileCache", "Cache", "Snapshot")
SOURCES = ("TFRecord", "TextLine", "FixedLengthRecord", "CSV", "Csv", "SSTable", "Sql")
DECODE_OPS = (
    "DecodeJpeg", "DecodePng", "DecodeImage", "DecodeAndCropJpeg", "DecodeGif", "DecodeBmp",
    "DecodeWebP",
)  # fmt: skip


@dataclass(frozen=True)
class Culprit:
    """The stage that training waited for, and what makes it slow."""

    stage: Stage  # the slowest of those that are slow for this reason
    reason: str
    share: float  # of the wait, for all of those
    per_batch_ps: int
    below_shuffle: bool  # a shuffle buffer had to be filled through it
    next: Stage | None = None  # one that is slow for another reason and explains most of the rest

    @property
    def is_python(self) -> bool:
        """Whether it holds the interpreter's lock, which training needs, too."""
        return self.reason in (GENERATOR, PYTHON_FUNCTION)


def culprit_of(pipeline: PipelineSignals, during: Spans) -> Culprit | None:
    """The reason that explains most of `during`."""
    waited = total(*during)
    if not waited:
        return None
    own = pipeline.own_ps(during)
    working = [s for s in pipeline.stages if s.kind not in PASSING and own[s.path] > 0]
    if not working:
        return None
    reasons = {s.path: _reason(s, pipeline) for s in working}
    sums = dict.fromkeys(reasons.values(), 0)
    for stage in working:
        sums[reasons[stage.path]] += own[stage.path]
    if {SERIAL_MAP, HEAVY_MAP} <= sums.keys() and _others_use_the_cores(working, pipeline):
        sums[HEAVY_MAP] += sums.pop(SERIAL_MAP)
        working = [s for s in working if reasons[s.path] != SERIAL_MAP]
    reason = max(sums, key=lambda r: sums[r])
    if reason == OTHER or sums[reason] < MOST * waited:
        return None
    worst = max((s for s in working if reasons[s.path] == reason), key=lambda s: own[s.path])
    others = [s for s in working if reasons[s.path] not in (reason, OTHER)]
    second = max(others, key=lambda s: own[s.path], default=None)
    left = waited - sums[reason]
    share = min(sums[reason] / waited, 1.0)
    per_batch = round(share * pipeline.produce_ps(worst))
    if per_batch < BATCH_LEAST_PS:
        return None
    return Culprit(
        stage=worst,
        reason=reason,
        share=share,
        per_batch_ps=per_batch,
        below_shuffle=any(s.kind.startswith("Shuffle") for s in pipeline.around(worst)),
        next=second if second is not None and own[second.path] > max(MOST * left, 0) else None,
    )


def python_beside(pipeline: PipelineSignals) -> Culprit | None:
    """Python that makes batches in time: training waits only for the interpreter, not for them."""
    in_python = [s for s in pipeline.stages if _reason(s, pipeline) in (GENERATOR, PYTHON_FUNCTION)]
    worst = max(in_python, key=lambda s: s.total_ps, default=None)
    if worst is None or pipeline.produce_ps(worst) < BATCH_LEAST_PS:
        return None
    return Culprit(worst, _reason(worst, pipeline), 1.0, pipeline.produce_ps(worst), False)


def waited_ps(causes_ps: Mapping[str, int], culprit: Culprit) -> int:
    """What the culprit costs the first epoch: the waits, and filling a buffer above it."""
    fill = causes_ps["input.shuffle_fill"] if culprit.below_shuffle else 0
    return causes_ps["input.wait"] + fill


def is_map(stage: Stage) -> bool:
    return stage.kind.startswith(MAPS)


def is_serial(stage: Stage) -> bool:
    """Whether it ran one element at a time, by default or because it was told to."""
    parallel = stage.kind.startswith(("Parallel", "MapAndBatch"))
    return not parallel or stage.parameters.get("parallelism") == 1


def op_share(pipeline: PipelineSignals, *kinds: str) -> float:
    """The share of the time in map functions that these ops took."""
    spent = sum(pipeline.ops[kind].total_ps for kind in kinds if kind in pipeline.ops)
    return min(spent / pipeline.functions_ps, 1.0) if pipeline.functions_ps else 0.0


def _python_share(pipeline: PipelineSignals) -> float:
    """The share of the time in map functions that was spent in Python."""
    generators = sum(s.total_ps for s in pipeline.of_kind("Generator"))
    in_functions = pipeline.functions_ps - generators
    return (pipeline.python_ps - generators) / in_functions if in_functions > 0 else 0.0


def _reason(stage: Stage, pipeline: PipelineSignals) -> str:
    if stage.kind.startswith("Generator"):
        return GENERATOR
    if stage.kind.startswith(SOURCES):
        many = stage.iterators >= SMALL_FILES_LEAST
        few_each = stage.count <= ELEMENTS_PER_SMALL_FILE * stage.iterators
        return SMALL_FILES if many and few_each else SOURCE
    if not is_map(stage):
        return OTHER
    if _python_share(pipeline) >= MOST:
        return PYTHON_FUNCTION
    elements, tiny = elements_into(stage, pipeline), _is_tiny(stage, pipeline)
    reads = pipeline.ops.get("ReadFile")
    file_each = reads is not None and reads.count >= MOST * elements
    reading = tiny or op_share(pipeline, "ReadFile") >= MOST
    if file_each and reading and elements >= SMALL_FILES_LEAST:
        return SMALL_FILES
    if is_serial(stage):
        return TINY_ELEMENTS if tiny else SERIAL_MAP
    if op_share(pipeline, *DECODE_OPS) >= MOST:
        return DECODING
    if tiny:
        return TINY_ELEMENTS
    own = stage.total_ps - _below_ps(stage, pipeline)
    return HEAVY_MAP if pipeline.functions_ps >= MOST * own * (pipeline.cores or 1) else OTHER


def _others_use_the_cores(working: Sequence[Stage], pipeline: PipelineSignals) -> bool:
    """Whether functions of stages that run in parallel keep the other cores busy. Then a stage that
    runs serially is slow because it waits for a core, and would gain nothing from several."""
    serial = sum(s.total_ps - _below_ps(s, pipeline) for s in working if is_map(s) and is_serial(s))
    others = (pipeline.cores or 1) - 1
    busy = OTHER_CORES_BUSY * others * total(*pipeline.busy_spans)
    return others > 0 and pipeline.functions_ps - serial >= busy


def _is_tiny(stage: Stage, pipeline: PipelineSignals) -> bool:
    """Whether a batch is made of many elements that take no longer than starting their functions.

    On a busy machine, starting takes even longer; then the functions themselves show that they are
    short, and that most of the stage's time is spent around them.
    """
    if elements_per_batch(pipeline, stage) < TINY_ELEMENTS_LEAST:
        return False
    own = stage.total_ps - _below_ps(stage, pipeline)
    short = TINY_ELEMENT_PS * elements_into(stage, pipeline)
    around = 0 < pipeline.functions_ps < min(short, (1 - MOST) * own)
    return own < short or around


def elements_into(stage: Stage, pipeline: PipelineSignals) -> int:
    """How often its function ran: a fused map and batch counts batches, and a filter counts only
    the elements that pass."""
    if stage.kind.startswith("MapAndBatch"):
        return stage.count * stage.parameters.get("batch_size", 1)
    below = [s.count for s in pipeline.stages if s.parent == stage.path]
    filters = stage.kind.startswith(("Filter", "ParallelFilter"))
    return max(below) if filters and below else stage.count


def elements_per_batch(pipeline: PipelineSignals, stage: Stage) -> float:
    """How many elements of the stage make one batch.

    Counts are a little off: they include the call that finds the end of the data, and what was read
    ahead for a batch that nobody asked for. So the batch size itself comes first.
    """
    around = pipeline.around(stage)
    sizes = [s.parameters["batch_size"] for s in around if "batch_size" in s.parameters]
    plain = not any(s.kind.startswith(CHANGES_COUNT) for s in (stage, *around))
    if stage.kind.startswith("MapAndBatch"):
        sizes.append(stage.parameters.get("batch_size", 1))
    if sizes and plain:
        return float(np.prod(sizes))
    batches = next((s for s in around if s.kind not in PASSING), stage).count
    return elements_into(stage, pipeline) / batches if batches else 0.0


def _below_ps(stage: Stage, pipeline: PipelineSignals) -> int:
    return sum(s.total_ps for s in pipeline.stages if s.parent == stage.path)
