"""JSON lines and Parquet: every run, finding and cause, in columns with documented types."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.batch import tables
from stall_analyzer.batch.tables import COLUMNS, rows_of, write_jsonl, write_parquet
from stall_analyzer.errors import UsageError
from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.report.facts import facts_of
from tests.batch.fleets import ROOT, copy_sample, facts, run_command
from tests.real_documents import every_sample, sample

EXAMPLES = every_sample()["runs"]


def queried(folder: Path, query: str) -> list[tuple[Any, ...]]:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB comes with the extra [parquet]")
    for name in COLUMNS:
        query = query.replace(f"{name}.parquet", str(folder / f"{name}.parquet"))
    rows: list[tuple[Any, ...]] = duckdb.sql(query).fetchall()
    return rows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("duckdb", reason="DuckDB comes with the extra [parquet]")
    write_parquet(tmp_path, map(facts_of, EXAMPLES))
    return tmp_path


def test_rows_have_the_columns_that_the_tables_have() -> None:
    for entry in EXAMPLES:
        for table, row in rows_of(facts_of(entry)):
            assert set(row) == set(COLUMNS[table]), table


def test_each_line_is_one_entry(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "all.jsonl", map(json.dumps, EXAMPLES))
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == EXAMPLES


def test_parquet_holds_every_run_finding_and_cause(folder: Path) -> None:
    for table in COLUMNS:
        expected = sum(1 for e in EXAMPLES for name, _ in rows_of(facts_of(e)) if name == table)
        assert queried(folder, f"SELECT count(*) FROM '{table}.parquet'") == [(expected,)]


def test_parquet_has_the_types_that_are_promised(folder: Path) -> None:
    for table, columns in COLUMNS.items():
        described = queried(folder, f"DESCRIBE SELECT * FROM '{table}.parquet'")
        assert {row[0]: row[1] for row in described} == columns


def test_picoseconds_survive(folder: Path) -> None:
    ((lost, window, buckets),) = queried(
        folder,
        "SELECT lost_ps, duration_ps, input_ps + compile_ps + memory_ps + numerics_ps + compute_ps "
        "+ communication_ps + host_ps + profiler_ps + unknown_ps FROM 'runs.parquet' "
        "WHERE run = 'input_py_function'",
    )
    entry = sample("input_py_function")
    assert window == buckets == entry["window"]["duration_ps"]
    useful = sum(entry["buckets_ps"][bucket] for bucket in ("compute", "profiler", "unknown"))
    assert lost == window - useful


def test_hostile_names_are_only_names(tmp_path: Path) -> None:
    hostile = "a'; DROP TABLE runs; --\n\"\u2028\udc80"
    write_parquet(tmp_path, [facts(hostile)])
    ((name,),) = queried(tmp_path, "SELECT run FROM 'runs.parquet'")
    assert name.startswith("a'; DROP TABLE runs; --\n\"\u2028")


def test_no_run_gives_empty_tables(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="DuckDB comes with the extra [parquet]")
    write_parquet(tmp_path, [])
    assert queried(tmp_path, "SELECT count(*) FROM 'runs.parquet'") == [(0,)]


def test_a_run_without_a_clock_has_no_start() -> None:
    row = next(row for _, row in rows_of(facts() | {"started_unix_ns": None}))
    assert row["started"] is None


def test_without_duckdb_it_is_said_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(UsageError, match=r"pip install 'tensorboard-plugin-stall\[parquet\]'"):
        tables.check_parquet(tmp_path)


# ---------------------------------------------------------------- the documentation


def test_every_column_is_documented() -> None:
    text = (ROOT / "docs" / "how-to" / "cluster.md").read_text(encoding="utf-8")
    for columns in COLUMNS.values():
        for column in columns:
            wanted = "`<bucket>_ps`" if column in BUCKET_COLUMNS else f"`{column}`"
            assert wanted in text, column


BUCKET_COLUMNS = {f"{bucket}_ps" for bucket in BUCKETS}


def documented_queries() -> list[str]:
    text = (ROOT / "docs" / "how-to" / "cluster.md").read_text(encoding="utf-8")
    return re.findall(r"```sql\n(.*?)```", text, re.DOTALL)


def test_the_documented_queries_work(folder: Path) -> None:
    queries = documented_queries()
    assert len(queries) >= 4
    for query in queries:
        assert queried(folder, query) is not None


def test_names_that_are_no_text_stay_valid_json(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    folder = os.fsdecode(os.fsencode(tmp_path / "logs") + b"/run\xff")
    copy_sample("event_files_only", Path(folder))
    copy_sample("event_files_only", tmp_path / "logs" / "other")
    ran = run_command(tmp_path / "logs", "--jsonl", tmp_path / "out.jsonl", "--json")
    assert ran.returncode == 0, ran.stderr
    names = duckdb.sql(f"SELECT run FROM read_json('{tmp_path}/out.jsonl') ORDER BY run").fetchall()
    assert names == [("other",), ("run\\udcff",)]
    assert [run["run"] for run in json.loads(ran.stdout)["runs"]] == ["other", "run\\udcff"]
