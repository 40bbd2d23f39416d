"""The comparison with XProf: its answers as it gives them, its steps as they ran."""

from __future__ import annotations

from typing import Any

import pytest
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from tests.scenarios.faults.score import Expected
from tests.scenarios.faults.xprof import Answer, Comparison, answer_of, mark_steps, markdown


def overview(conclusion: str, steps: int = 2) -> list[dict[str, Any]]:
    words = {"input_conclusion": conclusion, "steptime_ms_average": "24.2"}
    return [{"p": {"host_trace_level": "0"}, "rows": []}, {"p": words, "rows": [{}] * steps}]


@pytest.mark.parametrize(
    ("conclusion", "answer", "said"),
    [
        ("Your program is HIGHLY input-bound because 87.8% of the total step time sampled is",
         Answer("HIGHLY", 87.8, 2, 24.2), "HIGHLY input-bound, 87.8%"),
        ("Your program is NOT input-bound because only 0.4% of the total step time sampled is",
         Answer("NOT", 0.4, 2, 24.2), "NOT input-bound, 0.4%"),
        ("No step time measured. Therefore we cannot tell where the performance bottleneck is.",
         Answer(), "no steps"),
    ],
)  # fmt: skip
def test_its_sentence_is_taken_at_its_word(conclusion: str, answer: Answer, said: str) -> None:
    assert answer_of(overview(conclusion)) == answer
    assert str(answer) == said


def test_no_page_is_no_steps() -> None:
    assert answer_of([]) == Answer()


def test_outermost_calls_of_the_training_function_become_steps() -> None:
    space = xplane_pb2.XSpace()
    plane = space.planes.add(name="/host:CPU")
    for key, name in enumerate(["multi_step_on_iterator", "one_step_on_data"], start=1):
        plane.event_metadata[key].id = key
        plane.event_metadata[key].name = name
    line = plane.lines.add()
    for key, start, end in ((1, 0, 10), (1, 2, 5), (2, 6, 8), (1, 10, 20)):
        line.events.add(metadata_id=key, offset_ps=start, duration_ps=end - start)
    assert mark_steps(space) == 2
    stats = {key: entry.name for key, entry in plane.stat_metadata.items()}
    marked = [
        {stats[stat.metadata_id]: stat.int64_value for stat in event.stats} for event in line.events
    ]
    assert marked == [{"_r": 1, "step_num": 0}, {}, {}, {"_r": 1, "step_num": 1}]


def test_the_comparison_has_a_row_for_each_program_and_one_for_each_bucket() -> None:
    marked = Answer("POTENTIALLY", 18.3, 58, 2.9)
    tracing = Expected("c_trace", "compile", "ST101", "compile")
    rows = markdown([Comparison(tracing, "compile", 0.87, 1.48, Answer(), marked)], "2")
    assert (
        "| c_trace | compile | compile, 87% | no steps | POTENTIALLY input-bound, 18.3% "
        "unexplained | 0.17 s / 1.48 s |" in rows
    )
    assert "| compile | 1 | 1 |  |  | 1 |  |  |" in rows
