"""Results to query: JSON lines with one run each, and Parquet with three flat tables.

Parquet is written by DuckDB, which XProf already installs; pyarrow would be an extra dependency.
docs/how-to/cluster.md describes the columns.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from stall_analyzer.errors import UsageError
from stall_analyzer.files.output import check_file, write_file
from stall_analyzer.model.causes import BUCKETS, bucket_of
from stall_analyzer.report.facts import Facts, lost_ps, machines


def _typed(columns: str) -> dict[str, str]:
    return dict(column.split() for column in columns.split(", "))


COLUMNS = {
    "runs": {
        **_typed(
            "run VARCHAR, attempt INTEGER, status VARCHAR, primary_bucket VARCHAR, "
            "sentence VARCHAR, confidence DOUBLE, started TIMESTAMP, source VARCHAR, "
            "hosts INTEGER, steps BIGINT, epoch INTEGER, duration_ps BIGINT, covered_ps BIGINT, "
            "estimated BOOLEAN, one_time_ps BIGINT, lost_ps BIGINT, machine_lost_ps BIGINT, "
            "later_epochs INTEGER, later_epoch_ps BIGINT"
        ),
        **{f"{bucket}_ps": "BIGINT" for bucket in BUCKETS},
        "error": "VARCHAR",
    },
    "findings": _typed(
        "run VARCHAR, attempt INTEGER, id VARCHAR, name VARCHAR, bucket VARCHAR, "
        "severity VARCHAR, title VARCHAR, confidence DOUBLE, lost_ps BIGINT, "
        "machine_lost_ps BIGINT, gain_low_ps BIGINT, gain_high_ps BIGINT, "
        "later_gain_low_ps BIGINT, later_gain_high_ps BIGINT"
    ),
    "causes": _typed("run VARCHAR, attempt INTEGER, bucket VARCHAR, cause VARCHAR, ps BIGINT"),
}


def rows_of(facts: Facts) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a run adds to the tables: the name of a table, and a row with named columns."""
    run = {"run": facts["run"], "attempt": facts["attempt"]}
    count = machines(facts)
    yield _row(
        "runs",
        {**facts, **{f"{bucket}_ps": ps for bucket, ps in facts["buckets_ps"].items()}},
        primary_bucket=facts["primary"],
        started=_timestamp(facts["started_unix_ns"]),
        hosts=count,
        lost_ps=lost_ps(facts),
        machine_lost_ps=count * lost_ps(facts),
        error=next(iter(facts["errors"]), None),
    )
    for found in facts["findings"]:
        yield _row(
            "findings",
            {**run, **found},
            machine_lost_ps=count * found["lost_ps"],
            gain_low_ps=found["gain_ps"]["low"],
            gain_high_ps=found["gain_ps"]["high"],
            later_gain_low_ps=found["later_gain_ps"]["low"],
            later_gain_high_ps=found["later_gain_ps"]["high"],
        )
    for cause, ps in facts["causes_ps"].items():
        if ps:
            yield _row("causes", run, bucket=bucket_of(cause), cause=cause, ps=ps)


def _row(table: str, known: Mapping[str, Any], **more: Any) -> tuple[str, dict[str, Any]]:
    values = {**known, **more}
    return table, {column: values[column] for column in COLUMNS[table]}


def write_jsonl(path: Path, entries: Iterable[str]) -> list[Path]:
    """Returns the file that was written."""
    write_file(path, (f"{entry}\n" for entry in entries))
    return [path]


def check_parquet(folder: Path) -> None:
    """Checks before the work starts. Raises UsageError."""
    _duckdb()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot create the folder {folder}: {error.strerror}") from error
    for name in COLUMNS:
        check_file(folder / f"{name}.parquet")


def write_parquet(folder: Path, all_facts: Iterable[Facts]) -> list[Path]:
    """Returns the files written. Goes through JSON lines, so that memory does not grow with the
    runs."""
    duckdb = _duckdb()
    written = []
    with tempfile.TemporaryDirectory(prefix="stall-") as scratch:
        lines = {name: Path(scratch, f"{name}.jsonl") for name in COLUMNS}
        with ExitStack() as stack:
            streams = {
                name: stack.enter_context(path.open("w", encoding="utf-8", errors="replace"))
                for name, path in lines.items()
            }
            for facts in all_facts:
                for name, row in rows_of(facts):
                    streams[name].write(json.dumps(row, ensure_ascii=False) + "\n")
        with duckdb.connect(config={"threads": 1}) as connection:
            for name, columns in COLUMNS.items():
                made = Path(scratch, f"{name}.parquet")
                types = ", ".join(f"{column}: '{kind}'" for column, kind in columns.items())
                connection.execute(
                    f"COPY (FROM read_json(?, format='newline_delimited', columns={{{types}}})) "
                    f"TO '{_quoted(made)}' (FORMAT parquet, COMPRESSION zstd)",
                    [str(lines[name])],
                )
                written.append(folder / f"{name}.parquet")
                write_file(written[-1], _blocks(made))
    return written


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            yield block


def _timestamp(unix_ns: int | None) -> str | None:
    if unix_ns is None:
        return None
    try:
        moment = datetime.fromtimestamp(unix_ns / 1e9, tz=timezone.utc)
    except (OverflowError, OSError, ValueError):  # a clock that was never set
        return None
    return f"{moment:%Y-%m-%d %H:%M:%S.%f}"


def _duckdb() -> Any:
    try:
        import duckdb  # noqa: PLC0415  an extra
    except ImportError as error:
        raise UsageError(
            "--parquet needs DuckDB: pip install 'tensorboard-plugin-stall[parquet]'"
        ) from error
    return duckdb
