"""Logs of other frameworks are named as such, with what can be said about them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event, SourceMetadata
from tensorboard.compat.proto.summary_pb2 import Summary

from stall_analyzer.decode.framework import framework_of
from stall_analyzer.discover.discover import discover, find_runs
from stall_analyzer.files.tfrecord import framed
from stall_analyzer.pipeline import analyze
from stall_analyzer.report.document import run_document
from stall_analyzer.report.document_types import ReportEntry
from tests import event_files, pytorch_traces
from tests.traces import TRAIN_OPS, device, event, host, steps, trainer
from tests.xspace import space


def analyzed(folder: Path) -> ReportEntry:
    (run,) = discover([str(folder)]).runs
    return run_document(analyze(run))


def traced(folder: Path, *planes: bytes) -> ReportEntry:
    session = folder / "plugins/profile/2026_01_01_00_00_00"
    session.mkdir(parents=True)
    (session / "vm.xplane.pb").write_bytes(space(*planes))
    return analyzed(folder)


# ------------------------------------------------------------------ PyTorch


@pytest.mark.parametrize("suffix", [".pt.trace.json", ".pt.trace.json.gz"])
def test_a_pytorch_trace_is_named_and_summarized(tmp_path: Path, suffix: str) -> None:
    both = [*pytorch_traces.step(2, 0, 30, 100), *pytorch_traces.step(3, 100, 30, 200)]
    pytorch_traces.write(tmp_path / f"box_100.1700000000000{suffix}", *both)
    run = analyzed(tmp_path)
    assert run["framework"] == "pytorch"
    assert run["verdict"]["status"] == "unknown"
    assert run["verdict"]["sentence"].startswith(
        "This is a PyTorch trace: 2 steps of about 100 ms in 200 ms; its GPU was at work for 70% "
        "of that; 60.0 ms went to waiting for a DataLoader."
    )
    assert "Perfetto" in run["verdict"]["sentence"]


def test_a_pytorch_trace_is_not_called_damaged(tmp_path: Path) -> None:
    pytorch_traces.write(tmp_path / "box_1.2.pt.trace.json.gz", *pytorch_traces.step(0, 0, 1, 9))
    (note,) = analyzed(tmp_path)["notes"]
    assert note["level"] == "info"
    assert "a trace of PyTorch's profiler" in note["text"]


def test_a_pytorch_trace_without_its_header_is_known_by_its_ops(tmp_path: Path) -> None:
    ops = pytorch_traces.step(0, 0, 1, 9)
    pytorch_traces.write(tmp_path / "vm.trace.json.gz", *ops, header={"displayTimeUnit": "ms"})
    assert analyzed(tmp_path)["framework"] == "pytorch"


def test_a_pytorch_trace_that_is_cut_off_shows_what_is_before_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "box_1.2.pt.trace.json"
    whole = pytorch_traces.write(path, *pytorch_traces.step(0, 0, 1, 9)).read_bytes()
    path.write_bytes(whole[: whole.index(b"Spans")])
    assert "1 step of 9.00 ms in 9.00 ms" in analyzed(tmp_path)["verdict"]["sentence"]


def test_a_pytorch_trace_with_impossible_times_is_still_named(tmp_path: Path) -> None:
    wrong = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": "soon", "dur": -3}
    pytorch_traces.write(tmp_path / "box_1.2.pt.trace.json", wrong)
    assert "without marked steps" in analyzed(tmp_path)["verdict"]["sentence"]


def test_a_file_that_is_named_may_have_any_name(tmp_path: Path) -> None:
    """As prof.export_chrome_trace("trace.json") leaves it."""
    path = pytorch_traces.write(tmp_path / "trace.json", *pytorch_traces.step(0, 0, 1, 9))
    assert analyzed(path)["framework"] == "pytorch"
    assert find_runs([str(tmp_path)]).runs == ()  # in a folder, it may be anything


def test_several_pytorch_processes_are_one_run(tmp_path: Path) -> None:
    for rank in range(2):
        ops = pytorch_traces.step(0, 0, 1, 9 + rank)
        pytorch_traces.write(tmp_path / f"box_{rank}.2.pt.trace.json", *ops)
    run = analyzed(tmp_path)
    assert "These are 2 PyTorch traces: the longest shows 1 step" in run["verdict"]["sentence"]
    assert run["cluster"] is None


# ------------------------------------------------------------------ JAX and PyTorch/XLA


def jax_program(folder: Path) -> ReportEntry:
    return traced(
        folder,
        host(("python", [event("PjitFunction(f)", 0, 100), event("backend_compile", 0, 40)])),
        device("/device:TPU:0", ("XLA Modules", [event("jit_f(123456)", 40, 100)])),
        device("/device:TPU:1", ("XLA Modules", [])),
    )


def test_a_jax_program_is_called_one_and_gets_no_advice_for_tensorflow(tmp_path: Path) -> None:
    run = jax_program(tmp_path)
    assert run["framework"] == "jax"
    assert run["verdict"]["sentence"].startswith("A JAX program: 100 ms was traced")
    assert "compiling took 40.0 ms" in run["verdict"]["sentence"]
    assert run["findings"] == []  # one of two devices was idle: MirroredStrategy would not help


def test_a_program_without_training_is_not_called_healthy(tmp_path: Path) -> None:
    run = jax_program(tmp_path)
    assert run["verdict"]["status"] == "unknown"
    assert "No training step was recognized in it" in run["verdict"]["sentence"]


def test_marked_steps_of_a_jax_program_are_not_judged_as_if_they_were_tensorflows(
    tmp_path: Path,
) -> None:
    """The thread that calls them continues at once: what it does then holds up nothing."""
    python = [event("train", 20 * n, 20 * n + 18, step_num=n, _r=1) for n in range(5)]
    calls = [event("PjitFunction(step)", 20 * n + 1, 20 * n + 2) for n in range(5)]
    ops = [event("fusion.1", 20 * n + 5, 20 * n + 15) for n in range(5)]
    marks = [event(str(n), 20 * n + 5, 20 * n + 25) for n in range(5)]
    run = traced(
        tmp_path,
        host(("python", [*python, *calls])),
        device("/device:TPU:0", ("XLA Ops", ops), ("Steps", marks)),
    )
    assert (run["verdict"]["status"], run["buckets_ps"]["host"]) == ("unknown", 0)
    assert run["verdict"]["sentence"].startswith(
        "A JAX program: 100 ms was traced, with 5 steps on its device; a device was at work for 50%"
    )


def test_a_pytorch_xla_program_is_called_one(tmp_path: Path) -> None:
    modules = [event("SyncTensorsGraph.123(42)", 0, 100)]
    run = traced(tmp_path, device("/device:TPU:0", ("XLA Modules", modules)))
    assert run["framework"] == "pytorch_xla"
    assert "A PyTorch/XLA program: 100 ms was traced" in run["verdict"]["sentence"]


def test_a_program_that_calls_tf_functions_is_tensorflows(tmp_path: Path) -> None:
    python, work = steps(0, 3, names=TRAIN_OPS)
    run = traced(tmp_path, trainer([*python, event("PjitFunction(f)", 40, 41)], work))
    assert run["framework"] == "tensorflow"


@pytest.mark.parametrize(
    "name", ["jit_train", "Iterator::Root::Map", "cluster_0__XlaCompiledKernel_true"]
)
def test_names_that_any_framework_may_use_say_nothing(name: str) -> None:
    assert framework_of([name], {}) == "tensorflow"


def test_a_jax_program_that_reads_with_tf_data_stays_one() -> None:
    assert framework_of(["Iterator::Root::Map", "PjitFunction(f)"], {}) == "jax"


# ------------------------------------------------------------------ event files


def version(wall_s: float, writer: str = "") -> bytes:
    source = SourceMetadata(writer=writer) if writer else None
    first = Event(wall_time=wall_s, file_version="brain.Event:2", source_metadata=source)
    return framed(bytes(first.SerializeToString()))


def loss(step: int, wall_s: float) -> bytes:
    summary = Summary(value=[Summary.Value(tag="train/loss", simple_value=1 / (1 + step))])
    event = Event(wall_time=wall_s, step=step, summary=summary)
    return framed(bytes(event.SerializeToString()))


START_S = 1_700_000_000.25


@pytest.mark.parametrize("writer", ["", "tensorboard.summary.writer.event_file_writer"])
def test_scalars_of_a_summary_writer_are_a_loop_and_get_no_advice_for_keras(
    tmp_path: Path, writer: str
) -> None:
    losses = b"".join(loss(10 * n, START_S + n) for n in range(31))
    (tmp_path / event_files.file_name()).write_bytes(version(START_S, writer) + losses)
    run = analyzed(tmp_path)
    assert run["framework"] == "other"
    assert "31 values of one tag over 30.0 s, up to step 300" in run["verdict"]["sentence"]
    assert run["findings"] == []


@pytest.mark.parametrize("writer", ["", "tensorflow.core.util.events_writer"])
def test_scalars_that_tensorflow_wrote_are_tensorflows(tmp_path: Path, writer: str) -> None:
    wall_s = START_S if writer else round(START_S)
    path = tmp_path / event_files.file_name()
    path.write_bytes(version(wall_s, writer) + loss(0, START_S))
    assert analyzed(tmp_path)["framework"] == "tensorflow"
