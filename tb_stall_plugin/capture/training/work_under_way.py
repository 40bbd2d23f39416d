"""What TensorFlow is doing in a process that hangs: how far its input has come, and which loops of
its graphs may never end.

For its autotuning, tf.data counts what each stage has produced. A stage that produces nothing while
the one below produces more and more drops everything. Nothing is looked at until a training hangs.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from types import FrameType
from typing import Any

import tensorflow as tf

from stall_analyzer.captures.look_records import (
    GraphLoop,
    GraphWait,
    InputStage,
    StageCount,
    WorkRecord,
)
from stall_analyzer.captures.stack_frames import Frame
from tb_stall_plugin.capture.process.current_frames import locals_of, with_current_stacks
from tb_stall_plugin.capture.process.loops import takes_all_in, yields_for_ever
from tb_stall_plugin.capture.process.thread_stacks import line_of
from tb_stall_plugin.capture.training.endless_generators import endless_generator

PAUSES_S = (0.0, 1.0, 2.0)  # short, as the process may end soon; but data takes time to move
PEEK_S = 0.02
MOST_STAGES = 50
ITERATOR = "OwnedIterator"  # the iterator of a tf.data.Dataset in TensorFlow 2
LOOPS = ("While", "StatelessWhile")
# Ops that wait for other ops, threads or processes.
WAITS = re.compile(r"Queue(De|En)queue|Barrier|Collective|(Map|OrderedMap)?(Uns|S)tage$|_?Recv$")
MOST_WAITS = 20
CALLED, XLA = "PartitionedCall", "_XlaMustCompile"
Held = list[tuple[str, Any]]
COMPARES = ("Less", "LessEqual", "Greater", "GreaterEqual", "NotEqual")


def look_at_work(record: Callable[[WorkRecord], None]) -> None:
    """Looks several times: counts that grow show what still moves."""
    held: Held = []
    taken_in: WorkRecord | None = None
    for pause_s in PAUSES_S:
        until_s = time.monotonic() + pause_s
        if taken_in is None and (taken_in := _taken_in_a_loop(until_s)) is not None:
            record(taken_in)
        time.sleep(max(until_s - time.monotonic(), 0.0))
        held = held_by_libraries()  # only now are the last ones released: see locals_of
        work = work_at(held)
        if work is not None:
            record(work)


def work_at(held: Held) -> WorkRecord | None:
    """None if the main thread is not in TensorFlow."""
    steps, iterator, dataset, graph, generator, compiles = None, None, None, None, "", False
    for name, value in held:
        if iterator is None and type(value).__name__ == ITERATOR:
            iterator, dataset = value, getattr(value, "_dataset", None)
        if dataset is None and isinstance(value, tf.data.Dataset):
            dataset = value  # that a call reads, even if its iterator is in no variable
            generator = generator or endless_generator(value)
        if name == "x" and not generator:  # the data given to evaluate or predict
            generator = endless_generator(value)
        if graph is None and name == "self":
            graph = _graph_of(value)
            compiles = graph is not None and _is_for_xla(value, graph)
        if steps is None and name == "steps":  # adapt reads this many, of data that may be endless
            steps = value
        if steps is None:
            steps = getattr(value, "steps_per_epoch", None) if _is_epoch(value) else None
    if dataset is None and graph is None:
        return None
    datasets = list(_inside(dataset))[:MOST_STAGES] if dataset is not None else []
    return WorkRecord(
        steps=steps if isinstance(steps, int) else None,
        stages=tuple(_stage(each) for each in datasets),
        counts=tuple(_counts(iterator)) if iterator is not None else (),
        loops=(
            *_endless_loops(graph, of_input=False),
            *(loop for each in datasets for loop in _loops_of(each)),
        ),
        waits=_waiting_ops(graph),
        generator=generator,
        compiles=compiles,
    )


def held_by_libraries() -> Held:
    """Variables of functions of TensorFlow and Keras on the main thread's stack, innermost first;
    never those of the user's own functions."""
    return with_current_stacks(_held_by_libraries)


def _held_by_libraries(stacks: Mapping[int, list[FrameType]]) -> Held:
    stack = stacks.get(threading.main_thread().ident or 0, [])
    frames = (f for f in stack if Frame(f.f_code.co_filename, 0, "").is_tensorflow)
    return [item for frame in frames for item in locals_of(frame).items()]


# ---------------------------------------------------------------- loops over data


def _taken_in_a_loop(until_s: float) -> WorkRecord | None:
    """What one of the user's for loops reads, if only the end of its data can end it. It spends
    most of its time on the data it has, so we look until we see it asking for more."""
    while time.monotonic() < until_s:
        found = with_current_stacks(_asking_for_data)
        if found is not None:
            where, source = found
            if isinstance(source, str):
                return WorkRecord(generator=source, taken_in=where)
            datasets = list(_inside(getattr(source, "_dataset", None)))[:MOST_STAGES]
            return WorkRecord(stages=tuple(_stage(each) for each in datasets), taken_in=where)
        time.sleep(PEEK_S)
    return None


def _asking_for_data(stacks: Mapping[int, list[FrameType]]) -> tuple[str, Any] | None:
    """The loop, and a tf.data iterator or the line of a generator."""
    stack = stacks.get(threading.main_thread().ident or 0, [])
    for asked, caller in pairwise(stack):
        if asked.f_code.co_name == "__next__" and Frame(caller.f_code.co_filename, 0, "").is_users:
            loop, iterator = takes_all_in(caller), locals_of(asked).get("self")
            if loop is not None and type(iterator).__name__ == ITERATOR:
                return line_of(caller.f_code, loop.line), iterator
        yields_at = yields_for_ever(asked.f_code)
        if yields_at is not None and (loop := takes_all_in(caller)) is not None:
            return line_of(caller.f_code, loop.line), line_of(asked.f_code, yields_at)
    return None


def _is_epoch(value: Any) -> bool:
    """Keras's own iterator over the batches of an epoch."""
    return type(value).__name__ in ("EpochIterator", "TFEpochIterator")


# ---------------------------------------------------------------- the input


def _inside(dataset: Any) -> Iterator[Any]:
    """From the last stage to the source, along the first input of each."""
    while dataset is not None:
        yield dataset
        inputs = dataset._inputs()
        dataset = inputs[0] if inputs else None


def _stage(dataset: Any) -> InputStage:
    name = type(dataset).__name__.strip("_").removesuffix("Dataset")
    size = None
    with suppress(Exception):
        size = int(dataset.cardinality())
    codes = [getattr(_python(function), "__code__", None) for function in _functions(dataset)]
    where = next((line_of(code, code.co_firstlineno) for code in codes if code is not None), "")
    return InputStage(name, where, size)


def _functions(dataset: Any) -> list[Any]:
    with suppress(Exception):
        return list(dataset._functions())
    return []


def _python(function: Any) -> Any:
    return getattr(function, "_func", None)


def _counts(iterator: Any) -> Iterator[StageCount]:
    """The stages as TensorFlow runs them, which may differ from how they were written."""
    with suppress(Exception):  # without autotuning, nothing is counted
        nodes: Mapping[int, Any] = tf.data.experimental.get_model_proto(iterator).nodes
        inputs = {number for node in nodes.values() for number in node.inputs}
        number = next((each for each in sorted(nodes) if each not in inputs), None)
        while number is not None and number in nodes:
            node = nodes[number]
            yield StageCount(number, node.name, node.num_elements, node.buffered_elements)
            number = next(iter(node.inputs), None)


# ---------------------------------------------------------------- loops in graphs


def _graph_of(value: Any) -> Any:
    """The graph of a compiled function that is being called."""
    is_function = type(value).__name__ in ("AtomicFunction", "ConcreteFunction")
    return _built(value) if is_function else None


def _built(function: Any) -> Any:
    """The graph that it was made from, if that still exists. We do not have one made."""
    graph = getattr(function, "_cached_graph", None)
    return graph if graph is not None else getattr(function, "_func_graph", None)


def _is_for_xla(function: Any, graph: Any) -> bool:
    """Whether XLA compiles it, or a function that it calls, such as the step inside Keras's own."""
    with suppress(Exception):  # older versions keep it elsewhere
        if XLA in function.attributes:
            return True
    with suppress(Exception):
        return any(XLA in op.node_def.attr for op in graph.get_operations() if CALLED in op.type)
    return False


def _loops_of(dataset: Any) -> Iterator[GraphLoop]:
    for function in _functions(dataset):
        yield from _endless_loops(_built(getattr(function, "function", None)), of_input=True)


def _endless_loops(graph: Any, of_input: bool) -> tuple[GraphLoop, ...]:
    """Loops that only their condition can end: they have no maximum number of rounds."""
    if graph is None:
        return ()
    functions: Mapping[str, Any] = getattr(graph, "_functions", {})
    found = []
    with suppress(Exception):
        for each in _graphs(graph):
            loops = [op for op in each.get_operations() if op.type in LOOPS]
            for op in loops:
                condition = _built(functions.get(op.get_attr("cond").name))
                if condition is not None and not _counts_rounds(condition):
                    found.append(GraphLoop(_place(op), of_input))
    return tuple(dict.fromkeys(found))


def _waiting_ops(graph: Any) -> tuple[GraphWait, ...]:
    """Including those in the functions that it calls."""
    found = []
    with suppress(Exception):
        for each in _graphs(graph):
            ops = (op for op in each.get_operations() if WAITS.match(op.type))
            found += [GraphWait(op.type, _place(op)) for op in ops]
    return tuple(dict.fromkeys(found))[:MOST_WAITS]


def _graphs(graph: Any) -> list[Any]:
    """The graph itself, and those of the functions that it calls."""
    functions: Mapping[str, Any] = getattr(graph, "_functions", {})
    return [graph, *filter(None, map(_built, tuple(functions.values())))] if graph else []


def _counts_rounds(condition: Any) -> bool:
    """Whether it compares whole numbers: `maximum_iterations`, `for i in tf.range(n)`, or the
    user's own counter."""
    compared = (op for op in condition.get_operations() if op.type in COMPARES)
    return any(op.inputs[0].dtype.is_integer for op in compared)


def _place(op: Any) -> str:
    frames = [Frame(path, line, name) for path, line, name, *_ in op.traceback or ()]
    users = [frame for frame in frames if frame.is_users]
    frame = users[-1] if users else None
    return f"{frame.path}:{frame.line} {frame.function}" if frame is not None else ""
