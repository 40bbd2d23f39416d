"""The report as one file: the tab's own page with its data inside. It needs no server and no
network; its content policy forbids both.

The page's script is built into tb_stall_plugin/static. It is found by its path, not imported: the
analyzer must work where the plugin cannot.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from hashlib import sha256
from html import escape
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from stall_analyzer.chart.chart_window import timeline
from stall_analyzer.chart.lanes import charts_of
from stall_analyzer.detectors import manual
from stall_analyzer.errors import UsageError
from stall_analyzer.model.findings import Report
from stall_analyzer.report.facts import Facts, facts_of
from stall_analyzer.report.page import (
    READY,
    manual_answer,
    report_answer,
    run_ids,
    run_summary,
    runs_answer,
)

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import Document, ReportEntry

Json: TypeAlias = Mapping[str, Any]  # part of a timeline

PIXELS = 4000
WINDOWS = 8  # besides the whole one: eight times closer
MOST_ITEMS = 150_000  # per run, about 6 MB: a file that mail and browsers can still handle
MOST_ITEMS_IN_ALL = 600_000  # in a file with many runs
MOST_RUNS = 50  # in full; if there are more, the costliest
MOST_HOSTS = 16  # besides the one that represents the run
LEAST_PIXELS = 500

# Only this script may run, whatever names in the data look like; it adds the styles itself.
POLICY = "default-src 'none'; script-src 'sha256-{digest}'; img-src data: blob:; font-src data:"
PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
</head>
<body>
<noscript>This report needs JavaScript.</noscript>
<script type="application/json" id="stall-data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def timelines_of(report: Report) -> list[dict[str, Any]]:
    """The whole window, then that of the other hosts, then its parts, in as much detail as a file
    may hold."""
    chart, *others = charts_of(report)[: MOST_HOSTS + 1]
    whole_ps = chart.duration_ps
    edges = [whole_ps * i // WINDOWS for i in range(WINDOWS + 1)]
    wanted = [(one, 0, whole_ps) for one in (chart, *others)]
    wanted += [(chart, start, end) for start, end in pairwise(edges)]
    pixels = PIXELS
    while True:
        made = [timeline(one, start, end, pixels) for one, start, end in wanted if start < end]
        if _items(made) <= MOST_ITEMS or pixels <= LEAST_PIXELS:
            return made
        pixels //= 2


def _items(timelines: Iterable[Json]) -> int:
    """How many there are."""
    lanes = (lane for part in timelines for lane in part["lanes"])
    return sum(count for lane in lanes for count, *_ in lane["rows"])


def _that_fit(timelines: Sequence[Sequence[Json] | None]) -> list[list[Json]]:
    """With many runs, less detail; with too many, the later ones get no timeline."""
    room = MOST_ITEMS_IN_ALL
    kept = [list(parts or ()) for parts in timelines]
    if sum(map(_items, kept)) > room:
        kept = [[part for part in parts if _is_whole(part)] for parts in kept]
    for parts in kept:
        room -= _items(parts)
        if room < 0:
            parts.clear()
    return kept


def _is_whole(part: Json) -> bool:
    return bool(part["end_ps"] - part["start_ps"] == part["duration_ps"])


def render(
    document: Document,
    timelines: Sequence[Sequence[Any] | None],
    listed: Sequence[Facts] | None = None,
    logdir: str = "",
) -> str:
    """The page for a JSON document, with the `timelines` of each of its runs, in order. `listed`:
    all runs, if the document holds only some of them. `logdir`: what the page calls it."""
    runs = document["runs"]
    known = [facts_of(run) for run in runs] if listed is None else listed
    names = run_ids(map(_key, known))
    same_name: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for name, facts in zip(names, known, strict=True):
        same_name[_key(facts)].append(name)
    ids = [same_name[_key(run)].pop(0) for run in runs]
    found = {finding["id"] for run in runs for finding in run["findings"]}
    data = {
        "runs": runs_answer(
            [run_summary(name, READY, facts) for name, facts in zip(names, known, strict=True)],
            document["notes"],
            logdir=logdir,
            profile_plugin=False,
        ),
        "reports": {
            run_id: report_answer(run, version="") for run_id, run in zip(ids, runs, strict=True)
        },
        "timelines": dict(zip(ids, _that_fit(timelines), strict=True)),
        "written": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "manuals": {page.id: manual_answer(page) for page in manual.pages() if page.id in found},
    }
    title = f"Stall: {logdir}" if logdir else "Stall: where the time of the first epoch went"
    script = _script()
    digest = b64encode(sha256(script.encode()).digest()).decode()
    page = {"title": escape(title), "data": _inside_html(data), "script": script}
    return PAGE.format(policy=POLICY.format(digest=digest), **page)


def _key(run: ReportEntry | Facts) -> tuple[str, int]:
    return run["run"], run["attempt"]


def _inside_html(data: object) -> str:
    """JSON in which nothing can end the element around it, whatever the names in it are."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _script() -> str:
    """The bundle. Inside a script element, only these two can end it or hide its end; in
    JavaScript, both can occur only in a string or a comment, where the backslash changes
    nothing."""
    text = bundle_path().read_text(encoding="utf-8")
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def bundle_path() -> Path:
    """Raises UsageError if the page has not been built."""
    found = find_spec("tb_stall_plugin")
    for place in (found.submodule_search_locations or ()) if found else ():
        path = Path(place) / "static" / "index.js"
        if path.is_file():
            return path
    raise UsageError(
        "--html needs the tab's page, tb_stall_plugin/static/index.js, which this installation "
        "lacks: install the package again, or run `make frontend` in a checkout"
    )
