"""What is read from a debugger's dump: made-up ones, damaged ones, and one that TensorFlow
wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stall_analyzer.discover.discover import discover
from stall_analyzer.model.debug_dump import DumpedTensor
from stall_analyzer.tfdbg import debug_dumps
from stall_analyzer.tfdbg.debug_dumps import DEFAULT_BUFFER
from tests.dumps import GRAPH, START_S, Dump, read
from tests.event_files import file_name
from tests.logdirs import lay_out, names
from tests.real_documents import analyzed

USER = "/home/ann/train.py"
LIBRARY = "/usr/lib/python3.11/site-packages/keras/src/losses.py"


def tensor(dump: Dump, folder: Path, op: str) -> DumpedTensor:
    return read(dump.write(folder)).tensors[GRAPH, op, 0]


# ---------------------------------------------------------------- where dumps are


def test_a_dump_beside_event_files_belongs_to_their_run(tmp_path: Path) -> None:
    root = lay_out(tmp_path, f"a/train/{file_name()}")
    Dump().write(tmp_path / "a")
    (run,) = discover([root]).runs
    assert run.name == "a"
    assert [len(dump.parts) for dump in run.dumps] == [6]
    assert run.dumps[0].start_unix_s == START_S
    assert run.dumps[0].size > 0


def test_a_dump_alone_is_a_run(tmp_path: Path) -> None:
    Dump().write(tmp_path / "debug")
    assert names(discover([str(tmp_path)]).runs) == ["debug"]


def test_other_files_with_such_names_are_not_dumps(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path, f"r/{file_name()}", "r/tfdbg_events.txt", "x/tfdbg_events.1.box.execution.bak"
    )
    (run,) = discover([root]).runs
    assert (run.name, run.dumps) == ("r", ())


def test_each_attempt_has_the_dump_that_began_next_to_it(tmp_path: Path) -> None:
    lay_out(tmp_path, file_name(START_S), file_name(START_S + 600, pid=200))
    Dump().write(tmp_path, START_S - 5)
    Dump().write(tmp_path, START_S + 590)
    runs = discover([str(tmp_path)]).runs
    starts = [[dump.start_unix_s for dump in run.dumps] for run in runs]
    assert starts == [[START_S - 5], [START_S + 590]]


def test_the_last_of_several_programs_in_one_folder_is_read(tmp_path: Path) -> None:
    Dump(run_id="r1").tensor("old", nan=1).write(tmp_path, START_S)
    Dump(run_id="r2").tensor("new").write(tmp_path, START_S + 100)
    dump = read(tmp_path)
    assert list(dump.tensors) == [(GRAPH, "new", 0)]
    assert "2 programs" in dump.notes[0].text


def test_file_sets_of_one_program_are_read_together(tmp_path: Path) -> None:
    Dump(host="chief").tensor("a").write(tmp_path, START_S)
    Dump(host="worker").tensor("b").write(tmp_path, START_S + 1)
    assert len(read(tmp_path).tensors) == 2


# ---------------------------------------------------------------- what a record says


@pytest.mark.parametrize(
    ("mode", "nan", "inf", "expected"),
    [
        ("CURT_HEALTH", 0, 0, None),
        ("CURT_HEALTH", 1, 0, (True, True)),  # it does not tell which
        ("CONCISE_HEALTH", 1, 0, (True, False)),
        ("CONCISE_HEALTH", 0, 2, (False, True)),
        ("FULL_HEALTH", 3, 2, (True, True)),
        ("FULL_HEALTH", 0, 0, None),
    ],
)
def test_nan_and_infinity_by_mode(
    tmp_path: Path, mode: str, nan: int, inf: int, expected: tuple[bool, bool] | None
) -> None:
    found = tensor(Dump(mode).tensor("op", nan=nan, inf=inf), tmp_path, "op")
    assert (None if found.bad_ns is None else (found.has_nan, found.has_inf)) == expected


@pytest.mark.parametrize("mode", ["NO_TENSOR", "SHAPE"])
def test_a_mode_that_tells_nothing_says_so(tmp_path: Path, mode: str) -> None:
    dump = read(Dump(mode).tensor("op").write(tmp_path))
    assert (dump.mode, dump.looked_at) == (mode, 0)
    assert mode in dump.notes[0].text and "FULL_HEALTH" in dump.notes[0].text


def test_whole_tensors_are_looked_into(tmp_path: Path) -> None:
    dump = Dump("FULL_TENSOR").full_tensor("a", 0, 0, 0, 1).full_tensor("b", 1, float("nan"))
    found = read(dump.write(tmp_path)).tensors
    assert found[GRAPH, "a", 0].zero_share == 0.75
    assert found[GRAPH, "b", 0].has_nan and not found[GRAPH, "b", 0].has_inf


def test_a_long_tensor_is_read_whole(tmp_path: Path) -> None:
    values = [1.0] * 50_000 + [float("inf")]
    assert tensor(Dump("FULL_TENSOR").full_tensor("a", *values), tmp_path, "a").has_inf


def test_the_first_bad_record_and_the_one_after_it_are_kept(tmp_path: Path) -> None:
    dump = Dump().tensor("op").tensor("op", nan=1).tensor("op", inf=1).tensor("op", nan=1)
    found = tensor(dump, tmp_path, "op")
    assert (found.records, found.has_nan, found.has_inf) == (4, True, False)
    assert found.bad_ns is not None and found.after_bad_ns is not None
    assert 0.9e6 < found.after_bad_ns - found.bad_ns < 1.1e6


def test_runs_of_zeros_count_from_the_end(tmp_path: Path) -> None:
    dump = Dump().tensor("relu", size=200, zero=200).tensor("relu", size=200, zero=100)
    dump.tensor("relu", size=200, zero=199).tensor("relu", size=200, zero=200)
    found = tensor(dump, tmp_path, "relu")
    assert (found.all_zero_run, found.nearly_zero_run) == (1, 2)
    assert found.zero_share == pytest.approx((1 + 0.5 + 0.995 + 1) / 4)


def test_empty_tensors_have_no_share_of_zeros(tmp_path: Path) -> None:
    assert tensor(Dump().tensor("op", size=0), tmp_path, "op").zero_share is None


def test_calls_of_functions_are_told_apart_from_eager_ops(tmp_path: Path) -> None:
    dump = Dump().eager("AddV2", outputs=[1]).call().call()
    assert len(read(dump.write(tmp_path)).call_ends_ns) == 2


def test_bad_eager_tensors_are_followed_by_their_ids(tmp_path: Path) -> None:
    dump = Dump().eager("Exp", outputs=[5], inf=1).eager("AddV2", inputs=[4], outputs=[6])
    dump.eager("Mul", inputs=[5, 6], outputs=[7], nan=1)
    found = read(dump.write(tmp_path))
    assert [op.type for op in found.ops.values()] == ["Exp", "Mul"]
    assert found.ops["", "#2"].inputs == ("#0:0",)


# ---------------------------------------------------------------- source lines


def test_the_innermost_line_of_the_user_is_named(tmp_path: Path) -> None:
    dump = Dump().source(USER, "def loss(p):", "    return -log(p)").source(LIBRARY, "def fit():")
    dump.frame("main", 0, 1, "main").frame("keras", 1, 1).frame("loss", 0, 2, "loss")
    dump.frame("call", 1, 1).op("Log", "Log", frames=["main", "keras", "loss", "call"])
    line = read(dump.tensor("Log", inf=1).write(tmp_path)).ops[GRAPH, "Log"].line
    assert line is not None
    assert (line.path, line.line, line.function, line.text) == (USER, 2, "loss", "return -log(p)")


def test_an_op_that_a_library_made_alone_has_no_line(tmp_path: Path) -> None:
    dump = Dump().source(LIBRARY, "x").frame("keras", 0, 1).op("Log", "Log", frames=["keras"])
    assert read(dump.tensor("Log", inf=1).write(tmp_path)).ops[GRAPH, "Log"].line is None


def test_graphs_are_not_read_when_there_is_nothing_to_ask_about(tmp_path: Path) -> None:
    dump = Dump().op("Log", "Log").tensor("Log").tensor("Log")
    assert read(dump.write(tmp_path)).ops == {}


# ---------------------------------------------------------------- dumps in parts


def bad_dump() -> Dump:
    dump = Dump().source(USER, "log(p)").frame("f0", 0, 1).op("Log", "Log", frames=["f0"])
    return dump.tensor("p").tensor("Log", inf=1).tensor("after", nan=1).call()


PARTS = ("source_files", "stack_frames", "graphs", "execution", "graph_execution_traces")


@pytest.mark.parametrize("part", PARTS)
def test_every_cut_of_every_file_gives_what_is_before_it(tmp_path: Path, part: str) -> None:
    folder = bad_dump().write(tmp_path)
    (path,) = folder.glob(f"*.{part}")
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        dump = read(folder)
        assert len(dump.tensors) <= 3
        assert (
            not size
            or any("only in part" in note.text for note in dump.notes)
            or (part == "graph_execution_traces" and len(dump.tensors) in {1, 2})
        )  # a cut between two records cannot be seen


@pytest.mark.parametrize("part", PARTS)
def test_every_damaged_byte_is_survived(tmp_path: Path, part: str) -> None:
    folder = bad_dump().write(tmp_path)
    (path,) = folder.glob(f"*.{part}")
    whole = path.read_bytes()
    for index in range(len(whole)):
        path.write_bytes(whole[:index] + bytes([whole[index] ^ 0x55]) + whole[index + 1 :])
        line = read(folder).ops.get((GRAPH, "Log"))
        if line is not None and line.line is not None:
            assert (line.line.path, line.line.line) == (USER, 1)  # right, or not known


def test_a_missing_file_is_survived(tmp_path: Path) -> None:
    for part in PARTS:
        folder = bad_dump().write(tmp_path / part)
        next(folder.glob(f"*.{part}")).unlink()
        assert analyzed(folder).run.dumps


def test_a_program_that_was_killed_left_no_executions(tmp_path: Path) -> None:
    assert "no executions" in read(Dump().op("Log", "Log").write(tmp_path)).notes[0].text


def test_a_full_buffer_is_reported(tmp_path: Path) -> None:
    dump = Dump()
    for _ in range(DEFAULT_BUFFER):
        dump.tensor("op")
    assert "circular_buffer_size" in read(dump.write(tmp_path)).notes[0].text


def test_a_dump_with_too_many_tensors_is_read_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debug_dumps, "MOST_TENSORS", 2)
    dump = read(Dump().tensor("a").tensor("b").tensor("c", nan=1).tensor("a").write(tmp_path))
    assert [tensor.records for tensor in dump.tensors.values()] == [2, 1]
    assert "more than 2 tensors" in dump.notes[0].text


def test_a_run_with_nothing_but_a_healthy_dump_says_what_was_seen(tmp_path: Path) -> None:
    dump = Dump().tensor("op").write(tmp_path)
    report = analyzed(dump)
    assert (report.verdict.status, report.findings) == ("unknown", ())
    assert "1 tensors" in report.verdict.sentence


# ---------------------------------------------------------------- TensorFlow's own

PROGRAM = """import sys
import tensorflow as tf

tf.debugging.experimental.enable_dump_debug_info(
    sys.argv[1], tensor_debug_mode="FULL_HEALTH", circular_buffer_size=-1)
weight = tf.Variable(3.0)

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(-weight * x)
        loss = tf.reduce_sum(tf.math.log(x)) + tf.reduce_sum(hidden) + weight
    weight.assign_sub(0.1 * loss * tape.gradient(loss, weight))

for scale in (2.0, 1.0, 0.0, 1.0):
    step(tf.constant([1.0, 2.0]) * scale)
"""
LOG_LINE = 1 + PROGRAM[: PROGRAM.index("tf.math.log")].count("\n")


def test_a_dump_that_tensorflow_writes(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    subprocess.run([sys.executable, program, tmp_path / "dump"], check=True, capture_output=True)
    report = analyzed(tmp_path / "dump")
    (finding,) = [found for found in report.findings if found.id == "ST313"]
    assert finding.title == f"The first infinity was produced by Log at program.py:{LOG_LINE}"
    assert finding.severity == "act"
    assert report.verdict.status == "learning_nothing"
