"""Writes docs/reference/json.md, the JSON document as tables, from its schema: `make schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "json.md"


def text(schema: dict[str, Any]) -> str:
    """A table for each kind of object: the document, then the others in the schema's order."""
    root = _target(schema["$ref"])
    kinds: dict[str, Any] = schema["$defs"]
    objects = {name: kind for name, kind in kinds.items() if "properties" in kind}
    words = {name: kind for name, kind in kinds.items() if name not in objects}
    lines = [
        "# JSON document",
        "",
        "<!-- Written by `make schema` from report/document_types.py: change it there. -->",
        "",
        f"`stall-analyze --json` prints one [{root}](#{root}) for all runs. Times are integers in",
        "picoseconds; the nine `buckets_ps` of a run always sum to its `window.duration_ps`.",
        "The schema, `stall_analyzer/report/schema.json`, ships with the package. New keys may be",
        "added; a change of meaning gets a new `schema_version`.",
        "",
    ]
    for name, kind in sorted(objects.items(), key=lambda one: one[0] != root):
        lines += [f"## {name}", ""]
        lines += [kind["description"], ""] if "description" in kind else []
        lines += ["| key | type | |", "|---|---|---|"]
        lines += [
            f"| `{key}` | {_type_of(value)} | {_cell(value.get('description', ''))} |"
            for key, value in kind["properties"].items()
        ]
        lines.append("")
    lines += ["## Values", "", "| name | type |", "|---|---|"]
    lines += [f'| <a id="{name}"></a>`{name}` | {_type_of(kind)} |' for name, kind in words.items()]
    return "\n".join([*lines, ""])


def _target(reference: str) -> str:
    return reference.rsplit("/", 1)[-1]


def _type_of(value: dict[str, Any]) -> str:
    if "$ref" in value:
        name = _target(value["$ref"])
        return f"[{name}](#{name})"
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return ", ".join(f"`{json.dumps(one)}`" for one in value["enum"])
    for choice in ("anyOf", "oneOf"):
        if choice in value:
            return " or ".join(_type_of(one) for one in value[choice])
    kind = value.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array" and "items" in value:
        return f"list of {_type_of(value['items'])}"
    if kind == "object" and isinstance(value.get("additionalProperties"), dict):
        return f"object of {_type_of(value['additionalProperties'])}"
    return str(kind)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
