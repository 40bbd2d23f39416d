"""schema.json, from the types of the document: `make schema`.

The page's own types are made of it in turn, whenever they are needed (frontend/package.json).
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from stall_analyzer.report import document_types
from stall_analyzer.report.facts import Facts

SCHEMA = Path(document_types.__file__).with_name("schema.json")
DEFINED = {**vars(document_types), "Facts": Facts}
COMMENT = re.compile(r"^    (\w+): .*  # (.+)$", re.MULTILINE)
INNERMOST = re.compile(r"[{\[][^][{}]*[\]}]")
SCALARS = {
    int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null",
}  # fmt: skip

Json: TypeAlias = dict[str, Any]


def main() -> None:
    SCHEMA.write_text(text(), encoding="utf-8")


def text() -> str:
    """The schema with its innermost brackets each on one line."""
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
    kind: _snake(name) for name, kind in DEFINED.items() if is_typeddict(kind) or get_origin(kind)
}


def _type(kind: Any) -> Json:
    return {"$ref": f"#/$defs/{NAMES[kind]}"} if kind in NAMES else _definition(kind)


def _definition(kind: Any) -> Json:
    if is_typeddict(kind):
        return _typed_dict(kind)
    match get_origin(kind), get_args(kind):
        case origin, (inner, *rules) if origin is Annotated:
            return _type(inner) | dict(rules)
        case origin, words if origin is Literal:
            return {"enum": list(words)}
        case origin, options if origin in (UnionType, Union):
            return {"anyOf": [_type(option) for option in options]}
        case origin, (item,) if origin is list:
            return {"type": "array", "items": _type(item)}
        case origin, (name, item) if get_origin(name) is Literal:
            return _object({word: _type(item) for word in get_args(name)})
        case origin, (name, item) if origin is dict:
            names = {"propertyNames": _type(name), "additionalProperties": _type(item)}
            return {"type": "object", **names}
    return {"type": SCALARS[kind]}


def _object(properties: Json) -> Json:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _typed_dict(kind: Any) -> Json:
    comments = _comments(kind)
    properties = {}
    for name, inner in get_type_hints(kind, localns=DEFINED, include_extras=True).items():
        described = {"description": comments[name]} if name in comments else {}
        properties[name] = described | _type(inner)
    docstring = " ".join((kind.__doc__ or "").split())
    described = {"description": docstring} if docstring else {}
    return {**described, **_object(properties), "required": list(properties)}


def _comments(kind: Any) -> dict[str, str]:
    """What stands behind the keys, on their lines."""
    source = inspect.getsource(kind)
    base = source.partition("(")[2].partition(")")[0]
    inherited = {} if base == "TypedDict" else _comments(DEFINED[base])
    return inherited | dict(COMMENT.findall(source))


if __name__ == "__main__":
    main()
