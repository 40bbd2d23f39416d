"""XLA compiles again in every process, because its results are not kept.

What it finds
A run that spends at least 5 s in XLA compilation and has no folder to keep the compiled programs
in.

Why it stalls
Each restart and each worker compiles the same model with the same shapes again.

How it is measured
The ledger's time in XLA's compiler, or the compile time on the console; and the process's flags, if
a capture recorded them.

Example
XLA compiled for 94 s in the first step, and TF_XLA_FLAGS does not name a folder.

What to do
Name a folder that outlives the job: TF_XLA_FLAGS=--tf_xla_persistent_cache_directory=… for compiled
programs, and XLA_FLAGS=--xla_gpu_per_fusion_autotune_cache_dir=… for autotuning results.

Blind spots
Without a capture the flags of the process are not known, so you may already have followed this
advice.
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
    # Compiling for the CPU is quick, and its results are not read back even if they are kept.
    if compiled < LEAST_PS or not (signals.devices.used or printed):
        return None
    known = (
        "None of the process's flags names such a folder, so"
        if flags is not None
        else "Unless such a folder is already set,"
    )
    lasting = (
        "and the result is not kept for the next run"
        if flags is not None
        else "possibly again in every run"
    )
    return Finding(
        severity="consider",
        title=f"XLA compiled for {seconds(compiled)}, {lasting}",
        explanation=(
            f"XLA compiled for {seconds(compiled)}. It can keep the result in a folder and load "
            f"it the next time the same shapes come up. {known} every run compiles "
            "everything again."
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
