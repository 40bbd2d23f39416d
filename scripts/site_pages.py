"""Adds to the docs site what is kept elsewhere or made from the code: a hook of mkdocs.

Pages that lie beside the code they describe are shown where they belong in the site. The command's
help and the JSON schema become pages, so they cannot go out of date. Links to files that are not
part of the site become plain text.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = "analyzer/stall_analyzer/report/schema.json"
SHOWN = {  # a file of the repository, and its page
    "ARCHITECTURE.md": "explanation/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "tb_stall_plugin/capture_format.md": "reference/capture-format.md",
    "tb_stall_plugin/http_api.md": "reference/http-api.md",
    SCHEMA: "reference/json.md",
}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]*)(#[^)\s]*)?\)")
HELP = re.compile(r"<!-- help: (.*) -->")
PLAIN = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in SHOWN.items():
        text = json_page() if source == SCHEMA else (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    del config
    shown_from = {target: source for source, target in SHOWN.items()}
    here = page.file.src_uri
    source = shown_from.get(here, f"docs/{here}")
    markdown = HELP.sub(lambda found: help_of(found[1]), markdown)
    return LINK.sub(lambda found: site_link(found, source, here, files), markdown)


def site_link(found: re.Match[str], source: str, here: str, files: Files) -> str:
    """A link as it must be in the site; its text alone where the site lacks the file."""
    text, target, anchor = found[1], found[2], found[3] or ""
    if not target or "://" in target:
        return found[0]
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    page = SHOWN.get(wanted) or wanted.removeprefix("docs/")
    if files.get_file_from_path(page) is None:
        return text
    return f"[{text}]({os.path.relpath(page, PurePosixPath(here).parent)}{anchor})"


def help_of(command: str) -> str:
    """What a command says of itself, such as `stall-analyze --help-all`."""
    _, *arguments = command.split()
    run = [sys.executable, "-m", "stall_analyzer", *arguments]
    said = subprocess.run(run, env=PLAIN, capture_output=True, encoding="utf-8", check=True)
    return f"```text\n{said.stdout.rstrip()}\n```"


# ---------------------------------------------------------------- the JSON document


def json_page() -> str:
    """The schema as tables: one for each kind of object, in the order of the schema."""
    schema = json.loads((ROOT / SCHEMA).read_text(encoding="utf-8"))
    kinds: dict[str, Any] = schema["$defs"]
    objects = {name: kind for name, kind in kinds.items() if "properties" in kind}
    words = {name: kind for name, kind in kinds.items() if name not in objects}
    lines = [
        "# JSON document",
        "",
        "`stall-analyze --json` prints one document for all runs. Times are integers in",
        "picoseconds; the nine `buckets_ps` of a run always sum to its `window.duration_ps`.",
        "This page is made from `schema.json`, which ships with the package. New keys may be",
        "added; a change of meaning gets a new `schema_version`. The document itself is a",
        f"[{_target(schema['$ref'])}](#{_target(schema['$ref'])}).",
        "",
    ]
    for name, kind in objects.items():
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
