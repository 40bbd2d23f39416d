"""The JSON document has exactly the keys that are described, no more and no less."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from scripts import json_page, write_schema
from stall_analyzer.cli import main as cli
from stall_analyzer.discover.discover import discover
from stall_analyzer.outcome import analyze_one, failure
from stall_analyzer.report.document import run_document
from stall_analyzer.report.facts import facts_of
from tests import captures
from tests.batch.fleets import copy_sample
from tests.captures import write_booked_run
from tests.corpus import CORPUS
from tests.logdirs import PROFILE, lay_out
from tests.real_documents import ROOT, SAMPLES, SCHEMA, analyzed, document, sample
from tests.stuck_job import write_job
from tests.test_sampling import sampled_report

SHAPES = {name: shape for name, shape in SCHEMA["$defs"].items() if "required" in shape}


def validate(made: Any, shape: str = "document") -> None:
    Draft202012Validator(SCHEMA | {"$ref": f"#/$defs/{shape}"}).validate(made)


def test_the_schema_is_up_to_date() -> None:
    assert write_schema.SCHEMA.read_text("utf-8") == write_schema.text(), "run `make schema`"
    assert json_page.PAGE.read_text("utf-8") == json_page.text(SCHEMA), "run `make schema`"


def test_the_schema_describes_every_key_and_allows_no_other() -> None:
    assert Draft202012Validator.check_schema(SCHEMA) is None
    for shape in SHAPES.values():
        assert shape["required"] == list(shape["properties"])
        assert shape["additionalProperties"] is False


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda path: str(path.name))
def test_a_sample_gives_what_is_described(folder: Path) -> None:
    validate(document(sample(folder.name)))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the public logs are not beside this repository")
@pytest.mark.parametrize("folder", sorted(CORPUS.glob("L*")), ids=lambda path: str(path.name[:3]))
def test_public_logs_give_what_is_described(folder: Path) -> None:
    validate(document(*(analyze_one(run).entry for run in discover([str(folder)]).runs)))


def test_a_run_that_could_not_be_analyzed_has_every_key_too() -> None:
    (run,) = discover([str(ROOT / "sample_logs" / "communication_straggler")]).runs
    entry = failure(run, "its process was killed").entry
    validate(document(entry))
    assert entry["hosts"] == ["host-worker-0", "host-worker-1"]
    assert entry["verdict"]["status"] == "unknown"


def test_every_part_that_is_described_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tmp_path / "before.json"
    before.write_text(json.dumps(document(sample("healthy", run="input_py_function"))))
    logs = tmp_path / "logs"
    for name in ("input_py_function", "communication_straggler"):
        copy_sample(name, logs / name)
    lay_out(logs, f"damaged/{PROFILE}/2026_01_01_00_00_00/host.xplane.pb")
    options = ("--fail-over", "input=20%", "--baseline", str(before))
    cli.main([str(logs), "--json", *options])
    written = json.loads(capsys.readouterr().out)
    written["runs"] += [
        sample("healthy"),
        run_document(analyzed(write_job(tmp_path / "stuck"))),
        run_document(sampled_report(tmp_path)),
        run_document(analyzed(write_booked_run(tmp_path / "booked"))),
        run_document(analyzed(write_learning(tmp_path / "learning"))),
    ]
    validate(written)
    facts = facts_of(sample("input_py_function"))
    validate(facts, "facts")
    in_facts = shapes_in(facts, {"$ref": "#/$defs/facts"})
    assert {*shapes_in(written, SCHEMA), *in_facts} == set(SHAPES)


def write_learning(folder: Path) -> Path:
    """A captured run with measured gradients of a layer."""
    records = [captures.start(), captures.mark("epoch_begin", 0.0)]
    for step in range(1, 4):
        values = {"loss": 2.0, "gradient_norm__dense": 0.1}
        records.append(captures.scalars(step / 2, step, **values))
    records += [captures.mark("epoch_end", 3.0), captures.mark("fit_end", 3.0)]
    folder.mkdir()
    (folder / captures.file_name()).write_bytes(b"".join(records))
    return folder


def shapes_in(value: Any, schema: Any) -> Iterator[str]:
    """The shapes of the schema that occur."""
    name = schema.get("$ref", "").rpartition("/")[2]
    if name in SHAPES:
        yield name
    schema = SCHEMA["$defs"][name] if name else schema
    options = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
    if options and value is not None:
        yield from shapes_in(value, options[0])
    elif isinstance(value, list):
        for item in value:
            yield from shapes_in(item, schema["items"])
    elif isinstance(value, dict):
        for key, item in value.items():
            inner = schema.get("properties", {}).get(key, schema["additionalProperties"])
            yield from shapes_in(item, inner)


def test_the_schema_demands_all_nine_buckets() -> None:
    made = document(sample("healthy"))
    del made["runs"][0]["buckets_ps"]["memory"]
    assert not Draft202012Validator(SCHEMA).is_valid(made)


def test_the_host_that_the_others_wait_for_represents_the_run() -> None:
    entry = sample("communication_straggler")
    assert entry["host"] == entry["verdict"]["host"] == "host-worker-1"
    (ledger,) = [one for one in entry["host_ledgers"] if one["host"] == entry["host"]]
    assert ledger["buckets_ps"] == entry["buckets_ps"]


def test_a_run_without_a_trace_has_no_host() -> None:
    assert sample("event_files_only")["host"] is None
