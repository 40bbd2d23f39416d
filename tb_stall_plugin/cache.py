"""Finished analyses in the user's cache folder, one folder for each version of a run's files."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from stall_analyzer.chart import chart_files
from stall_analyzer.chart.chart_columns import Chart
from stall_analyzer.files import caches
from stall_analyzer.model.runs import Run
from stall_analyzer.report.facts import facts_of

FORMAT = 2  # of what is stored; a change makes all that was stored unknown
MOST_BYTES = 2 << 30
KNOWN, REPORT, CHART = "known.json", "report.json", "chart-{}"


class Analysis:
    """One finished analysis. Reads what is asked for, when it is asked for."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder, self.version = folder, version

    @property
    def exists(self) -> bool:
        return (self.folder / KNOWN).is_file()

    @cached_property
    def known(self) -> dict[str, Any]:
        """What the list of runs shows."""
        return self._json(KNOWN)

    def report(self) -> dict[str, Any]:
        return self._json(REPORT)

    @cached_property
    def _charts(self) -> dict[str, Chart]:
        folders = sorted(self.folder.glob(CHART.format("*")))
        return {chart.host: chart for chart in map(chart_files.load, folders)}

    def chart(self, host: str | None) -> Chart | None:
        """Of a host, or of the one that trains; None for a host that is not in the run."""
        if host is None:
            return next(iter(self._charts.values()))
        return self._charts.get(host)

    def _json(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.folder / name).read_text(encoding="utf-8")))


def write(folder: Path, entry: dict[str, Any], charts: tuple[Chart, ...]) -> None:
    """All or nothing: a folder of that name is a whole analysis."""
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
    try:
        for number, chart in enumerate(charts):
            chart_files.save(chart, partial / CHART.format(f"{number:04d}"))
        (partial / REPORT).write_text(json.dumps(entry, allow_nan=False), encoding="utf-8")
        (partial / KNOWN).write_text(json.dumps(facts_of(entry)), encoding="utf-8")
        partial.rename(folder)
    except OSError:
        if not Analysis(folder, "").exists:  # else another TensorBoard was quicker
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


class Cache:
    @cached_property
    def _folder(self) -> Path:
        return caches.folder("analyses")

    def place(self, version: str) -> Path:
        return self._folder / version

    def load(self, version: str) -> Analysis | None:
        """None where it has not been made, or is damaged."""
        analysis = Analysis(self.place(version), version)
        try:
            if not analysis.known:
                return None
            os.utime(analysis.folder)  # used: it is not the first to go
        except FileNotFoundError:
            return None
        except (OSError, ValueError):  # the machine went down while it was written
            shutil.rmtree(analysis.folder, ignore_errors=True)
            return None
        return analysis

    def prune(self, most_bytes: int = MOST_BYTES) -> None:
        """Forget what was not used for the longest time, until the rest is small enough."""
        used: list[tuple[float, int, Path]] = []
        for folder in self._folder.iterdir():
            with suppress(OSError):  # another TensorBoard may be at it too
                files_in_it = [path.stat() for path in (folder, *folder.rglob("*"))]
                used.append((files_in_it[0].st_mtime, sum(f.st_size for f in files_in_it), folder))
        sizes = 0
        for _, size, folder in sorted(used, reverse=True):
            sizes += size
            if sizes > most_bytes and sizes > size:
                shutil.rmtree(folder, ignore_errors=True)


def version_of(run: Run) -> str:
    """Changes with the run's files, with the analyzer, and with what is stored."""
    return caches.digest(FORMAT, caches.version_of(run))
