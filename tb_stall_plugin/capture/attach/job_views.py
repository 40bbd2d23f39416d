"""What was found out about a process from outside: as text, and as JSON."""

from __future__ import annotations

import io
import json
from typing import TextIO

from rich.console import Console

from stall_analyzer.captures.capture_format import HostMetric
from stall_analyzer.captures.capture_records import NS_PER_S
from stall_analyzer.model.format import counted, percent, size
from stall_analyzer.report import text
from tb_stall_plugin.capture.attach.attached_job import AttachedJob, Member
from tb_stall_plugin.capture.attach.outside_looks import Sight
from tb_stall_plugin.capture.attach.target import Target
from tb_stall_plugin.capture.process.child_processes import child_processes
from tb_stall_plugin.capture.process.thread_stacks import threads_in_kernel

PLAIN_WIDTH = 80
NOTHING_SEEN = "Nothing is known about it"


def as_text(job: AttachedJob, stream: TextIO, threads: bool, plain: bool) -> str:
    shown = io.StringIO()
    console = Console(
        file=shown,
        force_terminal=stream.isatty(),
        color_system="auto" if stream.isatty() and not plain else None,
        width=None if stream.isatty() else PLAIN_WIDTH,
        highlight=False,
    )
    if len(job.members) > 1:
        console.print("\n".join(map(_line, job.members)), markup=False)
        if job.waited_for:
            console.print(f"The others are waiting for {_name(job.shown)}.", markup=False)
    text.render(job.report, console, threads)
    console.print(f"\n  {_figures(job.shown)}", markup=False)
    return shown.getvalue()


def as_json(job: AttachedJob) -> str:
    processes = [
        {
            "pid": member.pid,
            "command": list(member.observer.target.command),
            "task": str(member.capture.environment.task or "") or None,
            "state": member.stall.state if member.stall is not None else None,
            "bucket": member.stall.bucket if member.stall is not None else None,
            "sentence": _sentence(member),
            "memory": member.observer.sights[-1].host,
            "children": [vars(child) for child in member.observer.sights[-1].children],
            "native": [vars(thread) for thread in member.observer.sights[-1].native],
        }
        for member in job.members
    ]
    waited_for = job.shown.pid if job.waited_for else None
    found = {"processes": processes, "waited_for": waited_for, "report": job.report}
    return json.dumps(found, indent=2) + "\n"


def kernel_view(pid: int) -> str:
    """What /proc alone can tell."""
    target = Target(pid)
    threads = threads_in_kernel(target.folder, python=())
    lines = [f"What the kernel says about {target.title}, without Python's stacks:"]
    for each in threads:
        many = f" × {each.count}" if each.count > 1 else ""
        wait = " ".join(filter(None, (each.wait, each.on and f"({each.on})")))
        lines.append(f"  thread {each.name}{many}: state {each.state}{wait and ', in ' + wait}")
    children = child_processes(target.folder)
    lines += (f"  child {child.pid} {child.name}: state {child.state}" for child in children)
    return "\n".join(lines) + "\n"


def _line(member: Member) -> str:
    return f"{_name(member)}: {_sentence(member)}."


def _name(member: Member) -> str:
    task = member.capture.environment.task
    return f"process {member.pid}{f' ({task})' if task is not None else ''}"


def _sentence(member: Member) -> str:
    return member.stall.sentence if member.stall is not None else NOTHING_SEEN


def _figures(member: Member) -> str:
    """`12 samples in 5 s: 0.1% of a core; 1.2 GiB of memory; 42 threads; children: 4712 python`"""
    first, last = member.observer.sights[0], member.observer.sights[-1]
    seconds = (last.ns - first.ns) / NS_PER_S
    said = [f"{percent(last.cpu_s - first.cpu_s, seconds)} of a core"]
    if (resident := last.host.get(HostMetric.RSS)) is not None:
        said.append(f"{size(int(resident))} of memory")
    said.append(counted(_count(last), "thread"))
    if last.children:
        said.append(f"children: {', '.join(f'{c.pid} {c.name}' for c in last.children)}")
    return f"{len(member.observer.sights)} samples in {seconds:.0f} s: {'; '.join(said)}"


def _count(sight: Sight) -> int:
    return sum(threads.count for threads in sight.native)
