"""An S3 server on loopback (moto's), behind a proxy that counts fetches and cuts connections."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from tests.patience import PATIENCE_S

HOST = "127.0.0.1"
START_WITHIN_S = PATIENCE_S
BUCKET = "bucket"
# Moto checks no signature, but reads the region from this.
AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/s3/aws4_request"


class Proxy(ThreadingHTTPServer):
    """Forwards to the server, and counts requests and fetched bytes of objects."""

    daemon_threads = True

    def __init__(self, server_port: int) -> None:
        super().__init__((HOST, 0), _Handler)
        self.server_port_behind = server_port
        self.lock = threading.Lock()
        self.fetched: Counter[str] = Counter()  # bytes of each object
        self.gets: Counter[str] = Counter()
        self.lists = 0
        self.cut = 0
        self.cut_every = 0  # one fetch in this many loses its connection halfway
        self._fetches = 0

    def cuts_this_one(self) -> bool:
        with self.lock:
            self._fetches += 1
            cuts = self.cut_every > 0 and self._fetches % self.cut_every == 1
            self.cut += cuts
            return cuts


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def do_GET(self) -> None:
        self._forward()

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        behind = http.client.HTTPConnection(HOST, self.server.server_port_behind)
        behind.request(self.command, self.path, body, dict(self.headers))
        answer = behind.getresponse()
        data = answer.read()
        behind.close()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"connection", "transfer-encoding", "server", "date"}:
                self.send_header(name, value)
        if "content-length" not in {name.lower() for name, _ in answer.getheaders()}:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "HEAD":
            return
        url = urlsplit(self.path)
        is_list = "list-type" in url.query
        if self.command == "GET" and not is_list and data and self.server.cuts_this_one():
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.wfile.write(data)
        if self.command == "GET":
            with self.server.lock:
                if is_list:
                    self.server.lists += 1
                elif answer.status < 300:
                    self.server.gets[unquote(url.path)] += 1
                    self.server.fetched[unquote(url.path)] += len(data)

    def log_message(self, format: str, *arguments: Any) -> None: ...


@contextmanager
def object_store(folder: Path) -> Iterator[tuple[Proxy, dict[str, str]]]:
    """The server with the files of a folder in it, and the environment in which s3:// means it."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port)
        _upload(port, folder)
        proxy = Proxy(port)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        url = f"http://{HOST}:{proxy.server_address[1]}"
        yield proxy, {**os.environ, **_credentials(), "AWS_ENDPOINT_URL": url}
        proxy.shutdown()
    finally:
        server.kill()
        server.wait()


def _credentials() -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "NO_PROXY": "*",
    }


def _upload(port: int, folder: Path) -> None:
    server = http.client.HTTPConnection(HOST, port)
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    names = [f"/{BUCKET}", *(f"/{BUCKET}/{path.relative_to(folder).as_posix()}" for path in paths)]
    for name, content in zip(names, [b"", *(path.read_bytes() for path in paths)], strict=True):
        server.request("PUT", quote(name), content, {"Authorization": AUTHORIZATION})
        answer = server.getresponse()
        answer.read()
        assert answer.status == 200, (name, answer.status)
    server.close()


def _wait_for(port: int) -> None:
    until = time.monotonic() + START_WITHIN_S
    with socket.socket() as client:
        while client.connect_ex((HOST, port)):
            assert time.monotonic() < until, "moto's server does not start"
            time.sleep(0.1)
