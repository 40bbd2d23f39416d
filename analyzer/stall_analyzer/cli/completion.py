"""`--completion bash`: a script for the shell, made once; completing then does not start Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stall_analyzer.cli.options import PROGRAM, SUBCOMMANDS, parser
from stall_analyzer.errors import UsageError

WORDS = " ".join(SUBCOMMANDS)
# The first word may be a subcommand, or a path like any other.
PREAMBLE = {
    "bash": f"""\
_stall_analyze_path() {{
  compgen -f -- "$1"
  if [ "$COMP_CWORD" = 1 ]; then compgen -W "{WORDS}" -- "$1"; fi
}}
""",
    "zsh": f"""\
_stall_analyze_path() {{ _alternative 'commands:command:({WORDS})' 'files:path:_files' }}
""",
}
PATHS = {"bash": "_stall_analyze_path", "zsh": "_stall_analyze_path", "tcsh": "f"}
BASH_FOLDER = "~/.local/share/bash-completion/completions"
FOLDERS = ("parquet", "annotate", "store")


def script(shell: str) -> str:
    """Raises UsageError if shtab, which writes the script, is not installed."""
    try:
        import shtab  # noqa: PLC0415
    except ImportError:
        raise UsageError(
            "--completion needs shtab: pip install 'tensorboard-plugin-stall[completion]'"
        ) from None
    known = parser()
    for action in known._actions:
        _teach(action, shtab)
    complete: Any = shtab.complete  # its types do not allow for a preamble per shell
    return f"{complete(known, shell, preamble=PREAMBLE)}{_how_to_use(shell)}"


def _teach(action: Any, shtab: Any) -> None:
    """What may follow an option."""
    if action.dest == "paths":
        action.complete = PATHS
    elif action.dest in FOLDERS:
        action.complete = shtab.DIRECTORY
    elif action.type is Path or action.dest == "console":
        action.complete = shtab.FILE


def _how_to_use(shell: str) -> str:
    places = {
        "bash": f"{PROGRAM} --completion bash > {BASH_FOLDER}/{PROGRAM}",
        "zsh": f'{PROGRAM} --completion zsh > "${{fpath[1]}}/_{PROGRAM}"',
        "tcsh": f"{PROGRAM} --completion tcsh > ~/.stall-completion, and source it",
    }
    return f"\n# {places[shell]}\n"
