"""A side effect of any change that makes an epoch much shorter: its iterator may also end sooner.

The thread that tunes a pipeline sleeps for about as long as the pipeline has existed, and ending
the iterator may wait for it (ST014).
"""

from __future__ import annotations

from dataclasses import replace

from stall_analyzer.model.causes import bucket_of
from stall_analyzer.model.findings import Finding, Gain
from stall_analyzer.signals.signals import Signals

ENDING = "input.iterator_teardown"
ABOUT_ENDING = "ST014"
# Each sleep is twice as long as the one before.
SHORTER = 0.5


def with_sooner_ending(finding: Finding, signals: Signals) -> Finding:
    ending_ps = signals.causes_ps[ENDING]
    lived_ps = signals.window_ps - ending_ps
    makes_it_short = finding.gain.high_ps >= SHORTER * lived_ps
    if not ending_ps or not makes_it_short or finding.id == ABOUT_ENDING:
        return finding
    return replace(
        finding,
        lost_ps=finding.lost_ps + ending_ps,
        blames=tuple(dict.fromkeys((*finding.blames, bucket_of(ENDING)))),
        gain=finding.gain + Gain(0, ending_ps),
        evidence=(*finding.evidence, *signals.evidence_of(ENDING, "ends an iterator")),
    )
