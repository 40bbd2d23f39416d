"""Runs composite actions on this machine: does enough of what GitHub does for the one in .github.

Steps that run a script really run it; steps that use the cache get a folder. The API is a server on
loopback that keeps comments.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.real_documents import ROOT

ACTION = ROOT / ".github" / "actions" / "stall"
EXPRESSION = re.compile(r"\$\{\{ *(.+?) *\}\}")
NAME = re.compile(r"(?:inputs|github|runner|steps)\.[\w.-]+")
REPOSITORY = "me/project"


@dataclass
class Job:
    """What the steps of a job left behind."""

    failed: bool = False
    log: str = ""
    summary: str = ""
    ran: list[str] = field(default_factory=list)


class Runner:
    def __init__(self, folder: Path, api: str) -> None:
        """`folder`: this runner's own; its cache persists from job to job."""
        self._folder, self._api = folder, api
        self._cache = folder / "cache"
        self._jobs = 0

    def run(
        self, event: str, branch: str, inputs: Mapping[str, str], same_job: bool = False
    ) -> Job:
        """As on a push to `branch`, or on the pull request 7 against it; `same_job`: after an
        earlier use, whose files are still there."""
        self._jobs += not same_job
        temp = self._folder / f"job-{self._jobs}"
        temp.mkdir(parents=True, exist_ok=same_job)
        action = yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))
        is_pull = event == "pull_request"
        known = {
            "github.token": "secret", "github.event_name": event,
            "github.base_ref": branch if is_pull else "",
            "github.ref_name": "7/merge" if is_pull else branch,
            "github.run_id": str(self._jobs), "github.run_attempt": "1",
            "runner.temp": str(temp),
        }  # fmt: skip
        for name, said in action["inputs"].items():
            value = inputs.get(name, said.get("default"))
            assert value is not None, f"the input {name} is required"
            known[f"inputs.{name}"] = _filled(str(value), known)
        job = Job()
        for step in action["runs"]["steps"]:
            if not job.failed and _holds(step.get("if", "'yes' == 'yes'"), known):
                job.ran.append(step["name"])
                self._step(step, known, temp, job)
        job.summary = _text(temp / "summary")
        return job

    def _step(self, step: Any, known: dict[str, str], temp: Path, job: Job) -> None:
        if "uses" in step:
            settings = {name: _filled(value, known) for name, value in step["with"].items()}
            self._use(step["uses"].partition("@")[0], settings)
            return
        event = {"pull_request": {"number": 7}}
        (temp / "event.json").write_text(json.dumps(event), encoding="utf-8")
        output = temp / "output"
        output.unlink(missing_ok=True)
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_ACTION_PATH": str(ACTION), "GITHUB_API_URL": self._api,
            "GITHUB_EVENT_NAME": known["github.event_name"], "GITHUB_OUTPUT": str(output),
            "GITHUB_EVENT_PATH": str(temp / "event.json"), "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_STEP_SUMMARY": str(temp / "summary"), "RUNNER_TEMP": str(temp),
            **{name: _filled(value, known) for name, value in step.get("env", {}).items()},
        }  # fmt: skip
        command = [step["shell"], "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False,
        )  # fmt: skip
        job.log += done.stdout
        job.failed = done.returncode != 0
        for line in _text(output).splitlines():
            name, _, value = line.partition("=")
            known[f"steps.{step['id']}.outputs.{name}"] = value

    def _use(self, action: str, settings: Mapping[str, str]) -> None:
        """Finds the newest entry by a prefix of its key, as GitHub's cache does."""
        path = Path(settings["path"])
        if action == "actions/cache/save":
            shutil.copytree(path, self._cache / settings["key"])
            return
        assert action == "actions/cache/restore"
        found = sorted(self._cache.glob(f"{settings['restore-keys']}*"))
        if found:
            shutil.copytree(found[-1], path)


def _filled(text: str, known: Mapping[str, str]) -> str:
    return EXPRESSION.sub(lambda found: known.get(found[1], ""), text)


def _holds(condition: str, known: Mapping[str, str]) -> bool:
    """Understands `inputs.a == 'b' && github.c != 'd'`, which is all that the action uses."""
    said = NAME.sub(lambda found: repr(known.get(found[0], "")), condition)
    parts = [part.split() for part in said.split(" && ")]
    return all((left == right) == (sign == "==") for left, sign, right in parts)


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


# ---------------------------------------------------------------- GitHub


@dataclass
class GitHub:
    """The comments of pull request 7, and a count of the requests of each kind."""

    address: str
    comments: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    allows: bool = True

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.asked.append(method)
        start = f"/repos/{REPOSITORY}/issues"
        if not self.allows:
            return 403, {"message": "Resource not accessible by integration"}
        if method == "POST" and path == f"{start}/7/comments":
            self.comments.append({"id": len(self.comments) + 1, **body})
            return 201, {"html_url": "https://example.test/1"}
        if method == "PATCH" and path.startswith(f"{start}/comments/"):
            self.comments[int(path.rpartition("/")[2]) - 1].update(body)
            return 200, {"html_url": "https://example.test/1"}
        assert (method, path.partition("?")[0]) == ("GET", f"{start}/7/comments")
        page = int(path.rpartition("page=")[2])
        return 200, self.comments[100 * (page - 1) : 100 * page]


@contextmanager
def github() -> Iterator[GitHub]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.headers["Authorization"] == "Bearer secret"
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, content = stand_in.answer(self.command, self.path, body)
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_PATCH = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stand_in = GitHub(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield stand_in
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
