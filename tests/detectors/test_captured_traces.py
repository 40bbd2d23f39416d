"""What a capture and a trace say together: thread settings, and buffers compared with memory."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np

from stall_analyzer.captures.capture_records import Environment, MarkRecord, ThreadSettings
from stall_analyzer.detectors.host import one_intra_op_thread
from stall_analyzer.detectors.memory import large_buffer
from stall_analyzer.model.event_log import Capture, EventLog, Series
from stall_analyzer.model.findings import Finding
from tests.captures import NS, START_NS, log
from tests.detectors.training import signals_for
from tests.traces import TRAIN_OPS, call, clock, event, host, ops, timeline_of, wait
from tests.xspace import Event

FILL_S = 20.0
STEP_MS = 100.0
STEPS = 20


def epoch_log(
    resident_gb: np.ndarray | None = None, intra_op: int = 0, fill_s: float = FILL_S
) -> EventLog:
    """An epoch whose memory was sampled every second; the limit is 16 GB."""
    end_ns = START_NS + round((fill_s + STEPS * STEP_MS / 1e3) * NS)
    series = {}
    if resident_gb is not None:
        wall = START_NS + np.arange(len(resident_gb), dtype=np.int64) * NS
        series["host/rss_bytes"] = Series(np.zeros_like(wall), wall, resident_gb * 1e9)
        series["host/limit_bytes"] = Series(np.zeros(1, np.int64), wall[:1], np.array([16e9]))
    return log(
        Capture(
            environment=Environment(host="host", cores=4, threads=ThreadSettings(intra_op)),
            marks=(
                MarkRecord(START_NS, "epoch_begin", 0, 0),
                MarkRecord(end_ns, "epoch_end", 0, STEPS),
            ),
            last_ns=end_ns,
            series=series,
        )
    )


def found(
    detector: ModuleType, folder: Path, events: EventLog, fill_ms: float = 0.0
) -> Finding | None:
    """Steps of 100 ms; the first waits until a shuffle buffer is full."""
    python: list[Event] = []
    work: list[Event] = []
    for number in range(STEPS):
        begin = 0.0 if number == 0 else fill_ms + number * STEP_MS
        ready, end = fill_ms + number * STEP_MS, fill_ms + (number + 1) * STEP_MS
        python += call(begin, end, run=number + 1)
        work += [*wait(begin, ready, number + 1), *ops(ready, end, number + 1, *TRAIN_OPS)]
    filling = event("Iterator::Root::Shuffle", 0, fill_ms, buffer_size=10_000)
    lines = [("python", python), ("tf_Compute", work), ("tf_numa_-1_Eigen/1", ())]
    if fill_ms:
        lines.append(("tf_data_iterator_resource/2", [filling]))
    planes = (host(*lines), clock(START_NS, FILL_S + STEPS * STEP_MS / 1e3))
    finding: Finding | None = detector.check(
        signals_for(timeline_of(folder, *planes, events=events))
    )
    return finding


def test_a_shuffle_buffer_against_the_memory(tmp_path: Path) -> None:
    growing = np.concatenate([np.linspace(1, 11, 20), np.full(5, 11.0)])
    finding = found(large_buffer, tmp_path, epoch_log(growing), fill_ms=FILL_S * 1e3)
    assert finding is not None
    assert finding.title == "shuffle(10000) holds 10 GB of the 16 GB of memory"
    assert "1.0 MB per element" in finding.explanation
    small = np.concatenate([np.linspace(1, 3, 20), np.full(5, 3.0)])
    assert found(large_buffer, tmp_path, epoch_log(small), fill_ms=FILL_S * 1e3) is None
    assert found(large_buffer, tmp_path, epoch_log(growing)) is None, "nothing was filled"


def test_the_setting_itself_decides_how_many_threads_there_are(tmp_path: Path) -> None:
    """One thread was seen at work; only a capture knows that it was set to one."""
    finding = found(one_intra_op_thread, tmp_path, epoch_log(intra_op=1, fill_s=0))
    assert finding is not None and "has set the number" in finding.explanation
    assert found(one_intra_op_thread, tmp_path, epoch_log(intra_op=0, fill_s=0)) is None
