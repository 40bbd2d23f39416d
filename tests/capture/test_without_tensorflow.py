"""What watches over the process stands without TensorFlow: that may be what hangs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tb_stall_plugin.capture import process
from tests.capture.capture_logs import run

MODULES = sorted(Path(process.__path__[0]).glob("[!_]*.py"))


def test_its_modules_bring_neither_tensorflow_nor_keras() -> None:
    imports = "\n".join(f"import {process.__name__}.{path.stem}" for path in MODULES)
    check = "import sys; assert not {'tensorflow', 'keras', 'tf_keras'} & set(sys.modules)"
    assert run(f"{imports}\n{check}") == (0, "")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_its_modules_import_none_that_run_inside_the_training(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    only_for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
    }
    imported = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom)) and id(node) not in only_for_types
    ]
    assert not [line for line in imported if "capture.training" in line or "tensorflow" in line]
