"""TensorBoard without its server: the application that it would serve, and requests to it."""

from __future__ import annotations

import shutil
import time
from argparse import Namespace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tensorboard.backend.application import TensorBoardWSGIApp
from tensorboard.plugins import base_plugin
from werkzeug.test import Client, TestResponse

from tb_stall_plugin.loader import StallLoader
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_logs"


class Profile(base_plugin.TBPlugin):
    """Stands in for the Profile plugin; only its name matters."""

    plugin_name = "profile"

    def get_plugin_apps(self) -> dict[str, Any]:
        return {}

    def is_active(self) -> bool:
        return True


class Board:
    def __init__(
        self, logdir: str = "", *, spec: str = "", prefix: str = "", profile: bool = False
    ) -> None:
        flags = Namespace(
            logdir=logdir,
            logdir_spec=spec,
            path_prefix=prefix,
            samples_per_plugin={},
            window_title="",
        )
        plugins = [StallLoader(), *([Profile] if profile else [])]
        self._client = Client(TensorBoardWSGIApp(flags, plugins))
        self._prefix = prefix

    def get(self, path: str, **arguments: object) -> TestResponse:
        query = f"?{urlencode(arguments)}" if arguments else ""
        return self._client.get(f"{self._prefix}{path}{query}")

    def ask(self, route: str, **arguments: object) -> TestResponse:
        return self.get(f"/data/plugin/stall/{route}", **arguments)

    def ask_by(self, method: str, route: str) -> TestResponse:
        return self._client.open(f"{self._prefix}/data/plugin/stall/{route}", method=method)

    def answer(self, route: str, **arguments: object) -> dict[str, Any]:
        response = self.ask(route, **arguments)
        assert response.status_code == 200, response.get_data(as_text=True)
        return dict(response.get_json())

    def runs(self) -> dict[str, dict[str, Any]]:
        return {run["run"]: run for run in self.answer("runs")["runs"]}

    def report(self, run: str) -> dict[str, Any]:
        """Requests the report until it is there, and is the newest."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            answer = self.answer("report", run=run)
            if answer["state"] == "failed" or (
                answer["state"] == "ready" and not answer["progress"]
            ):
                return answer
            time.sleep(0.02)
        raise AssertionError(f"run {run} is not analyzed: {answer}")


def copy_of(sample: str, target: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / sample, target))
