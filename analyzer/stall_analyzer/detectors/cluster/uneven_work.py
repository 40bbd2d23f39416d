"""The hosts of a cluster ran different numbers of steps.

What it finds
Hosts that train together but run different numbers of steps in the first epoch.

Why it stalls
Each step needs all of them. A worker that runs out of batches drops out, and the others wait for
it: forever, or until they get an error.

How it is measured
From the marks of the hosts' captures, or the steps in traces that cover the whole window.

Example
Worker 2 ran 480 steps, the others 500: its shard has fewer files.

What to do
Give every worker the same number of batches: shard by elements rather than by files, or cut every
worker's epoch to the number of batches that the smallest shard has.

Blind spots
Hosts that train independently (a parameter server's workers, for example) may differ.
"""

from __future__ import annotations

from collections import Counter

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import listed
from stall_analyzer.signals.signals import Signals

ID = "ST506"
BUCKET = "communication"

# One step more or less may be where a profile begins or ends, or a smaller last batch.
LEAST_DIFFERENCE = 2


def check(signals: Signals) -> Finding | None:
    steps = signals.cluster.steps
    if len(steps) < 2 or max(steps.values()) - min(steps.values()) < LEAST_DIFFERENCE:
        return None
    count_of = Counter(steps.values())
    usual = max(count_of, key=lambda count: (count_of[count], count))
    odd = {host: count for host, count in steps.items() if count != usual}
    each = listed([f"{host} ran {count}" for host, count in odd.items()])
    rest = "the other" if len(steps) - len(odd) == 1 else "the others"
    return Finding(
        severity="consider",
        title=f"The hosts do not run the same number of steps: {each}, {rest} {usual}",
        explanation=(
            f"{len(steps)} hosts were recorded to the end of their first epoch. In it, {each} "
            f"steps, and {rest} ran {usual}. In synchronous training, a worker that runs out of "
            f"batches drops out, and the others wait for it."
        ),
        change=Change(
            "Give every worker the same number of batches.",
            "options.experimental_distribute.auto_shard_policy = AutoShardPolicy.FILE",
            "options.experimental_distribute.auto_shard_policy = AutoShardPolicy.DATA\n"
            "data = data.take(batches_of_the_smallest)",
        ),
        confidence=0.8,
    )
