"""Every thread as a capture last saw it: the one to blame first."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from stall_analyzer.report.document import run_document
from stall_analyzer.report.text import render
from tests import captures as write
from tests import event_files
from tests.captures import GENERATOR, QUEUE, SITE, thread
from tests.detectors.stalls import MAIN_WAITS, before, stall
from tests.real_documents import analyzed, document

DEEP = f"/home/me/{'deep/' * 20}helpers.py:3 start"
WRAPPER = f"{SITE}/tb_stall_plugin/capture/training/timed_calls.py:40 timed"
FRAMES = (*QUEUE, "/home/me/train.py:9 upload", WRAPPER, DEEP)
UPLOADERS = {**thread(*FRAMES, name="uploader"), "count": 3}


def shown(folder: Path, threads: bool) -> str:
    records = before() + stall(MAIN_WAITS, UPLOADERS, thread(*QUEUE, *GENERATOR))
    path = folder / write.file_name()
    path.write_bytes(event_files.framed(event_files.file_version()) + b"".join(records))
    stream = io.StringIO()
    report = document(run_document(analyzed(folder)))
    render(report, Console(file=stream, width=100, color_system=None), threads)
    return stream.getvalue()


def test_all_threads_are_shown_on_demand_the_culprit_first(tmp_path: Path) -> None:
    text = shown(tmp_path, threads=True)
    titles = [line.strip() for line in text.partition("threads, as last seen")[2].splitlines()]
    told = [line for line in titles if " at " in line][:3]
    assert told[0].startswith(
        "a TensorFlow thread, which holds up training, at data.py:12 "
        "is waiting in queue.Queue.get()"
    )
    assert told[2] == "uploader (and 2 like it) at train.py:9 is waiting in queue.Queue.get()"
    assert "/home/me/train.py:9 upload" in text


def test_a_path_is_never_broken_and_the_captures_own_frames_are_left_out(tmp_path: Path) -> None:
    lines = [line.strip() for line in shown(tmp_path, threads=True).splitlines()]
    after = lines.index("/home/me/train.py:9 upload") + 1
    assert lines[after] == DEEP
    assert not any("tb_stall_plugin" in line for line in lines)


def test_a_run_that_hangs_says_how_to_see_them(tmp_path: Path) -> None:
    text = shown(tmp_path, threads=False)
    assert "--threads shows what the 5 Python threads were doing" in text
    assert "train.py:9 upload" not in text
