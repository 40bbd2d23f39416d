"""The change to suggest for a run that has stopped, depending on what it is waiting in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stall_analyzer.captures.how_to_capture import CALLBACK_LINES
from stall_analyzer.model.findings import Change
from stall_analyzer.signals.ending.process_end import Ending
from stall_analyzer.signals.ending.python_stacks import stack_of
from stall_analyzer.signals.ending.stall import ENDLESS, SLOW, Stall
from stall_analyzer.signals.ending.waits import WaitKind

if TYPE_CHECKING:
    from stall_analyzer.signals.ending.scene import Blamed

ASK_THE_PROCESS = Change(
    "Check whether the process is still running and the event file is still growing. If the "
    "process is running but the file is not growing, find out what the process is doing.",
    "",
    "stall-analyze attach PID    # what each thread is doing, and whether it is stuck\n"
    "# next time, a capture records that by itself\n"
    f"{CALLBACK_LINES}",
)
_LOOK_LONGER = Change(
    "Look again, and for longer.", "", "stall-analyze attach PID --seconds 60 --threads"
)
_LET_IT_RUN = Change(
    "The process was not watched long enough to tell. Let it run for a minute longer, or say "
    "after how many seconds without a step it counts as stuck.",
    "StallCallback(logdir)",
    "StallCallback(logdir, hang_after_s=30)\n"
    "# or: stall-analyze capture --hang-after 30 -- python train.py",
)
STEPS_PER_EPOCH = Change(
    "Say how many steps an epoch has, or leave out repeat(): Keras restarts the data in each epoch "
    "by itself.",
    "model.fit(dataset.repeat())",
    "model.fit(dataset.repeat(), steps_per_epoch=n // batch_size)",
)
VALIDATION_STEPS = Change(
    "Say how many steps validation takes, or leave out repeat(): Keras restarts the data each time "
    "by itself.",
    "model.fit(data, validation_data=held_out.repeat())",
    "model.fit(data, validation_data=held_out)",
)
_OR_FAIL = ':\n    raise RuntimeError("no answer")'
_WAIT_FOR_IT = Change(
    "Wait, or make that code faster: it was still working when the capture ended."
)
_SEE_ITS_LOOP = Change(
    "Check whether the loop can end: something in it must make its condition false. If it can end, "
    "wait, or make it faster.",
    "while error > tolerance:",
    "for _ in range(most_rounds):  # and stop early",
)
_SEE_THE_STEP = Change(
    "Wait, if steps of this model take that long. If not, check whether its input produces "
    "anything (a filter may drop every element) and whether each tf.while_loop in its graph can "
    "end.",
    "",
    "next(iter(dataset))  # does a batch ever arrive?",
)
_UNROLLED = Change(
    "If the model is large enough to take this long to trace, wait. If not, loop in the graph: a "
    "Python loop in a traced function is unrolled, so each iteration adds its ops to the graph.",
    "for i in range(n):",
    "for i in tf.range(n):",
)
_RECURSION = Change(
    "Replace the recursion with a loop: when a graph is built, both branches of tf.cond are "
    "traced, so a function that calls itself there is traced endlessly.",
    "tf.cond(n <= 0, lambda: 0, lambda: 1 + depth(n - 1))",
    "tf.while_loop(lambda i: i < n, lambda i: (i + 1,), (0,))",
)
# What TensorFlow is doing, whether or not it can end.
_OF_WORK: dict[WaitKind, Change] = {
    "endless_data": Change(
        "Limit the number of steps, or leave out repeat(): data that repeats never ends.",
        "model.evaluate(dataset.repeat())",
        "model.evaluate(dataset)  # or steps=n; elsewhere dataset.take(n)",
    ),
    "dropped": Change(
        "Find out what this stage receives, and check its type and value against the condition. "
        "If some elements do pass, select them before repeat(), or keep a separate list of them.",
        "dataset.repeat().filter(is_wanted)",
        "print(next(iter(dataset)))  # does is_wanted accept it?\n"
        "dataset.filter(is_wanted).repeat()  # ends with an error if it is empty",
    ),
    "filling": Change(
        "Wait, or make the buffer smaller: nothing comes out until it is full.",
        "dataset.repeat().shuffle(10_000_000)",
        "dataset.shuffle(10_000).repeat()",
    ),
    "xla": Change(
        "Wait for the first step. If it is compiled again and again, give it batches of the "
        "same shape, or pad them to a few lengths. Or turn XLA off.",
        "@tf.function(jit_compile=True)",
        "@tf.function(reduce_retracing=True)",
    ),
    "graph_loop": Change(
        "Check whether the loop can end: a condition on floating-point numbers may never be met. "
        "Limit its iterations. If it can end, wait, or make each iteration faster.",
        "tf.while_loop(is_far, closer, start)",
        "tf.while_loop(is_far, closer, start, maximum_iterations=1000)",
    ),
}
_END_THE_LOOP = Change(
    "Make the loop end: its condition never becomes false. Floating-point numbers are rarely "
    "equal to anything; if another thread sets a flag, wait for it instead of looping.",
    "while high - low != width:",
    "while high - low > width:",
)
_REGULAR_EXPRESSION = Change(
    "Change the pattern: a repetition inside a repetition can match in more ways than can ever be "
    "tried. Python 3.11 has possessive quantifiers and atomic groups, which do not backtrack.",
    r're.match(r"(\w+\s?)+$", text)',
    r're.match(r"(\w++\s?+)+$", text)',
)
_CLUSTER = Change(
    "Start every worker that TF_CONFIG names, each with the same list and its own index, and make "
    "sure that they can reach each other's ports. If a worker stopped, look for the reason in its "
    "own log.",
    "",
    'os.environ["TF_CONFIG"] = json.dumps(\n'
    '    {"cluster": {"worker": ["host0:2222", "host1:2222"]},\n'
    '     "task": {"type": "worker", "index": 0}})',
)

_BY_KIND: dict[WaitKind, Change] = {
    "queue": Change(
        "Whatever fills the queue has stopped. Give the wait a timeout, and pass on errors from "
        "the thread that fills it, so that the run fails instead of hanging.",
        "item = queue.get()",
        "item = queue.get(timeout=60)  # raises queue.Empty",
    ),
    "full_queue": Change(
        "Whatever empties the queue has stopped. Give the wait a timeout, and find out what "
        "happened to the thread that reads from the queue.",
        "queue.put(item)",
        "queue.put(item, timeout=60)  # raises queue.Full",
    ),
    "future": Change(
        "The work behind the future does not end: look at the other threads. A function in a pool "
        "must not wait for another one in the same pool, which may have no thread left for it.",
        "future.result()",
        "future.result(timeout=60)  # raises TimeoutError",
    ),
    "pool": Change(
        "A worker process was killed, most likely because memory ran out, and its task was lost "
        "with it: multiprocessing.Pool starts another worker but never repeats the task. Use "
        "fewer workers, less memory in each, or threads.",
        "Data(workers=8, use_multiprocessing=True)",
        "Data(workers=2, use_multiprocessing=False)",
    ),
    "replaced": Change(
        "Find out why the pool's workers keep exiting; their errors are in the program's output. "
        "The pool keeps starting new ones in their place. Their initializer or an import may fail. "
        "With 'spawn', each worker also imports the script itself, so the script must not start "
        "any work on import.",
        "pool = Pool(8, initializer=init)",
        'if __name__ == "__main__":\n    pool = Pool(8, initializer=init)  # does init() fail?',
    ),
    "event": Change(
        "Find out what should have set the event: a thread that failed or never got that far. Give "
        "the wait a timeout.",
        "event.wait()",
        f"if not event.wait(timeout=60){_OR_FAIL}",
    ),
    "lock": Change(
        "Find out what holds the lock: a thread that waits for this one, a thread that failed "
        "while holding it, or this thread itself. Give the wait a timeout, and acquire locks in "
        "the same order everywhere.",
        "lock.acquire()",
        f"if not lock.acquire(timeout=60){_OR_FAIL}",
    ),
    "own_lock": Change(
        "The same thread acquires the lock twice, which a Lock never allows. Acquire it once, or "
        "use an RLock.",
        "lock = threading.Lock()",
        "lock = threading.RLock()",
    ),
    "deadlock": Change(
        "Acquire these locks in the same order in all threads, or hold only one of them at a time. "
        "A timeout turns any deadlock that remains into an error.",
        "with file:\n    with numbers:  # elsewhere: with numbers: with file:",
        "with numbers:\n    with file:  # everywhere",
    ),
    "thread": Change(
        "The other thread does not end: find out what it is doing. Tell it to stop, or give the "
        "wait a timeout.",
        "thread.join()",
        f"thread.join(timeout=60)\nif thread.is_alive(){_OR_FAIL}",
    ),
    "process": Change(
        "Find out what the other process is doing: it may itself be waiting, for example "
        "until this process reads its output. Give the wait a timeout.",
        "process.wait()",
        "process.communicate(timeout=60)  # raises TimeoutExpired, and reads its output",
    ),
    "connection": Change(
        "The process at the other end sends nothing: check whether it is still alive.",
        "connection.recv()",
        f"if not connection.poll(60){_OR_FAIL}\nconnection.recv()",
    ),
    "socket": Change(
        "The other side does not answer. Check whether it is reachable, and give every connection "
        "a timeout.",
        "urllib.request.urlopen(url)",
        "urllib.request.urlopen(url, timeout=60)  # sockets: socket.setdefaulttimeout(60)",
    ),
    "file_lock": Change(
        "Another process holds the lock on this file (lsof or /proc/locks shows which), or its "
        "machine is gone. Request the lock without waiting, and fail or continue without it.",
        "fcntl.flock(file, fcntl.LOCK_EX)",
        "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises BlockingIOError",
    ),
    "open": Change(
        "A named pipe opens only when a process opens its other end; a file in a network folder, "
        "only when the server answers. Use an ordinary file on a local disk.",
    ),
    "pipe": Change(
        "Find out what the process at the other end of the pipe is doing: a full pipe waits for "
        "its reader, an empty one for its writer.",
        "process.wait()",
        "process.communicate()  # reads its output while it runs",
    ),
    "user": Change(
        "Remove the breakpoint or the prompt: in a job, nobody is there to answer it.",
        "breakpoint()",
        "",
    ),
    "polling": Change(
        "Find out why the wait never ends: a file that is never written, a lock file that a killed "
        "job left behind, a service that is down. Make the loop give up after a while.",
        "while not path.exists():\n    time.sleep(1)",
        "while not path.exists():\n    time.sleep(1)\n    if time.monotonic() > deadline:\n"
        '        raise TimeoutError(f"{path} never appeared")',
    ),
    "exit": Change(
        "Python exits once all threads that are not daemons have ended. Tell the thread to stop "
        "when training is over, or make it a daemon.",
        "threading.Thread(target=work).start()",
        "threading.Thread(target=work, daemon=True).start()",
    ),
    "runtime": Change(
        "Find out what the functions in the input pipeline are waiting for: a queue that is no "
        "longer filled, a service that does not answer, a file on the network. Run the pipeline "
        "by itself.",
        "",
        "for n, batch in enumerate(dataset):\n    print(n)",
    ),
    "graph_wait": Change(
        "Find out what should answer: a queue must be closed when nothing more is coming, and "
        "every worker must run as many steps as the others.",
        "",
        "queue.close()  # a dequeue that waits for more then raises OutOfRangeError",
    ),
    "service": Change(
        "Start the dispatcher of the tf.data service and its workers, and make sure that "
        "distribute() is given the dispatcher's address.",
        "",
        "dispatcher = tf.data.experimental.service.DispatchServer()\nservice=dispatcher.target",
    ),
    "batch": Change(
        "Find out what the input is waiting for: a queue that is no longer filled, or a source "
        "that does not answer. Run the input by itself.",
        "",
        "for n, batch in enumerate(dataset):\n    print(n)",
    ),
}


def change_after(ending: Ending) -> Change:
    """The change for a run that has ended and was not stuck before."""
    if ending.out_of_memory:
        return Change(
            "Give the process more memory, or use a smaller batch, shuffle buffer or cache."
        )
    if not ending.has_failed:
        return Change("Check the end of the program's own output.")
    frame = ending.place or ending.defined_at
    what = f"Fix what failed at {frame.place}" if frame is not None else "Fix what failed"
    if not ending.of_input:
        return Change(f"{what}: the full traceback is in the program's own output.")
    return Change(
        f"{what}. It is part of the input: run the input by itself, without the model, to get "
        f"there sooner and to make sure that all of the data can be read.",
        "",
        "for n, batch in enumerate(dataset):\n    print(n)",
    )


def change_for(stall: Stall) -> Change:
    blamed = stall.blamed
    if blamed is not None and blamed.kind in _OF_WORK:
        return _OF_WORK[blamed.kind]
    if stall.state == ENDLESS and blamed is not None:
        return _REGULAR_EXPRESSION if "regular expression" in blamed.waits_in else _END_THE_LOOP
    if stall.state == SLOW and blamed is not None and blamed.bucket == "compile":
        return _RECURSION if stack_of(blamed.thread).calls_itself else _UNROLLED
    if stall.state == SLOW and blamed is not None and stack_of(blamed.thread).is_inside_tensorflow:
        return _SEE_THE_STEP
    if stall.state == SLOW:
        return _SEE_ITS_LOOP if _is_in_a_while_loop(blamed) else _WAIT_FOR_IT
    if blamed is None or not stall.never_goes_on:
        return _LOOK_LONGER if stall.attached else _LET_IT_RUN
    if blamed.bucket == "communication" and blamed.kind == "peers":
        return _CLUSTER
    return _BY_KIND.get(blamed.kind) or Change(
        "Find out what should end this wait: perhaps a thread that failed, a lock that is acquired "
        "twice, or a server that does not answer. Give the wait a timeout.",
    )


def _is_in_a_while_loop(blamed: Blamed | None) -> bool:
    loop = blamed.thread.loop if blamed is not None and not blamed.sleeps else None
    return loop is not None and loop.word == "while"
