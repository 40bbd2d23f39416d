"""What XProf says about the same traces, as they are and with its steps marked.

python -m tests.scenarios.faults.xprof --workdir DIR [--markdown FILE]

Keras 3 writes no step markers that XProf knows, so as they are it finds no steps in these traces.
To be fair, it is asked once more with every call of the training function marked as a step.
XProf keeps a cache beside a trace, so it always gets a copy.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.scenarios.faults.accuracy import table, write_section
from tests.scenarios.faults.score import Expected
from tests.scenarios.faults.table import all_faults, expected_of
from tests.scenarios.score import PS_PER_S, analyze

TITLE = "XProf on the same traces"
INTRODUCTION = """\
XProf {version} read the traces of the faulty programs above. *As captured*: XProf takes steps
from events with the stat `_r`, which Keras 3 does not write. *Steps marked*: the same traces after
every call of the training function was given `_r` and `step_num`, which a user could only do by
changing code. XProf answers a different question than Stall does: how a typical step spends its
time. It leaves out the first and the last step and what happens between steps, so it does not look
for a slow first epoch. *Counted* is the total time of the steps that it did look at, next to the
length of the first epoch. The words are XProf's: input-bound, with the share of the step time spent
waiting for input, or POTENTIALLY input-bound, with the share that XProf could not explain."""

NO_STEPS = "no steps"
ANSWERS = ("HIGHLY", "MODERATELY", "POTENTIALLY", "NOT", NO_STEPS)
STEP_FUNCTIONS = frozenset({"multi_step_on_iterator", "train_function"})  # Keras 3, Keras 2
MARKER = "_r"


@dataclass(frozen=True)
class Answer:
    """XProf's conclusion on input."""

    bound: str = NO_STEPS  # one of ANSWERS
    percent: float | None = None  # of the step time, as its sentence has it
    steps: int = 0
    step_ms: float = 0.0  # mean

    def __str__(self) -> str:
        if self.bound == NO_STEPS:
            return NO_STEPS
        share = "" if self.percent is None else f", {self.percent:g}%"
        kind = " unexplained" if self.bound == "POTENTIALLY" else ""
        return f"{self.bound} input-bound{share}{kind}"


@dataclass(frozen=True)
class Comparison:
    expected: Expected
    primary: str  # what Stall answered
    share: float  # of the first epoch that Stall found in that bucket
    epoch_s: float
    as_captured: Answer
    marked: Answer


def answer_of(overview: Sequence[Mapping[str, Any]]) -> Answer:
    """From the tables of XProf's overview page."""
    for part in overview:
        words = part.get("p", {})
        if "input_conclusion" in words:
            said = re.search(r"Your program is (\w+) input-bound", words["input_conclusion"])
            if not said:
                return Answer()
            percent = re.search(r"([\d.]+) ?%", words["input_conclusion"])
            return Answer(
                said[1],
                float(percent[1]) if percent else None,
                len(part["rows"]),
                float(words["steptime_ms_average"]),
            )
    return Answer()


def mark_steps(space: Any) -> int:
    """Marks the outermost calls of the training function as steps; returns how many."""
    count = 0
    for plane in space.planes:
        names = {key: entry.name for key, entry in plane.event_metadata.items()}
        if not STEP_FUNCTIONS & set(names.values()):
            continue
        marker, number = _stat(plane, MARKER), _stat(plane, "step_num")
        for line in plane.lines:
            end_ps = 0
            for event in sorted(line.events, key=lambda e: (e.offset_ps, -e.duration_ps)):
                if names[event.metadata_id] not in STEP_FUNCTIONS or event.offset_ps < end_ps:
                    continue
                end_ps = event.offset_ps + event.duration_ps
                event.stats.add(metadata_id=marker, int64_value=1)
                event.stats.add(metadata_id=number, int64_value=count)
                count += 1
    return count


def _stat(plane: Any, name: str) -> int:
    for key, entry in plane.stat_metadata.items():
        if entry.name == name:
            return int(key)
    key = max(plane.stat_metadata, default=0) + 1
    plane.stat_metadata[key].id = key
    plane.stat_metadata[key].name = name
    return key


def ask(trace: Path, marked: bool) -> Answer:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2  # noqa: PLC0415
    from xprof.convert import raw_to_tool_data  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / trace.name
        shutil.copy(trace, copy)
        if marked:
            space = xplane_pb2.XSpace.FromString(copy.read_bytes())
            mark_steps(space)
            copy.write_bytes(space.SerializeToString())
        data, _ = raw_to_tool_data.xspace_to_tool_data([str(copy)], "overview_page", {})
    return answer_of(json.loads(data) if data else [])


def compare(expected: Expected, logdir: Path) -> Comparison | None:
    traces = sorted(logdir.glob("**/*.xplane.pb"))
    if not traces:
        return None  # event files alone are nothing to XProf
    run = analyze(logdir)
    epoch_ps, primary = run["window"]["duration_ps"], run["verdict"]["primary"]
    if not epoch_ps:
        return None  # no epoch to speak of
    return Comparison(
        expected,
        primary,
        run["buckets_ps"][primary] / epoch_ps,
        epoch_ps / PS_PER_S,
        ask(traces[0], marked=False),
        ask(traces[0], marked=True),
    )


def markdown(comparisons: Sequence[Comparison], version: str) -> str:
    rows = [
        [
            c.expected.name,
            c.expected.made_for,
            f"{c.primary}, {c.share:.0%}",
            str(c.as_captured),
            str(c.marked),
            f"{c.marked.steps * c.marked.step_ms / 1000:.2f} s / {c.epoch_s:.2f} s",
        ]
        for c in comparisons
    ]
    return "\n\n".join(
        [
            INTRODUCTION.format(version=version),
            table(
                ["program", "made for", "Stall: primary bucket, share", "XProf as captured",
                 "XProf, steps marked", "counted / first epoch"],
                rows,
            ),
            "Programs by what they were made for, and what XProf called them with steps marked:",
            _by_bucket(comparisons),
        ]
    )  # fmt: skip


def _by_bucket(comparisons: Sequence[Comparison]) -> str:
    answers: dict[str, Counter[str]] = {}
    right: Counter[str] = Counter()
    for c in comparisons:
        answers.setdefault(c.expected.made_for, Counter())[c.marked.bound] += 1
        right[c.expected.made_for] += c.expected.allows(c.primary)
    rows = [
        [
            made_for,
            str(sum(said.values())),
            str(right[made_for]),
            *(str(said[answer] or "") for answer in ANSWERS),
        ]
        for made_for, said in answers.items()
    ]
    return table(["made for", "programs", "Stall: primary right", *ANSWERS], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.faults.xprof")
    parser.add_argument("--workdir", type=Path, required=True, help="what faults.run captured")
    parser.add_argument("--markdown", type=Path, help="put the tables into this Markdown file")
    options = parser.parse_args(arguments)
    comparisons = []
    for name, (group, fault) in all_faults().items():
        logs = options.workdir / name / "faulty" / "logs"
        comparison = compare(expected_of(group, fault), logs)
        if comparison is None:
            continue
        comparisons.append(comparison)
        print(f"{name:32} {comparison.as_captured}; marked: {comparison.marked}", flush=True)
    if not comparisons:
        print(f"no trace in {options.workdir}", file=sys.stderr)
        return 1
    if options.markdown:
        from xprof import version  # noqa: PLC0415

        write_section(options.markdown, TITLE, markdown(comparisons, version.__version__))
    return 0


if __name__ == "__main__":
    sys.exit(main())
