"""What the looks at a process show: whether a core is at work, whether a thread stands still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from stall_analyzer.captures.capture_format import HostMetric, Tag, TrainingPhase
from stall_analyzer.captures.capture_records import NS_PER_S
from stall_analyzer.captures.look_records import ChildProcess, Look, Loop, ThreadStack
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.units import Float64s
from stall_analyzer.signals.ending.blame import is_called_by_tensorflow
from stall_analyzer.signals.ending.python_stacks import IMPORTS, TRACES, stack_of
from stall_analyzer.signals.ending.scene import Scene, sleep_calls

# Below this share of a core, only threads that look around now and then are at work.
IDLE_CORES = 0.02
# A process that reads this much in each half of the time is reading.
READING_BYTES = 100_000
# A missing page brings in at most this much of its file, because Linux reads ahead.
PAGED_IN_BYTES = 128 << 10
# With less than this share of memory left, a process loses pages that it will need again.
SHORT_OF_MEMORY = 0.1
# The thread must be at the same line in this many looks, over this many seconds.
LEAST_LOOKS = 3
LEAST_SECONDS = 3.0
# Between two readings closer than this, most of the work is the looking itself.
LEAST_GAP_NS = NS_PER_S // 2
# On a machine that others keep busy, a thread that never waits gets at least this much of a core.
SPINS_CORES = 0.05
# Less than any Python needs to leave one call and get to the next: in all, and at most once in this
# many looks.
BLOCKED_NS, SELDOM = 20_000, 10
# A thread that is asleep in this share of the looks only watches something; it makes nothing.
MOSTLY = 0.5
SERVED_PER_S = 3.0  # polling with a timeout is rarely faster than a few times a second
# No step is expected here: a program may do whatever it likes, as long as it does something.
OUTSIDE_OF_FIT = (TrainingPhase.STARTUP, TrainingPhase.IDLE, TrainingPhase.EXIT)
CPU, READ, FAULTS, AVAILABLE, LIMIT = (
    (Tag.HOST + name).removeprefix(Tag.ALL)
    for name in (
        HostMetric.CPU,
        HostMetric.READ,
        HostMetric.MAJOR_FAULTS,
        HostMetric.AVAILABLE,
        HostMetric.LIMIT,
    )
)


def cores_at_work(scene: Scene) -> float | None:
    """How many were at work for half of the time or longer: saving a profile in the middle takes
    only a moment. None: it was not watched for long enough."""
    seen = {look.ns: look.cpu_s for look in scene.looks if look.cpu_s is not None}
    found = _usual_rate(seen)
    if found is None:  # the looks leave out the capture's own work, but there are too few of them
        found = _usual_rate(seen | _samples(scene))
    return None if found is None else max(found - _of_threads_that_sleep(scene), 0.0)


def _samples(scene: Scene) -> dict[int, float]:
    series = scene.capture.series.get(CPU)
    if series is None:
        return {}
    # The step itself may have ended within the second.
    late = series.wall_ns > scene.looks[0].sign_ns + NS_PER_S
    return dict(zip(series.wall_ns[late].tolist(), series.value[late].tolist(), strict=True))


def _usual_rate(seen: Mapping[int, float]) -> float | None:
    """The median over time, from readings that are not too close to each other."""
    times: list[int] = []
    for ns in sorted(seen):
        if not times or ns - times[-1] >= LEAST_GAP_NS:
            times.append(ns)
    if len(times) < 2 or times[-1] - times[0] < LEAST_SECONDS * NS_PER_S:
        return None
    rates = [((seen[b] - seen[a]) * NS_PER_S / (b - a), b - a) for a, b in pairwise(times)]
    rates.sort()
    lasted = np.cumsum([ns for _, ns in rates])
    return rates[int(np.searchsorted(lasted, lasted[-1] / 2))][0]


def _of_threads_that_sleep(scene: Scene) -> float:
    """Cores used by threads that look around now and then, as monitors do."""
    calls, looks = sleep_calls(scene), scene.calm
    asleep: dict[str, int] = {}
    for look in looks:
        for thread in look.threads:
            if thread.name and not thread.main and thread.wait in calls:
                asleep[thread.name] = asleep.get(thread.name, 0) + 1
    names = {name for name, count in asleep.items() if count >= MOSTLY * len(looks)}
    return sum(_rate_of(scene, name) or 0.0 for name in names)


def _rate_of(scene: Scene, name: str) -> float | None:
    """Cores used by a thread that can be recognized by its name."""
    seen = [
        (look.ns, thread.ran_ns)
        for look in scene.calm
        for thread in look.threads
        if thread.name == name and thread.count == 1 and thread.ran_ns is not None
    ]
    if len(seen) < 2 or seen[-1][0] <= seen[0][0]:
        return None
    return (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])


def is_reading(scene: Scene) -> bool:
    """Whether it reads more than pages that a machine short of memory took from it before."""
    read = _grew(scene, READ)
    if _is_short_of_memory(scene):
        read = read - PAGED_IN_BYTES * _grew(scene, FAULTS)
    return bool((read >= READING_BYTES).all())


def _grew(scene: Scene, name: str) -> Float64s:
    """How much it grew in each half of the time; 0 where nobody counted."""
    series = scene.capture.series.get(name)
    if series is None or len(series) == 0:
        return np.zeros(2)
    halves = np.linspace(scene.looks[0].sign_ns, scene.looks[-1].ns, 3)
    # Written only when it has changed: until then, the value before applies.
    at = np.searchsorted(series.wall_ns, halves, side="right") - 1
    return np.diff(series.value[np.maximum(at, 0)])


def _is_short_of_memory(scene: Scene) -> bool:
    free, limit = (scene.capture.series.get(name) for name in (AVAILABLE, LIMIT))
    if free is None or limit is None or not len(free) or not len(limit):
        return False
    since = max(int(np.searchsorted(free.wall_ns, scene.looks[0].sign_ns)) - 1, 0)
    return bool(free.value[since:].min() < SHORT_OF_MEMORY * limit.value[-1])


def busy_child(scene: Scene) -> str:
    """A process that it started and that is at work: `process 4711, python`. Only the second half
    counts: before that, it may have been starting."""
    middle = scene.calm[len(scene.calm) // 2]
    first = {child.pid: child for child in middle.children}
    lasts_s = (scene.last.ns - middle.ns) / NS_PER_S
    for child in scene.last.children:
        before = first.get(child.pid, ChildProcess(cpu_s=0.0))
        if before.cpu_s is None or child.cpu_s is None or not lasts_s:
            continue
        if (child.cpu_s - before.cpu_s) / lasts_s >= IDLE_CORES:
            return f"process {child.pid}, {child.name}"
    return ""


def are_replaced(scene: Scene) -> bool:
    """Whether workers of a pool keep ending and restarting while none of its work gets done."""
    left = {look.tasks_left for look in scene.calm}
    lived = [{child.pid for child in look.children} for look in scene.calm]
    is_renewed = bool(lived[0]) and bool(lived[-1]) and not lived[0] & lived[-1]
    return len(lived) >= LEAST_LOOKS and is_renewed and len(left) == 1 and None not in left


# ---------------------------------------------------------------- threads


def stands_still(scene: Scene) -> bool:
    """Whether the threads that count are at the same lines in all looks."""
    looks = scene.calm
    if len(looks) < LEAST_LOOKS or (looks[-1].ns - looks[0].ns) / NS_PER_S < LEAST_SECONDS:
        return False
    return len({places(look) for look in looks}) == 1


def places(look: Look) -> frozenset[tuple[object, ...]]:
    """Where the main thread is, and those that run the user's code for TensorFlow."""
    telling = [t for t in look.threads if t.main or is_called_by_tensorflow(stack_of(t))]
    return frozenset((thread.main, *_place(thread)) for thread in telling)


def _place(thread: ThreadStack) -> tuple[str, ...]:
    """Its lines, but only functions of Python's library: a wait with a timeout loops in there."""
    stack = stack_of(thread)
    frames = stack.frames
    if stack.passes(TRACES) and (stack.unrolls or stack.calls_itself):
        frames = frames[-1:]  # each round is somewhere else in the same function
    return tuple(f.function if f.is_standard else f"{f.path}:{f.line} {f.function}" for f in frames)


def is_blocked(scene: Scene, thread: ThreadStack) -> bool:
    """Whether it is known to stay in one call: it never got a core between the looks, or only long
    enough to see that it must keep waiting."""
    turns = _turns(scene, thread)
    ran = [t.ran_ns for t in _same(scene.calm, thread) if t.ran_ns is not None]
    seldom = len(turns) >= LEAST_LOOKS and (turns[-1] - turns[0]) * SELDOM <= len(turns)
    return seldom and (turns[-1] == turns[0] or (bool(ran) and ran[-1] - ran[0] < BLOCKED_NS))


def is_woken(scene: Scene, thread: ThreadStack) -> bool:
    """Whether it slept several times between two looks: a single sleep ends only once."""
    turns = _turns(scene, thread)
    return len(turns) >= LEAST_LOOKS and turns[-1] - turns[0] >= 2 * (len(turns) - 1)


def is_served(scene: Scene, thread: ThreadStack) -> bool:
    """Whether it is woken more often than polling with a timeout would do."""
    turns, lasts_s = _turns(scene, thread), (scene.calm[-1].ns - scene.calm[0].ns) / NS_PER_S
    return len(turns) >= LEAST_LOOKS and turns[-1] - turns[0] > SERVED_PER_S * lasts_s


def _turns(scene: Scene, thread: ThreadStack) -> list[int]:
    return [t.turns for t in _same(scene.calm, thread) if t.turns is not None]


def spins_in(scene: Scene, thread: ThreadStack) -> Loop | None:
    """The `while` loop in the user's code in which it computes without end: nothing in the loop
    takes time, and yet every look found the thread there; or the loop has no way out."""
    same = _same(scene.calm, thread)
    loops = [t.loop for t in same if t.loop is not None]
    loop, ran = loops[-1] if loops else None, [t.ran_ns for t in same]
    if loop is None or loop.word != "while" or None in ran or len(ran) < LEAST_LOOKS:
        return None
    if len(loops) < len(same) or len({(each.line, each.last) for each in loops}) > 1:
        return None
    if not loop.has_no_end and not all(each.is_empty for each in loops):
        return None
    lasted_ns = scene.calm[-1].ns - scene.calm[0].ns
    return loop if (ran[-1] or 0) - (ran[0] or 0) >= SPINS_CORES * lasted_ns > 0 else None


def _same(looks: Sequence[Look], thread: ThreadStack) -> list[ThreadStack]:
    """The thread in each of the looks: the main one, or the one in that function."""
    owner = stack_of(thread).owner
    found = []
    for look in looks:
        for other in look.threads:
            its = stack_of(other).owner
            same_place = its is not None and owner is not None and its.function == owner.function
            if (thread.main and other.main) or (not thread.main and not other.main and same_place):
                found.append(other)
                break
    return found


# ---------------------------------------------------------------- outside fit


def still_at_the_end(looks: tuple[Look, ...]) -> tuple[Look, ...]:
    """A program does all kinds of things before and after it trains: only its last place counts."""
    calm = Scene(Capture(), looks).calm
    last, begin = places(calm[-1]), len(calm) - 1
    while begin > 0 and places(calm[begin - 1]) == last:
        begin -= 1
    return looks[looks.index(calm[begin]) :]


def is_one_preparation(scene: Scene) -> bool:
    """Whether, before fit, one line of the script takes long, wherever in it the looks found it,
    without TensorFlow, which a loop that trains would use."""
    if scene.last.phase != TrainingPhase.STARTUP or scene.is_attached:
        return False
    looks = scene.calm[-LEAST_LOOKS * 2 :]
    stacks = [stack_of(look.main) for look in looks if look.main is not None]
    lines = {(users[-1].path, users[-1].line) for s in stacks if (users := s.all_users)}
    lasted_s = (looks[-1].ns - looks[0].ns) / NS_PER_S
    if len(stacks) < LEAST_LOOKS * 2 or len(lines) != 1 or lasted_s < LEAST_SECONDS:
        return False
    return not any(
        frame.is_tensorflow or frame.is_of(IMPORTS) for s in stacks for frame in s.frames
    )


def is_worth_a_word(scene: Scene) -> bool:
    """Whether, before fit, one place takes long. A custom loop may be training without a mark,
    unless it stays in one call; and after fit, nobody waits for anything."""
    if scene.last.phase != TrainingPhase.STARTUP or scene.last.main is None:
        return False
    may_train = stack_of(scene.last.main).is_inside_tensorflow and not scene.capture.trains
    return stands_still(scene) and not (may_train and not is_blocked(scene, scene.last.main))
