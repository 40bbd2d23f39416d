"""What the threads of a process are doing: Python stacks of this process, and the kernel's view."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType, TracebackType

from stall_analyzer.captures.capture_records import NS_PER_S
from stall_analyzer.captures.look_records import Loop, NativeThreads, ThreadStack
from stall_analyzer.captures.stack_frames import RESTS, Frame, frame_of
from tb_stall_plugin.capture.process.current_frames import with_current_stacks
from tb_stall_plugin.capture.process.generated_code import GENERATED, users_line
from tb_stall_plugin.capture.process.kernel_view import PROCESS, Wait, run_time, wait_of
from tb_stall_plugin.capture.process.locks import Locks, locks_by_thread
from tb_stall_plugin.capture.process.loops import loop_of
from tb_stall_plugin.capture.process.thread_numbers import numbers_of

OWN_THREADS = "stall-"  # names of the capture's threads begin like this; they are of no interest
MOST_FRAMES = 40
OUTERMOST_FRAMES = 10  # of those: they show who called, and the innermost show where it is
MOST_KEPT = 6  # of those in between
BUILDS_GRAPHS = ("func_graph_from_py_func", "_py_while_stmt", "_py_for_stmt")
MOST_THREADS = 100  # in different places
CUT = "…"
IMPORTS = "<frozen importlib"
# Our functions that interrupt a thread: what they call is not the thread's own work.
HIDDEN: set[CodeType] = {with_current_stacks.__code__}


def python_threads() -> tuple[ThreadStack, ...]:
    return grouped(with_current_stacks(_seen_threads))


def _seen_threads(stacks: Mapping[int, list[FrameType]]) -> list[ThreadStack]:
    known = {thread.ident: thread for thread in threading.enumerate()}
    main = threading.main_thread().ident
    numbers, locks = numbers_of(stacks), locks_by_thread(stacks)
    found = []
    for ident, stack in stacks.items():
        # Python does not know a thread that TensorFlow started, for example for a py_function.
        thread = known.get(ident)
        if thread is not None and thread.name.startswith(OWN_THREADS):
            continue
        seen = ThreadStack(
            name="" if thread is None else thread.name,
            main=ident == main,
            frames=frames_of(stack),
            keeps_alive=thread is not None and not thread.daemon,
            loop=_loop_of_user(stack),
            **locks.get(ident, Locks())._asdict(),
        )
        found.append(seen_by_kernel(seen, numbers.get(ident)))
    return found


def grouped(threads: Iterable[ThreadStack]) -> tuple[ThreadStack, ...]:
    """Puts threads in the same place into one entry; the main thread comes first."""
    found: dict[tuple[object, ...], ThreadStack] = {}
    for seen in threads:
        place = seen.main, seen.frames, seen.wait, seen.on, seen.waits_for, seen.holds
        before = found.get(place)
        found[place] = seen if before is None else _together(before, seen)
    return tuple(sorted(found.values(), key=lambda entry: not entry.main)[:MOST_THREADS])


def seen_by_kernel(thread: ThreadStack, number: str | None, process: Path = PROCESS) -> ThreadStack:
    """Adds what it waits in, and how long it ran."""
    if number is None:
        return thread
    wait, (ran_ns, turns) = wait_of(number, process), run_time(number, process) or (None, None)
    return replace(thread, wait=wait.call, on=wait.on, ran_ns=ran_ns, turns=turns)


def _together(one: ThreadStack, other: ThreadStack) -> ThreadStack:
    return replace(
        one,
        count=one.count + 1,
        keeps_alive=one.keeps_alive or other.keeps_alive,
        ran_ns=_sum(one.ran_ns, other.ran_ns),
        turns=_sum(one.turns, other.turns),
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _loop_of_user(stack: Sequence[FrameType]) -> Loop | None:
    """The loop in the user's innermost function or, further out, one that does not end."""
    loops = [loop_of(frame) for frame in stack if _is_users(frame.f_code)]
    endless = (loop for loop in loops if loop is not None and loop.has_no_end)
    return next(endless, loops[0] if loops else None)


def _is_users(code: CodeType) -> bool:
    return code not in HIDDEN and Frame(code.co_filename, 0, "").is_users


def main_rests() -> bool:
    """Whether the main thread waits for its user, as in a notebook, or serves requests."""
    return with_current_stacks(_rests_in)


def _rests_in(stacks: Mapping[int, list[FrameType]]) -> bool:
    stack = stacks.get(threading.main_thread().ident or 0)
    if stack is None:  # Python's prompt
        return True
    for frame in stack:
        place = Frame(frame.f_code.co_filename, 0, "")
        if place.is_of(RESTS) or not place.is_standard:
            return place.is_of(RESTS)
    return False


def main_imports() -> bool:
    """Whether the main thread is importing a module."""
    return with_current_stacks(_imports_in)


def _imports_in(stacks: Mapping[int, list[FrameType]]) -> bool:
    stack = stacks.get(threading.main_thread().ident or 0, ())
    return any(frame.f_code.co_filename.startswith(IMPORTS) for frame in stack)


def own_run_time_s() -> float:
    """How long the capture's own threads have been on a core."""
    ours = [str(t.native_id) for t in threading.enumerate() if t.name.startswith(OWN_THREADS)]
    return sum(ran[0] for number in ours if (ran := run_time(number)) is not None) / NS_PER_S


def frames_of(stack: Sequence[FrameType]) -> tuple[str, ...]:
    """The frames of a running thread, innermost first."""
    lines: list[str] = []
    for frame in stack:
        if frame.f_code in HIDDEN:
            lines.clear()
        else:
            lines.append(_line_as_written(frame.f_code, frame.f_lineno))
    return cut(lines)


def _line_as_written(code: CodeType, line: int) -> str:
    """For code that AutoGraph generated, the user's line that it was generated from."""
    written = users_line(code, line) if GENERATED in code.co_filename else None
    return written or line_of(code, line)


def frames_of_traceback(traceback: TracebackType | None) -> tuple[str, ...]:
    """Where an exception came from, innermost first."""
    lines = []
    while traceback is not None:
        lines.append(_line_as_written(traceback.tb_frame.f_code, traceback.tb_lineno))
        traceback = traceback.tb_next
    return cut(lines[::-1])


def line_of(code: CodeType, number: int) -> str:
    function = getattr(code, "co_qualname", code.co_name)  # Python 3.11 and newer have it
    return f"{code.co_filename}:{number} {function}"


def cut(lines: list[str]) -> tuple[str, ...]:
    if len(lines) <= MOST_FRAMES:
        return tuple(lines)
    innermost = MOST_FRAMES - OUTERMOST_FRAMES - MOST_KEPT
    middle = lines[innermost:-OUTERMOST_FRAMES]
    telling = [line for line in middle if _tells_whose_call_it_is(line)]
    kept = telling[:MOST_KEPT] or middle[:MOST_KEPT]
    return (*lines[:innermost], *kept, CUT, *lines[-OUTERMOST_FRAMES:])


def _tells_whose_call_it_is(line: str) -> bool:
    """Whether it is the user's own code, which may be far out from where a library waits, the call
    that trains, or the building of a graph."""
    frame = frame_of(line)
    if frame is None:
        return False
    return frame.is_users or frame.trains or frame.name in BUILDS_GRAPHS


def native_threads() -> tuple[NativeThreads, ...]:
    own = {str(t.native_id) for t in threading.enumerate() if t.name.startswith(OWN_THREADS)}
    return threads_in_kernel(PROCESS, set(with_current_stacks(numbers_of).values()), own)


def threads_in_kernel(
    process: Path, python: Container[str], left_out: Container[str] = ()
) -> tuple[NativeThreads, ...]:
    """Threads by name, kernel state and call they wait in; empty if there is no /proc.
    `python`: the numbers of the threads that run Python."""
    try:
        tasks = os.listdir(process / "task")  # noqa: PTH208 (names are all that is wanted)
    except OSError:
        return ()
    states = ((_state_of(process, t), t in python) for t in tasks if t not in left_out)
    counts = Counter((*state, runs) for state, runs in states if state is not None)
    return tuple(
        NativeThreads(name, state, wait, count, on, runs)
        for (name, state, wait, on, runs), count in counts.most_common(MOST_THREADS)
    )


def _state_of(process: Path, task: str) -> tuple[str, str, str, str] | None:
    try:
        # "12 (name) S …": the name may hold brackets and spaces.
        text = (process / "task" / task / "stat").read_text(errors="replace")
    except OSError:  # it has just ended
        return None
    head, _, rest = text.rpartition(")")
    name, state = head.partition("(")[2], rest.split()[0]
    wait = Wait() if state == "R" else wait_of(task, process)
    return name, state, wait.call, wait.on
