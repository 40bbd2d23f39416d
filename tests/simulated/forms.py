"""A simulated timeline as profilers write it: CUDA with TensorFlow 2.10 to 2.21, ROCm, TPU.

What is written follows TensorFlow's and XLA's collectors: streams as lines that name what ran on
them, copies under the names of CUPTI, roctracer or rocprofiler with their details as text, calls of
the driver on the thread that made them, correlation ids; on a TPU lines of modules and ops. Before
2.17 traces hold no absolute clock, and Keras 2 marks its steps; Keras 3 does not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from tests.simulated.machine import Activity, Call, Kind, Machine, Work
from tests.xspace import Event, Line, Plane, Value, space

BEGUN_UNIX_NS = 1_790_000_000_000_000_000
GPU_BYTES = 16_000_000_000
STREAM_NUMBER = {"compute": 13, "to device": 14, "from device": 15}


@dataclass(frozen=True)
class Form:
    name: str
    plane: str
    names: Mapping[Kind, str]
    line: str  # how a stream's kernels are called in the name of its line
    details: str
    keras: int = 3
    clock: bool = True
    suffix: str = ""  # of a kernel's name
    launch: str = "cuLaunchKernel"
    host_api: bool = True


CUPTI: dict[Kind, str] = {"to device": "MemcpyH2D", "from device": "MemcpyD2H"}
KINDS = "kind_src:{source} kind_dst:{target} size:{size} dest:0 async:{asynchronous}"
AMD = "kind:Unknown size:{size} dest:0 async:{asynchronous}"

# How NCCL calls its kernel, by version.
NCCL_2_12 = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)"
NCCL_2_19 = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
NCCL_2_25 = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
RCCL = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"

ROCTRACER: dict[Kind, str] = {
    "to device": "CopyHostToDevice",
    "from device": "CopyDeviceToHost",
    "collective": RCCL,
}
ROCPROFILER: dict[Kind, str] = {
    "to device": "MEMORY_COPY_HOST_TO_DEVICE",
    "from device": "MEMORY_COPY_DEVICE_TO_HOST",
    "collective": f"{RCCL}.kd",
}
BATCH = "((f32[32,784]{1,0:T(8,128)}), token[])"
TPU: dict[Kind, str] = {
    "to device": f"%infeed.2 = {BATCH} infeed(token[] %after-all)",
    "infeed": f"%infeed.1 = {BATCH} infeed(token[] %after-all)",
    "from device": "%outfeed.1 = token[] outfeed(f32[] %loss, token[] %after-all)",
    "collective": "%all-reduce.1 = f32[4096]{0:T(1024)} all-reduce(f32[4096]{0} %dot)",
}
GPU = "/device:GPU"

FORMS = (
    Form("CUDA, TensorFlow 2.10", GPU, CUPTI | {"collective": NCCL_2_12}, "Kernel", KINDS,
         keras=2, clock=False),
    Form("CUDA, TensorFlow 2.15", GPU, CUPTI | {"collective": NCCL_2_12}, "Compute", KINDS,
         keras=2, clock=False),
    Form("CUDA, TensorFlow 2.17", GPU, CUPTI | {"collective": NCCL_2_19}, "Compute", KINDS),
    Form("CUDA, TensorFlow 2.21", GPU, CUPTI | {"collective": NCCL_2_25}, "Compute", KINDS),
    Form("ROCm, roctracer", GPU, ROCTRACER, "Kernel", AMD, launch="hipLaunchKernel"),
    Form("ROCm, rocprofiler", GPU, ROCPROFILER, "Kernel", AMD, suffix=".kd",
         launch="hipModuleLaunchKernel"),
    Form("TPU", "/device:TPU", TPU, "", "", host_api=False),
)  # fmt: skip


def is_tpu(form: Form) -> bool:
    return form.plane.endswith("TPU")


def written(machine: Machine, form: Form) -> bytes:
    """The whole XSpace."""
    planes = [_host(machine, form)]
    planes += [_device(machine, form, number) for number in range(machine.devices)]
    if form.clock:
        stats = {
            "profile_start_time": BEGUN_UNIX_NS,
            "profile_stop_time": BEGUN_UNIX_NS + machine.now,
        }
        planes.append(Plane("Task Environment").to_bytes([], stats))
    return space(*planes)


# ------------------------------------------------------------ devices


def _device(machine: Machine, form: Form, number: int) -> bytes:
    mine = sorted((w for w in machine.work if w.device == number), key=lambda w: w.start)
    plane = Plane(f"{form.plane}:{number}")
    if is_tpu(form):
        ops = [Event(_op(work, form), work.start, work.end - work.start) for work in mine]
        modules = [Event("train_step(123)", call.start, call.end - call.start)
                   for call in machine.calls]  # fmt: skip
        lines = [Line("XLA Modules", modules, id=1), Line("XLA Ops", ops, id=2)]
        return plane.to_bytes(lines, {"device_type_string": "TPU v4"})
    streams: dict[str, list[Work]] = defaultdict(list)
    for work in mine:
        streams[work.stream].append(work)
    lines = [
        Line(f"Stream #{STREAM_NUMBER[stream]}({_types(works, form)})",
             [_stream_event(work, form) for work in works], id=STREAM_NUMBER[stream])
        for stream, works in streams.items()
    ]  # fmt: skip
    facts = {"clock_rate": 1_530_000, "core_count": 80, "memory_bandwidth": 898_048_000_000,
             "memory_size": GPU_BYTES, "compute_cap_major": 7, "compute_cap_minor": 0}  # fmt: skip
    return plane.to_bytes(lines, facts)


def _op(work: Work, form: Form) -> str:
    plain = f"%{work.name} = f32[4096,4096]{{1,0:T(8,128)}} fusion(f32[4096,4096]{{1,0}} %p)"
    return form.names.get(work.kind, plain)


def _types(works: list[Work], form: Form) -> str:
    kinds = dict.fromkeys(work.kind for work in works)
    return ",".join(
        dict.fromkeys(CUPTI.get(kind, form.line) for kind in kinds)  # streams are named alike
    )


def _stream_event(work: Work, form: Form) -> Event:
    stats: dict[str, Value] = {"correlation_id": work.launched}
    if work.kind in ("to device", "from device"):
        host = "pinned" if work.pinned else "pageable"
        source, target = (host, "device") if work.kind == "to device" else ("device", host)
        stats["memcpy_details"] = form.details.format(
            source=source, target=target, size=work.moved_bytes, asynchronous=int(not work.blocking)
        )
    name = form.names.get(work.kind, work.name + form.suffix)
    return Event(name, work.start, work.end - work.start, stats)


# ------------------------------------------------------------ the host


def _host(machine: Machine, form: Form) -> bytes:
    python = [event for call in machine.calls for event in _call(call, machine, form)]
    executor, getting, producing, compiling = [], [], [], []
    for activity in machine.activities:
        if activity.call < 0:
            continue
        run = activity.call + 1
        span = activity.start, activity.end - activity.start
        if activity.work == "wait for input":
            getting.append(Event("IteratorGetNextOp::DoCompute", *span, {"id": run}))
            getting.append(Event("Iterator::Root::Prefetch", *span, {"id": 7}))
            producing.append(Event("PrefetchProduce", *span))
            producing.append(Event("Iterator::Root::Prefetch::Map", *span,
                                   {"id": 8, "name": "MapDataset:2"}))  # fmt: skip
        elif activity.work == "xla":
            compiling += [
                Event("ExecutorState::ProcessAsync::Start", *span,
                      {"step_id": run, "kernel_type": "StatefulPartitionedCall", "_p": run}),
                Event("GpuCompiler::RunBackend", activity.start + 10, max(span[1] - 20, 1)),
            ]  # fmt: skip
        elif activity.work in ("launch", "kernel code", "wait for memory", "op on the CPU"):
            executor += _in_executor(activity, run)
    for work in machine.work:  # the host fills a TPU's infeed from a pipeline, too
        if work.kind == "infeed":
            span = work.start, work.end - work.start
            getting.append(Event("Iterator::Root::Prefetch", *span, {"id": 7}))
            producing.append(Event("Iterator::Root::Prefetch::Map", *span,
                                   {"id": 8, "name": "MapDataset:2"}))  # fmt: skip
    api = []
    if form.host_api:
        api = [Event(form.launch, work.launched - 3_000, 3_000, {"correlation_id": work.launched})
               for work in machine.work if work.launched > 3_000]  # fmt: skip
    lines = {
        "python": python,
        "tf_Compute": [*executor, *compiling, *_joined(executor), *api],
        "tf_data_iterator_get_next": getting,
        "tf_data_iterator_resource": producing,
        "tf_GPU_Event_Manager": [Event("ExecutorDoneCallback", 0, 1_000)],
    }
    return Plane("/host:CPU").to_bytes(
        [
            Line(name, sorted(events, key=_order), id=number)
            for number, (name, events) in enumerate(lines.items())
        ]
    )


def _call(call: Call, machine: Machine, form: Form) -> list[Event]:
    mine = [a for a in machine.activities if a.call == call.number]
    traced = sum(a.end - a.start for a in mine if a.work == "tracing")
    made = sum(a.end - a.start for a in mine if a.work == "ready")
    begin, end, run = call.start, call.end, call.number + 1
    how = ("traced" if call.traced else "notTraced") + ("-xla" if call.xla else "-nonXla")
    name = "train_function" if form.keras == 2 else "multi_step_on_iterator"
    graph, ready = begin + traced, begin + traced + made
    events = [
        Event(name, begin, end - begin, {"tf_function_call": how, "tracing_count": 1}),
        Event(f"EagerLocalExecute: __inference_{name}_7", graph, end - graph),
        Event("EagerKernelExecute", ready, end - ready),
        Event("KernelAndDeviceFunc::Run", ready, end - ready),
        Event("FunctionRun", ready, 200, {"id": run, "_r": 1, "_p": run}),
    ]
    if traced:
        events.append(Event("tf.function-graph_building", begin, traced))
    if form.keras == 2:
        marker = {"step_num": call.number, "epoch_num": 0, "batch_size": 32, "_r": 1}
        events.insert(0, Event("train", begin, end - begin, marker))
    return events


def _in_executor(activity: Activity, run: int) -> list[Event]:
    """An op that launches; one that stands in the allocator gets its memory when others free it."""
    start, length = activity.start, activity.end - activity.start
    name = "gradient_tape/dense/MatMul:MatMul"
    if activity.work == "kernel code":
        name = "conv2d/Conv2D:Conv2D"
    if activity.work == "op on the CPU":
        name = "unique/UniqueV2:UniqueV2"
    events = [
        Event("ExecutorState::Process", start, length, {"id": run}),
        Event(name, start, length),
    ]
    if activity.work == "wait for memory":
        asked = 300_000_000
        pool: dict[str, Value] = {"allocator_name": "GPU_0_bfc", "bytes_reserved": 0,
                                  "id": run, "fragmentation": 0.4}  # fmt: skip
        full = {"bytes_allocated": GPU_BYTES - asked // 3, "bytes_available": asked // 3}
        free = {"bytes_allocated": GPU_BYTES - 2 * asked, "bytes_available": 2 * asked}
        events += [
            Event("MemoryAllocation", start - 1_000, 0,
                  {**pool, **full, "requested_bytes": 4096, "allocation_bytes": 4096}),
            Event("MemoryAllocation", activity.end - 500, 0,
                  {**pool, **free, "requested_bytes": asked, "allocation_bytes": asked}),
        ]  # fmt: skip
    return events


def _joined(executor: list[Event]) -> list[Event]:
    """The last op of a run updates the variables."""
    last: dict[Value, Event] = {}
    for event in executor:
        if "id" in event.stats and event.name == "ExecutorState::Process":
            last[event.stats["id"]] = event
    return [Event("sgd/Sub:AssignSubVariableOp", event.start_ns + 100, event.duration_ns - 200)
            for event in last.values()]  # fmt: skip


def _order(event: Event) -> tuple[float, float]:
    return event.start_ns, -event.duration_ns
