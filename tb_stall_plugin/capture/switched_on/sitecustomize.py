"""Imported by Python as it starts: `stall-analyze capture` puts this folder first on PYTHONPATH.

Turns the capture on, and hands over to the sitecustomize that this one hides.
"""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path


def _switch_on() -> None:
    try:
        from tb_stall_plugin.capture import imports  # noqa: PLC0415

        imports.watch_imports()
    except Exception as error:  # such as a different environment: the program runs uncaptured
        print(f"stall: no capture in {sys.executable}: {error}", file=sys.stderr)


def _hand_over() -> None:
    here = str(Path(__file__).parent)
    elsewhere = [folder for folder in sys.path if folder != here]
    spec = PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_switch_on()
_hand_over()
