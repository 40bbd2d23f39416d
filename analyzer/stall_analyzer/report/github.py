"""Problems as commands of a GitHub workflow, which shows them at the lines of a pull request.

GitHub shows ten errors, ten warnings and ten notices per step, so the first ones count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stall_analyzer.report.problems import Gravity, Problem

COMMANDS: dict[Gravity, str] = {"error": "error", "warning": "warning", "note": "notice"}


def render(problems: Iterable[Problem]) -> Iterator[str]:
    ordered = sorted(problems, key=lambda problem: list(COMMANDS).index(problem.gravity))
    for problem in ordered:
        yield f"{_command(problem)}\n"


def _command(problem: Problem) -> str:
    settings = {"title": problem.heading}
    if problem.place:
        place = {"file": problem.place.path, "line": str(problem.place.line)}
        settings = place | settings
    said = ",".join(f"{name}={_setting(value)}" for name, value in settings.items())
    return f"::{COMMANDS[problem.gravity]} {said}::{_data(f'{problem.run}: {problem.text}')}"


def _data(text: str) -> str:
    """A name from a log must neither start another command nor control a terminal."""
    clean = "".join(char if char.isprintable() or char in "\r\n" else "?" for char in text)
    return clean.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _setting(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
