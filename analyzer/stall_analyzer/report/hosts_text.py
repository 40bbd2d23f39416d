"""The hosts of a run in a terminal: those that are alike share a row, so exceptions stand out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from stall_analyzer.model.format import seconds
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.report.overview_text import small_bar
from stall_analyzer.report.terminal import Terminal
from stall_analyzer.report.words import largest_parts

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import HostLedgerEntry, ReportEntry

ROWS_SHOWN = 16
ALIKE = 0.05  # of the window: a smaller difference does not matter
NARROW = 60  # cells; below this, the words need the space of the bars


def show_hosts(terminal: Terminal, run: ReportEntry) -> None:
    """First those that the others wait for, one by one; then a row for each group of the rest."""
    ledgers = run["host_ledgers"]
    if len(ledgers) < 2:
        return
    late = _late(run)
    named = [[ledger] for ledger in ledgers if ledger["host"] in late]
    named.sort(key=lambda group: -late[group[0]["host"]])
    groups = named + alike([ledger for ledger in ledgers if ledger["host"] not in late])
    terminal.gap()
    title = "hosts, as traced" if run["estimate"] else "hosts"
    told = f"  {len(ledgers)}{_told(len(ledgers), len(late))}"
    terminal.line(terminal.text(title, "bold"), terminal.text(told))
    rows = [_row(terminal, group, late) for group in groups[:ROWS_SHOWN]]
    terminal.rows(rows, indent=2)
    if len(groups) > ROWS_SHOWN:
        rest = sum(map(len, groups[ROWS_SHOWN:]))
        terminal.line(terminal.text(f"and {rest} more", "dim"), indent=2)


def alike(ledgers: Sequence[HostLedgerEntry]) -> list[list[HostLedgerEntry]]:
    """Groups of hosts whose time went to the same things, the largest first."""
    groups: list[list[HostLedgerEntry]] = []
    for ledger in ledgers:
        group = next((group for group in groups if _is_like(group[0], ledger)), None)
        if group is None:
            groups.append([ledger])
        else:
            group.append(ledger)
    return sorted(groups, key=len)[::-1] if len(groups) < len(ledgers) else groups


def _is_like(one: HostLedgerEntry, other: HostLedgerEntry) -> bool:
    if bool(one["training_thread"]) != bool(other["training_thread"]):
        return False
    mine, theirs = _shares(one["buckets_ps"]), _shares(other["buckets_ps"])
    return all(abs(mine[bucket] - theirs[bucket]) < ALIKE for bucket in mine)


def _shares(buckets_ps: Mapping[Bucket, int]) -> dict[Bucket, float]:
    whole_ps = sum(buckets_ps.values()) or 1
    return {bucket: ps / whole_ps for bucket, ps in buckets_ps.items()}


def _late(run: ReportEntry) -> dict[str, int]:
    """Hosts that made the others wait, and for how long."""
    least_ps = ALIKE * run["window"]["duration_ps"]
    found = run["lateness"]["hosts"] if run["lateness"] else []
    return {host["host"]: host["cost_ps"] for host in found if host["cost_ps"] >= least_ps}


def _told(hosts: int, late: int) -> str:
    """`: 63 wait, 1 is late`"""
    if not 0 < late < hosts:
        return ""
    waiting = hosts - late
    wait, are = "waits" if waiting == 1 else "wait", "is" if late == 1 else "are"
    return f": {waiting} {wait}, {late} {are} late"


def _row(
    terminal: Terminal, group: Sequence[HostLedgerEntry], late: Mapping[str, int]
) -> list[Text]:
    ledger = group[0]
    host, buckets_ps = ledger["host"], ledger["buckets_ps"]
    name = host if len(group) == 1 else f"{len(group)} alike"
    waited = f"the others waited {seconds(late[host])} for it" if host in late else ""
    parts = largest_parts(buckets_ps, sum(buckets_ps.values()))
    thread = "" if ledger["training_thread"] else "no training thread"
    words = terminal.text(", ".join(filter(None, (waited, parts, thread))), "dim")
    shown = terminal.name(name, terminal.text_width // 3)
    if terminal.width < NARROW:
        return [shown, words]
    return [shown, small_bar(terminal, buckets_ps), words]
