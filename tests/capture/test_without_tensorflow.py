"""The code that watches over the process works without TensorFlow, which may be what hangs."""

from __future__ import annotations

import re
from pathlib import Path

from tb_stall_plugin.capture import process
from tests.capture.capture_logs import run

MODULES = sorted(Path(process.__path__[0]).glob("[!_]*.py"))
NOT_HERE = r"tensorflow|keras|tf_keras|tb_stall_plugin\.capture\.training"


def test_its_modules_import_nothing_that_runs_inside_the_training() -> None:
    imports = "\n".join(f"import {process.__name__}.{path.stem}" for path in MODULES)
    check = f"import re, sys; assert not [m for m in sys.modules if re.match({NOT_HERE!r}, m)]"
    assert run(f"{imports}\n{check}") == (0, "")


def test_nor_do_its_functions_except_for_a_type_and_after_tensorflow_is_imported() -> None:
    lines = [line for path in MODULES for line in path.read_text("utf-8").splitlines()]
    found = [line for line in lines if re.match(rf" *(from|import) ({NOT_HERE})", line)]
    assert [line.split("import")[0].split()[-1].rpartition(".")[2] for line in found] == [
        "windows",  # a type
        "work_under_way",  # imported only after `_is_imported("tensorflow")`
    ]
