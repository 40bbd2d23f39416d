"""Public logs of other people: every run gets an answer, and known ones get the right one."""

from __future__ import annotations

from functools import cache

import jsonschema
import pytest

from stall_analyzer.discover.discover import discover
from stall_analyzer.pipeline import analyze
from stall_analyzer.report.document import document, run_document
from stall_analyzer.report.document_types import ReportEntry
from tests.corpus import CORPUS, case
from tests.real_documents import SCHEMA

pytestmark = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the public logs are not beside this repository"
)


@cache
def runs(number: str) -> list[ReportEntry]:
    report = document([run_document(analyze(run)) for run in discover([case(number)]).runs])
    jsonschema.validate(report, SCHEMA)
    return list(report["runs"])


@pytest.mark.parametrize("number", sorted(p.name[:3] for p in CORPUS.glob("L*")))
def test_every_run_is_answered_and_its_time_adds_up(number: str) -> None:
    for run in runs(number):
        assert run["verdict"]["sentence"]
        assert sum(run["buckets_ps"].values()) == run["window"]["duration_ps"]
        for host in run["host_ledgers"]:
            assert sum(host["buckets_ps"].values()) == run["window"]["duration_ps"]


def test_both_hosts_of_a_session_are_there_and_agree() -> None:
    """L01: one file under two host names."""
    (run,) = runs("L01")
    assert len(run["hosts"]) == 2
    first, second = run["host_ledgers"]
    assert first["buckets_ps"] == second["buckets_ps"]
    assert run["steps"][0]["source"] == "device"
    # Its ops belong to replicas 4 and 6: the other GPUs had work that was not recorded.
    assert "A device computed for 4% of this time" in run["verdict"]["sentence"]
    assert "at least 7 replicas: not all of them were recorded" in run["evidence"]["device"]
    assert not [finding for finding in run["findings"] if finding["id"] == "ST503"]


def test_a_damaged_trace_is_unreadable_and_says_why() -> None:
    (run,) = runs("L04")
    (error,) = [note for note in run["notes"] if note["level"] == "error"]
    assert "converted as if they were text" in error["text"]
    assert run["verdict"]["status"] == "unknown"


def test_the_profilers_own_cost_is_not_a_stall() -> None:
    legacy = next(run for run in runs("L05") if run["run"].endswith("jax_conv_minimal_legacy"))
    assert legacy["buckets_ps"]["profiler"] > 0.95 * legacy["window"]["duration_ps"]
    assert legacy["verdict"]["primary"] == "unknown"


def test_jax_programs_are_called_that_and_get_no_advice() -> None:
    """L03: an inference server, which is not told to enjoy its training."""
    for run in (*runs("L03"), *runs("L05")):
        assert run["framework"] == "jax"
        assert run["verdict"]["status"] == "unknown"
        assert "A JAX program" in run["verdict"]["sentence"]
        assert run["findings"] == []
    assert (
        "was at work for 80% of that time (73% in copies) and compiling took 1.53 s"
        in runs("L03")[0]["verdict"]["sentence"]
    )


@pytest.mark.parametrize("number", ["L01", "L06", "L11", "L15", "L17", "L19", "L22"])
def test_tensorflows_own_logs_are_tensorflows(number: str) -> None:
    assert {run["framework"] for run in runs(number)} == {"tensorflow"}


def test_event_files_of_tensorboardx_are_not_read_as_keras() -> None:
    keras, others = runs("L20")
    assert (keras["framework"], others["framework"]) == ("tensorflow", "other")
    assert "748 values of 48 tags" in others["verdict"]["sentence"]
    assert others["findings"] == []


def test_tracing_is_the_cause_where_the_trace_is_full_of_it() -> None:
    (run,) = runs("L06")
    assert run["verdict"]["primary"] == "compile"
    assert run["causes_ps"]["compile.tracing"] / 1e9 == pytest.approx(215, abs=25)


def test_a_gpu_that_is_listed_and_idle_is_not_waiting_for_input() -> None:
    (run,) = runs("L14")
    assert run["evidence"]["device"].startswith("GPU not used")
    assert run["buckets_ps"]["input"] < 0.01 * run["window"]["duration_ps"]


def test_a_python_generator_is_seen_and_the_untraced_gpu_too() -> None:
    attempts = runs("L15")
    assert [run["attempt"] for run in attempts] == list(range(1, 8))
    last = attempts[-1]
    assert "Python code in the input pipeline ran for 88%" in last["evidence"]["input"]
    assert last["evidence"]["device"].startswith("Device not traced")
    unfinished = [run for run in attempts if "no epoch" in run["window"]["end_source"]]
    assert len(unfinished) == 2


def test_event_files_alone_show_that_the_first_epoch_was_slow() -> None:
    slow = next(run for run in runs("L19") if run["later_epochs"]["count"] == 7)
    assert slow["verdict"]["status"] == "slow_once"
    assert slow["window"]["duration_ps"] / 1e12 == pytest.approx(44, abs=2)
    assert slow["one_time_ps"] / 1e12 == pytest.approx(24, abs=2)
