"""A tab that only says why the real one is missing. Imports nothing that could be broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

SCRIPT = """\
export function render() {
  const message = document.createElement("pre");
  message.style.cssText = "margin: 2em; white-space: pre-wrap; font: 14px/1.5 sans-serif";
  message.textContent = %s;
  document.body.append(message);
}
"""


def script_that_says(text: str) -> str:
    """What TensorBoard loads in place of the page."""
    return SCRIPT % json.dumps(text)


class StandIn(base_plugin.TBPlugin):
    plugin_name = "stall"

    def __init__(self, text: str) -> None:
        self._text = text

    def get_plugin_apps(self) -> dict[str, Callable[..., Any]]:
        return {"/index.js": wrappers.Request.application(self._script)}

    def is_active(self) -> bool:
        return True

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="Stall")

    def _script(self, request: wrappers.Request) -> wrappers.Response:
        text = script_that_says(self._text)
        response: wrappers.Response = http_util.Respond(request, text, "text/javascript")
        return response
