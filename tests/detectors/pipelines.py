"""Made-up runs with an input pipeline, for the tests of the input detectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stall_analyzer.signals.signals import Signals
from tests.detectors.training import signals_for
from tests.traces import TRAIN_OPS, call, event, host, ops, timeline_of
from tests.xspace import Event, Value

STEPS = 40


@dataclass(frozen=True)
class Stage:
    """A stage on some thread; it takes up `share` of each wait, in `elements` equal parts."""

    path: str  # "[*]" stands for the number of an inner iterator, another one for each element
    share: float = 1.0
    elements: int = 1
    stats: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """Steps that wait and then compute; the pipeline works during the wait."""

    consumer: Sequence[Stage]
    producer: Sequence[Stage] = ()
    functions: Sequence[str] = ()  # ops of map functions, which fill the wait
    wait_ms: float = 20
    work_ms: float = 5
    first_wait_ms: float | None = None
    background_ms: float = 0  # of producing during a step that does not wait
    between_ms: float = 0
    never_rests: bool = False  # the functions also run during the step, and between the steps
    made_at: Sequence[int] = ()  # steps before which an iterator is created, in 300 ms

    def signals(self, folder: Path) -> Signals:
        lines: dict[str, list[Event]] = {name: [] for name in THREADS}
        now = 0.0
        for step in range(STEPS):
            if step in self.made_at:
                lines["python"] += [event("EagerLocalExecute: MakeIterator", now, now + 300)]
                now += 300
            wait = self.first_wait_ms if self.first_wait_ms and not step else self.wait_ms
            got, done = now + wait, now + wait + self.work_ms
            run = step + 1
            lines["python"] += call(now, done, run)
            lines["tf_Compute"] += ops(got, done, run, *TRAIN_OPS)
            if self.background_ms and not wait:
                hidden = nested(self.producer, now, now + self.background_ms)
                lines["tf_data_iterator_resource"] += hidden
            if wait:
                reading = event("IteratorGetNextOp::DoCompute", now, got, id=run)
                lines["tf_data_iterator_get_next"] += [reading, *nested(self.consumer, now, got)]
                lines["tf_data_iterator_resource"] += nested(self.producer, now, got)
            if wait and self.functions:
                until = done + self.between_ms if self.never_rests else got
                lines["tf_data_private_threadpool"] += ops(now, until, 9000 + run, *self.functions)
            now = done + self.between_ms
        timeline = timeline_of(folder, host(*lines.items()))
        return signals_for(timeline)


THREADS = (
    "python", "tf_Compute", "tf_data_iterator_get_next", "tf_data_iterator_resource",
    "tf_data_private_threadpool",
)  # fmt: skip


def nested(stages: Sequence[Stage], start: float, end: float) -> list[Event]:
    found = []
    for stage in stages:
        width = (end - start) * stage.share / stage.elements
        for n in range(stage.elements):
            at = start + (end - start) * n / stage.elements
            path = stage.path.replace("[*]", f"[{round(at * 1000)}]")
            found.append(Event(f"Iterator::{path}", at * 1e6, width * 1e6, stage.stats))
    return found


ROOT = Stage("Root", stats={"cpu_budget": 2})
PREFETCH = (ROOT, Stage("Root::Prefetch", stats={"name": "inject/prefetch_x"}))
PYTHON = ("PyFunc:PyFunc",)
NATIVE = ("mul:Mul", "fft:FFT2D")
DECODE = ("DecodeJpeg:DecodeJpeg",)


def map_stage(kind: str, share: float = 0.99, elements: int = 1, **stats: Value) -> Stage:
    return Stage(f"Root::Prefetch::{kind}", share, elements, {"name": "MapDataset:1", **stats})


def below_prefetch(*stages: Stage, functions: Sequence[str] = (), **options: float) -> Program:
    return Program(PREFETCH, stages, functions, **options)  # type: ignore[arg-type]


PYTHON_MAP = below_prefetch(map_stage("Map"), functions=PYTHON)
GENERATOR = below_prefetch(
    Stage("Root::Prefetch::FlatMap", 0.999),
    Stage("Root::Prefetch::FlatMap[0]::Generator", 0.99, 1, {"name": "GeneratorDataset:2"}),
    functions=PYTHON,
)
SERIAL_MAP = below_prefetch(map_stage("Map"), functions=NATIVE)
PARALLEL_MAP = below_prefetch(map_stage("ParallelMapV2", parallelism=2), functions=NATIVE * 2)
DECODING_MAP = below_prefetch(map_stage("ParallelMapV2", parallelism=2), functions=DECODE)
UNBATCHED_MAP = below_prefetch(
    Stage("Root::Prefetch::BatchV2", 0.999, 1, {"batch_size": 400}),
    Stage("Root::Prefetch::BatchV2::Map", 0.99, 400, {"name": "MapDataset:1"}),
)
FILES = Program(
    PREFETCH,
    (
        Stage("Root::Prefetch::BatchV2", 0.999, 1, {"batch_size": 8}),
        Stage("Root::Prefetch::BatchV2::Map", 0.99, 8, {"name": "MapDataset:1"}),
    ),
    tuple(f"read{n}:ReadFile" for n in range(8)),
)
RECORDS = below_prefetch(
    Stage("Root::Prefetch::Map", 0.999, 1, {"name": "MapDataset:1"}),
    Stage("Root::Prefetch::Map::TFRecord", 0.9, 1, {"name": "TFRecordDataset:0"}),
)
TINY_RECORD_FILES = below_prefetch(
    Stage("Root::Prefetch::FlatMap", 0.999, 1),
    Stage("Root::Prefetch::FlatMap[*]::TFRecord", 0.9, 2, {"name": "TFRecordDataset:2"}),
)
NO_PREFETCH = Program(
    (ROOT, Stage("Root::BatchV2", 0.999), Stage("Root::BatchV2::Filter", 0.99)),
    functions=NATIVE,
    work_ms=15,
)
SHUFFLE = (
    Stage("Root::Prefetch::Shuffle", 0.999, 1, {"buffer_size": 500, "name": "ShuffleDatasetV3:2"}),
    Stage("Root::Prefetch::Shuffle::Map", 0.99, 1, {"name": "MapDataset:1"}),
)
SHUFFLED = Program(
    PREFETCH, SHUFFLE, PYTHON, wait_ms=0, work_ms=20, first_wait_ms=400, background_ms=8
)
LATE_FIRST = Program(PREFETCH, GENERATOR.producer, PYTHON, wait_ms=0, work_ms=10, first_wait_ms=500)
CACHED = below_prefetch(
    Stage("Root::Prefetch::MemoryCache", 0.9999),
    Stage("Root::Prefetch::MemoryCacheImpl", 0.999),
    Stage("Root::Prefetch::MemoryCacheImpl::Map", 0.99, 1, {"name": "MapDataset:1"}),
    functions=PYTHON,
)
CACHED_TOO_EARLY = below_prefetch(
    map_stage("Map"), Stage("Root::Prefetch::Map::MemoryCache", 0.01), functions=PYTHON
)
