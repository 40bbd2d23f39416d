"""Several fits in one process: what the first epoch is, and what the others are called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stall_analyzer.align.align import align
from stall_analyzer.captures.capture_records import ModelRecord
from stall_analyzer.events.event_files import read_events
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.runs import EventFile, Run
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.units import PS_PER_MS, PS_PER_S
from tests.event_files import START_S, file_name, file_version, framed, model, record, scalar
from tests.test_align import assigns, at, capture, epoch
from tests.traces import TRAIN_OPS, call, clock, event, ops, timeline_of, trainer
from tests.xspace import Event

OTHER = 10  # milliseconds from the end of one fit to the dataset of the next


def fit_file(begin_s: float, layers: Sequence[str], epochs: Sequence[int]) -> bytes:
    """The file of a fit whose epochs take 4 s each."""
    begin_s += START_S
    named = [{"class_name": "Dense", "config": {"name": name}} for name in layers]
    text = json.dumps({"class_name": "Sequential", "config": {"layers": named}})
    ends = [
        record(scalar("epoch_loss", 1.0), at_s=begin_s + 4 * (number + 1), step=epoch)
        for number, epoch in enumerate(epochs)
    ]
    return b"".join(
        [framed(file_version(begin_s)), record(model(text), at_s=begin_s), *ends]
    )  # fmt: skip


def logged(folder: Path, *fits: bytes) -> EventLog:
    files = []
    for number, data in enumerate(fits):
        path = folder / file_name(START_S + number, n=2 * number)
        path.write_bytes(data)
        files.append(EventFile(str(path), "train", len(data)))
    return read_events(Run(".", str(folder), (), tuple(files)))


def notes_of(timeline: Timeline) -> str:
    return " ".join(note.text for note in timeline.notes)


def test_fits_of_other_models_are_not_later_epochs(tmp_path: Path) -> None:
    """A k-fold: Keras gives the layers of each model new names."""
    log = logged(tmp_path, fit_file(0, ["dense"], [0, 1]), fit_file(20, ["dense_1"], [0, 1]))
    timeline = align([], log)
    assert timeline.window.duration_ps == 4 * PS_PER_S
    assert timeline.later_epochs_ps == (4 * PS_PER_S,)
    said = "This process called fit 2 times; this report is about the first call."
    assert said in notes_of(timeline)
    assert "another model" in notes_of(timeline)


def test_fits_of_the_same_model_are_later_epochs(tmp_path: Path) -> None:
    """for epoch in range(3): model.fit(x, y, epochs=1)"""
    log = logged(tmp_path, *(fit_file(20 * number, ["dense"], [0]) for number in range(3)))
    timeline = align([], log)
    assert timeline.window.duration_ps == 4 * PS_PER_S
    assert timeline.later_epochs_ps == (4 * PS_PER_S,) * 2
    assert "This process called fit 3 times" in notes_of(timeline)
    assert "the same model" in notes_of(timeline)


def test_a_fit_that_counts_its_epochs_on_is_more_of_the_same(tmp_path: Path) -> None:
    """initial_epoch=1: the logs of both belong together."""
    log = logged(tmp_path, fit_file(0, ["dense"], [0]), fit_file(20, ["dense"], [1]))
    assert (log.fits, log.later_fits) == (2, ())
    assert log.train["epoch_loss"].step.tolist() == [0, 1]


def test_a_second_writer_of_the_process_is_not_a_fit(tmp_path: Path) -> None:
    images = framed(file_version(START_S + 9)) + record(scalar("brightness", 1.0), at_s=START_S + 9)
    log = logged(tmp_path, fit_file(0, ["dense"], [0]), images)
    assert log.later_fits == ()
    assert set(log.train) == {"epoch_loss", "brightness"}
    assert notes_of(align([], log)) == ""


def test_a_capture_tells_fits_of_one_model_apart_from_those_of_others() -> None:
    marks = [
        (what, begin + later)
        for begin in (0, 10)
        for what, later in (("fit_begin", 0), ("epoch_begin", 1), ("epoch_end", 5), ("fit_end", 5))
    ]
    for layers, later in ((("dense", "dense"), 1), (("dense", "dense_1"), 0)):
        log = capture(*marks)
        assert log.capture is not None
        models = tuple(ModelRecord(at(2), layers=(name,)) for name in layers)
        timeline = align([], replace(log, captures=(replace(log.capture, models=models),)))
        assert timeline.fits.count == 2
        assert len(timeline.later_epochs_ps) == later


# ---------------------------------------------------------------- traces


def keras(thread: Sequence[Event]) -> list[Event]:
    """The thread, with the names that Keras gives its step."""
    named = {"train_step": "multi_step_on_iterator"}
    return [replace(one, name=named.get(one.name, one.name)) for one in thread]


def two_fits(compiles: bool) -> tuple[list[Event], list[Event]]:
    first, second = epoch(100, first_run=1), epoch(200, first_run=11)
    between = [event("EagerLocalExecute: RangeDataset", 132 + OTHER, 133 + OTHER)]
    if compiles:
        between.insert(0, event("EagerLocalExecute: VarHandleOp", 131 + OTHER, 131.5 + OTHER))
    return keras(first[0] + between + second[0]), first[1] + second[1]


def test_the_first_epoch_of_a_trace_ends_before_the_next_fit_creates_its_dataset(
    tmp_path: Path,
) -> None:
    timeline = timeline_of(tmp_path, trainer(*two_fits(compiles=False)))
    assert timeline.window.duration_ps == round((132 + OTHER - 100.35) * PS_PER_MS)
    assert (timeline.fits.count, timeline.fits.same_model) == (2, True)


def test_variables_that_are_created_between_two_fits_belong_to_another_model(
    tmp_path: Path,
) -> None:
    timeline = timeline_of(tmp_path, trainer(*two_fits(compiles=True)))
    assert timeline.window.duration_ps == round((131 + OTHER - 100.35) * PS_PER_MS)
    assert (timeline.fits.count, timeline.fits.same_model) == (2, False)
    assert timeline.later_epochs_ps == ()


def test_a_profile_of_the_second_fit_alone_makes_the_run_about_that(tmp_path: Path) -> None:
    log = logged(tmp_path, fit_file(0, ["dense"], [0]), fit_file(20, ["dense"], [0]))
    began = clock(at(18), 7)
    timeline = timeline_of(tmp_path, trainer(*epoch(2010, first_run=1)), began, events=log)
    assert timeline.window.start_unix_ns is not None
    assert timeline.window.start_unix_ns > at(20)
    assert "about call number 2, the first that was profiled" in notes_of(timeline)


# ---------------------------------------------------------------- custom loops


def loop(*names: str, traced_ms: float = 5) -> tuple[list[Event], list[Event]]:
    """Two turns of 20 ms, in each of which these functions are called; the last one trains."""
    thread, work = [], []
    for turn in range(2):
        for nth, name in enumerate(names):
            start, run = 50 + 20 * turn + 10 * nth, 10 * turn + nth + 1
            trains = nth == len(names) - 1
            one = call(start, start + 9, run, traced_ms=0 if turn else traced_ms, graph=GRAPHS[nth])
            thread += [replace(e, name=name if e.name == "train_step" else e.name) for e in one]
            work += ops(start + 6, start + 9, run, *(TRAIN_OPS if trains else TRAIN_OPS[:1]))
    return thread, work


GRAPHS = ("__inference_one_1", "__inference_other_2")


def test_a_loop_without_an_iterator_begins_with_the_trace_of_its_step(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, trainer(*loop("step")))
    assert timeline.window.start_source == "the first step is traced"
    assert timeline.window.duration_ps == 29 * PS_PER_MS


def test_what_is_called_in_every_step_of_a_loop_belongs_to_its_first(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, trainer(*loop("predict", "step")))
    assert timeline.window.duration_ps == 39 * PS_PER_MS


def test_train_on_batch_resets_the_metrics_in_every_step(tmp_path: Path) -> None:
    thread, work = loop("one_step_on_data")
    timeline = timeline_of(tmp_path, trainer([*thread[:6], *assigns(65, 4), *thread[6:]], work))
    assert len(timeline.steps) == 2


def test_initial_values_of_variables_are_not_a_reset_of_metrics(tmp_path: Path) -> None:
    made = [
        event(f"EagerLocalExecute: {op}", 1 + n + later, 1.1 + n + later)
        for n in range(3)
        for op, later in (("VarHandleOp", 0), ("AssignVariableOp", 0.2))
    ]
    timeline = timeline_of(tmp_path, trainer(made + loop("step")[0], loop("step")[1]))
    assert timeline.window.start_source == "the first step is traced"
