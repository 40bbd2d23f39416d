"""The process that analyses: TensorBoard stays quick whatever a trace does to memory and cores.

It reads jobs from its standard input, one pickle each, and answers each with lines of JSON:
progress, and at last whether the analysis is in the cache.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
from pathlib import Path
from typing import TextIO

from stall_analyzer.chart.lanes import charts_of
from stall_analyzer.model.runs import Run
from stall_analyzer.outcome import analyze_one
from tb_stall_plugin import cache


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback
    # The pipe is for answers alone; whatever a library prints goes to the terminal.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            run, folder = pickle.load(sys.stdin.buffer)
        except EOFError:  # TensorBoard has no more work, or is gone
            return
        try:
            _analyze(run, folder, answers)
        except Exception as error:  # such as a full disk; the next job may still succeed
            _tell(answers, failed=f"{type(error).__name__}: {error}")


def _analyze(run: Run, folder: Path, answers: TextIO) -> None:
    def progress(share: float, text: str) -> None:
        _tell(answers, share=share, text=text)

    outcome = analyze_one(run, charts_of, progress)
    if outcome.traceback:
        print(outcome.traceback, file=sys.stderr)
        _tell(answers, failed=outcome.entry["notes"][0]["text"])
        return
    progress(0.97, "storing the result")
    cache.write(folder, outcome.entry, outcome.also)
    _tell(answers, done=True)


def _tell(answers: TextIO, **what: object) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
