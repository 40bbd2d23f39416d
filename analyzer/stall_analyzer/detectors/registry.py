"""Every detector, found in the folders of the families and ordered by id.

A detector is a module: its file is named after its finding, its docstring is its manual page, `ID`
and `BUCKET` say what it is, and `check(signals)` returns a Finding or None. A module without an
`ID` only helps the detectors next to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from stall_analyzer.model.findings import Finding
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.records import dataclass
from stall_analyzer.signals.signals import Signals


@dataclass(frozen=True)
class Detector:
    """A module that looks for one kind of finding."""

    id: str
    name: str
    bucket: Bucket
    unsigned_check: Callable[[Signals], Finding | None]  # the module's own check

    def check(self, signals: Signals) -> Finding | None:
        """What the module finds, with the detector's id, name and bucket put in."""
        finding = self.unsigned_check(signals)
        if finding is None:
            return None
        blames = finding.blames or (self.bucket,)
        return replace(finding, id=self.id, name=self.name, bucket=self.bucket, blames=blames)


def _detectors() -> Iterator[Detector]:
    for path in Path(__file__).parent.glob("*/[a-z]*.py"):
        module = import_module(f"{__package__}.{path.parent.name}.{path.stem}")
        if hasattr(module, "ID"):
            yield Detector(module.ID, path.stem, module.BUCKET, module.check)


DETECTORS: tuple[Detector, ...] = tuple(sorted(_detectors(), key=lambda detector: detector.id))
