"""Problems as SARIF 2.1.0, the format of static analyzers, for code scanning and editors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from stall_analyzer import __version__
from stall_analyzer.detectors import manual
from stall_analyzer.report.problems import OTHER_RULES, Place, Problem

VERSION = "2.1.0"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "%SRCROOT%"  # what GitHub calls the top of the checkout
Json = dict[str, Any]


def render(problems: Iterable[Problem]) -> str:
    found = list(problems)
    rules = sorted({problem.rule for problem in found})
    driver = {
        "name": "stall-analyze",
        "semanticVersion": __version__,
        "rules": [_rule(rule) for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(problem, rules) for problem in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": VERSION, "runs": [run]}, indent=2) + "\n"


def _rule(rule: str) -> Json:
    if rule in OTHER_RULES:
        return {"id": rule, "shortDescription": {"text": OTHER_RULES[rule]}}
    page = manual.page(rule)
    return {
        "id": rule,
        "name": "".join(word.title() for word in page.name.split("_")),
        "shortDescription": {"text": page.summary},
        "help": {"text": page.text},
        "properties": {"tags": [page.bucket]},
    }


def _result(problem: Problem, rules: Sequence[str]) -> Json:
    return {
        "ruleId": problem.rule,
        "ruleIndex": rules.index(problem.rule),
        "level": problem.gravity,
        "message": {"text": f"{problem.run}: {problem.title}. {problem.text}"},
        "locations": [_location(problem)],
        # Lines move when others are edited; a finding of a run must keep its identity.
        "partialFingerprints": {"stallFinding/v1": _fingerprint(problem)},
    }


def _location(problem: Problem) -> Json:
    """GitHub refuses a result without a location: if no line is known, it is the run's name."""
    place = problem.place or Place(problem.run, 1)
    return {
        "physicalLocation": {
            "artifactLocation": _artifact(place.path),
            "region": {"startLine": max(place.line, 1)},
        },
        "logicalLocations": [{"fullyQualifiedName": problem.run}],
    }


def _artifact(path: str) -> Json:
    slashed = path.replace("\\", "/")
    if slashed.startswith("/") or slashed[1:3] == ":/":
        return {"uri": f"file:///{quote(slashed.lstrip('/'), safe='/:', errors='replace')}"}
    return {"uri": quote(slashed, errors="replace"), "uriBaseId": ROOT}


def _fingerprint(problem: Problem) -> str:
    path = problem.place.path if problem.place else ""
    said = "\0".join((problem.run, problem.rule, path))
    return hashlib.sha256(said.encode(errors="replace")).hexdigest()[:32]
