"""Pipelines that callbacks create for themselves: they are not part of the training's input.

Every iterator has an id, and names the id of the one that reads from it. A root that is read while
a callback keeps training waiting is the callback's, and so is everything that it reads from.
"""

from __future__ import annotations

from stall_analyzer.model.columns import distinct, is_in, without
from stall_analyzer.model.intervals import covered
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.trace_rows import ABSENT, names_where, rows_beginning, stat_of
from stall_analyzer.model.units import Int64s


def side_stages(aligned: AlignedTrace, roots: tuple[str, ...]) -> tuple[str, ...]:
    """Names of stages that only pipelines of callbacks have."""
    trace, training = aligned.trace, aligned.training
    if training is None or len(training.side.start_ps) == 0:
        return ()
    rows = rows_beginning(trace, roots)
    ids, names = stat_of(trace, "id", rows), trace.events.name[rows]
    is_root = names_where(trace, roots.__contains__)[names]
    side = covered(trace.events.start_ps[rows], training.side.start_ps, training.side.end_ps)
    beside = without(ids[is_root & side], ids[is_root & ~side])
    mine = is_in(ids, _below(beside, ids, stat_of(trace, "parent_id", rows)))
    return tuple(trace.names[name] for name in without(names[mine], names[~mine]))


def _below(iterators: Int64s, ids: Int64s, parents: Int64s) -> Int64s:
    """The iterators and all that they read from."""
    found = distinct(iterators[iterators != ABSENT])
    while True:
        more = distinct(found, ids[is_in(parents, found)])
        if len(more) == len(found):
            return found
        found = more
