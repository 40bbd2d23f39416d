"""Made-up report documents, one per kind of answer, for the tests of the views."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

SCHEMA = json.loads(files("stall_analyzer.report").joinpath("schema.json").read_text("utf-8"))
MS = 1_000_000_000
BUCKETS = (
    "input", "compile", "memory", "numerics", "compute",
    "communication", "host", "profiler", "unknown",
)  # fmt: skip


def document(*runs: dict[str, Any], notes: tuple[dict[str, str], ...] = ()) -> dict[str, Any]:
    return {
        "schema_version": 1, "tool_version": "0.1.0", "runs": list(runs), "notes": list(notes),
    }  # fmt: skip


def run(
    name: str,
    causes_ms: dict[str, int],
    *,
    status: str = "slow_always",
    primary: str = "input",
    sentence: str = "A sentence.",
    one_time_ms: int = 0,
    later_ms: int | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A run whose buckets, window and recurring time follow from its causes, as the laws demand."""
    causes_ps = {cause: ms * MS for cause, ms in causes_ms.items()}
    buckets_ps = dict.fromkeys(BUCKETS, 0)
    for cause, ps in causes_ps.items():
        buckets_ps[cause.partition(".")[0]] += ps
    window_ps = sum(causes_ps.values())
    entry = {
        "run": name,
        "attempt": 1,
        "sessions": [f"{name}/2026_01_31_12_00_00"],
        "hosts": ["worker-0"],
        "window": {
            "start_unix_ns": 1_769_860_800_000_000_000, "duration_ps": window_ps, "epoch": 0,
            "covered_ps": window_ps - buckets_ps["unknown"], "traced_ps": window_ps,
            "source": "both", "start_source": "trace", "end_source": "events",
        },
        "verdict": {
            "status": status, "primary": primary, "sentence": sentence, "confidence": 0.9,
        },
        "buckets_ps": buckets_ps,
        "causes_ps": causes_ps,
        "one_time_ps": one_time_ms * MS,
        "recurring_ps": window_ps - one_time_ms * MS,
        "phases": [],
        "steps": [],
        "host_ledgers": [],
        "later_epochs": {
            "count": 4 if later_ms else 0, "median_ps": later_ms * MS if later_ms else None,
        },
        "findings": [],
        "plan": None,
        "evidence": {
            "memory": "no allocator events: the default CPU allocator writes none",
            "numerics": "loss of every step",
        },
        "notes": [],
    }  # fmt: skip
    return entry | more


def steps(*parts_ms: dict[str, int]) -> list[dict[str, Any]]:
    """Back-to-back training steps, each given as its buckets in milliseconds."""
    made, start = [], 0
    for index, parts in enumerate(parts_ms):
        end = start + sum(parts.values()) * MS
        made.append(
            {"index": index, "start_ps": start, "end_ps": end, "phase": "training",
             "source": "trace", "buckets_ps": {name: ms * MS for name, ms in parts.items()}}
        )  # fmt: skip
        start = end
    return made


def note(level: str, text: str, where: str = "") -> dict[str, str]:
    return {"level": level, "text": text, "where": where}


def finding(
    id: str,
    bucket: str,
    title: str,
    lost_ms: int,
    *,
    gain_ms: tuple[int, int] = (0, 0),
    later_ms: tuple[int, int] = (0, 0),
    severity: str = "act",
    change: str = "Change it.",
    before: str = "",
    after: str = "",
) -> dict[str, Any]:
    return {
        "id": id, "name": "made_up", "bucket": bucket, "severity": severity,
        "lost_ps": lost_ms * MS,
        "gain_ps": {"low": gain_ms[0] * MS, "high": gain_ms[1] * MS},
        "later_gain_ps": {"low": later_ms[0] * MS, "high": later_ms[1] * MS},
        "confidence": 0.8, "title": title, "explanation": "It is so.",
        "change": {"text": change, "before": before, "after": after}, "evidence": [],
    }  # fmt: skip


def forecast(now_ms: int, low_ms: int, high_ms: int) -> dict[str, int]:
    return {"now": now_ms * MS, "low": low_ms * MS, "high": high_ms * MS}


def input_bound() -> dict[str, Any]:
    return run(
        "input_bound",
        {"input.wait": 8200, "input.first_element": 240, "compile.tracing": 610,
         "compute.step": 1480, "host.python": 90},
        sentence="77 % of the first epoch waits for input; later epochs wait just as long.",
        one_time_ms=850, later_ms=9700,
        steps=steps({"compile": 610, "input": 240, "compute": 30},
                    *[{"input": 205 + 9 * (i % 3), "compute": 36} for i in range(40)]),
        findings=[
            finding("ST001", "input", "py_function in MapDataset:3 takes 205 ms a batch", 8200,
                    gain_ms=(6560, 7800), later_ms=(6560, 7800),
                    change="Write the map with TensorFlow ops, so that it runs in parallel.",
                    before="ds = ds.map(lambda x: tf.py_function(load, [x], tf.float32))",
                    after="ds = ds.map(\n    load,\n    num_parallel_calls=tf.data.AUTOTUNE,\n)"),
            finding("ST101", "compile", "Tracing takes 610 ms", 610, gain_ms=(200, 400),
                    severity="consider", change="Trace once."),
            finding("ST403", "host", "The profiler takes 1 % of the epoch", 90, severity="note"),
        ],
        plan={"findings": ["ST001", "ST101"], "first_epoch_ps": forecast(10_620, 2420, 3860),
              "later_epoch_ps": forecast(9700, 1900, 3140)},
    )  # fmt: skip


def compile_bound() -> dict[str, Any]:
    entry = run(
        "compile_bound",
        {"compile.tracing": 1243, "compile.xla": 600, "input.wait": 461, "compute.step": 389,
         "host.python": 240, "profiler.stop": 17},
        status="slow_once", primary="compile",
        sentence="Slow once: 62 % of the first epoch makes code, once; later epochs take 0.41 s.",
        one_time_ms=1860, later_ms=410,
        steps=steps({"compile": 1843, "input": 20, "compute": 11},
                    *[{"compute": 9, "input": 10 + i % 4} for i in range(39)]),
        slow_events=[{"start_ps": 0, "end_ps": 1243 * MS, "cause": "compile.tracing",
                      "label": "train_step"}],
    )  # fmt: skip
    window = entry["window"]["duration_ps"]
    entry["phases"] = [
        {"name": "startup", "start_ps": 0, "end_ps": 120 * MS, "buckets_ps": {"host": 120 * MS}},
        {"name": "training", "start_ps": 120 * MS, "end_ps": window,
         "buckets_ps": {"compile": 1843 * MS, "input": 461 * MS}},
    ]  # fmt: skip
    return entry


def learning_nothing() -> dict[str, Any]:
    return run(
        "nan", {"numerics.nonfinite": 3900, "compute.step": 210, "compile.tracing": 700},
        status="learning_nothing", primary="numerics",
        sentence="The loss is not finite from step 15 on: 3.90 s of work taught the model nothing.",
        one_time_ms=700,
        steps=steps({"compile": 700, "compute": 14}, *[{"compute": 14}] * 14,
                    *[{"numerics": 14}] * 270),
        findings=[
            finding("ST301", "numerics", "The loss became NaN at step 15", 3900,
                    change="Look at batch 15 first: bad data, then the learning rate.")
        ],
    )  # fmt: skip


def healthy() -> dict[str, Any]:
    return run(
        "healthy", {"compute.step": 52_000, "compile.tracing": 900, "input.wait": 310},
        status="healthy", primary="compute",
        sentence="Healthy: 98 % of the first epoch is the model's own work.",
        one_time_ms=900, later_ms=51_400, steps=steps(*[{"compute": 52}] * 1000),
    )  # fmt: skip


def events_only() -> dict[str, Any]:
    entry = run(
        "events_only", {"unknown.not_traced": 44_000}, status="slow_once", primary="unknown",
        sentence="The first epoch took 44 s, later ones 22.3 s; no trace says why.",
        one_time_ms=0, later_ms=22_300, sessions=[], hosts=[],
        notes=[note("warning", "No profile was captured: see `stall-analyze --help` for the "
                               "lines that capture the first epoch.")],
    )  # fmt: skip
    entry["window"] |= {"source": "events", "covered_ps": 0, "traced_ps": 0}
    entry["verdict"]["confidence"] = 0.4
    return entry


def unreadable_host() -> dict[str, Any]:
    entry = run(
        "two_workers", {"communication.collective": 3100, "compute.step": 2200,
                        "host.dispatch": 150},
        primary="communication", sentence="57 % of the first epoch waits for other workers.",
        hosts=["worker-0", "worker-1"],
        notes=[note("error", "The trace of worker-1 is not an XSpace: its bytes were changed by a "
                             "text conversion.", "worker-1.xplane.pb")],
    )  # fmt: skip
    entry["host_ledgers"] = [
        {"host": "worker-0", "buckets_ps": entry["buckets_ps"], "covered_ps": 5450 * MS,
         "training_thread": "python", "notes": []},
        {"host": "worker-1", "buckets_ps": dict.fromkeys(BUCKETS, 0) | {"unknown": 5450 * MS},
         "covered_ps": 0, "training_thread": None, "notes": []},
    ]  # fmt: skip
    return entry


def no_epoch() -> dict[str, Any]:
    entry = run(
        "aborted", {}, status="dead", primary="unknown",
        sentence="The job ended before its first epoch did.",
    )  # fmt: skip
    entry["window"]["source"] = "events"
    return entry


EXAMPLES = (
    input_bound, compile_bound, learning_nothing, healthy, events_only, unreadable_host, no_epoch,
)  # fmt: skip
