"""Settings in order of precedence: the command line, then the environment, then a file.

The file is stall.toml, or pyproject.toml with a table [tool.stall], in the current folder or the
nearest one above it. Never one in a log directory: logs come from elsewhere.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stall_analyzer.batch.limits import parse as parse_limit
from stall_analyzer.batch.selection import parse_duration, parse_share
from stall_analyzer.errors import UsageError
from stall_analyzer.model.records import dataclass

OWN_FILE, PROJECT_FILE = "stall.toml", "pyproject.toml"
TABLE = b"[tool.stall"  # a pyproject.toml without it need not be parsed
CONFIG = "STALL_CONFIG"
TOLERANCE = 0.1
DEADLINE = "30m"


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{text!r} is not a positive whole number")
    return int(text)


def yes_or_no(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() in ("true", "1")


@dataclass(frozen=True)
class Setting:
    """A setting that may be in the environment or in a file."""

    parse: Callable[[str], Any]
    default: Any = None
    is_list: bool = False
    is_path: bool = False  # in a file, relative to the file's folder


SETTINGS: Mapping[str, Setting] = {
    "fail-over": Setting(parse_limit, is_list=True),
    "baseline": Setting(Path, is_path=True),
    "tolerance": Setting(parse_share, TOLERANCE),
    "jobs": Setting(positive),
    "deadline": Setting(parse_duration, parse_duration(DEADLINE)),
    "store": Setting(Path, is_path=True),
    "scheduler": Setting(str),
    "full": Setting(yes_or_no, False),
}


@dataclass(frozen=True)
class Settings:
    """What a file says, and which file it is."""

    file: Path | None = None
    values: Mapping[str, Any] | None = None


def variable(name: str) -> str:
    """`fail-over` is STALL_FAIL_OVER."""
    return f"STALL_{name.upper().replace('-', '_')}"


def fill(arguments: argparse.Namespace) -> None:
    """Fills in what the command line leaves open. Raises UsageError."""
    found = _settings(arguments.config)
    for name, setting in SETTINGS.items():
        if getattr(arguments, _attribute(name)) is None:
            setattr(arguments, _attribute(name), _value(name, setting, found))


def _attribute(name: str) -> str:
    return name.replace("-", "_")


def _value(name: str, setting: Setting, found: Settings) -> Any:
    said = os.environ.get(variable(name))
    if said:
        items = said.replace(",", " ").split() if setting.is_list else [said]
        return _parsed(items, setting, variable(name))
    if found.file is not None and found.values and name in found.values:
        where = f"{found.file}: {name}"
        items = _items(found.values[name], setting, where)
        if setting.is_path:
            items = [str(found.file.parent / item) for item in items]
        return _parsed(items, setting, where)
    return [] if setting.is_list else setting.default


def _items(value: Any, setting: Setting, where: str) -> list[str]:
    """A TOML value as words of a command line."""
    items = value if isinstance(value, list) and setting.is_list else [value]
    if not all(isinstance(item, str | int | float | bool) for item in items):
        expected = "a list of strings" if setting.is_list else "a single value"
        raise UsageError(f"{where}: {value!r} is not {expected}")
    return [str(item) for item in items]


def _parsed(items: list[str], setting: Setting, where: str) -> Any:
    try:
        values = [setting.parse(item) for item in items]
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error
    return values if setting.is_list else values[0]


# ---------------------------------------------------------------- the file


def _settings(given: Path | None) -> Settings:
    named = given or (Path(os.environ[CONFIG]) if os.environ.get(CONFIG) else None)
    file = named or _nearest(Path.cwd())
    if file is None:
        return Settings()
    values = {name.replace("_", "-"): value for name, value in _table(file).items()}
    for name in values:
        if name not in SETTINGS:
            raise UsageError(
                f"{file}: there is no setting {name!r}; use one of {', '.join(SETTINGS)}"
            )
    return Settings(file, values)


def _nearest(folder: Path) -> Path | None:
    for place in (folder, *folder.parents):
        if (place / OWN_FILE).is_file():
            return place / OWN_FILE
        if _has_table(place / PROJECT_FILE):
            return place / PROJECT_FILE
    return None


def _has_table(file: Path) -> bool:
    try:
        return TABLE in file.read_bytes()
    except OSError:
        return False


def _table(file: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415
    else:
        import tomli as tomllib  # noqa: PLC0415
    try:
        read = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:  # not TOML, or not even text
        raise UsageError(f"{file} is not TOML: {error}") from error
    table = read.get("tool", {}).get("stall", {}) if file.name == PROJECT_FILE else read
    if not isinstance(table, dict):
        raise UsageError(f"{file}: [tool.stall] is not a table")
    return table
