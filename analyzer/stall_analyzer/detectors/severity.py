"""How severe a finding is, by its share of the first epoch."""

from __future__ import annotations

from stall_analyzer.model.kinds import Severity
from stall_analyzer.model.units import PS_PER_S

# XProf calls a run input-bound from 5% of its time, and highly so from 20%. The limits here are the
# same, so that people can compare.
CONSIDER_SHARE = 0.05
ACT_SHARE = 0.20
# A smaller one-time cost is never urgent, however short the epoch is.
ACT_ONCE_PS = 5 * PS_PER_S


def severity_of(share: float, once_ps: int | None = None) -> Severity | None:
    """How severe it is to lose this share of the first epoch; None: not worth a finding.

    `once_ps`: what a change would save, if it saves that only once.
    """
    if share >= ACT_SHARE and (once_ps is None or once_ps >= ACT_ONCE_PS):
        return "act"
    return "consider" if share >= CONSIDER_SHARE else None
