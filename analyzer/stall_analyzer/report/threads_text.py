"""The threads of a process in a terminal, as a capture last saw them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stall_analyzer.report.terminal import Terminal

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import ThreadEntry


def show_threads(terminal: Terminal, threads: Sequence[ThreadEntry], in_full: bool) -> None:
    if not threads or not (in_full or threads[0]["blamed"]):
        return
    terminal.gap()
    if not in_full:
        many = sum(thread["count"] for thread in threads)
        whose = "the Python thread was" if many == 1 else f"the {many} Python threads were"
        hint = f"--threads shows what {whose} doing"
        terminal.line(terminal.text(hint, "dim"), indent=2)
        return
    terminal.line(terminal.text("threads", "bold"), terminal.text(", as last seen", "dim"))
    for thread in threads:
        style = "bold" if thread["blamed"] else ""
        terminal.line(terminal.text(_title(thread), style), indent=2)
        for frame in thread["frames"]:
            terminal.frame(frame, indent=6)


def _title(thread: ThreadEntry) -> str:
    """`MainThread, which holds up training, at train.py:41 is waiting in queue.Queue.get()`"""
    many = f" (and {thread['count'] - 1} like it)" if thread["count"] > 1 else ""
    blamed = ", which holds up training," if thread["blamed"] else ""
    at = f" at {thread['place']}" if thread["place"] else ""
    return f"{thread['name'] or 'a TensorFlow thread'}{many}{blamed}{at} {thread['does']}".rstrip()
