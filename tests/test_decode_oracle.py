"""Compares the decoder with the protobuf library on real traces: nothing is lost or invented."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from stall_analyzer.decode import decode, vocabulary
from stall_analyzer.decode.event_columns import PINNED_STATS
from stall_analyzer.model.units import PS_PER_NS
from tests.corpus import case
from tests.xspace import host_file

pb2 = pytest.importorskip("tensorflow.tsl.profiler.protobuf.xplane_pb2")


@pytest.mark.parametrize("number", ["L01", "L03", "L05", "L14", "L15", "L17"])
def test_counts_times_and_stats_agree_with_protobuf(number: str) -> None:
    path = min(Path(case(number)).glob("**/*.xplane.pb"))
    trace = decode.read_trace(host_file(path))
    space = pb2.XSpace.FromString(path.read_bytes())

    assert [plane.name for plane in trace.planes] == [plane.name for plane in space.planes]
    count: dict[str, int] = defaultdict(int)
    kept = stats = 0
    starts = set()
    joined: set[str] = set()
    for plane in space.planes:
        stat_name = {key: metadata.name for key, metadata in plane.stat_metadata.items()}
        for line in plane.lines:
            if vocabulary.drop_line(plane.name, line.name):
                continue
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                names = {stat_name.get(stat.metadata_id) for stat in event.stats}
                keep_from = vocabulary.keep_from_ps(plane.name, name)
                pinned = bool(names & PINNED_STATS)
                if keep_from == vocabulary.DROP and not pinned:
                    continue
                count[name] += 1
                if vocabulary.join_gap_ps(name):
                    joined.add(name)  # how many rows they share is tested on made traces
                elif pinned or event.duration_ps >= keep_from:
                    kept += 1
                    stats += len(names & vocabulary.KEPT_STATS)
                    starts.add(line.timestamp_ns * PS_PER_NS + event.offset_ps)
    assert dict(zip(trace.names, trace.totals.count.tolist(), strict=True)) == count
    alone = np.array([name not in joined for name in trace.names])[trace.events.name]
    found = trace.events.start_ps[alone]
    assert len(found) == kept > 0
    assert sum(int(alone[column.event].sum()) for column in trace.stats.values()) == stats
    first = 0 if trace.base_unix_ns else min(starts) - int(found.min())
    assert {start - first for start in starts} == set(found.tolist())
