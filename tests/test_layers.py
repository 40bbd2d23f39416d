"""The layers: imports go from left to right, and the analyzer works without TensorFlow.

This is read from the source, so that an import inside a function counts, too; and checked again in
a running process, because a dependency of ours could import what we do not.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stall_analyzer.cli.help_texts import MOST_IN_FULL
from tests.batch.fleets import lay_out

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "analyzer" / "stall_analyzer"
SAMPLES = sorted(path.parent for path in (ROOT / "sample_logs").glob("*/expected.json"))

STAGES = (
    "files", "captures", "discover", "decode", "events", "consoles", "tfdbg", "align",
    "attribute", "signals", "detectors", "diagnose", "chart", "report",
)  # fmt: skip
# To the right of every stage.
COMPOSITION = (
    "pipeline", "outcome", "extras", "api", "cell_magic", "trackers", "results", "batch", "live",
    "cli",
)  # fmt: skip
FOREIGN = ("tensorflow", "keras", "tensorboard", "tb_stall_plugin")
PROTOS = "tensorboard.compat.proto"  # the only part of TensorBoard that the analyzer uses
# What Python loads on the way to them; none of it loads TensorFlow.
AROUND_PROTOS = {"tensorboard", "tensorboard.lazy", "tensorboard.version", "tensorboard.compat"}

LIST_MODULES = (
    "import json, sys\n"
    "from stall_analyzer.cli.main import main\n"
    "try:\n    main({arguments!r})\n"
    "except SystemExit:\n    pass\n"
    "print('\\n' + json.dumps(sorted(sys.modules)))"
)


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(path: Path) -> Iterator[str]:
    """The full names of everything that a file imports, anywhere in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in SOURCES else str(node.module)


# The package itself is left out: it loads the names that it offers only when they are used.
EDGES = {
    module: {name for name in imported(path) if name in SOURCES} - {module, "stall_analyzer"}
    for module, path in SOURCES.items()
    if module != "stall_analyzer"
}


def reached_from(module: str) -> set[str]:
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        for target in EDGES[waiting.pop()] - reached:
            reached.add(target)
            waiting.append(target)
    return reached


def belongs_to(module: str, stage: str) -> bool:
    return f"{module}.".startswith(f"stall_analyzer.{stage}.")


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_never_imports_what_is_to_its_right(stage: str) -> None:
    members = [module for module in EDGES if belongs_to(module, stage)]
    later = STAGES[STAGES.index(stage) + 1 :] + COMPOSITION
    wrong = {
        (module, target)
        for module in members
        for target in reached_from(module)
        if any(belongs_to(target, name) for name in later)
    }
    assert members, f"there is no stage {stage}"
    assert not wrong


def test_there_are_no_circular_imports() -> None:
    assert [module for module in EDGES if module in reached_from(module)] == []


def is_foreign(name: str) -> bool:
    belongs = [package for package in (*FOREIGN, PROTOS) if f"{name}.".startswith(f"{package}.")]
    return bool(belongs) and PROTOS not in belongs


def test_the_analyzer_imports_nothing_foreign_except_protos() -> None:
    wrong = [
        (module, name)
        for module, path in SOURCES.items()
        for name in imported(path)
        if is_foreign(name)
    ]
    assert wrong == []


def modules_after(*arguments: str) -> set[str]:
    script = LIST_MODULES.format(arguments=list(arguments))
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(json.loads(finished.stdout.splitlines()[-1]))


def test_help_loads_neither_numpy_nor_rich() -> None:
    heavy = {"numpy", "rich", "fsspec", "concurrent.futures", "subprocess", "google.protobuf"}
    assert not modules_after("--help") & (heavy | set(FOREIGN))


@pytest.mark.skipif(not SAMPLES, reason="no sample_logs in this checkout")
def test_a_whole_analysis_loads_nothing_foreign_except_protos() -> None:
    modules = modules_after(str(SAMPLES[0]))
    assert f"{PROTOS}.event_pb2" in modules
    assert {name for name in modules if is_foreign(name)} <= AROUND_PROTOS
    assert "pandas" not in modules


def test_sums_over_known_runs_load_no_numpy(tmp_path: Path) -> None:
    logs = lay_out(tmp_path / "logs", (f"run{n}" for n in range(MOST_IN_FULL + 1)))
    arguments = (str(logs), "--store", str(tmp_path / "store"))
    assert "numpy" in modules_after(*arguments)
    assert "numpy" not in modules_after(*arguments)


def test_the_files_that_the_architecture_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+/[\w.]+\.(?:py|md))`", text))
    homes = (ROOT, PACKAGE, ROOT / "tb_stall_plugin")
    assert named
    assert [name for name in named if not any((home / name).is_file() for home in homes)] == []
