"""The plugin: thin routes over functions that end in _impl. http_api.md describes the answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from tensorboard import errors
from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from stall_analyzer.chart import chart_event, chart_range, chart_window
from stall_analyzer.chart.chart_columns import Chart
from stall_analyzer.detectors import manual
from stall_analyzer.errors import UnreadableFile, UsageError
from stall_analyzer.report import page
from stall_analyzer.report.document import note_entry
from stall_analyzer.report.page import RUNNING
from tb_stall_plugin.analyses import Analyses, Status
from tb_stall_plugin.assets import Assets
from tb_stall_plugin.live_runs import LiveRuns
from tb_stall_plugin.logs import Found, Logs

# Up to this many runs are analyzed unasked; of more, only those that somebody is looking at.
FEW_RUNS = 50
MOST_PIXELS = 10_000
MOST_HITS = 1_000

logger = logging.getLogger("tensorboard")
Json: TypeAlias = Mapping[str, Any]
Application: TypeAlias = Callable[..., Any]


class StallPlugin(base_plugin.TBPlugin):
    plugin_name = "stall"

    def __init__(self, context: base_plugin.TBContext) -> None:
        """Touches no file and starts no thread, because TensorBoard waits for it."""
        spec = getattr(context.flags, "logdir_spec", "")
        self._logs = Logs(context.logdir or "", spec or "")
        self._analyses = Analyses()
        self._live = LiveRuns()
        self._is_warm = False
        self._assets = Assets()
        # Not complete yet: plugins are loaded one after another.
        self._plugins = context.plugin_name_to_instance
        # The Profile plugin reads a single logdir only.
        self._can_profile = bool(context.logdir)

    def get_plugin_apps(self) -> dict[str, Application]:
        return {
            "/index.js": _read_only(self._page),
            "/static/*": _read_only(self._asset),
            "/runs": _json(self._runs),
            "/report": _json(self._report),
            "/timeline": _json(self._timeline),
            "/event": _json(self._event),
            "/range": _json(self._range),
            "/search": _json(self._search),
            "/manual": _json(lambda request: self.manual_impl(_text(request, "id"))),
        }

    def is_active(self) -> bool:
        """Called when TensorBoard's page is opened. If there is anything for us to show, this also
        starts the worker, once, so that whoever opens the tab next need not wait for it."""
        is_active = self._logs.has_any()
        if is_active and not self._is_warm:
            self._is_warm = True
            self._analyses.warm_up()
        return is_active

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="Stall")

    # ------------------------------------------------------------ answers

    def runs_impl(
        self, wanted: Collection[str] = (), wants_all: bool = False, fresh: bool = False
    ) -> Json:
        """Lists every run, and starts the analysis of the wanted ones, or of all if few."""
        found = self._logs.find(fresh)
        starts_all = wants_all or len(found.runs) <= FEW_RUNS
        live = self._live.look(found.runs)
        for name in live.ended & found.runs.keys():
            self._analyses.outlived(found.runs[name])
        summaries = []
        for name, run in found.runs.items():
            status = self._analyses.status(run, start=starts_all or name in wanted)
            known = status.analysis.head.facts if status.analysis else None
            far = status.state, known, status.progress, status.error
            live_entry = live.going_on.get(name)
            summaries.append(page.run_summary(name, *far, live=live_entry, changes=status.changes))
        return page.runs_answer(
            summaries,
            [note_entry(note) for note in found.problems],
            self._logs.words,
            profile_plugin=self._can_profile and "profile" in (self._plugins or ()),
        )

    def report_impl(self, run: str, again: bool = False, fresh: bool = False) -> Json:
        status = self._status(run, again, fresh)
        if status.analysis is None:
            return _not_ready(status)
        try:
            entry = status.analysis.report()
        except UnreadableFile:  # deleted or damaged in the cache: it is made again
            return _not_ready(self._status(run))
        version = status.analysis.version
        return page.report_answer(entry, version, status.progress, status.changes)

    def timeline_impl(
        self,
        run: str,
        host: str | None,
        start_ps: int,
        end_ps: int,
        pixels: int,
        opened: Collection[str] = (),
    ) -> Json:
        if not 1 <= pixels <= MOST_PIXELS:
            raise errors.InvalidArgumentError(f"pixels must be between 1 and {MOST_PIXELS}.")

        def window(chart: Chart, version: str) -> Json:
            start, end = _inside(chart, start_ps, end_ps)
            return {
                **chart_window.timeline(chart, start, end, pixels, opened),
                "version": version,
            }

        return self._of_chart(run, host, window)

    def event_impl(
        self, run: str, host: str | None, lane: str, row: int, start_ps: int, end_ps: int
    ) -> Json:
        def event(chart: Chart, _: str) -> Json:
            found = chart_event.event(chart, lane, row, start_ps, end_ps)
            if found is None:
                raise errors.NotFoundError("there is no such event.")
            return found

        return self._of_chart(run, host, event)

    def range_impl(self, run: str, host: str | None, start_ps: int, end_ps: int) -> Json:
        def sums(chart: Chart, _: str) -> Json:
            return chart_range.sums(chart, *_inside(chart, start_ps, end_ps))

        return self._of_chart(run, host, sums)

    def search_impl(self, run: str, host: str | None, text: str, limit: int) -> Json:
        if not text.strip():
            raise errors.InvalidArgumentError("text must not be empty.")
        if not 1 <= limit <= MOST_HITS:
            raise errors.InvalidArgumentError(f"limit must be between 1 and {MOST_HITS}.")

        def search(chart: Chart, _: str) -> Json:
            return chart_window.search(chart, text.strip(), limit)

        return self._of_chart(run, host, search)

    def manual_impl(self, finding: str) -> Json:
        try:
            return page.manual_answer(manual.page(finding))
        except UsageError as error:
            raise errors.NotFoundError(f"there is no finding {finding}.") from error

    # ------------------------------------------------------------ routes

    def _runs(self, request: wrappers.Request) -> Json:
        wanted = set(request.args.getlist("run"))
        return self.runs_impl(wanted, "all" in request.args, "fresh" in request.args)

    def _report(self, request: wrappers.Request) -> Json:
        run = _text(request, "run")
        return self.report_impl(run, "again" in request.args, "fresh" in request.args)

    def _timeline(self, request: wrappers.Request) -> Json:
        return self.timeline_impl(
            _text(request, "run"),
            request.args.get("host"),
            _number(request, "start_ps"),
            _number(request, "end_ps"),
            _number(request, "pixels"),
            request.args.getlist("open"),
        )

    def _event(self, request: wrappers.Request) -> Json:
        return self.event_impl(
            _text(request, "run"),
            request.args.get("host"),
            _text(request, "lane"),
            _number(request, "row"),
            _number(request, "start_ps"),
            _number(request, "end_ps"),
        )

    def _range(self, request: wrappers.Request) -> Json:
        return self.range_impl(
            _text(request, "run"),
            request.args.get("host"),
            _number(request, "start_ps"),
            _number(request, "end_ps"),
        )

    def _search(self, request: wrappers.Request) -> Json:
        return self.search_impl(
            _text(request, "run"),
            request.args.get("host"),
            _text(request, "text"),
            _number(request, "limit", 50),
        )

    def _page(self, request: wrappers.Request) -> wrappers.Response:
        """Called when the tab is opened: the page's first request follows a moment later."""
        self._analyses.warm_up()  # the first worker may have stopped waiting for work
        return self._asset(request)

    def _asset(self, request: wrappers.Request) -> wrappers.Response:
        route = f"/data/plugin/{self.plugin_name}/"
        name = request.path.partition(route)[2].removeprefix("static/")
        asset = self._assets.find(name)
        if asset is None:
            return _respond(request, {"error": "There is no such file."}, 404)
        response: wrappers.Response = http_util.Respond(
            request, asset.zipped, asset.type, content_encoding="gzip"
        )
        return response

    def _status(self, name: str, again: bool = False, fresh: bool = False) -> Status:
        """The status of a run that somebody is looking at: it takes precedence over all others."""
        found: Found = self._logs.find(fresh)
        if name not in found.runs:
            raise errors.NotFoundError("there is no such run.")
        return self._analyses.status(found.runs[name], urgent=True, again=again)

    def _of_chart(self, run: str, host: str | None, answer: Callable[[Chart, str], Json]) -> Json:
        """What `answer` makes of a chart and its version."""
        status = self._status(run)
        analysis = status.analysis
        if analysis is None or not analysis.has_charts():
            return _no_charts(status)
        chart = analysis.chart(host)
        if chart is not None:
            return answer(chart, analysis.version)
        if analysis.has_charts():
            raise errors.NotFoundError("there is no such host in the run.")
        return _no_charts(self._status(run))  # they are damaged in the cache, and are made again


def _not_ready(status: Status) -> Json:
    if status.error is not None:
        return {"state": status.state, "error": status.error}
    return {"state": status.state, "progress": status.progress}


def _no_charts(status: Status) -> Json:
    """If the run has a report, its charts are still being made, or could not be made."""
    if status.analysis is None:
        return _not_ready(status)
    if status.error is not None:
        raise errors.NotFoundError(f"there is no timeline. {status.error}")
    return {"state": RUNNING, "progress": status.progress}


def _inside(chart: Chart, start_ps: int, end_ps: int) -> tuple[int, int]:
    """The part of this window that lies in the first epoch."""
    if start_ps >= end_ps:
        raise errors.InvalidArgumentError("start_ps must be less than end_ps.")
    start, end = max(start_ps, 0), min(end_ps, chart.duration_ps)
    if chart.duration_ps and start >= end:
        raise errors.InvalidArgumentError(
            f"this window is outside of the first epoch (0 to {chart.duration_ps} ps)."
        )
    return start, max(start, end)


def _json(answer: Callable[[wrappers.Request], Json]) -> Application:
    """A route that always answers in JSON, whatever happens."""

    def serve(request: wrappers.Request) -> wrappers.Response:
        try:
            return _respond(request, answer(request))
        except errors.PublicError as error:
            return _respond(request, {"error": str(error)}, error.http_code)
        except Exception as error:  # a bug of ours: the page shows it, the terminal has details
            logger.exception("The Stall tab failed to answer %s", request.path)
            return _respond(request, {"error": f"{type(error).__name__}: {error}"}, 500)

    return _read_only(serve)


def _read_only(serve: Callable[[wrappers.Request], wrappers.Response]) -> Application:
    """Routes only read. The work that a request starts is done once, however often it is requested,
    so a page on another site can do no harm by sending requests."""

    @wrappers.Request.application
    def answer(request: wrappers.Request) -> wrappers.Response:
        if request.method in {"GET", "HEAD"}:
            return serve(request)
        refused = _respond(request, {"error": "Only GET is allowed."}, 405)
        refused.headers["Allow"] = "GET, HEAD"
        return refused

    return answer


def _respond(request: wrappers.Request, body: Json, code: int = 200) -> wrappers.Response:
    # Passed as text: http_util would search every number of a timeline for NaN.
    text = json.dumps(body, allow_nan=False, separators=(",", ":"))
    response: wrappers.Response = http_util.Respond(request, text, "application/json", code=code)
    return response


def _text(request: wrappers.Request, name: str) -> str:
    value = request.args.get(name)
    if value is None:
        raise errors.InvalidArgumentError(f"{name} is missing.")
    return str(value)


def _number(request: wrappers.Request, name: str, otherwise: int | None = None) -> int:
    value = request.args.get(name)
    if value is None and otherwise is not None:
        return otherwise
    try:
        return int(_text(request, name))
    except ValueError as error:
        raise errors.InvalidArgumentError(f"{name} must be a whole number.") from error
