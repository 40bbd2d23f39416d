"""What a device did, by its profiler's names: CUPTI, roctracer, rocprofiler, a TPU's XLA."""

from __future__ import annotations

from pathlib import Path

import pytest

from stall_analyzer.decode.device_events import device_kind, hlo_name, hlo_opcode
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.host.device_activity import DeviceActivity, device_activity
from tests.traces import causes_ms, device, event, ledger_of, steps, timeline_of, trainer
from tests.xspace import Event

ALL_REDUCE = "%all-reduce.2 = (f32[8]{0:T(256)}, u32[]) all-reduce(%a, %b), replica_groups={}"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MemcpyH2D", "to_device"),
        ("MemcpyD2H", "from_device"),
        ("MemcpyD2D", "on_device"),
        ("Memset", "on_device"),
        ("CopyHostToDevice", "to_device"),  # roctracer
        ("MEMORY_COPY_DEVICE_TO_HOST", "from_device"),  # rocprofiler
        ("__amd_rocclr_copyBuffer.kd", "on_device"),  # a kernel that copies
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "collective"),
        (ALL_REDUCE, "collective"),
        ("all-gather-done.3", "collective"),  # its name in older TPU traces
        ("infeed.1", "infeed"),
        ("%copy-done.4 = f32[5,2]{1,0:T(8,128)} copy-done((f32[5,2], u32[]) %c)", "on_device"),
        ("%fusion.3 = f32[8] fusion(%copy-done.4)", "kernel"),
        ("volta_sgemm_128x64_nn", "kernel"),
        ("MemoryResidency", "none"),
    ],
)
def test_names_of_every_profiler_are_understood(name: str, kind: str) -> None:
    assert device_kind(name) == kind


def test_an_op_of_xla_is_known_by_its_opcode() -> None:
    assert (hlo_opcode(ALL_REDUCE), hlo_name(ALL_REDUCE)) == ("all-reduce", "all-reduce.2")


def activity(folder: Path, *lines: tuple[str, list[Event]], plane: str = "GPU:0") -> DeviceActivity:
    python, work = steps(0, 4, length_ms=25)
    timeline = timeline_of(folder, trainer(python, work), device(f"/device:{plane}", *lines))
    (only,) = device_activity(timeline.traces)
    return only


def test_kernels_and_copies_are_counted_by_direction_and_bytes(tmp_path: Path) -> None:
    details = "kind_src:pageable kind_dst:device size:4096 dest:0 async:0"
    found = activity(
        tmp_path,
        ("Stream #13(Compute)", [event("sgemm", 10, 20), event("sgemm", 30, 40)]),
        ("Stream #14(MemcpyH2D)", [event("MemcpyH2D", 15, 25, memcpy_details=details)]),
        ("XLA Ops", [event("fusion.1", 10, 40)]),  # derived from the streams: not separate work
    )
    assert found.busy_ps == 25 * PS_PER_MS
    assert found.computing_ps == 20 * PS_PER_MS
    assert found.ops["sgemm"].count == 2
    copies = found.copies["to_device"]
    assert (copies.count, copies.moved_bytes, copies.pageable_ps) == (1, 4096, 10 * PS_PER_MS)


def test_a_loop_of_a_tpu_is_no_work_besides_its_body(tmp_path: Path) -> None:
    ops = [event("while.1", 0, 100), event("fusion.1", 0, 30), event("infeed.1", 30, 100)]
    found = activity(tmp_path, ("XLA Ops", ops), plane="TPU:0")
    assert (found.ops["while.1"].count, found.ops["while.1"].ps) == (1, 0)
    assert found.computing_ps == 30 * PS_PER_MS


def test_a_tpu_that_waits_for_the_host_waits_for_input(tmp_path: Path) -> None:
    python, work = steps(0, 4, length_ms=25)
    ops = [event("while.1", 0, 100), event("fusion.1", 0, 30), event("infeed.1", 30, 100)]
    ledger = ledger_of(
        tmp_path,
        trainer(python, work),
        device("/device:TPU:0", ("XLA Ops", ops), ("Async XLA Ops", [event("copy.1", 30, 100)])),
    )
    assert causes_ms(ledger) == {"compute.device": 30, "input.wait": 70}


def test_half_of_the_devices_in_a_collective_wait_for_the_others(tmp_path: Path) -> None:
    python, work = steps(0, 4, length_ms=25)
    quick = [event("sgemm", 0, 40), event("ncclKernel_AllReduce", 40, 100)]
    slow = [event("sgemm", 0, 90), event("ncclKernel_AllReduce", 90, 100)]
    ledger = ledger_of(
        tmp_path,
        trainer(python, work),
        *(device(f"/device:GPU:{i}", ("Stream #1", quick)) for i in range(3)),
        device("/device:GPU:3", ("Stream #1", slow)),
    )
    assert causes_ms(ledger) == {"compute.device": 40, "communication.collective": 60}
