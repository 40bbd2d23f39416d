"""schema.json and the page's document.ts, from the types of the document: `make schema`.

Read as source, not imported, because a type at run time has forgotten its name and its comment.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parents[1]
ANALYZER = ROOT / "analyzer" / "stall_analyzer"
SOURCES = [
    ANALYZER / name for name in ("model/kinds.py", "report/document_types.py", "report/facts.py")
]
SCHEMA = ANALYZER / "report" / "schema.json"
TYPESCRIPT = ROOT / "frontend" / "src" / "document.ts"
WIDTH = 100

Json: TypeAlias = dict[str, Any]
SCALARS = {
    "int": ("integer", "number"), "float": ("number", "number"),
    "str": ("string", "string"), "bool": ("boolean", "boolean"),
}  # fmt: skip
OPEN = ("str", "Cause")  # as names of keys: any number of them, none of which is expected


@dataclass
class Key:
    type: ast.expr
    description: str


@dataclass
class Definition:
    """A TypedDict with its keys, or an alias."""

    description: str
    alias: ast.expr | None = None
    bases: list[str] = field(default_factory=list)
    keys: dict[str, Key] = field(default_factory=dict)


def main() -> None:
    for path, text in generated().items():
        path.write_text(text, encoding="utf-8")


def generated() -> dict[Path, str]:
    """The text of each file."""
    defined = {name: one for path in SOURCES for name, one in _definitions(path)}
    return {SCHEMA: _schema(defined), TYPESCRIPT: _typescript(defined)}


def _definitions(path: Path) -> list[tuple[str, Definition]]:
    text = path.read_text(encoding="utf-8")
    lines, found = text.splitlines(), []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            made = Definition(_one_line(ast.get_docstring(node)), bases=bases)
            for key in node.body:
                if isinstance(key, ast.AnnAssign):
                    name = ast.unparse(key.target)
                    made.keys[name] = Key(key.annotation, _comment(lines, key))
            found.append((_plain(node.name), made))
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            name = ast.unparse(node.target)
            found.append((name, Definition(_comment(lines, node), alias=node.value)))
    return found


def _comment(lines: list[str], node: ast.AnnAssign) -> str:
    """What stands behind it on the line."""
    line = lines[(node.end_lineno or 0) - 1].encode()  # offsets count bytes
    comment = line[node.end_col_offset :].decode().partition("# ")[2].strip()
    return "" if comment.startswith("fmt:") else comment


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _plain(name: str) -> str:
    return name.removesuffix("Entry")


# ---------------------------------------------------------------- JSON Schema


def _schema(defined: dict[str, Definition]) -> str:
    document = defined["Document"]
    head: Json = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Stall report",
    }
    whole = head | _definition_schema(document, defined)
    definitions: Json = {}
    waiting = _references(whole)
    while waiting:
        name = waiting.pop()
        if name not in definitions:
            one = next(one for key, one in defined.items() if _snake(key) == name)
            definitions[name] = _definition_schema(one, defined)
            waiting |= _references(definitions[name])
    whole["$defs"] = dict(sorted(definitions.items()))
    return _compact(whole) + "\n"


def _definition_schema(one: Definition, defined: dict[str, Definition]) -> Json:
    described: Json = {"description": one.description} if one.description else {}
    if one.alias:
        return described | _type_schema(one.alias)
    keys = _all_keys(one, defined)
    properties = {name: _key_schema(key) for name, key in keys.items()}
    return {
        **described,
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


def _all_keys(one: Definition, defined: dict[str, Definition]) -> dict[str, Key]:
    inherited: dict[str, Key] = {}
    for base in map(_plain, one.bases):
        if base in defined:
            inherited |= _all_keys(defined[base], defined)
    return inherited | one.keys


def _key_schema(key: Key) -> Json:
    described = {"description": key.description} if key.description else {}
    return described | _type_schema(key.type)


def _type_schema(node: ast.expr) -> Json:
    match node:
        case ast.Name(id=name) if name in SCALARS:
            return {"type": SCALARS[name][0]}
        case ast.Name(id=name):
            return {"$ref": f"#/$defs/{_snake(_plain(name))}"}
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.BinOp(left=left, right=right):
            return {"anyOf": [_type_schema(left), _type_schema(right)]}
        case ast.Subscript(value=ast.Name(id="list"), slice=item):
            return {"type": "array", "items": _type_schema(item)}
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[name, item])):
            return {
                "type": "object",
                "propertyNames": _type_schema(name),
                "additionalProperties": _type_schema(item),
            }
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[inner, rules])):
            return {**_type_schema(inner), **ast.literal_eval(rules)}
        case ast.Subscript(value=ast.Name(id="Literal"), slice=words):
            return {"enum": _words(words)}
    raise ValueError(f"no JSON Schema for {ast.unparse(node)}")


def _words(node: ast.expr) -> list[str | int]:
    return list(ast.literal_eval(node if isinstance(node, ast.Tuple) else ast.Tuple([node])))


def _references(schema: Json) -> set[str]:
    return set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(schema)))


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _compact(value: Any, indent: str = "", room: int = WIDTH) -> str:
    """JSON, on one line wherever it fits: a key to a line, not a bracket."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) <= room or not isinstance(value, (dict, list)):
        return flat
    inner = indent + "  "
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        lines = textwrap.fill(flat[1:-1], WIDTH, initial_indent=inner, subsequent_indent=inner)
        return f"[\n{lines}\n{indent}]"
    pairs = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    heads = [(f"{json.dumps(name)}: " if name else "", item) for name, item in pairs]
    parts = [
        f"{inner}{head}{_compact(item, inner, WIDTH - len(inner) - len(head) - 1)}"
        for head, item in heads
    ]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(parts) + f"\n{indent}{closing}"


# ---------------------------------------------------------------- TypeScript


def _typescript(defined: dict[str, Definition]) -> str:
    head = "/** Written by `make schema` from report/document_types.py, which explains it. */\n\n"
    return head + "".join(_declaration(name, one, defined) for name, one in defined.items())


def _declaration(name: str, one: Definition, defined: dict[str, Definition]) -> str:
    if one.alias:
        return f"export type {name} = {_type_script(one.alias)};\n"
    bases = ", ".join(base for base in map(_plain, one.bases) if base in defined)
    extends = f" extends {bases}" if bases else ""
    members = "".join(f"  {key}: {_type_script(of.type)};\n" for key, of in one.keys.items())
    return f"export interface {name}{extends} {{\n{members}}}\n"


def _type_script(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return SCALARS[name][1] if name in SCALARS else _plain(name)
        case ast.Constant(value=None):
            return "null"
        case ast.BinOp(left=left, right=right):
            return f"{_type_script(left)} | {_type_script(right)}"
        case ast.Subscript(value=ast.Name(id="list"), slice=item):
            return f"{_type_script(item)}[]"
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[name, item])):
            record = f"Record<{_type_script(name)}, {_type_script(item)}>"
            return record if ast.unparse(name) in OPEN else f"Partial<{record}>"
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[inner, rules])):
            is_whole = "minProperties" in ast.literal_eval(rules)
            return f"Required<{_type_script(inner)}>" if is_whole else _type_script(inner)
        case ast.Subscript(value=ast.Name(id="Literal"), slice=words):
            return " | ".join(json.dumps(word) for word in _words(words))
    raise ValueError(f"no TypeScript for {ast.unparse(node)}")


if __name__ == "__main__":
    main()
