"""What each input detector finds in a pipeline, and in its near misses."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType

import pytest

from stall_analyzer.detectors.host import callback_time
from stall_analyzer.detectors.input import (
    cache_before_slow_stage,
    cache_first_pass,
    heavy_map,
    image_decoding,
    input_hidden,
    input_takes_cores,
    many_small_files,
    map_before_batch,
    no_prefetch,
    pipeline_made_each_epoch,
    python_function_in_map,
    python_generator,
    serial_map,
    shuffle_fill,
    slow_first_element,
    slow_source,
)
from stall_analyzer.detectors.input.faster_input import faster_beside_input, faster_stage
from stall_analyzer.model.findings import Finding, Gain
from stall_analyzer.model.timeline import Fits
from stall_analyzer.model.units import PS_PER_MS, PS_PER_S, PS_PER_US
from stall_analyzer.signals.host.machine import MachineSignals
from stall_analyzer.signals.input import culprit as culprits
from stall_analyzer.signals.input.culprit import TINY_ELEMENTS, culprit_of
from stall_analyzer.signals.signals import Signals
from tests.detectors.pipelines import (
    CACHED,
    CACHED_TOO_EARLY,
    DECODING_MAP,
    FILES,
    GENERATOR,
    LATE_FIRST,
    NATIVE,
    NO_PREFETCH,
    PARALLEL_MAP,
    PREFETCH,
    PYTHON,
    PYTHON_MAP,
    RECORDS,
    ROOT,
    SERIAL_MAP,
    SHUFFLE,
    SHUFFLED,
    STEPS,
    TINY_RECORD_FILES,
    UNBATCHED_MAP,
    Program,
    Stage,
    below_prefetch,
    map_stage,
    nested,
)
from tests.detectors.training import found, signals_for
from tests.traces import host, ops, steps, timeline_of, trainer

CULPRITS: list[tuple[ModuleType, Program]] = [
    (python_function_in_map, PYTHON_MAP),
    (python_generator, GENERATOR),
    (serial_map, SERIAL_MAP),
    (many_small_files, FILES),
    (many_small_files, TINY_RECORD_FILES),
    (image_decoding, DECODING_MAP),
    (slow_source, RECORDS),
    (map_before_batch, UNBATCHED_MAP),
    (heavy_map, PARALLEL_MAP),
]
ONE_CULPRIT = tuple(dict.fromkeys(module for module, _ in CULPRITS))


@pytest.mark.parametrize(("module", "program"), CULPRITS)
def test_one_culprit_is_named_and_no_other(
    module: ModuleType, program: Program, tmp_path: Path
) -> None:
    signals = program.signals(tmp_path)
    assert {other.ID for other in ONE_CULPRIT if other.check(signals)} == {module.ID}
    assert input_hidden.check(signals) is None
    finding = module.check(signals)
    assert finding.severity == "act"
    beside = faster_beside_input(signals, in_python=False) if program == UNBATCHED_MAP else Gain()
    assert finding.lost_ps == signals.causes_ps["input.wait"]  # a cost is in its own bucket
    assert 0 < finding.gain.high_ps <= finding.lost_ps + beside.high_ps
    assert finding.evidence


@pytest.mark.parametrize(("module", "program"), CULPRITS)
def test_no_culprit_where_hardly_anything_was_waited_for(
    module: ModuleType, program: Program, tmp_path: Path
) -> None:
    quick = Program(program.consumer, program.producer, program.functions, wait_ms=0.4, work_ms=100)
    assert module.check(quick.signals(tmp_path)) is None


def test_the_title_names_the_users_stage_and_its_time(tmp_path: Path) -> None:
    finding = found(python_function_in_map.check(PYTHON_MAP.signals(tmp_path)))
    assert finding.title == "The Python function in MapDataset:1 takes 19.6 ms a batch"


def test_a_stage_is_not_blamed_for_what_it_waits_for(tmp_path: Path) -> None:
    program = below_prefetch(
        Stage("Root::Prefetch::ParallelMapV2", 0.999, 1, {"parallelism": 2}),
        Stage("Root::Prefetch::ParallelMapV2::Map", 0.99, 1, {"name": "MapDataset:1"}),
        functions=PYTHON,
    )
    culprit = program.signals(tmp_path).input_culprit
    assert culprit is not None
    assert culprit.stage.kind == "Map"


def test_no_stage_is_blamed_when_none_explains_most_of_the_wait(tmp_path: Path) -> None:
    program = below_prefetch(
        map_stage("Map", share=0.3), Stage("Root::Prefetch::Map::TFRecord", 0.05), functions=NATIVE
    )
    assert program.signals(tmp_path).input_culprit is None


def test_a_parallel_map_with_one_call_is_serial(tmp_path: Path) -> None:
    program = below_prefetch(map_stage("ParallelMapV2", parallelism=1), functions=NATIVE)
    assert serial_map.check(program.signals(tmp_path)) is not None


def test_a_serial_stage_that_waits_for_a_core_is_not_to_blame(tmp_path: Path) -> None:
    """A filter behind a parallel map whose functions keep all cores busy."""
    program = below_prefetch(
        map_stage("Filter", share=0.99),
        Stage("Root::Prefetch::Filter::ParallelMapV2", 0.45, 1, {"parallelism": 2}),
    )
    signals = program.signals(tmp_path)
    during = signals.intervals_of("input.wait")
    reasons = {}
    for busy, cores in (("none", 0.5), ("all", 1.6)):
        functions_ps = round(cores * signals.causes_ps["input.wait"])
        pipeline = replace(signals.pipeline, functions_ps=functions_ps, cores=2)
        culprit = culprit_of(pipeline, during)
        reasons[busy] = None if culprit is None else culprit.reason
    assert reasons == {"none": culprits.SERIAL_MAP, "all": culprits.HEAVY_MAP}


def test_a_parallel_map_that_leaves_the_cores_idle_is_not_heavy(tmp_path: Path) -> None:
    program = below_prefetch(map_stage("ParallelMapV2", parallelism=2), functions=())
    assert heavy_map.check(program.signals(tmp_path)) is None


# ------------------------------------------------------------ the other detectors


def test_producing_and_computing_take_turns(tmp_path: Path) -> None:
    finding = found(no_prefetch.check(NO_PREFETCH.signals(tmp_path)))
    # 20 ms of producing, of which 15 would fit behind a step of 15 ms.
    assert finding.lost_ps == pytest.approx(STEPS * 15 * PS_PER_MS, rel=0.02)
    assert [m.ID for m in ONE_CULPRIT if m.check(NO_PREFETCH.signals(tmp_path))] == []


@pytest.mark.parametrize("program", [PYTHON_MAP, SERIAL_MAP, PARALLEL_MAP])
def test_a_pipeline_that_works_ahead_lacks_no_prefetch(program: Program, tmp_path: Path) -> None:
    assert no_prefetch.check(program.signals(tmp_path)) is None


def test_the_queue_of_a_pydataset_is_taken_for_a_prefetch(tmp_path: Path) -> None:
    generator = (Stage("Root::FlatMap"), Stage("Root::FlatMap[0]::Generator"))
    program = Program((ROOT, *generator), functions=PYTHON, work_ms=15)
    assert no_prefetch.check(program.signals(tmp_path)) is None


def test_a_buffer_is_filled_while_the_steps_could_run(tmp_path: Path) -> None:
    # happens once, and takes less than five seconds
    finding = found(shuffle_fill.check(SHUFFLED.signals(tmp_path)), "consider")
    assert finding.title.startswith("shuffle(500) took 400 ms to fill")
    assert "MapDataset:1" in finding.explanation
    assert finding.later_gain.high_ps == 0


def test_elements_that_the_epoch_never_uses_need_not_be_made(tmp_path: Path) -> None:
    """40 steps take 40 of the 400 elements in the buffer."""
    stages = (
        Stage("Root::Prefetch::Shuffle", 0.999, 1, {"buffer_size": 400}),
        Stage("Root::Prefetch::Shuffle::Map", 0.99, 400, {"name": "MapDataset:1"}),
    )
    slow = Program(PREFETCH, stages, NATIVE, wait_ms=0, work_ms=2, first_wait_ms=4000)
    signals = slow.signals(tmp_path)
    finding = found(shuffle_fill.check(signals))
    filled = signals.causes_ps["input.shuffle_fill"]
    assert finding.gain.high_ps == pytest.approx(0.9 * filled, rel=0.02)


def test_a_stage_below_a_buffer_that_fills_once_is_no_reason_to_act(tmp_path: Path) -> None:
    slow = Program(PREFETCH, SHUFFLE, PYTHON, wait_ms=4, work_ms=2, first_wait_ms=800)
    found(python_function_in_map.check(slow.signals(tmp_path)), "consider")


def test_python_that_takes_nothing_from_training_is_promised_what_the_cores_can_do(
    tmp_path: Path,
) -> None:
    signals = PYTHON_MAP.signals(tmp_path)
    finding, culprit = found(python_function_in_map.check(signals)), signals.input_culprit
    assert signals.pipeline.cores == 2 and culprit is not None
    assert finding.gain.low_ps == faster_stage(signals, culprit, 2, 50).low_ps


def test_a_buffer_that_each_epoch_fills_is_worth_acting_on(tmp_path: Path) -> None:
    signals = replace(SHUFFLED, made_at=(STEPS - 1,)).signals(tmp_path)
    ledger = replace(signals.host.ledger, one_time=signals.host.ledger.one_time & False)
    again = replace(signals, host=replace(signals.host, ledger=ledger))
    finding = found(shuffle_fill.check(again), "act")
    assert finding.later_gain == finding.gain
    assert "filled in each epoch" in finding.explanation


def test_elements_of_a_batch_are_not_calls_for_elements(tmp_path: Path) -> None:
    """The stage below is asked once more, to find the end of the data."""
    signals = below_prefetch(
        Stage("Root::Prefetch::BatchV2", 0.999, 1, {"batch_size": 400}),
        Stage("Root::Prefetch::BatchV2::Map", 0.99, 401, {"name": "MapDataset:1"}),
    ).signals(tmp_path)
    finding = found(map_before_batch.check(signals), "act")
    assert "maps 400 elements a batch" in finding.title


def test_a_buffer_above_a_pipeline_that_is_too_slow_anyway(tmp_path: Path) -> None:
    slow = Program(PREFETCH, SHUFFLE, PYTHON, wait_ms=40, work_ms=2, first_wait_ms=800)
    signals = slow.signals(tmp_path)
    finding = found(shuffle_fill.check(signals))
    assert (finding.severity, finding.gain.high_ps) == ("note", 0)
    culprit = found(python_function_in_map.check(signals))
    filled, waited = signals.causes_ps["input.shuffle_fill"], signals.causes_ps["input.wait"]
    assert culprit.lost_ps == waited + filled
    assert culprit.later_gain.high_ps <= waited < culprit.gain.high_ps  # it is filled once
    assert finding.evidence[0].start_ps == culprit.evidence[0].start_ps  # they blame the same time


def test_the_first_batch_is_late_once(tmp_path: Path) -> None:
    signals = LATE_FIRST.signals(tmp_path)
    finding = found(slow_first_element.check(signals))
    assert "generator" in finding.explanation
    assert finding.later_gain.high_ps == 0
    assert python_generator.check(signals) is None


def test_the_first_batch_of_any_pipeline_takes_a_little_longer(tmp_path: Path) -> None:
    usual = Program(PREFETCH, GENERATOR.producer, PYTHON, 0, work_ms=10, first_wait_ms=150)
    assert slow_first_element.check(usual.signals(tmp_path)) is None


def test_every_batch_is_as_late_as_the_first(tmp_path: Path) -> None:
    assert slow_first_element.check(GENERATOR.signals(tmp_path)) is None
    assert shuffle_fill.check(GENERATOR.signals(tmp_path)) is None


def test_filling_a_cache_is_a_note_and_blames_nobody(tmp_path: Path) -> None:
    signals = CACHED.signals(tmp_path)
    finding = found(cache_first_pass.check(signals), "note")
    assert "MapDataset:1" in finding.explanation
    assert [module.ID for module in ONE_CULPRIT if module.check(signals)] == []


def test_a_cache_in_front_of_the_slow_map(tmp_path: Path) -> None:
    signals = CACHED_TOO_EARLY.signals(tmp_path)
    finding = found(cache_before_slow_stage.check(signals))
    assert finding.gain.high_ps == 0
    assert finding.later_gain.high_ps > 0
    assert cache_first_pass.check(signals) is None


@pytest.mark.parametrize("program", [CACHED, PYTHON_MAP])
def test_a_cache_behind_the_slow_map_or_none(program: Program, tmp_path: Path) -> None:
    assert cache_before_slow_stage.check(program.signals(tmp_path)) is None


def test_a_second_stage_that_comes_to_light_afterwards_is_named(tmp_path: Path) -> None:
    both = below_prefetch(
        Stage("Root::Prefetch::Map", 0.99, 1, {"name": "MapDataset:1"}),
        Stage("Root::Prefetch::Map::Generator", 0.6, 1, {"name": "GeneratorDataset:2"}),
    )
    finding = found(python_generator.check(both.signals(tmp_path)), "act")
    assert finding.change.text.endswith(
        "After that, look at MapDataset:1, which causes most of the remaining wait."
    )
    alone = found(python_generator.check(GENERATOR.signals(tmp_path)), "act")
    assert "Next" not in alone.change.text


def test_input_that_takes_cores_from_the_step(tmp_path: Path) -> None:
    signals = _contended(tmp_path, input_threads=2)
    finding = found(input_takes_cores.check(signals))
    assert finding.lost_ps == signals.causes_ps["input.contention"]
    assert 0 < finding.gain.low_ps < finding.lost_ps < finding.gain.high_ps


def test_fewer_threads_are_no_advice_where_training_waits_for_input(tmp_path: Path) -> None:
    signals = _contended(tmp_path, input_threads=2)
    in_time = found(input_takes_cores.check(signals))
    assert "on time" in in_time.explanation and "fewer threads" in in_time.change.text
    signals.causes_ps["input.wait"] = signals.window_ps // 10
    late = found(input_takes_cores.check(signals))
    assert "on time" not in late.explanation and "fewer threads" not in late.change.text


def test_a_cache_goes_into_a_file_where_memory_is_short(tmp_path: Path) -> None:
    signals = CACHED_TOO_EARLY.signals(tmp_path)
    assert turned(cache_before_slow_stage.check(signals)) == {"cache": "in memory"}
    short = MachineSignals(0, 0, 10, 0, 0, limit_bytes=100, peak_bytes=40, cores=2)
    vars(signals)["machine"] = short
    assert turned(cache_before_slow_stage.check(signals)) == {"cache": "in a file"}


def turned(finding: Finding | None) -> dict[str, str]:
    return {turn.knob: turn.to for turn in found(finding).change.turns}


def test_input_on_a_core_that_the_step_leaves_free(tmp_path: Path) -> None:
    assert input_takes_cores.check(_contended(tmp_path, input_threads=1)) is None


def _contended(folder: Path, input_threads: int) -> Signals:
    """Steps of 20 ms on one thread; the machine has two cores."""
    calls, computing = steps(0, STEPS, length_ms=20)
    reading = nested([ROOT], 0, 0.1)
    lines = [("python", calls), ("tf_Compute", computing), ("tf_data_iterator_get_next", reading)]
    work = ops(0, STEPS * 20, 9001, *NATIVE)
    lines += [("tf_data_private_threadpool", work) for _ in range(input_threads)]
    return signals_for(timeline_of(folder, host(*lines)))


def test_busy_input_that_costs_nothing_is_left_alone(tmp_path: Path) -> None:
    signals = _hidden(tmp_path, produce_ms=15)
    finding = found(input_hidden.check(signals))
    assert (finding.severity, finding.lost_ps) == ("note", 0)
    assert finding.title == "Input takes 15.0 ms a batch, hidden behind the steps"


def test_idle_input_is_not_worth_a_note(tmp_path: Path) -> None:
    assert input_hidden.check(_hidden(tmp_path, produce_ms=1)) is None


def _hidden(folder: Path, produce_ms: float) -> Signals:
    """Steps of 30 ms, and a generator that is always in time."""
    calls, computing = steps(0, STEPS, length_ms=30)
    stages = [Stage("Root::Prefetch::FlatMap"), Stage("Root::Prefetch::FlatMap[0]::Generator")]
    starts = [n * 30 for n in range(STEPS)]
    made = [e for start in starts for e in nested(stages, start, start + produce_ms)]
    lines = trainer(
        calls,
        computing,
        ("tf_data_iterator_get_next", nested(PREFETCH, 0, 0.1)),
        ("tf_data_iterator_resource", made),
    )
    return signals_for(timeline_of(folder, lines))


def test_an_iterator_made_in_each_epoch(tmp_path: Path) -> None:
    again = Program(PREFETCH, wait_ms=0.1, work_ms=5, made_at=(0, STEPS // 2))
    signals = again.signals(tmp_path)
    finding = found(pipeline_made_each_epoch.check(signals))
    assert finding.later_gain.high_ps > 0
    assert "steps_per_epoch" in finding.change.after


def test_who_calls_fit_for_each_epoch_is_told_to_call_it_once(tmp_path: Path) -> None:
    again = Program(PREFETCH, wait_ms=0.1, work_ms=5, made_at=(0, STEPS // 2))
    timeline = replace(again.signals(tmp_path).timeline, fits=Fits(count=5))
    finding = found(pipeline_made_each_epoch.check(signals_for(timeline)))
    assert finding.change.after == "model.fit(x, y, epochs=n)"


def test_the_iterator_that_every_epoch_needs(tmp_path: Path) -> None:
    once = Program(PREFETCH, wait_ms=0.1, work_ms=5, made_at=(0,))
    assert pipeline_made_each_epoch.check(once.signals(tmp_path)) is None


def test_short_functions_are_tiny_elements_however_long_their_start_takes(tmp_path: Path) -> None:
    """On a machine that others use as well, starting a function takes much longer than usual."""
    slow_start = below_prefetch(
        Stage("Root::Prefetch::BatchV2", 0.999, 1, {"batch_size": 32}),
        Stage("Root::Prefetch::BatchV2::ParallelMapV2", 0.99, 32, {"name": "MapDataset:1"}),
    )
    signals = slow_start.signals(tmp_path)
    during, own_ps = signals.intervals_of("input.wait"), signals.causes_ps["input.wait"]
    each_ps = {"short": 40 * PS_PER_US, "long": 150 * PS_PER_US}
    reasons = {}
    for name, ps in each_ps.items():
        pipeline = replace(signals.pipeline, functions_ps=40 * 32 * ps)
        assert pipeline.functions_ps < own_ps / 2
        culprit = culprit_of(pipeline, during)
        reasons[name] = culprit.reason if culprit is not None else None
    assert reasons == {"short": TINY_ELEMENTS, "long": None}


def test_what_python_between_steps_costs_is_won_only_as_far_as_batches_come(tmp_path: Path) -> None:
    def gain(produce_ms: float) -> Gain:
        program = Program(
            PREFETCH,
            (map_stage("ParallelMapV2"),),
            wait_ms=0,
            work_ms=5,
            between_ms=20,
            background_ms=produce_ms,
        )
        finding = found(callback_time.check(program.signals(tmp_path)))
        return finding.gain

    hidden, nearly_late = gain(4), gain(20)
    assert hidden.high_ps > 700 * PS_PER_MS
    assert nearly_late.low_ps == nearly_late.high_ps < 240 * PS_PER_MS  # 40 periods of 25 ms


@pytest.mark.parametrize(
    ("bytes_a_second", "words"),
    [
        (10_000, "Almost nothing came from a disk"),
        (
            12_000_000,
            "At most 12 MB/s came from the disks, less than a single hard disk can deliver",
        ),
        (900_000_000, "Up to 900 MB/s came from the disks, which may be their limit"),
    ],
)
def test_a_capture_tells_whether_the_disk_is_slow_or_only_waited_for(
    bytes_a_second: int, words: str, tmp_path: Path
) -> None:
    signals = RECORDS.signals(tmp_path)
    assert "disk" not in found(slow_source.check(signals), "act").explanation
    read = bytes_a_second * signals.causes_ps["input.wait"] // PS_PER_S
    unknown = dict.fromkeys(field.name for field in fields(MachineSignals))
    vars(signals)["machine"] = MachineSignals(**{**unknown, "read_bytes": read})
    assert words in found(slow_source.check(signals), "act").explanation
