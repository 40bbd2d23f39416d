"""Every thread as a capture last saw it: the one to blame first."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from stall_analyzer.outcome import analyze_one
from stall_analyzer.report import text
from stall_analyzer.report.document import document
from tests import captures as write
from tests import event_files
from tests.captures import GENERATOR, QUEUE, thread
from tests.detectors.stalls import MAIN_WAITS, before, stall
from tests.logdirs import only_run

IDLE = thread(*QUEUE, "/home/me/train.py:9 upload", name="uploader", wait="futex", count=3)


def shown(folder: Path, threads: bool) -> str:
    records = before() + stall(MAIN_WAITS, IDLE, thread(*QUEUE, *GENERATOR))
    path = folder / write.file_name()
    path.write_bytes(event_files.framed(event_files.file_version()) + b"".join(records))
    stream = io.StringIO()
    entry = analyze_one(only_run(folder)).entry
    text.render(document([entry]), Console(file=stream, width=100), threads)
    return stream.getvalue()
