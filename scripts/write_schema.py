"""Writes schema.json and its page in the docs from the types of the document: `make schema`.

The frontend's types are generated from the schema whenever they are needed (frontend/package.json).
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from scripts import json_page
from stall_analyzer.report import document_types
from stall_analyzer.report.facts import Facts

SCHEMA = Path(document_types.__file__).with_name("schema.json")
DEFINED = {**vars(document_types), "Facts": Facts}
COMMENT = re.compile(r"^    (\w+): .*  # (.+)$", re.MULTILINE)
INNERMOST = re.compile(r"[{\[][^][{}]*[\]}]")
SCALARS = {
    int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null",
}  # fmt: skip
Json = dict[str, Any]


def main() -> None:
    SCHEMA.write_text(text(), encoding="utf-8")
    json_page.PAGE.write_text(json_page.text(schema()), encoding="utf-8")


def text() -> str:
    """The schema as JSON, in which innermost lists and objects are on one line."""
    spread = json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
    return INNERMOST.sub(lambda found: " ".join(found[0].split()), spread)


def schema() -> Json:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Stall report",
        "$ref": "#/$defs/document",
        "$defs": {name: _definition(kind) for kind, name in NAMES.items()},
    }


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Entry")).lower()


NAMES = {
    kind: _snake(name)
    for name, kind in DEFINED.items()
    if typing.is_typeddict(kind) or get_origin(kind)
}


def _type(kind: Any) -> Json:
    return {"$ref": f"#/$defs/{NAMES[kind]}"} if kind in NAMES else _definition(kind)


def _definition(kind: Any) -> Json:
    origin, parts = get_origin(kind), get_args(kind)
    if typing.is_typeddict(kind):
        return _typed_dict(kind)
    if origin is Annotated:
        return _type(parts[0]) | dict(parts[1:])
    if origin is Literal:
        return {"enum": list(parts)}
    if origin in (UnionType, Union):
        return {"anyOf": [_type(part) for part in parts]}
    if origin is list:
        return {"type": "array", "items": _type(parts[0])}
    if origin is dict:
        return _mapping(*parts)
    return {"type": SCALARS[kind]}


def _mapping(name: Any, item: Any) -> Json:
    if get_origin(name) is Literal:
        return _object({word: _type(item) for word in get_args(name)})
    return {"type": "object", "propertyNames": _type(name), "additionalProperties": _type(item)}


def _object(properties: Json) -> Json:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _typed_dict(kind: Any) -> Json:
    comments = _comments(kind)
    hints = typing.get_type_hints(kind, localns=DEFINED, include_extras=True)
    properties = {name: _described(comments.get(name)) | _type(hints[name]) for name in hints}
    return _described(kind.__doc__) | _object(properties) | {"required": list(properties)}


def _described(text: str | None) -> Json:
    return {"description": " ".join(text.split())} if text else {}


def _comments(kind: Any) -> dict[str, str]:
    """The comments on the lines of the keys."""
    source = inspect.getsource(kind)
    base = source.partition("(")[2].partition(")")[0]
    inherited = {} if base == "TypedDict" else _comments(DEFINED[base])
    return inherited | dict(COMMENT.findall(source))


if __name__ == "__main__":
    main()
