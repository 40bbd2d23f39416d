"""Prints the calibration that measured gains give, and how good it is on sets that it never saw.

python -m tests.scenarios.gains.run
    from the measurements that are kept in measured.csv

python -m tests.scenarios.gains.run --faults DIR --programs SET TRUTH WORKDIR …
    measure them anew: DIR is a workdir of tests.scenarios.faults.run, TRUTH a truth.json and
    WORKDIR what was recorded of its programs
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

from stall_analyzer.diagnose import calibration
from stall_analyzer.diagnose.calibration import Calibration
from stall_analyzer.discover.discover import discover
from stall_analyzer.outcome import analyze_one
from tests.scenarios.faults.table import all_faults
from tests.scenarios.gains.fit import (
    Measured,
    fitted,
    lookup,
    one_set_left_out,
    quality,
    read,
    untouched,
    with_rows,
    write,
)

Json: TypeAlias = Mapping[str, Any]
PS_PER_S = 1e12
# Folders of the two forms and the file of their clocks, by who ran the programs.
LAYOUTS = (("{}/faulty", "{}/fixed", "clocks.json"),
           ("{}_full", "{}_full_fixed", "instruments.json"))  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.faults or options.programs:
        with patch.object(calibration, "TABLE", {}):
            write([*_of_faults(options.faults), *_of_all_programs(options.programs)])
    measured = read()
    table = fitted(measured)
    for key, row in table.items():
        print(f'    "{key}": Calibration({row.low}, {row.high}, {row.measured}),')
    for name in sorted({one.set for one in measured}):
        mine = [one for one in measured if one.set == name]
        print(f"\n{name}\n  as predicted     {quality(with_rows(mine, untouched))}")
        print(f"  calibrated       {quality(with_rows(mine, lookup(table)))}")
        print(f"  by other sets    {quality(one_set_left_out(measured)[name])}")
        others = [one for one in measured if one.set != name]
        print(f"  others, by this  {quality(with_rows(others, lookup(fitted(mine))))}")
    left_out = [case for cases in one_set_left_out(measured).values() for case in cases]
    print(f"\nall, as predicted       {quality(with_rows(measured, untouched))}")
    print(f"all, calibrated         {quality(with_rows(measured, lookup(table)))}")
    print(f"all, each by the others {quality(left_out)}")
    _print_outside(with_rows(measured, lookup(table)))
    return 0


def _print_outside(cases: Sequence[tuple[Measured, Calibration]]) -> None:
    for one, own in cases:
        if one.outside(own):
            low, high = one.range_s(own)
            print(f"{one.finding} {one.set:10} {one.program:32} {low:.2f}-{high:.2f} s, "
                  f"measured {one.gain_s:.2f} s, {one.outside(own):+.1%} of the epoch")  # fmt: skip


# ---------------------------------------------------------------- measuring


def _of_faults(folder: Path | None) -> Iterator[Measured]:
    for name, (_, fault) in all_faults().items() if folder else ():
        forms = [folder / name / form / "logs" for form in ("faulty", "fixed")] if folder else []
        if fault.finding is None or not all(form.is_dir() for form in forms):
            continue
        faulty, fixed = map(_analyzed, forms)
        epoch, after = (run["window"]["duration_ps"] / PS_PER_S for run in (faulty, fixed))
        yield from _measured("faults", name, faulty, [fault.finding], epoch, epoch - after)


def _of_all_programs(given: Sequence[tuple[str, str, str]]) -> Iterator[Measured]:
    for set_name, truth_file, workdir in given:
        truth = json.loads(Path(truth_file).read_text("utf-8"))
        for name in sorted(truth):
            yield from _of_program(set_name, name, truth[name], Path(workdir))


def _of_program(set_name: str, name: str, truth: Json, workdir: Path) -> Iterator[Measured]:
    for faulty, fixed, clocks in LAYOUTS:
        forms = [workdir / form.format(name) for form in (faulty, fixed)]
        if not all((form / clocks).exists() for form in forms):
            continue
        seen = [json.loads((form / clocks).read_text("utf-8")) for form in forms]
        if all("epoch_s" in clock for clock in seen):
            epoch, after = (clock["epoch_s"] for clock in seen)
            run, expected = _analyzed(forms[0] / "logs"), truth["expected_findings"]
            yield from _measured(set_name, name, run, expected, epoch, epoch - after)


def _analyzed(logs: Path) -> Json:
    """The last run in which something took time, as the scores take it."""
    runs = [analyze_one(run).entry for run in discover([str(logs)]).runs]
    return [run for run in runs if run["window"]["duration_ps"]][-1]


def _measured(
    set_name: str, program: str, run: Json, expected: Sequence[str], epoch_s: float, gain_s: float
) -> Iterator[Measured]:
    """The one of several right findings whose range is nearest: only one change was made."""
    promised = [
        _promise(set_name, program, run, finding, epoch_s, gain_s)
        for finding in run["findings"]
        if finding["id"] in expected and finding["gain_ps"]["high"]
    ]
    if promised:
        yield min(promised, key=lambda one: abs(one.outside(untouched(one.finding))))


def _promise(
    set_name: str, program: str, run: Json, finding: Json, epoch_s: float, gain_s: float
) -> Measured:
    gain, spent = finding["gain_ps"], (run["estimate"] or run)["buckets_ps"]
    most = max(gain["high"], sum(spent[bucket] for bucket in finding["blames"]))
    low, high, most = (ps / PS_PER_S for ps in (gain["low"], gain["high"], most))
    return Measured(set_name, program, finding["id"], epoch_s, low, high, most, gain_s)


def _parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser("tests.scenarios.gains.run", description=__doc__)
    options.add_argument("--faults", type=Path, help="workdir of the faults")
    options.add_argument(
        "--programs", nargs=3, action="append", default=[], metavar=("SET", "TRUTH", "WORKDIR")
    )
    return options


if __name__ == "__main__":
    sys.exit(main())
