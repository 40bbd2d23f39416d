"""Training waits inside TensorFlow: for a batch, a service, or in an op that is made to wait."""

from __future__ import annotations

from stall_analyzer.captures.capture_format import TrainingPhase
from stall_analyzer.captures.look_records import InputStage, ThreadStack
from stall_analyzer.captures.stack_frames import frame_of
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.patterns import pattern
from stall_analyzer.signals.ending.python_stacks import CALLS_BACK, proof, stack_of
from stall_analyzer.signals.ending.scene import COMMUNICATION, PROOF_LINES, Blamed, Scene
from stall_analyzer.signals.ending.waits import Wait, wait_in_call

OF_WORKERS = pattern("Collective|_?Recv")
SERVICE = pattern("DataService")


def fetch(thread: ThreadStack) -> Blamed:
    main = stack_of(thread)
    place = main.users
    return Blamed(
        bucket="input",
        subject=f"the training script at {place.place}" if place is not None else "the step",
        waits_in=f"is waiting for its next batch ({main.frames[0].name})",
        stack=proof(main, PROOF_LINES),
        kind="batch",
        thread=thread,
    )


def service(thread: ThreadStack) -> Blamed:
    main = stack_of(thread)
    at = f" at {main.users.place}" if main.users is not None else ""
    return Blamed(
        bucket="input",
        subject=f"the training script{at}",
        waits_in="is waiting for the tf.data service, which does not answer,",
        stack=proof(main, PROOF_LINES),
        kind="service",
        thread=thread,
    )


def runtime(scene: Scene, thread: ThreadStack) -> Blamed | None:
    """Inside TensorFlow, with no Python that could hold it up. A GPU may hang as well."""
    devices = scene.capture.environment.devices or ()
    only_cpu = bool(devices) and all("CPU" in device.upper() for device in devices)
    is_step = scene.last.phase in (TrainingPhase.TRAIN_BATCH, TrainingPhase.VALIDATION)
    main = stack_of(thread)
    at = f" called at {main.users.place}" if main.users is not None else ""
    wait = wait_in_call(thread.wait, thread.on) or _native_wait(scene)
    if wait is not None:
        return Blamed(
            bucket="input" if is_step else "host",
            subject=f"TensorFlow, in the {'step' if is_step else 'op'}{at},",
            waits_in=wait.words,
            stack=proof(main, PROOF_LINES),
            kind=wait.kind,
            confidence=0.8,
            thread=thread,
        )
    if (found := _graph_wait(scene, thread)) is not None:
        return found
    stages = _stages(scene)
    if any(SERVICE.search(stage.name) for stage in stages):
        return service(thread)
    if not is_step or not only_cpu or not (scene.has_pipeline or stages):
        stack = proof(main, PROOF_LINES)
        bucket: Bucket = "host" if main.passes(CALLS_BACK) else "unknown"
        return Blamed(bucket, f"TensorFlow, in the step{at},", "", stack, thread=thread)
    return Blamed(
        bucket="input",
        subject=f"the step{at}",
        waits_in="is waiting inside TensorFlow, most likely for its next batch,",
        stack=proof(main, PROOF_LINES),
        confidence=0.6,
        kind="runtime",
        thread=thread,
    )


def _stages(scene: Scene) -> tuple[InputStage, ...]:
    """The stages of input that is asked for a batch but produces nothing; empty if it does."""
    works = scene.works
    moves = len(works) > 1 and works[0].counts != works[-1].counts
    is_ready = any(count.buffered for work in works[-1:] for count in work.counts)
    return works[-1].stages if works and not moves and not is_ready else ()


def _graph_wait(scene: Scene, thread: ThreadStack) -> Blamed | None:
    """An op that is made to wait, in a graph that does not return."""
    works = scene.works
    if not works or not works[-1].waits:
        return None
    op, frame = works[-1].waits[0].op, frame_of(works[-1].waits[0].where)
    main = stack_of(thread)
    called = f", called at {main.users.place}," if main.users is not None else ""
    bucket: Bucket = "input" if "Dequeue" in op or "Unstage" in op else "host"
    awaited = "something that never arrives"
    if OF_WORKERS.match(op):
        bucket, awaited = COMMUNICATION, "other workers that never arrive"
    return Blamed(
        bucket=bucket,
        subject=f"TensorFlow, in {op}{f' at {frame.place}' if frame is not None else ''}{called}",
        waits_in=f"is waiting for {awaited},",
        stack=proof(main, PROOF_LINES),
        confidence=0.8,
        kind="graph_wait",
        thread=thread,
    )


def _native_wait(scene: Scene) -> Wait | None:
    """The wait of a TensorFlow thread for the same file or connection in all dumps."""
    seen = [{(t.wait, t.on) for t in dump.native if not t.python} for dump in scene.dumps]
    always = sorted(set.intersection(*seen)) if seen else []
    waits = (wait_in_call(call, on) for call, on in always)
    return next((wait for wait in waits if wait is not None), None)
