"""`%load_ext stall_analyzer`: the analysis below the cell of a notebook that trains.

    %%stall
    model.fit(dataset)

The capture belongs to the plugin. The analyzer works without it, and imports it only when a cell
needs it.
"""

from __future__ import annotations

import argparse
import ast
import shlex
import time
from collections.abc import Sequence
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NoReturn

from stall_analyzer.api import Analysis, analyze
from stall_analyzer.errors import NothingFound, StallError, UsageError

NAME = "stall"
USAGE = f"%%{NAME} [--logdir DIR] [-o NAME] in the first line of a cell, or %{NAME} DIR"
CAPTURES = "tb_stall_plugin.capture.cell"

NO_PLUGIN = f"%%{NAME} needs the package tensorboard-plugin-stall in this kernel"
NOTHING_CAPTURED = """\
This cell did not call Keras's `fit`, so nothing was captured. In a custom training loop:

    import tb_stall_plugin
    with tb_stall_plugin.watch("logs/run1", model, optimizer) as w:
        for x, y in dataset:
            w.step(loss=train_step(x, y))
"""


def load_ipython_extension(shell: Any) -> None:
    shell.register_magic_function(_Stall(shell).stall, "line_cell", NAME)


def unload_ipython_extension(shell: Any) -> None:
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(NAME, None)


class _Stall:
    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def stall(self, line: str, cell: str | None = None) -> None:
        """%%stall captures the training in a cell and shows the verdict below it.

        %%stall [--logdir DIR] [-o NAME]    -o keeps the analysis in a variable
        %stall DIR                          shows what is already in a log directory
        """
        try:
            if cell is None:
                _show(analyze(shlex.split(line)))
            else:
                self._captured(_options(line), cell)
        except StallError as error:
            raise import_module("IPython.core.error").UsageError(str(error)) from error

    def _captured(self, options: argparse.Namespace, cell: str) -> None:
        folders: list[str] = []
        try:
            with _capture().captured_fits(options.logdir) as folders:
                _run(self._shell, cell)
        finally:  # a cell that failed or was interrupted gets a verdict, too
            analysis = _analyzed(folders)
            if options.output and analysis is not None:
                self._shell.user_ns[options.output] = analysis


def _options(line: str) -> argparse.Namespace:
    parser = _Parser(prog=f"%%{NAME}", usage=USAGE, add_help=False)
    parser.add_argument("--logdir", default=time.strftime("stall-logs/%Y%m%d-%H%M%S"))
    parser.add_argument("-o", "--output", metavar="NAME")
    return parser.parse_args(shlex.split(line))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """argparse would end the kernel."""
        raise UsageError(f"{message}; {USAGE}")


def _capture() -> Any:
    if find_spec("tb_stall_plugin") is None:
        raise UsageError(NO_PLUGIN)
    return import_module(CAPTURES)


def _run(shell: Any, cell: str) -> None:
    """Runs a cell as the kernel does, but raises exceptions, so that "run all" stops there. The
    value of the last expression is shown."""
    source = shell.transform_cell(cell)
    file_name = shell.compile.cache(source, shell.execution_count, raw_code=cell)
    body = shell.transform_ast(shell.compile.ast_parse(source, file_name)).body
    for node in body:
        shown = node is body[-1] and isinstance(node, ast.Expr) and not cell.rstrip().endswith(";")
        tree = ast.Interactive([node]) if shown else ast.Module([node], [])
        code = shell.compile(tree, file_name, "single" if shown else "exec")
        exec(code, shell.user_ns)


def _analyzed(folders: Sequence[str]) -> Analysis | None:
    if not folders:
        print(NOTHING_CAPTURED)
        return None
    try:
        analysis = analyze(folders)
    except NothingFound as error:  # for example a log directory that cannot be written
        print(f"%%{NAME}: {error}")
        return None
    _show(analysis)
    _show_html(
        f"The capture is kept in <code>{escape(', '.join(folders))}</code>. To see the timeline "
        f"and all steps, run <code>%load_ext tensorboard</code> and "
        f"<code>%tensorboard --logdir {escape(folders[0])}</code>, and open the Stall tab."
    )
    return analysis


def _show(shown: object) -> None:
    import_module("IPython.display").display(shown)


def _show_html(text: str) -> None:
    _show(import_module("IPython.display").HTML(f'<small style="opacity:.75">{text}</small>'))
