"""Runs one program: python -m tests.scenarios.harm.child NAME FOLDER [LOGDIR]

FOLDER/result.json then holds hashes of what came out, and how often each function was traced.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.scenarios.harm.capture import KINDS, Capture

MODULES = ("fits", "loops", "odd_fits", "checks", "processes", "disks", "others")
OURS = "tb_stall_plugin"
SERIAL = re.compile(r"_\d+")  # of a branch, in its graph


def main() -> None:
    name, folder, *logdir = sys.argv[1:]
    for module in MODULES:
        importlib.import_module(f"tests.scenarios.harm.{module}")
    kind = KINDS[name]
    traced: Counter[str] = Counter()
    if os.environ.get("KERAS_BACKEND", "tensorflow") == "tensorflow":
        _count_traces(traced)
    capture = Capture(Path(folder), logdir[0] if logdir else None)
    try:
        kind.program(capture)
    finally:
        found = {"results": capture.results, "traced": traced, "left": capture.left}
        Path(folder, "result.json").write_text(json.dumps(found, indent=1, sort_keys=True))


def _count_traces(traced: Counter[str]) -> None:
    """Traces of all functions except the capture's own."""
    from tensorflow.python.framework import func_graph  # noqa: PLC0415

    build = func_graph.func_graph_from_py_func

    def counted(name: Any, python_func: Any = None, *arguments: Any, **named: Any) -> Any:
        function = inspect.unwrap(python_func)
        if not str(getattr(function, "__module__", "")).startswith(OURS):
            traced[SERIAL.sub("", str(name))] += 1
        return build(name, python_func, *arguments, **named)

    func_graph.func_graph_from_py_func = counted


if __name__ == "__main__":
    main()
