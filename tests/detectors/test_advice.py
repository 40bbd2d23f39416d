"""Advice that can be followed: for every kind of stage, code that TensorFlow accepts and runs."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stall_analyzer.detectors.input import (
    cache_before_slow_stage,
    cache_first_pass,
    heavy_map,
    image_decoding,
    input_takes_cores,
    many_small_files,
    map_before_batch,
    no_prefetch,
    pipeline_made_each_epoch,
    python_function_in_map,
    python_generator,
    serial_map,
    shuffle_fill,
    slow_first_element,
    slow_source,
)
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.signals import Signals
from tests.detectors.pipelines import (
    DECODE,
    FILES,
    LATE_FIRST,
    NATIVE,
    PREFETCH,
    PYTHON,
    ROOT,
    TINY_RECORD_FILES,
    Program,
    Stage,
    below_prefetch,
)
from tests.detectors.training import found
from tests.xspace import Value

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

DETECTORS = (
    cache_before_slow_stage, cache_first_pass, heavy_map, image_decoding, input_takes_cores,
    many_small_files, map_before_batch, no_prefetch, pipeline_made_each_epoch,
    python_function_in_map, python_generator, serial_map, shuffle_fill, slow_first_element,
    slow_source,
)  # fmt: skip
# The names of tf.data's stages in a trace.
KINDS = (
    "Map", "ParallelMapV2", "MapAndBatch", "Filter", "ParallelFilter", "Scan", "FlatMap",
    "InterleaveV2", "ParallelInterleaveV4", "BatchV2", "ParallelBatch", "PaddedBatchV2", "Shuffle",
    "ShuffleAndRepeat", "MemoryCache", "FileCache", "Snapshot", "Generator", "TFRecord",
    "TextLine", "FixedLengthRecord", "CSV", "Sql", "Zip", "Concatenate", "Window", "GroupByWindow",
    "Unbatch", "Rebatch", "FiniteTake", "FiniteSkip", "Shard", "Prefetch", "PrivateThreadPool",
    "DirectedInterleave", "ForeverRepeat", "TensorSlice", "Range",
)  # fmt: skip
# What their functions may do, if they have any.
WITH_FUNCTIONS = ("Map", "Parallel", "Filter", "Scan")
FUNCTIONS = ((), PYTHON, NATIVE, DECODE)
RAN: set[str] = set()  # advice that has been run
BATCHES = ("BatchV2", "PaddedBatchV2", "GroupByWindow")


def programs(kind: str) -> Iterator[Program]:
    """Pipelines that wait for this stage: of many elements or few, with a buffer that it fills, a
    store that keeps what it gives; above a cache or a shuffle; with or without prefetching."""
    name: dict[str, Value] = {"name": f"{kind}Dataset:1"}
    slow = Stage(f"Root::Prefetch::{kind}", 0.99, 1, name)
    for functions in FUNCTIONS if kind.startswith(WITH_FUNCTIONS) else (NATIVE,):
        yield below_prefetch(slow, functions=functions)
        for batch in BATCHES:
            batches = Stage(f"Root::Prefetch::{batch}", 0.999)
            tiny = Stage(f"{batches.path}::{kind}", 0.99, 40, name)
            yield below_prefetch(batches, tiny, functions=functions, wait_ms=3, work_ms=1)
    yield Program((ROOT, Stage(f"Root::{kind}", 0.99, 1, name)), functions=NATIVE, work_ms=15)
    for above in ("Shuffle", "MemoryCacheImpl", "FileCacheImpl", "SnapshotWriter"):
        path = f"Root::Prefetch::{above}"
        around = Stage(path, 0.999, 1, {"buffer_size": 500})
        stages = (around, replace(slow, path=f"{path}::{kind}"))
        yield Program(PREFETCH, stages, NATIVE, 0, 20, 900, background_ms=8)
    for below in ("MemoryCache", "Shuffle::FileCache") if kind.startswith(WITH_FUNCTIONS) else ():
        yield below_prefetch(slow, *_nested_stages(f"{slow.path}::{below}", 0.01), functions=NATIVE)


def _nested_stages(path: str, share: float) -> Sequence[Stage]:
    names = path.removeprefix("Root::Prefetch::").split("::")[1:]
    first = path.removesuffix("::".join(names))
    return [Stage(first + "::".join(names[: n + 1]), share) for n in range(len(names))]


def all_findings(signals: Signals) -> list[Finding]:
    return [finding for detector in DETECTORS if (finding := detector.check(signals))]


@pytest.mark.parametrize("kind", KINDS)
def test_every_advice_about_a_stage_runs_in_tensorflow(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`before` as well: it must be something that the user may have written."""
    monkeypatch.chdir(tmp_path)  # caches are files there
    run_all_advice(programs(kind), tmp_path)


def test_advice_about_files_and_the_first_batch_runs_in_tensorflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_all_advice([FILES, TINY_RECORD_FILES, LATE_FIRST], tmp_path)


def run_all_advice(several: Iterable[Program], tmp_path: Path) -> None:
    changes: list[Change] = []
    for number, program in enumerate(several):
        folder = tmp_path / str(number)
        folder.mkdir()
        changes += [finding.change for finding in all_findings(program.signals(folder))]
    codes = {code for change in changes for code in (change.before, change.after) if code}
    assert codes, "no detector says anything about any of the programs"
    world = names_of_advice(tmp_path)
    for code in sorted(codes - RAN):
        RAN.add(code)
        check_calls(code)
        if "model." not in code:
            run(code, {**world, **functions_for(code)})


# ------------------------------------------------------------ arguments


def check_calls(code: str) -> None:
    """Every function of TensorFlow or Keras that is called has the arguments that it is given."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and (function := _function(node.func)) is not None:
            given = {keyword.arg: None for keyword in node.keywords if keyword.arg}
            positional = [None] * sum(not isinstance(a, ast.Starred) for a in node.args)
            inspect.signature(function).bind_partial(*positional, **given)


def _function(node: ast.expr) -> Callable[..., Any] | None:
    """`tf.io.decode_jpeg`, or the method of a dataset or a model; None for the user's own."""
    if not isinstance(node, ast.Attribute):
        return None
    dotted = ast.unparse(node)
    if dotted.startswith(("tf.", "keras.")) and "(" not in dotted:
        found = {"tf": tf, "keras": keras}[dotted.split(".")[0]]
        for name in dotted.split(".")[1:]:
            found = getattr(found, name)
        return found  # type: ignore[no-any-return]
    if dotted.startswith("model."):
        return getattr(keras.Model(), node.attr)  # type: ignore[no-any-return]
    if isinstance(node.value, ast.Name) and node.value.id != "ds":
        return None
    return getattr(tf.data.Dataset.range(1), node.attr)  # type: ignore[no-any-return]


# ------------------------------------------------------------ running


def run(code: str, world: dict[str, Any]) -> None:
    """Runs the code as it is; if it ends with a dataset, that is read."""
    tree = ast.parse(code)
    last = tree.body[-1]
    exec(compile(ast.Module(tree.body[:-1], []), code, "exec"), world)
    if not isinstance(last, ast.Expr):
        exec(compile(ast.Module([last], []), code, "exec"), world)
        return
    result = eval(compile(ast.Expression(last.value), code, "eval"), world)
    if isinstance(result, tf.data.Dataset):
        assert list(result.take(2))


def functions_for(code: str) -> dict[str, Any]:
    """`f` is another one in a filter and in a scan, and every reader has files of its own."""
    if "CsvDataset" in code:
        return {"shards": ["lines0.csv", "lines1.csv"]}
    if "FixedLengthRecord" in code:
        return {"shards": ["fixed", "fixed"]}
    if ".filter(" in code or "boolean_mask" in code:
        passes = lambda x: x >= 8  # noqa: E731
        return {"f": passes, "f_in_tensorflow_ops": passes}
    if ".scan(" in code:
        add = lambda state, x: (state + 1.0, x)  # noqa: E731
        return {"f": add, "f_in_tensorflow_ops": add}
    double = lambda x: x * 2.0  # noqa: E731
    return {"f": double, "f_in_tensorflow_ops": double}


def names_of_advice(folder: Path) -> dict[str, Any]:
    """What the names in the code mean."""

    class MyData(keras.utils.PyDataset):  # type: ignore[name-defined]
        def __init__(self, paths: list[str], **options: Any) -> None:
            super().__init__(**options)

    shards = [str(folder / f"shard{n}") for n in range(2)]
    for shard in shards:
        with tf.io.TFRecordWriter(shard) as writer:
            for number in range(32):
                writer.write(b"%f" % number)
    lines = [str(folder / f"lines{n}.csv") for n in range(2)]
    for path in lines:
        Path(path).write_text("1.0\n2.0\n" * 8)
    (folder / "fixed").write_bytes(bytes(64))
    np.save(folder / "all.npy", np.zeros(8))
    picture = tf.io.encode_jpeg(tf.zeros([32, 32, 3], tf.uint8))
    buckets = {
        "key_func": lambda x: tf.constant(0, tf.int64),
        "reduce_func": lambda key, rows: rows.batch(4),
        "window_size": 4,
    }
    return {
        "tf": tf, "keras": keras, "ds": tf.data.Dataset.from_tensor_slices(tf.range(64.0)),
        "n": 4, "k": 8, "state": 0.0, "without_state": lambda x: x, "buckets": buckets,
        "paths": lines, "pattern": str(folder / "*.csv"), "read_one_file": tf.io.read_file,
        "load": lambda path: tf.io.read_file(path) if path.dtype == tf.string else path,
        "parse_batch": tf.strings.to_number, "shards": shards, "record_bytes": 4,
        "record_defaults": [[""]],
        "MyData": MyData, "data": picture, "data_stored_at_size": picture, "size": (8, 8),
        "np": np,
    }  # fmt: skip


# ------------------------------------------------------------ particular stages


def test_a_filter_gets_no_parallel_calls(tmp_path: Path) -> None:
    slow = Stage("Root::Prefetch::Filter", 0.99, 1, {"name": "FilterDataset:3"})
    finding = found(
        serial_map.check(below_prefetch(slow, functions=NATIVE).signals(tmp_path)), "act"
    )
    assert "filter(f, " not in finding.change.after
    assert "has no parallel form" in finding.explanation


def test_a_filter_is_judged_by_what_it_tests_not_by_what_it_lets_pass(tmp_path: Path) -> None:
    """Fifty elements of 40 µs are tested for each one that passes: each is short."""
    program = below_prefetch(
        Stage("Root::Prefetch::BatchV2", 0.999, 1, {"batch_size": 10}),
        Stage("Root::Prefetch::BatchV2::Filter", 0.99, 10, {"name": "FilterDataset:3"}),
        Stage("Root::Prefetch::BatchV2::Filter::TensorSlice", 0.01, 500),
    )
    finding = found(map_before_batch.check(program.signals(tmp_path)), "consider")
    assert finding.title == "FilterDataset:3 tests 500 elements a batch, one by one"
    assert "98% of them are dropped" in finding.explanation


def test_a_shuffle_never_goes_in_front_of_a_cache(tmp_path: Path) -> None:
    stages = (
        Stage("Root::Prefetch::Shuffle", 0.999, 1, {"buffer_size": 500}),
        Stage("Root::Prefetch::Shuffle::Map", 0.99, 1, {"name": "MapDataset:1"}),
        Stage("Root::Prefetch::Shuffle::Map::MemoryCache", 0.01),
    )
    program = Program(PREFETCH, stages, NATIVE, 0, 20, 900, background_ms=8)
    change = found(shuffle_fill.check(program.signals(tmp_path))).change
    assert change.after.startswith("ds.cache().shuffle(500).map(f, ")


def test_a_cache_behind_a_map_takes_the_shuffle_behind_itself(tmp_path: Path) -> None:
    program = below_prefetch(
        Stage("Root::Prefetch::ParallelMapV2", 0.99, 1, {"name": "MapDataset:1"}),
        Stage("Root::Prefetch::ParallelMapV2::Shuffle", 0.01),
        functions=NATIVE * 2,
    )
    change = found(heavy_map.check(program.signals(tmp_path))).change
    assert change.after.endswith(".cache().shuffle(k).batch(n)")


@pytest.mark.parametrize("store", ["FileCacheImpl", "SnapshotWriter"])
def test_what_is_on_disk_already_is_not_told_to_go_there(store: str, tmp_path: Path) -> None:
    path = f"Root::Prefetch::{store}"
    kind = store.removesuffix("Impl").removesuffix("Writer")
    program = below_prefetch(
        Stage(f"Root::Prefetch::{kind}", 0.9999),
        Stage(path, 0.999),
        Stage(f"{path}::Map", 0.99),
        functions=NATIVE,
    )
    change = found(cache_first_pass.check(program.signals(tmp_path)), "note").change
    assert "cache(" not in change.after
    assert "kept on disk" in change.text


@pytest.mark.parametrize(("cores", "workers"), [(2, None), (4, 3), (16, 4)])
def test_no_more_workers_than_cores_beside_the_training(
    cores: int, workers: int | None, tmp_path: Path
) -> None:
    stages = (
        Stage("Root::Prefetch::FlatMap", 0.999),
        Stage("Root::Prefetch::FlatMap[0]::Generator"),
    )
    consumer = (Stage("Root", stats={"cpu_budget": cores}), PREFETCH[1])
    change = found(
        python_generator.check(Program(consumer, stages, PYTHON).signals(tmp_path)), "act"
    ).change
    assert ("workers" in change.after) == (workers is not None)
    assert workers is None or f"workers={workers}," in change.after
