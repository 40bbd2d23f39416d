"""Whether a process that was captured still exists, if that can be checked.

A process id means something only inside its namespace, until the machine is rebooted. Anyone in the
same namespace can look.
"""

from __future__ import annotations

from pathlib import Path

from stall_analyzer.captures.capture_records import Environment

BOOT = Path("/proc/sys/kernel/random/boot_id")
NAMESPACE = Path("/proc/self/ns/pid")


def this_machine() -> str | None:
    """This boot, and the namespace of process ids; None if not known (not Linux)."""
    try:
        return f"{BOOT.read_text(encoding='ascii').strip()} {NAMESPACE.readlink()}"
    except OSError:
        return None


def is_gone(process: Environment) -> bool:
    """Whether it is surely gone; False also if that cannot be told from here."""
    if process.machine is None or process.pid is None or process.machine != this_machine():
        return False
    return not Path(f"/proc/{process.pid}").exists()
