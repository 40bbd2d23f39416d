"""What is said about a batch as a whole: sums, exceeded limits, what is worse than before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stall_analyzer.batch import baseline
from stall_analyzer.batch.baseline import Comparison
from stall_analyzer.batch.limits import Limit, Limits, check_causes
from stall_analyzer.errors import UsageError
from stall_analyzer.report.facts import Facts
from stall_analyzer.report.fleet import Fleet


class Judge:
    def __init__(
        self,
        limits: Sequence[Limit] = (),
        former: Path | None = None,
        tolerance: float = 0.0,
        selected: bool = False,
    ) -> None:
        """`selected`: only some of the runs are wanted. Raises UsageError, before the work, if a
        limit or the earlier result cannot be used."""
        check_causes(limits)
        self.fleet = Fleet()
        self.limits = Limits(limits)
        self.comparison = Comparison(baseline.read(former), tolerance, selected) if former else None

    def take(self, facts: Facts) -> None:
        self.fleet.add(facts)
        self.limits.check(facts)
        if self.comparison:
            self.comparison.check(facts)

    def check(self) -> None:
        """If nothing could be compared, that must not look as if nothing is worse."""
        if self.comparison and self.comparison.is_of_other_runs:
            name, _ = min(self.comparison.former)
            if self.comparison.selected:
                raise UsageError(
                    f"nothing was compared: none of the selected runs is in the baseline (which "
                    f"has runs such as {name!r})"
                )
            raise UsageError(
                f"nothing was compared: no run here has the same name as a run in the baseline "
                f"(such as {name!r}). Runs are named by their folder below PATH, so use the "
                f"same PATH as for the baseline"
            )
