"""Trainings of twelve steps on simulated machines, each held up by one thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.simulated.machine import MS, US, Machine

STEPS = 12
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Stall:
    name: str
    bucket: str
    findings: tuple[str, ...]  # one of them must be there
    train: Callable[[Machine], None]
    devices: int = 1
    on_tpu: bool = True  # whether a TPU can have it
    on_gpu: bool = True


@dataclass(frozen=True)
class Step:
    """What a usual step takes; times in nanoseconds."""

    kernels: int = 12
    kernel: float = 1 * MS
    input_wait: float = 50 * US
    python: float = 200 * US
    copy: float = 100 * US
    pinned: bool = True
    blocking: bool = False
    back: float = 20 * US
    slower: float = 1.0  # the last device, as many times
    all_reduce: float = 0.0
    on_cpu: float = 0.0
    waits: bool = True  # for its loss; else the host runs ahead of the device


def run(machine: Machine, step: Step, number: int) -> None:
    """One call of the training function, after Python has come round to it."""
    machine.host("python", step.python)
    machine.begin_call(traced=number == 0)
    if number == 0:
        machine.host("tracing", 5 * MS)
        machine.host("ready", 2 * MS)
    body(machine, step)
    machine.end_call()


def body(machine: Machine, step: Step) -> None:
    machine.host("wait for input", step.input_wait)
    for device in range(machine.devices):
        machine.copy("to device", 10 * MEGABYTE, step.copy, device=device, pinned=step.pinned,
                     blocking=step.blocking)  # fmt: skip
    if step.on_cpu:
        machine.host("op on the CPU", step.on_cpu)
    for number in range(step.kernels):
        for device in range(machine.devices):
            slower = step.slower if device and device == machine.devices - 1 else 1
            machine.kernel(f"sgemm_{number % 4}", step.kernel * slower, device)
    if step.all_reduce:
        machine.all_reduce(step.all_reduce)
    for device in range(machine.devices):
        machine.copy("from device", 4, step.back, device=device)
    if step.waits:
        machine.synchronize()


def every_step(step: Step) -> Callable[[Machine], None]:
    def train(machine: Machine) -> None:
        for number in range(STEPS):
            run(machine, step, number)

    return train


def first_step(
    hold_up: Callable[[Machine], None], *, xla: bool = False
) -> Callable[[Machine], None]:
    """All is well after the first step."""

    def train(machine: Machine) -> None:
        machine.host("python", 200 * US)
        machine.begin_call(traced=True, xla=xla)
        machine.host("tracing", 5 * MS)
        machine.host("ready", 2 * MS)
        machine.host("wait for input", 50 * US)
        hold_up(machine)
        body(machine, Step(input_wait=1 * US))
        machine.end_call()
        for number in range(1, STEPS):
            run(machine, Step(), number)

    return train


def autotune(machine: Machine) -> None:
    """cuDNN's libraries are loaded, then each way to compute a convolution is tried and timed."""
    machine.host("kernel code", 600 * MS)
    for trial in range(40):
        machine.kernel(f"cudnn_algorithm_{trial}", 5 * MS, kind="trial")
        machine.synchronize_trial()


def with_allocator(machine: Machine) -> None:
    for number in range(STEPS):
        machine.host("python", 200 * US)
        machine.begin_call(traced=number == 0)
        if number == 0:
            machine.host("tracing", 5 * MS)
            machine.host("ready", 2 * MS)
        machine.host("wait for input", 50 * US)
        machine.host("wait for memory", 30 * MS)
        body(machine, Step(input_wait=1 * US))
        machine.end_call()


def tpu_infeed(machine: Machine) -> None:
    for number in range(STEPS):
        machine.host("python", 200 * US)
        machine.begin_call(traced=number == 0)
        if number == 0:
            machine.host("tracing", 5 * MS)
            machine.host("ready", 2 * MS)
        machine.host("launch", 5 * US)
        machine.infeed(30 * MS)
        for kernel in range(12):
            machine.kernel(f"fusion_{kernel % 4}", 1 * MS)
        machine.synchronize()
        machine.end_call()


STALLS: tuple[Stall, ...] = (
    Stall("input starves the device", "input", ("ST003", "ST004"),
          every_step(Step(input_wait=30 * MS))),
    Stall("many tiny kernels", "host", ("ST415",),
          every_step(Step(kernels=300, kernel=1 * US))),
    Stall("one long synchronous copy", "memory", ("ST205",),
          every_step(Step(back=40 * MS))),
    Stall("pageable copies", "input", ("ST022",),
          every_step(Step(copy=40 * MS, pinned=False, blocking=True)), on_tpu=False),
    Stall("the device idles in Python", "host", ("ST414", "ST401"),
          every_step(Step(python=40 * MS))),
    Stall("the allocator retries", "memory", ("ST201",), with_allocator, on_tpu=False),
    Stall("cuDNN tries its algorithms", "compile", ("ST114",), first_step(autotune), on_tpu=False),
    Stall("XLA compiles", "compile", ("ST105",),
          first_step(lambda machine: machine.host("xla", 900 * MS), xla=True)),
    Stall("one GPU is slow", "communication", ("ST512",),
          every_step(Step(slower=4.0, all_reduce=1 * MS)), devices=4),
    Stall("gradients are exposed", "communication", ("ST513",),
          every_step(Step(all_reduce=30 * MS)), devices=4),
    Stall("an op runs on the CPU", "host", ("ST417",), every_step(Step(on_cpu=30 * MS)),
          on_tpu=False),
    Stall("infeed starves the TPU", "input", ("ST003", "ST004"), tpu_infeed,
          on_gpu=False),
)  # fmt: skip
HEALTHY = Stall("healthy", "compute", (), every_step(Step(kernel=4 * MS)))
