"""What a start on a GPU costs once, according to the console, the driver's calls and a capture.

Lines of public threads about kernels compiled from PTX, and of failures of NCCL and CUDA, with
their times and hosts made up.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from stall_analyzer.captures.capture_records import Environment
from stall_analyzer.detectors.compile import gpu_start, kernel_code, kernels_from_ptx
from stall_analyzer.detectors.compile.kernels_from_ptx import _without_kernels
from stall_analyzer.detectors.host import precision_not_in_effect
from stall_analyzer.detectors.memory import memory_growth
from stall_analyzer.model.event_log import KerasConfig
from tests.console_texts import SLOW_COMPILE
from tests.detectors.training import found, training
from tests.event_files import START_S
from tests.test_console_end import analyzed, ids
from tests.traces import device, event, keras_log
from tests.xspace import Line, Plane

SAID = (
    "TensorFlow was not built with CUDA kernel binaries compatible with compute capability {card}. "
    "CUDA kernels will be jit-compiled from PTX, which could take 30 minutes or longer."
)
OLD = "2023-05-31 10:00:00.000000: W tensorflow/core/common_runtime/gpu/gpu_device.cc:{line}] "
NEW = f"W0000 00:00:{START_S - 1900:.6f}    4711 gpu_device.cc:{{line}}] "
BARE = "2023-05-31 10:00:00.000000: W "
# The lines of eleven public threads from 2022 to 2026: form, line of the source, card.
PTX_THREADS = [
    (OLD, 2027, "7.0"),  # V100s, a build for other cards
    (OLD, 2052, "9.0"),  # H100, 2.14
    (BARE, 0, "9.0"),  # eight H100s, 2.15: "it takes really long to start a training"
    (BARE, 0, "9.0"),  # 2.15 beside another framework: "stuck at this step"
    (OLD, 2348, "9.0"),  # H100: the first fold is slow, the next ones are not
    (NEW, 2431, "12.0"),  # RTX 5080, 2.21 nightly
    (NEW, 2432, "12.0"),  # RTX 5090 under Windows
    (NEW, 2430, "12.0"),  # 2.20, then CUDA_ERROR_INVALID_PTX
    (NEW, 2429, "12.0a"),  # 2.21
    (NEW, 2429, "10.0a"),  # B200, 2.21
    (OLD, 1938, "12.0"),  # in a container, 2026
]
LATER = {
    OLD: "2023-05-31 10:31:00.000000: I tensorflow/compiler/xla/cuda_dnn.cc:366] Loaded cuDNN\n",
    NEW: f"I0000 00:00:{START_S - 40:.6f}    4711 cuda_dnn.cc:529] Loaded cuDNN version 90300\n",
}


@pytest.mark.parametrize(("form", "line", "card"), PTX_THREADS)
def test_kernels_from_ptx_are_recognized_with_the_card_and_the_silence(
    tmp_path: Path, form: str, line: int, card: str
) -> None:
    text = f"{form.format(line=line)}{SAID.format(card=card)}\n" * 2 + LATER.get(form, LATER[OLD])
    report = analyzed(tmp_path, text)
    finding = next(one for one in report.findings if one.id == "ST111")
    assert finding.title.endswith(f"(compute capability {card})")
    assert "The console was silent for 31 min" in finding.explanation
    assert finding.severity == "act"


FAILURES = [
    ("node1:1:2 [3] ibvwrap.c:118 NCCL WARN Call to ibv_create_cq failed\n", "ST509", ""),
    (
        "2023-03-03 13:12:24.938202: I tensorflow/core/common_runtime/executor.cc:1197] (DEBUG) "
        "Executor start aborting: UNKNOWN: Error invoking NCCL: unhandled cuda error\n",
        "ST509", "",
    ),
    (
        "2023-08-31 01:40:46.786721: W tensorflow/core/framework/op_kernel.cc:1651] OP_REQUIRES "
        "failed at nccl_communicator.cc:116 : Internal: unhandled system error\n",
        "ST509", "",
    ),
    (
        "2020-03-23 10:00:00.000000: E tensorflow/stream_executor/cuda/cuda_event.cc:29] Error "
        "polling for event status: CUDA_ERROR_LAUNCH_TIMEOUT: the launch timed out\n",
        "ST416", "CUDA_ERROR_LAUNCH_TIMEOUT",
    ),
    (
        "2019-11-07 10:45:15.332853: E tensorflow/stream_executor/cuda/cuda_dnn.cc:329] Could not "
        "create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\n",
        "ST416", "CUDNN_STATUS_INTERNAL_ERROR",
    ),
    (
        "2024-05-01 09:00:00.000000: W tensorflow/core/framework/op_kernel.cc:1827] INTERNAL: "
        "failed to load PTX text: CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the provided PTX was "
        "compiled with an unsupported toolchain.\n",
        "ST416", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "id", "name"), FAILURES)
def test_failures_of_nccl_and_cuda_are_known_by_name(
    tmp_path: Path, text: str, id: str, name: str
) -> None:
    report = analyzed(tmp_path, text)
    assert id in ids(report)
    assert name in next(finding.title for finding in report.findings if finding.id == id)


def test_a_slow_start_of_cuda_is_seen_by_the_consoles_clock(tmp_path: Path) -> None:
    def ready_at(time: str) -> str:
        return (
            "2024-05-01 09:00:00.000000: I tensorflow/core/platform/cpu_feature_guard.cc:210] On\n"
            f"2024-05-01 {time}.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1928] "
            "Created device /job:localhost/replica:0/task:0/device:GPU:0 with 14000 MB memory\n"
        )

    report = analyzed(tmp_path / "slow", ready_at("09:00:41"))
    (finding,) = [finding for finding in report.findings if finding.id == "ST115"]
    assert finding.title == "CUDA was not ready until 41.0 s after the start"
    assert "ST115" not in ids(analyzed(tmp_path / "quick", ready_at("09:00:04")))


def test_nccls_own_timing_is_believed(tmp_path: Path) -> None:
    said = (
        "node1:1:2 [0] NCCL INFO Init timings - ncclCommInitRank: rank 0 nranks 16 total {total} "
        "(kernels 0.20, alloc 0.11, bootstrap 35.01)\n"
    )
    assert "ST514" in ids(analyzed(tmp_path / "slow", said.format(total="38.21")))
    assert "ST514" not in ids(analyzed(tmp_path / "quick", said.format(total="1.75")))


def test_memory_growth_is_said_and_its_calls_are_counted(tmp_path: Path) -> None:
    said = (
        "2024-05-01 09:00:00.000000: I tensorflow/core/common_runtime/gpu/gpu_bfc_allocator.cc:47] "
        "Overriding orig_value setting because the TF_FORCE_GPU_ALLOW_GROWTH environment variable "
        "is set. Original config value was 0.\n"
    )
    assert "ST213" in ids(analyzed(tmp_path / "said", said))
    calls = [event("cuMemAlloc_v2", 10 * n, 10 * n + 5) for n in range(20)]
    plane = device("/device:GPU:0", ("Stream #1(Compute)", [event("sgemm", 0, 1)]))
    grown = training(tmp_path, planes=[plane], lines=[("tf_gpu", calls)])
    assert found(memory_growth.check(grown)).title == "Asking the driver for memory took 100 ms"
    assert gpu_start.check(grown) is None and kernel_code.check(grown) is None
    assert kernels_from_ptx.check(grown) is None


def test_a_slow_compilation_is_worth_keeping(tmp_path: Path) -> None:
    assert "ST116" in ids(analyzed(tmp_path, SLOW_COMPILE))


@pytest.mark.parametrize(
    ("gpu", "built_for", "missing"),
    [
        ("8.6", ("sm_60", "sm_70", "sm_80", "compute_90"), ""),  # code for 8.0 runs on 8.6
        ("12.0", ("sm_60", "sm_80", "sm_89", "compute_90"), "12.0"),
        ("7.0", ("sm_75", "sm_80"), "7.0"),
        ("9.0", ("sm_80", "sm_90a"), ""),
    ],
)
def test_a_capture_knows_whether_the_build_has_kernels_for_the_card(
    gpu: str, built_for: tuple[str, ...], missing: str
) -> None:
    assert _without_kernels(Environment(gpus=(gpu,), built_for=built_for)) == missing


@pytest.mark.parametrize(
    ("kernel", "capability", "policy", "is_found"),
    [
        ("volta_sgemm_128x64_nn", 7, "mixed_float16", True),
        ("volta_fp16_s884gemm_fp16_128x64", 7, "mixed_float16", False),
        ("sm80_xmma_gemm_bf16bf16_bf16f32", 8, "mixed_bfloat16", False),
        ("maxwell_sgemm_128x64_nn", 5, "mixed_float16", False),  # such a card gains nothing
        ("volta_sgemm_128x64_nn", 7, "float32", False),
    ],
)
def test_mixed_precision_that_is_not_in_effect_is_found(
    tmp_path: Path, kernel: str, capability: int, policy: str, is_found: bool
) -> None:
    stream = Line("Stream #1(Compute)", [event(kernel, n * 11, n * 11 + 9) for n in range(20)])
    plane = Plane("/device:GPU:0").to_bytes([stream], {"compute_cap_major": capability})
    log = keras_log(KerasConfig(0, "Sequential", ({"class_name": "Dense", "dtype": policy},)))
    signals = training(tmp_path, planes=[plane], events=log)
    assert (precision_not_in_effect.check(signals) is not None) == is_found
