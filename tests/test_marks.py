"""What the records of an ordinary log say about how the first epoch went."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stall_analyzer.align.align import align
from stall_analyzer.align.logged_epoch import LoggedEpoch, batch_series, epoch_from_events
from stall_analyzer.align.marks import Profile, first_step_of, validation_of
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.runs import ProfileSession
from stall_analyzer.model.timeline import FirstStep, Phase
from stall_analyzer.model.units import PS_PER_MS, PS_PER_S
from tests.ordinary_logs import BEGIN_NS, BEGIN_S, NS, KerasLog
from tests.traces import event, steps, trace_of, trainer


def epoch(log: EventLog) -> LoggedEpoch:
    found = epoch_from_events(log)
    assert found is not None
    return found


def first_step(
    folder: Path, log: KerasLog, profile_s: float | None = None, batch: int | None = None
) -> FirstStep | None:
    """The first step, with a profile that began at `profile_s`; `batch`: according to its
    markers."""
    events = log.read(folder)
    logged = epoch(events)
    began_ns = BEGIN_NS + round((profile_s or 0) * NS)
    profiles = [] if profile_s is None else [Profile(began_ns, 1, batch)]
    batches = batch_series(events)
    return first_step_of(events, logged.start_ns, logged.end_ns, batches, profiles)


def told(step: FirstStep | None) -> tuple[float, int, bool]:
    """Seconds, the number of steps that had ended by then, and whether that is exact."""
    assert step is not None
    return round(step.end_ps / PS_PER_S, 3), step.steps, step.exact


ONE_EPOCH = KerasLog(epochs=[10.0])


# ---------------------------------------------------------------- begin of fit, end of epochs


def test_fit_begins_when_keras_writes_the_model_and_an_epoch_ends_with_its_scalars(
    tmp_path: Path,
) -> None:
    found = epoch(KerasLog(epochs=[10.0, 13.0, 16.5]).read(tmp_path))
    assert (found.start_ns, found.start_error_ns) == (BEGIN_NS, 0)
    assert found.end_ns - found.start_ns == 10 * NS
    assert found.later_ns == (3 * NS, round(3.5 * NS))
    assert found.finished


def test_epochs_that_do_not_start_at_0_are_counted_from_the_first_that_is_there(
    tmp_path: Path,
) -> None:
    found = epoch(KerasLog(epochs=[10.0, 13.0], first_epoch=7).read(tmp_path))
    assert (found.end_ns - found.start_ns, found.later_ns) == (10 * NS, (3 * NS,))


def test_a_second_fit_in_the_same_file_adds_no_later_epochs(tmp_path: Path) -> None:
    """Nor does it if it takes longer than the first one did."""
    again = {"epoch_loss": [(0, 10.0), (1, 13.0), (0, 110.0), (1, 113.0), (2, 116.0)]}
    found = epoch(KerasLog(others=again).read(tmp_path))
    assert found.later_ns == (3 * NS,)


def test_a_clock_that_is_set_back_ends_what_is_believed(tmp_path: Path) -> None:
    found = epoch(KerasLog(epochs=[10.0, 13.0, 5.0]).read(tmp_path))
    assert found.later_ns == (3 * NS,)


def test_an_epoch_of_months_is_a_clock_that_jumped(tmp_path: Path) -> None:
    timeline = KerasLog(epochs=[1.2e7]).timeline(tmp_path)
    assert timeline.window.duration_ps == 0
    assert "took months, so their times are ignored" in timeline.notes[0].text


def test_without_an_epochs_end_the_last_record_ends_the_window(tmp_path: Path) -> None:
    found = epoch(KerasLog(batches=[(1, 2.0), (2, 2.5)]).read(tmp_path))
    assert not found.finished
    assert found.end_ns - found.start_ns == round(2.5 * NS)
    assert found.steps is None


# ---------------------------------------------------------------- end of the first step


def test_the_graph_is_written_after_the_first_batch(tmp_path: Path) -> None:
    """tf.keras 2 from TensorFlow 2.2 on."""
    found = first_step(tmp_path, replace(ONE_EPOCH, graph_s=2.5))
    assert told(found) == (2.5, 1, True)


def test_a_graph_that_comes_before_the_model_says_nothing_about_a_step(tmp_path: Path) -> None:
    """TensorFlow 2.0 and 2.1."""
    assert first_step(tmp_path, replace(ONE_EPOCH, graph_s=-0.1)) is None


def test_keras_3_writes_no_graph_and_the_profile_tells_its_first_step(tmp_path: Path) -> None:
    """It names the batch with which a profile ended; a profile that nothing names proves
    nothing."""
    found = first_step(tmp_path, replace(ONE_EPOCH, profiled={2: 3.2}), profile_s=3.0)
    assert told(found) == (3.0, 1, True)
    assert found is not None and found.source == "the profile of batch 2 began"
    assert first_step(tmp_path, ONE_EPOCH, profile_s=3.0) is None


def test_the_profiles_own_markers_say_which_batch_it_began_with(tmp_path: Path) -> None:
    assert told(first_step(tmp_path, ONE_EPOCH, profile_s=3.0, batch=2)) == (3.0, 1, True)
    assert told(first_step(tmp_path, ONE_EPOCH, profile_s=3.0, batch=20)) == (3.0, 19, False)


def test_a_profile_from_the_first_batch_on_proves_no_step(tmp_path: Path) -> None:
    assert first_step(tmp_path, ONE_EPOCH, profile_s=0.1, batch=1) is None


def test_the_tag_of_a_profiled_batch_says_which_one_it_was(tmp_path: Path) -> None:
    log = replace(ONE_EPOCH, profiled={5: 3.2})
    assert told(first_step(tmp_path, log)) == (3.2, 5, False)
    assert told(first_step(tmp_path, log, profile_s=3.0)) == (3.0, 4, False)
    log = replace(ONE_EPOCH, profiled={2: 3.2})
    assert told(first_step(tmp_path, log, profile_s=3.0)) == (3.0, 1, True)


def test_the_earliest_proof_counts(tmp_path: Path) -> None:
    log = replace(ONE_EPOCH, graph_s=2.5, profiled={2: 3.2}, batches=[(1, 2.6), (2, 3.1)])
    assert told(first_step(tmp_path, log, profile_s=3.0)) == (2.5, 1, True)


@pytest.mark.parametrize(
    ("logged", "number"),
    [
        ((1, 2, 3), 1),  # update_freq=1
        ((0, 1, 2), 1),  # … as older ones count
        ((10, 20, 30), 10),  # update_freq=10 of tf.keras 2
        ((1, 11, 21), 1),  # … of Keras 3, which writes the first
        ((5100, 5200, 5300), 100),  # a training that continues from a checkpoint
        ((4,), 1),
    ],
)
def test_the_first_batch_that_is_logged_has_ended(
    tmp_path: Path, logged: tuple[int, ...], number: int
) -> None:
    batches = [(step, 2.0 + n) for n, step in enumerate(logged)]
    found = first_step(tmp_path, replace(ONE_EPOCH, batches=batches))
    assert told(found) == (2.0, number, number == 1)


def test_a_profile_of_a_later_epoch_proves_nothing_about_the_first(tmp_path: Path) -> None:
    assert first_step(tmp_path, KerasLog(epochs=[10.0, 13.0]), profile_s=11.0) is None


def test_a_profile_of_another_season_lies_outside(tmp_path: Path) -> None:
    """More picoseconds away than fit in 64 bits."""
    python, work = steps(0, 5)
    timeline = ONE_EPOCH.timeline(tmp_path, trainer(python, work), profile_s=2e7)
    (trace,) = timeline.traces
    assert trace.covered_ps[0] == trace.covered_ps[1]
    assert timeline.window.duration_ps == 10 * PS_PER_S


def test_marks_before_the_beginning_are_not_believed(tmp_path: Path) -> None:
    assert first_step(tmp_path, ONE_EPOCH, profile_s=-2.0) is None


def test_where_no_mark_is_left_nothing_is_known(tmp_path: Path) -> None:
    assert first_step(tmp_path, ONE_EPOCH) is None


# ---------------------------------------------------------------- validation and steps

VALIDATED = KerasLog(epochs=[6.5], evaluated=[(40, 6.45)], validation_opened_s=2.8)


def test_validation_begins_in_the_second_that_its_file_was_made_and_ends_exactly(
    tmp_path: Path,
) -> None:
    """Fit begins at a quarter past a second: made at 2.8 s, the file says 2.75 s to 3.75 s."""
    log = VALIDATED.read(tmp_path)
    found = validation_of(log, BEGIN_NS, BEGIN_NS + round(6.5 * NS))
    assert found is not None
    assert found.begin_ns - BEGIN_NS == round(3.25 * NS)
    assert found.begin_error_ns == NS // 2
    assert found.end_ns - BEGIN_NS == pytest.approx(6.45 * NS, abs=1000)


def test_a_validation_shorter_than_the_second_is_known_better(tmp_path: Path) -> None:
    log = replace(VALIDATED, evaluated=[(40, 2.95)]).read(tmp_path)
    found = validation_of(log, BEGIN_NS, BEGIN_NS + round(6.5 * NS))
    assert found is not None
    assert found.begin_error_ns == pytest.approx(0.1 * NS, abs=1000)


def test_the_first_validation_of_a_later_epoch_is_not_of_the_first(tmp_path: Path) -> None:
    """validation_freq=2."""
    log = KerasLog(
        epochs=[5.0, 12.0], evaluated=[(80, 11.9)], evaluated_epochs=[1], validation_opened_s=9.0
    ).read(tmp_path)
    assert validation_of(log, BEGIN_NS, BEGIN_NS + 5 * NS) is None
    assert epoch(log).steps == 40


def test_a_validation_that_ended_before_its_file_was_made_is_not_believed(tmp_path: Path) -> None:
    log = replace(VALIDATED, validation_opened_s=9.0).read(tmp_path)
    assert validation_of(log, BEGIN_NS, BEGIN_NS + round(6.5 * NS)) is None


def test_a_count_of_fewer_steps_than_were_traced_is_not_believed(tmp_path: Path) -> None:
    python, work = steps(0, 5)
    log = KerasLog(epochs=[10.0], rate=0.3)
    assert log.timeline(tmp_path).training_steps == 3
    traced = log.timeline(tmp_path, trainer(python, work), profile_s=3.0)
    assert traced.training_steps is None


@pytest.mark.parametrize(
    ("counts", "epochs", "first_epoch", "expected"),
    [
        ([40], (), 0, 40),
        ([40, 80, 120], (), 0, 40),
        ([640, 680], (), 0, 40),  # the optimizer had counted before this fit
        ([80, 160], (1, 3), 0, 40),  # validation_freq=2
        ([640], (15,), 15, None),  # continued from a checkpoint: how it counted before is unknown
        ([640, 680], (15, 16), 15, 40),
        ([40, 80, 120, 160], (0, 1, 0, 1), 0, 40),  # a second fit
        ([0], (), 0, None),
    ],
)
def test_evaluations_count_the_steps_of_an_epoch(
    tmp_path: Path,
    counts: list[int],
    epochs: tuple[int, ...],
    first_epoch: int,
    expected: int | None,
) -> None:
    log = KerasLog(
        epochs=[6.5 * (n + 1) for n in range(len(counts))],
        first_epoch=first_epoch,
        evaluated=[(count, 6.5 * (n + 1) - 0.1) for n, count in enumerate(counts)],
        evaluated_epochs=epochs,
        validation_opened_s=3.0,
    )
    assert epoch(log.read(tmp_path)).steps == expected


@pytest.mark.parametrize(
    ("rate", "expected"), [(30.0, 300), (float("nan"), None), (0.0, None), (-3.0, None)]
)
def test_the_logged_rate_counts_them_where_nothing_was_evaluated(
    tmp_path: Path, rate: float, expected: int | None
) -> None:
    """With write_steps_per_second=True."""
    assert epoch(replace(ONE_EPOCH, rate=rate).read(tmp_path)).steps == expected


# ---------------------------------------------------------------- phases


def test_the_marks_are_phases_that_tile_the_window_with_their_errors(tmp_path: Path) -> None:
    """A validation of half the epoch is seen, although none of it was traced."""
    timeline = replace(VALIDATED, graph_s=2.0).timeline(tmp_path)
    assert [(p.name, round(p.end_ps / PS_PER_S, 2), p.error_ps) for p in timeline.phases] == [
        ("first_step", 2.0, 0),
        ("training", 3.25, PS_PER_S // 2),
        ("validation", 6.45, 0),
        ("epoch_end", 6.5, 0),
    ]
    ends = [0, *(phase.end_ps for phase in timeline.phases)]
    assert [phase.start_ps for phase in timeline.phases] == ends[:-1]
    assert ends[-1] == timeline.window.duration_ps


def test_validation_begins_after_the_first_step_however_early_its_file_was_made(
    tmp_path: Path,
) -> None:
    """A file of 2.75 s to 3.75 s, and a first step of 3.25 s: what is left is half a second."""
    timeline = replace(VALIDATED, graph_s=3.25).timeline(tmp_path)
    training = next(phase for phase in timeline.phases if phase.name == "training")
    assert (training.end_ps, training.error_ps) == (round(3.5 * PS_PER_S), PS_PER_S // 4)


def test_traced_steps_tell_the_phases_only_to_the_end_of_the_epoch(tmp_path: Path) -> None:
    """A trace of the first 50 ms of 70 ends before the validation does, as far as it knows."""
    python, work = steps(0, 5)
    cut = KerasLog(epochs=[0.07]).timeline(tmp_path, trainer(python, work), profile_s=0.0)
    assert [phase.name for phase in cut.phases] == ["training"]
    whole = KerasLog(epochs=[0.0501]).timeline(tmp_path, trainer(python, work), profile_s=0.0)
    assert [phase.name for phase in whole.phases] == ["training", "epoch_end"]


def test_a_profile_of_nobody_knows_which_batch_marks_nothing(tmp_path: Path) -> None:
    python, work = steps(0, 1)
    timeline = ONE_EPOCH.timeline(tmp_path, trainer(python, work), profile_s=3.0)
    assert timeline.first_step is None
    assert timeline.phases == (Phase("training", 0, 10 * PS_PER_S),)


def test_markers_in_the_trace_make_it_exact(tmp_path: Path) -> None:
    """As tf.keras 2 sets them around each batch, from 0."""
    python, work = steps(0, 1)
    marker = event("train", 0, 12, step_num=1, epoch_num=0)
    timeline = ONE_EPOCH.timeline(tmp_path, trainer([marker, *python], work), profile_s=3.0)
    assert [phase.name for phase in timeline.phases] == ["first_step", "training"]
    assert timeline.phases[0].end_ps == pytest.approx(3 * PS_PER_S, abs=PS_PER_MS)


# ---------------------------------------------------------------- traces without a clock


def placed_at(folder: Path, log: KerasLog, exported_s: float) -> float:
    """When a trace of 50 ms without its own clock ends, in seconds after fit() began."""
    session = ProfileSession("s", "", (), exported_unix_s=int(BEGIN_S + exported_s))
    python, work = steps(0, 5)
    trace = trace_of(folder, trainer(python, work))
    (aligned,) = align([(session, trace)], log.read(folder)).traces
    return round(aligned.covered_ps[1] / PS_PER_S, 3)


def test_the_tag_of_the_profiled_batch_places_a_trace_that_has_no_clock(tmp_path: Path) -> None:
    """It is written when the batch ends; the session is named after the second of its export."""
    assert placed_at(tmp_path, replace(ONE_EPOCH, profiled={2: 3.2}), exported_s=3.9) == 3.2


def test_a_tag_that_may_be_of_another_session_does_not(tmp_path: Path) -> None:
    """Neither one that is far from it nor one of several: then the name gives the second."""
    far = replace(ONE_EPOCH, profiled={2: 8.0})
    several = replace(ONE_EPOCH, profiled={2: 3.2, 4: 3.5})
    assert placed_at(tmp_path, far, exported_s=3.9) == 3.75
    assert placed_at(tmp_path, several, exported_s=3.9) == 3.75


# ---------------------------------------------------------------- custom loops

LOOP = KerasLog(model=False, others={"my/loss": [(n, 3.0 + n) for n in range(8)]})


def test_a_loop_that_logs_any_scalar_begins_when_its_file_was_made(tmp_path: Path) -> None:
    """To the second: its middle is a quarter of a second after fit begins here."""
    found = epoch(LOOP.read(tmp_path))
    assert found.start_ns == BEGIN_NS + NS // 4
    assert found.start_error_ns == NS // 2
    assert not found.finished
    assert found.end_ns == BEGIN_NS + 10 * NS


def test_its_first_scalar_ends_its_first_step(tmp_path: Path) -> None:
    assert told(first_step(tmp_path, LOOP)) == (2.75, 1, True)


def test_two_records_tell_no_course(tmp_path: Path) -> None:
    log = replace(LOOP, others={"loss": [(0, 3.0), (1, 4.0)]}).read(tmp_path)
    assert epoch_from_events(log) is None


def test_beside_what_keras_logs_other_scalars_are_no_batches(tmp_path: Path) -> None:
    log = replace(ONE_EPOCH, others={"learning_rate": [(n, 3.0 + n) for n in range(8)]})
    assert batch_series(log.read(tmp_path)) is None


def test_without_its_first_record_a_loop_begins_with_its_first_scalar(tmp_path: Path) -> None:
    """Then that scalar does not end a first step, because it is not known when that began."""
    log = replace(LOOP.read(tmp_path), opened_ns=None)
    found = epoch(log)
    assert (found.start_ns, found.start_source) == (BEGIN_NS + 3 * NS, "first batch had ended")
    assert first_step_of(log, found.start_ns, found.end_ns, batch_series(log), ()) is None


def test_a_loop_begins_before_its_first_trace(tmp_path: Path) -> None:
    """Its file was made in the second around 0, and the profiler began 0.1 s after that."""
    python, work = steps(0, 5)
    timeline = LOOP.timeline(tmp_path, trainer(python, work), profile_s=0.1)
    assert timeline.window.start_unix_ns == pytest.approx(BEGIN_NS - 0.075 * NS, abs=1000)


def test_without_the_model_an_epoch_begins_when_the_file_was_made(tmp_path: Path) -> None:
    found = epoch(replace(ONE_EPOCH, model=False).read(tmp_path))
    assert found.start_source == "creation of the event file, known to the second"
    assert found.start_error_ns == NS // 2
