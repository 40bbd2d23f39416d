"""What helps a run that stands still: it depends on what it waits in."""

from __future__ import annotations

from stall_analyzer.captures.how_to_capture import CALLBACK_LINES
from stall_analyzer.model.findings import Change
from stall_analyzer.signals.ending.blame import Blamed
from stall_analyzer.signals.ending.python_stacks import stack_of
from stall_analyzer.signals.ending.stall import ENDLESS, SLOW, Stall
from stall_analyzer.signals.ending.waits import WaitKind

ASK_THE_PROCESS = Change(
    "Check whether the process is still running and the event file still growing. If it runs and "
    "the file does not grow, ask the process where it is.",
    "",
    "stall-analyze attach PID    # what each thread is doing, and whether it is stuck\n"
    "# next time, a capture writes that down by itself\n"
    f"{CALLBACK_LINES}",
)
_LOOK_LONGER = Change(
    "Look again, and for longer.", "", "stall-analyze attach PID --seconds 60 --threads"
)
STEPS_PER_EPOCH = Change(
    "Say how many steps an epoch has, or leave out repeat(): Keras restarts the data in each epoch "
    "by itself.",
    "model.fit(dataset.repeat())",
    "model.fit(dataset.repeat(), steps_per_epoch=n // batch_size)",
)
VALIDATION_STEPS = Change(
    "Say how many steps a validation has, or leave out repeat(): Keras restarts the data each time "
    "by itself.",
    "model.fit(data, validation_data=held_out.repeat())",
    "model.fit(data, validation_data=held_out)",
)
_OR_FAIL = ':\n    raise RuntimeError("nobody answers")'
_WAIT_FOR_IT = Change("Wait, or make that code faster: it was at work when the capture ended.")
_SEE_ITS_LOOP = Change(
    "Check whether its loop can end: what its condition needs must come about in the loop. If it "
    "can, wait, or make that code faster.",
    "while error > tolerance:",
    "for _ in range(most_rounds):  # and stop early",
)
_SEE_THE_STEP = Change(
    "Wait, if steps of this model take so long. If not, see whether its input gives anything (a "
    "filter may drop every element), and whether each tf.while_loop in its graph can end.",
    "",
    "next(iter(dataset))  # does it ever come?",
)
_UNROLLED = Change(
    "Wait, if the model is that large. A Python loop in a function that is traced is unrolled: "
    "each round adds its ops to the graph. Loop in the graph instead.",
    "for i in range(n):",
    "for i in tf.range(n):",
)
_RECURSION = Change(
    "Replace the recursion by a loop: while a graph is built, both branches of tf.cond are traced, "
    "so that a function which calls itself there is traced without end.",
    "tf.cond(n <= 0, lambda: 0, lambda: 1 + depth(n - 1))",
    "tf.while_loop(lambda i: i < n, lambda i: (i + 1,), (0,))",
)
# What TensorFlow is at, whether it can end or not.
_OF_WORK: dict[WaitKind, Change] = {
    "endless_data": Change(
        "Say how many steps it has, or give it the data before repeat(): data that repeats has no "
        "end to wait for.",
        "model.evaluate(dataset.repeat())",
        "model.evaluate(dataset)  # or steps=n; elsewhere dataset.take(n)",
    ),
    "dropped": Change(
        "Find out what this stage is given: compare it with its condition, by type and by value. "
        "If "
        "some elements do come through, choose them before repeat(), or from a list of their own.",
        "dataset.repeat().filter(is_wanted)",
        "print(next(iter(dataset)))  # what does is_wanted say to it?\n"
        "dataset.filter(is_wanted).repeat()  # ends with an error, if it is empty",
    ),
    "filling": Change(
        "Wait, or make the buffer smaller: nothing is given before it is full.",
        "dataset.repeat().shuffle(10_000_000)",
        "dataset.shuffle(10_000).repeat()",
    ),
    "xla": Change(
        "Wait for the first step. If it is compiled again and again, give it batches of one shape: "
        "pad them to a few lengths. Or leave XLA out.",
        "@tf.function(jit_compile=True)",
        "@tf.function(reduce_retracing=True)",
    ),
    "graph_loop": Change(
        "Check whether the loop can end: a condition on floating-point numbers may never be met. "
        "Give it a number of rounds. If it can, wait, or make a round faster.",
        "tf.while_loop(is_far, closer, start)",
        "tf.while_loop(is_far, closer, start, maximum_iterations=1000)",
    ),
}
_END_THE_LOOP = Change(
    "Let the loop end: its condition never becomes false. Floating-point numbers are seldom "
    "equal to anything, and a flag that another thread sets needs a wait, not a loop.",
    "while high - low != width:",
    "while high - low > width:",
)
_REGULAR_EXPRESSION = Change(
    "Change the pattern: a repetition inside a repetition can match in more ways than can be "
    "tried. Python 3.11 has possessive quantifiers and atomic groups, which do not go back.",
    r're.match(r"(\w+\s?)+$", text)',
    r're.match(r"(\w++\s?+)+$", text)',
)
_CLUSTER = Change(
    "Start every worker that TF_CONFIG names, with the same list on each and its own "
    "index, and see that they reach each other's ports. A worker that stopped has its own "
    "log: look there for the reason.",
    "",
    'os.environ["TF_CONFIG"] = json.dumps(\n'
    '    {"cluster": {"worker": ["host0:2222", "host1:2222"]},\n'
    '     "task": {"type": "worker", "index": 0}})',
)

_BY_KIND: dict[WaitKind, Change] = {
    "queue": Change(
        "Whoever fills the queue has stopped. Give the wait a timeout, and pass errors of the "
        "filling thread on, so that the run fails instead of hanging.",
        "item = queue.get()",
        "item = queue.get(timeout=60)  # raises queue.Empty",
    ),
    "full_queue": Change(
        "Whoever empties the queue has stopped. Give the wait a timeout, and see what became of "
        "the thread that takes from it.",
        "queue.put(item)",
        "queue.put(item, timeout=60)  # raises queue.Full",
    ),
    "future": Change(
        "The work behind the future does not end: see the other threads. A function in a pool must "
        "not wait for another one of the same pool, which may have no thread left for it.",
        "future.result()",
        "future.result(timeout=60)  # raises TimeoutError",
    ),
    "pool": Change(
        "A worker process was killed, most likely because memory was short, and its task went with "
        "it: multiprocessing.Pool starts another one, but never does the task again. Use fewer "
        "workers or less memory in each, or threads.",
        "Data(workers=8, use_multiprocessing=True)",
        "Data(workers=2, use_multiprocessing=False)",
    ),
    "replaced": Change(
        "See why its workers end: their errors are in the program's output. The pool starts others "
        "in their place, forever. An initializer may fail, or what they import; with 'spawn' they "
        "import the script itself, which must start nothing then.",
        "pool = Pool(8, initializer=init)",
        'if __name__ == "__main__":\n    pool = Pool(8, initializer=init)  # does init() fail?',
    ),
    "event": Change(
        "Find out who should set it: a thread that failed, or never came so far. Give the wait a "
        "timeout.",
        "event.wait()",
        f"if not event.wait(timeout=60){_OR_FAIL}",
    ),
    "lock": Change(
        "Find out who holds the lock: a thread that waits for this one, that failed with it, or "
        "this "
        "thread itself. Give the wait a timeout, and take several locks in one order everywhere.",
        "lock.acquire()",
        f"if not lock.acquire(timeout=60){_OR_FAIL}",
    ),
    "thread": Change(
        "The thread that is waited for does not end: see what it does. Tell it to stop, or give "
        "the wait a timeout.",
        "thread.join()",
        f"thread.join(timeout=60)\nif thread.is_alive(){_OR_FAIL}",
    ),
    "process": Change(
        "Find out what the other process does: it may wait for this one, to read its output say. "
        "Give "
        "the wait a timeout.",
        "process.wait()",
        "process.communicate(timeout=60)  # raises TimeoutExpired, and reads its output",
    ),
    "connection": Change(
        "The process at the other end sends nothing: see whether it lives.",
        "connection.recv()",
        f"if not connection.poll(60){_OR_FAIL}\nconnection.recv()",
    ),
    "socket": Change(
        "The other side does not answer. Check whether it can be reached, and give every "
        "connection "
        "a timeout.",
        "urllib.request.urlopen(url)",
        "urllib.request.urlopen(url, timeout=60)  # sockets: socket.setdefaulttimeout(60)",
    ),
    "file_lock": Change(
        "Another process holds the lock of this file (lsof or /proc/locks say which), or its "
        "machine is gone. Ask for the lock without waiting, and fail or go on without it.",
        "fcntl.flock(file, fcntl.LOCK_EX)",
        "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises BlockingIOError",
    ),
    "open": Change(
        "A named pipe opens only when somebody opens its other end; a network folder, when "
        "its server answers. Write to an ordinary file on a local disk.",
    ),
    "pipe": Change(
        "Find out what the process at the other end of the pipe does: a pipe that is full waits "
        "for its "
        "reader, an empty one for its writer.",
        "process.wait()",
        "process.communicate()  # reads what it writes meanwhile",
    ),
    "user": Change(
        "Take out the breakpoint or the question: nobody is there to answer in a job.",
        "breakpoint()",
        "",
    ),
    "polling": Change(
        "Find out why it does not come: a file that nobody writes, a lock file that a killed job "
        "left "
        "behind, a service that is not there. Let the loop give up after a while.",
        "while not path.exists():\n    time.sleep(1)",
        "while not path.exists():\n    time.sleep(1)\n    if time.monotonic() > deadline:\n"
        '        raise TimeoutError(f"{path} does not come")',
    ),
    "exit": Change(
        "Python exits once all threads that are not daemons have ended. Tell the thread to stop "
        "when training is over, or make it a daemon.",
        "threading.Thread(target=work).start()",
        "threading.Thread(target=work, daemon=True).start()",
    ),
    "runtime": Change(
        "Find out what the functions of the input pipeline wait for: a queue that nobody fills, a "
        "service that does not answer, a network file. Run the pipeline alone.",
        "",
        "for n, batch in enumerate(dataset):\n    print(n)",
    ),
    "graph_wait": Change(
        "Find out who should answer: a queue must be closed when nothing more comes, and every "
        "worker "
        "must make as many steps as the others.",
        "",
        "queue.close()  # a dequeue that waits for more then raises OutOfRangeError",
    ),
    "service": Change(
        "Start the dispatcher of the tf.data service and its workers, and see that their address "
        "is the one given to distribute().",
        "",
        "dispatcher = tf.data.experimental.service.DispatchServer()\nservice=dispatcher.target",
    ),
    "batch": Change(
        "Find out what the input waits for: a queue that nobody fills anymore, or a source that "
        "does "
        "not answer. Run it alone.",
        "",
        "for n, batch in enumerate(dataset):\n    print(n)",
    ),
}


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
        return _LOOK_LONGER if stall.attached else ASK_THE_PROCESS
    if blamed.bucket == "communication" and blamed.kind == "peers":
        return _CLUSTER
    return _BY_KIND.get(blamed.kind) or Change(
        f"Find out who should wake {blamed.subject}: a thread that failed, a lock that is taken "
        "twice, "
        "a server that does not answer. Give the wait a timeout.",
    )


def _is_in_a_while_loop(blamed: Blamed | None) -> bool:
    loop = blamed.thread.loop if blamed is not None and not blamed.sleeps else None
    return loop is not None and loop.word == "while"
