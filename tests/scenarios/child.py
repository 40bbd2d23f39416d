"""Runs one scenario in this process and writes its truth.json. Started by run.py."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from tests.scenarios.catalogue import SCENARIOS, Scenario
from tests.scenarios.instruments import Instruments
from tests.scenarios.make_samples import SAMPLES
from tests.scenarios.truth import NS_PER_S, buckets_ns

HOW = {
    "input": "timestamps in the graph around each iterator read; timers around iter()",
    "compile": "first call until its first op in the graph, less the usual head of a call",
    "compute": "timestamps in the graph from the batch's arrival to the step's last op",
    "host": "everything in the epoch outside the graph",
    "profiler": "timers around the hooks of the TensorBoard callback; not what the tracer takes",
}


def main(name: str, folder: Path, how: str = "") -> None:
    known = [*SCENARIOS, *(sample.scenario for sample in SAMPLES)]
    scenario = next(s for s in known if s.name == name)
    books = folder / "books" if how == "books_beside" else None
    instruments = Instruments(folder / "logs", how == "captured", books)
    module = importlib.import_module(f"tests.scenarios.{scenario.module}")
    getattr(module, name)(instruments)
    instruments.read_stamps()
    (folder / "truth.json").write_text(json.dumps(_truth(scenario, instruments), indent=1) + "\n")


def _truth(scenario: Scenario, instruments: Instruments) -> dict[str, object]:
    epoch = instruments.clocks.epoch
    assert epoch is not None
    totals = buckets_ns(instruments.clocks, instruments.knowledge)
    assert sum(totals.values()) == epoch.length_ns
    assert min(totals.values()) >= 0, f"negative truth: {totals}"
    return {
        "name": scenario.name,
        "captured": instruments.captured,
        "mode": scenario.mode,
        "expected_primary": scenario.primary,
        "epoch_start_unix_ns": epoch.begin_ns,
        "epoch_end_unix_ns": epoch.end_ns,
        "buckets_s": {bucket: ns / NS_PER_S for bucket, ns in totals.items()},
        "how": {**HOW, **instruments.how},
        "logging_ns": [
            [hook.begin_ns - epoch.begin_ns, hook.end_ns - epoch.begin_ns]
            for hook in instruments.clocks.logging
        ],
        "steps": len(instruments.train_step_seconds()),
        "notes": instruments.notes,
    }


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
