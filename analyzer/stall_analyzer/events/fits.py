"""Several fits in one process: Keras's callback begins a new event file with each fit().

The first of them is what a log is about. A fit that continues with the model and the epoch numbers
of the one before belongs to it; any other is kept separate.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from stall_analyzer.discover.attempts import writer_of
from stall_analyzer.model.event_log import EventLog, Series
from stall_analyzer.model.runs import EventFile

OF_EPOCHS, OF_BATCHES, OF_STEPS = "epoch_", "batch_", "evaluation_"  # tags of Keras's callback


def files_by_fit(files: Sequence[EventFile]) -> list[list[EventFile]]:
    """Files grouped by the fit that may have written them; the first group also has the others."""
    leading = "train" if any(file.role == "train" for file in files) else "run"
    written = [(file, writer_of(file.path)) for file in files]
    boards = [(f, w) for f, w in written if w is not None and w.pid is not None and not w.captures]
    leaders = [writer for file, writer in boards if file.role == leading]
    if not leaders:
        return [list(files)]
    process = min(leaders, key=lambda writer: writer.start_s).process
    numbers = sorted({writer.number for writer in leaders if writer.process == process})
    roles = (leading, "validation")
    groups: list[list[EventFile]] = [[] for _ in numbers]
    for file, writer in written:
        own = writer is not None and not writer.captures and writer.process == process
        number = writer.number if writer is not None and own and file.role in roles else 0
        groups[max(bisect_right(numbers, number) - 1, 0)].append(file)
    return groups


def told_apart(logs: Sequence[EventLog]) -> EventLog:
    """The first fit, and the others in order of time."""
    fits = [logs[0]]
    for log in logs[1:]:
        if _is_another_fit(fits[-1], log):
            fits.append(log)
        else:
            fits[-1] = _joined(fits[-1], log)
    notes = tuple(note for log in logs for note in log.notes)
    return replace(fits[0], later_fits=tuple(fits[1:]), notes=notes)


def is_same_model(one: EventLog, other: EventLog) -> bool | None:
    """Keras gives the layers of each model new names, unless it is told to forget the old ones; the
    steps of a new model count from 0 again. None if not known."""
    names = [_layer_names(log) for log in (one, other)]
    if not all(names):
        return None
    return names[0] == names[1] and not _steps_begin_anew(one.validation, other.validation)


def _steps_begin_anew(before: Mapping[str, Series], after: Mapping[str, Series]) -> bool:
    """By the optimizer's own count, which is logged with each validation."""
    pairs = [
        (before[tag], series)
        for tag, series in after.items()
        if tag.startswith(OF_STEPS) and tag in before
    ]
    return any(later.step.min() <= past.step.max() for past, later in pairs)


def _layer_names(log: EventLog) -> list[object]:
    return [layer.get("name") for layer in log.keras.layers] if log.keras is not None else []


def _is_another_fit(before: EventLog, log: EventLog) -> bool:
    """Neither a second writer of the same fit nor its continuation."""
    if log.keras is None:
        return _begins_anew(before.train, log.train)
    if before.keras is None:
        return any(tag.startswith((OF_EPOCHS, OF_BATCHES)) for tag in before.train)
    return is_same_model(before, log) is False or not _counts_on(before.train, log.train)


def _begins_anew(before: Mapping[str, Series], after: Mapping[str, Series]) -> bool:
    """Whether the same things are logged again, from the first steps on."""
    pairs = [(before[tag], series) for tag, series in after.items() if tag in before]
    return bool(pairs) and all(
        later.wall_ns.min() >= earlier.wall_ns.max() and later.step.min() <= earlier.step.min()
        for earlier, later in pairs
    )


def _counts_on(before: Mapping[str, Series], after: Mapping[str, Series]) -> bool:
    """Whether epoch numbers continue from one to the other."""
    pairs = [
        (before[tag], series)
        for tag, series in after.items()
        if tag.startswith(OF_EPOCHS) and tag in before
    ]
    return bool(pairs) and all(later.step.min() > past.step.max() for past, later in pairs)


def _joined(log: EventLog, more: EventLog) -> EventLog:
    first_ns = [ns for ns in (log.first_wall_ns, more.first_wall_ns) if ns is not None]
    last_ns = [ns for ns in (log.last_wall_ns, more.last_wall_ns) if ns is not None]
    return replace(
        log,
        train=_all_series(log.train, more.train),
        validation=_all_series(log.validation, more.validation),
        keras=log.keras or more.keras,
        captured_keras=log.captured_keras or more.captured_keras,
        first_wall_ns=min(first_ns, default=None),
        last_wall_ns=max(last_ns, default=None),
        graph_wall_ns=log.graph_wall_ns or more.graph_wall_ns,
        records=log.records + more.records,
        histograms={**more.histograms, **log.histograms},
        captures=log.captures or more.captures,
        profiled_batches=(*log.profiled_batches, *more.profiled_batches),
        opened_ns=log.opened_ns or more.opened_ns,
        validation_opened_ns=log.validation_opened_ns or more.validation_opened_ns,
        foreign_writer=log.foreign_writer and more.foreign_writer,
        fits=log.fits + (more.fits if log.keras is not None and more.keras is not None else 0),
    )


def _all_series(one: Mapping[str, Series], other: Mapping[str, Series]) -> dict[str, Series]:
    both = {tag: [part[tag] for part in (one, other) if tag in part] for tag in {**one, **other}}
    return {tag: _in_order(parts) for tag, parts in both.items()}


def _in_order(parts: Sequence[Series]) -> Series:
    wall_ns = np.concatenate([part.wall_ns for part in parts])
    order = np.argsort(wall_ns, kind="stable")
    step, value = (np.concatenate([getattr(p, name) for p in parts]) for name in ("step", "value"))
    return Series(step[order], wall_ns[order], value[order])
