"""TensorFlow work that never ends, or may not: an input stage that drops everything, a call that
goes through repeated data, a loop inside a graph.

A capture looks at it several times when training hangs: what each stage of tf.data has produced,
and which loops only their condition can end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from stall_analyzer.align.logged_epoch import STEP_SECONDS
from stall_analyzer.captures.capture_records import NS_PER_S
from stall_analyzer.captures.look_records import (
    ENDLESS_SIZE,
    GraphLoop,
    InputStage,
    StageCount,
    WorkRecord,
)
from stall_analyzer.captures.stack_frames import Frame, frame_of
from stall_analyzer.model.columns import median
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass
from stall_analyzer.signals.ending.python_stacks import CALLS_BACK, proof, stack_of
from stall_analyzer.signals.ending.scene import PROOF_LINES, Blamed, Scene
from stall_analyzer.signals.ending.waits import WaitKind

# Stages that may give less than they get, by TensorFlow's names; and stages that keep creating
# iterators of their own, so that the numbers of iterators say nothing.
DROPS = pattern(r"^(Parallel)?(Filter|IgnoreErrors|FlatMap|Interleave)")
NESTS = pattern(r"^(Parallel)?(FlatMap|Interleave|GroupByWindow)")
FILLS = pattern(r"^Shuffle")
REPEATS = pattern(r"Repeat")
IGNORES = "IgnoreErrors"
ROOT, AHEAD = "Root", "Prefetch"  # the name of the whole, and of the stage that works ahead
# A stage that lets less than this through makes the input slow, whatever else does.
LITTLE = 0.01
# Library calls that go through all of their data.
FIT = "fit"
CALLS = {"evaluate": "steps", "predict": "steps", "adapt": "", "reduce": ""}
# After this many passes all of the data has come, whatever a shuffle holds back.
PASSES = 2
# A step this many times as long as usual is in a loop that does not end, if it has a loop that may
# not.
TIMES_USUAL = 1000


@dataclass(frozen=True)
class Work:
    """What TensorFlow did between the first and the last look at one pause."""

    first: WorkRecord
    last: WorkRecord

    def grew(self, at: int) -> int:
        """How many elements a stage has given in the meantime; a new number is a new iterator."""
        now = self.last.counts[at]
        before = next((c for c in self.first.counts if c.id == now.id), None)
        return now.gave - before.gave if before is not None else now.gave

    @property
    def innermost_at_rest(self) -> int | None:
        """The stage that gives nothing although the one below it does."""
        moves = [self.grew(n) > 0 for n in range(len(self.last.counts))]
        first = next((n for n, grew in enumerate(moves) if grew), None)
        return first - 1 if first else None

    @property
    def is_ready(self) -> bool:
        """Whether a batch is ready for the step, which then does not wait for input."""
        first = next((c for c in self.last.counts if c.name != ROOT), None)
        return first is not None and first.name.startswith(AHEAD) and first.buffered > 0


def work_of(scene: Scene) -> Work | None:
    """None where nobody looked."""
    works = scene.works
    return Work(works[0], works[-1]) if works else None


def endless_work(scene: Scene) -> Blamed | None:
    """The work of TensorFlow that cannot end; None where all of it may end."""
    if (found := _endless_for(scene)) is not None:
        return found
    work, main = work_of(scene), scene.last.main
    if work is None or main is None:
        return None
    return (
        _endless_call(scene, work.last)
        or _dropped(scene, work, surely=True)
        or _endless_loop(scene, work)
    )


def slow_work(scene: Scene) -> tuple[str, WaitKind, Bucket] | None:
    """What TensorFlow is doing that may still end; None where nobody looked, or Python runs."""
    work = work_of(scene)
    if work is None or not _is_in_tensorflow(scene):
        return None
    if (dropped := _dropped(scene, work, surely=False)) is not None:
        return f"{dropped.subject} {dropped.waits_in}", dropped.kind, "input"
    if (little := _hardly_any(work)) is not None:
        return little, "dropped", "input"
    if (filled := _filled(work)) is not None:
        words = f"a shuffle buffer is being filled, with {filled:,} elements so far"
        return words, "filling", "input"
    loops, is_input = _places(_loops(work)), _is_input(work)
    whose = "its input" if is_input else "the step"
    if loops and not _moves(work):
        words = (
            f"{whose} has a graph loop (at {loops[0].place}) that runs until its condition is false"
        )
        return words, "graph_loop", "input" if is_input else "compute"
    if work.last.compiles and not scene.last.step:
        words = "XLA is compiling the step, as it does before the first run and for each new shape"
        return words, "xla", "compile"
    if work.is_ready:
        return "the step itself is computing, and its next batch is ready", "other", "compute"
    if work.innermost_at_rest is not None:
        return "its input pipeline is at work", "other", "input"
    return None


def _hardly_any(work: Work) -> str | None:
    """A stage that lets little through while its input keeps working and no batch comes out."""
    counts = work.last.counts
    if work.innermost_at_rest is None:
        return None
    for stage, below in pairwise(counts):
        if DROPS.match(stage.name) and stage.gave < LITTLE * below.gave:
            name = _plain_name(stage)
            through = f"{stage.gave:,} of {below.gave:,} elements"
            return f"{_called(name)}{_at(work.last.stages, name)} lets only {through} through"
    return None


def _filled(work: Work) -> int | None:
    """Elements in a shuffle buffer that gives nothing yet."""
    at_rest, counts = work.innermost_at_rest, work.last.counts
    if at_rest is None or not FILLS.match(counts[at_rest].name):
        return None
    return max(counts[at_rest + 1].gave, counts[at_rest].buffered)


def _is_in_tensorflow(scene: Scene) -> bool:
    """Whether it is there for the training itself, not for a callback."""
    main = stack_of(scene.last.main) if scene.last.main is not None else None
    return main is not None and main.is_inside_tensorflow and not main.passes(CALLS_BACK)


# ---------------------------------------------------------------- repeated data


def _endless_call(scene: Scene, work: WorkRecord) -> Blamed | None:
    """`evaluate` and the like, on repeated data, without a number of steps."""
    is_endless = work.has_endless_data and work.steps is None
    main = scene.last.main
    if not is_endless or main is None:
        return None
    frames = stack_of(main).frames
    at_call = next((n for n, f in enumerate(frames) if f.is_tensorflow and f.name in CALLS), None)
    if at_call is None:
        return None
    call = frames[at_call].name
    caller = next((f for f in frames[at_call:] if f.is_users or f.name == FIT), None)
    if caller is None or (call == "evaluate" and caller.name == FIT):
        return None  # the validation of fit has marks of its own
    at = f" at {caller.place}"
    argument = f", and was given no {CALLS[call]}" if CALLS[call] else ""
    does = f"goes through {_source(work)}{argument}"
    return _blamed(scene, "input", f"{call}(){at}", does, kind="endless_data")


def _source(work: WorkRecord) -> str:
    frame = frame_of(work.generator)
    if frame is None:
        return "data that repeats forever (repeat())"
    return f"the endless data from the generator at {frame.place}"


def _endless_for(scene: Scene) -> Blamed | None:
    """A for loop in the program over repeated data, which nothing else can end."""
    main = scene.last.main
    taken = scene.works_of_loops
    loop = frame_of(taken[-1].taken_in) if taken else None
    if main is None or loop is None or not taken[-1].has_endless_data:
        return None
    still = (f for f in stack_of(main).frames if (f.path, f.function) == (loop.path, loop.function))
    if not any(frame.line >= loop.line for frame in still):
        return None
    does = f"goes through {_source(taken[-1])}, and nothing in the loop can end it"
    return _blamed(scene, "input", f"the for loop at {loop.place}", does, kind="endless_data")


# ---------------------------------------------------------------- stages that drop everything


def _dropped(scene: Scene, work: Work, surely: bool) -> Blamed | None:
    """A stage that lets nothing through. `surely`: all of the data has come, and comes again."""
    at_rest = work.innermost_at_rest
    if at_rest is None:
        return None
    counts = work.last.counts
    resting = [n for n in range(at_rest + 1) if DROPS.match(counts[n].name)]
    if not resting or (surely and not _has_come_again(work, resting[-1])):
        return None
    stage, given = counts[resting[-1]], counts[at_rest + 1].gave
    got = given if stage.gave == 0 else work.grew(at_rest + 1)
    name = _plain_name(stage)
    subject = f"{_called(name)}{_at(work.last.stages, name)}"
    does = f"has let none of {got:,} elements through"
    if got == 1:
        does = "has dropped the only element that it received"
    does += " lately" if stage.gave else " so far"
    if surely:
        does = f"drops everything: none of {got:,} elements came through, and the data starts over"
    return _blamed(scene, "input", subject, does, kind="dropped")


def _has_come_again(work: Work, stage: int) -> bool:
    counts = work.last.counts
    repeat = next((n for n in range(stage, len(counts)) if REPEATS.search(counts[n].name)), None)
    if repeat is None or repeat + 1 >= len(counts):
        return False
    never_gave = counts[stage].gave == 0
    size = _size_below_repeat(work.last.stages)
    if size:
        came = counts[repeat].gave if never_gave else work.grew(repeat)
        return came >= PASSES * size
    if any(NESTS.match(count.name) for count in counts):
        return False
    return _passes(work, repeat, never_gave) >= PASSES


def _passes(work: Work, repeat: int, never_gave: bool) -> int:
    """Each time the data starts over, all iterators below are recreated, with the next numbers."""
    counts = work.last.counts
    below = len(counts) - repeat - 1
    if never_gave:
        first = counts[repeat].id + 1
    else:
        first = min((c.id for c in work.first.counts if c.id > counts[repeat].id), default=0)
    return (counts[repeat + 1].id - first) // below


def _size_below_repeat(stages: Sequence[InputStage]) -> int:
    """0: not known."""
    for stage, below in pairwise(stages):
        if stage.name == "Repeat" and stage.size == ENDLESS_SIZE:
            return max(below.size or 0, 0)
    return 0


def _plain_name(stage: StageCount) -> str:
    return stage.name.removeprefix("Parallel").rstrip("V0123456789")


def _called(name: str) -> str:
    return {IGNORES: "ignore_errors()", "Filter": "the filter"}.get(name, f"the stage {name}")


def _at(stages: Sequence[InputStage], name: str) -> str:
    """Where its function is; for ignore_errors(), the function that fails."""
    own = [n for n, stage in enumerate(stages) if stage.name.startswith(name)]
    tried = stages[own[-1] :] if own and name == IGNORES else [stages[n] for n in own[-1:]]
    frames = [frame for stage in tried if (frame := frame_of(stage.where))]
    if not frames:
        return ""
    where = f" at {frames[0].place}"
    return f" after the function{where}, which fails each time," if name == IGNORES else where


# ---------------------------------------------------------------- loops in graphs


def _endless_loop(scene: Scene, work: Work) -> Blamed | None:
    """Most likely endless: a loop in a step that is a thousand times as long as the others."""
    loops = _places(_loops(work))
    usual_ns = _usual_step_ns(scene)
    lasted_ns = scene.looks[-1].ns - scene.looks[0].sign_ns
    is_at_rest = work.innermost_at_rest is None and not _moves(work)
    if not loops or not usual_ns or not is_at_rest or lasted_ns < TIMES_USUAL * usual_ns:
        return None
    if not _is_in_tensorflow(scene):
        return None
    does = "is in a loop in its graph that most likely never ends"
    bucket: Bucket = "input" if _is_input(work) else "compute"
    whose = "the input" if _is_input(work) else "the step"
    found = _blamed(scene, bucket, f"{whose} at {loops[0].place}", does, kind="graph_loop")
    return replace(found, confidence=0.7)


def _moves(work: Work) -> bool:
    return any(work.grew(n) for n in range(len(work.last.counts)))


def _is_input(work: Work) -> bool:
    return not work.is_ready and any(loop.of_input for loop in work.last.loops)


def _loops(work: Work) -> list[GraphLoop]:
    return [loop for loop in work.last.loops if loop.of_input == _is_input(work)]


def _places(loops: Sequence[GraphLoop]) -> list[Frame]:
    return [frame for loop in loops if (frame := frame_of(loop.where)) is not None]


def _usual_step_ns(scene: Scene) -> float:
    """0: not known."""
    steps = scene.capture.series.get(STEP_SECONDS)
    return float(median(steps.value)) * NS_PER_S if steps else 0.0


def _blamed(
    scene: Scene, bucket: Bucket, subject: str, does: str, kind: WaitKind = "other"
) -> Blamed:
    main = scene.last.main
    assert main is not None
    return Blamed(bucket, subject, does, proof(stack_of(main), PROOF_LINES), kind=kind, thread=main)
