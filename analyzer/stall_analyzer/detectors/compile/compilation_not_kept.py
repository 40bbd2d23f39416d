"""XLA compiles again in every process, because its results are not kept.

What it finds
Seconds of XLA compilation in a run that was given no folder for compiled programs.

Why it stalls
The same model with the same shapes is compiled again by each restart and each worker.

How it is measured
Time of the ledger in XLA's compiler, or what the console says of it; and the flags of the process,
where a capture recorded them.

Example
XLA compiled for 94 s in the first step; TF_XLA_FLAGS names no folder.

What to do
Name a folder that outlives the job: TF_XLA_FLAGS=--tf_xla_persistent_cache_directory=…, and for
what XLA has tried out, XLA_FLAGS=--xla_gpu_per_fusion_autotune_cache_dir=….

Blind spots
Without a capture the flags of the process are not known; then the advice may be in force already.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import partly
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.signals import Signals

ID = "ST116"
BUCKET = "compile"

LEAST_PS = 5 * PS_PER_S  # less is not worth a folder
FLAG = "persistent_cache_directory"


def check(signals: Signals) -> Finding | None:
    environment = signals.capture.environment if signals.capture is not None else None
    flags = environment.flags if environment is not None else None
    if flags is not None and any(FLAG in text for text in flags.values()):
        return None
    traced = signals.causes_ps["compile.xla"]
    slow = signals.console.warnings.get("slow_compile")
    printed = round((slow.seconds or 0.0) * PS_PER_S) if slow is not None else 0
    compiled = max(traced, printed)
    # Compiling for the CPU is quick, and what it keeps is not read back there.
    if compiled < LEAST_PS or not (signals.devices.used or printed):
        return None
    known = "No flag of the process names one" if flags is not None else "If none is named yet"
    return Finding(
        severity="consider",
        title=f"XLA's {seconds(compiled)} of compiling are not kept for the next start",
        explanation=(
            f"XLA compiled for {seconds(compiled)}. It can keep the result in a folder and load it "
            f"in later starts with the same shapes. {known}, each start compiles again."
        ),
        change=Change(
            "Give XLA a folder that outlives the job.",
            "",
            "export TF_XLA_FLAGS=--tf_xla_persistent_cache_directory=/a/folder/that/stays\n"
            "export XLA_FLAGS=--xla_gpu_per_fusion_autotune_cache_dir=/a/folder/that/stays",
        ),
        lost_ps=traced,
        gain=partly(traced, 0, 0.9),
        confidence=0.6 if flags is not None else 0.4,
        evidence=signals.evidence_of("compile.xla", "XLA compiles"),
    )
