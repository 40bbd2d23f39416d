/* SIGTERM ends the process in the end, even if no Python runs anymore.
 *
 * Python's own handler only takes note of a signal; the rest needs the interpreter lock, which C
 * code may hold forever. Without a handler, SIGTERM would have ended such a process at once. So a
 * handler goes in front of Python's and sets one of the kernel's timers, which needs no Python: when
 * it expires, SIGTERM is sent once more and finds the default action.
 */
#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <signal.h>
#include <time.h>

static timer_t timer;
static int has_timer = 0;
static double heard_within_s = 0;
static struct sigaction pythons;

static void set_timer(double seconds) {
    struct itimerspec due = {{0, 0}, {0, 0}};
    due.it_value.tv_sec = (time_t)seconds;
    due.it_value.tv_nsec = (long)((seconds - (double)due.it_value.tv_sec) * 1e9);
    timer_settime(timer, 0, &due, NULL);
}

static void handle(int number, siginfo_t *info, void *context) {
    int before = errno;
    if (info != NULL && info->si_code == SI_TIMER && info->si_value.sival_ptr == &timer) {
        signal(number, SIG_DFL);
        raise(number); /* blocked in here: it takes effect when this returns */
    } else {
        set_timer(heard_within_s);
        if (pythons.sa_flags & SA_SIGINFO) {
            pythons.sa_sigaction(number, info, context);
        } else {
            pythons.sa_handler(number);
        }
    }
    errno = before;
}

static PyObject *put_in(PyObject *self, PyObject *arguments) {
    struct sigaction ours;
    int number;
    double seconds;
    if (!PyArg_ParseTuple(arguments, "id", &number, &seconds)) return NULL;
    if (!has_timer) {
        struct sigevent event = {0};
        event.sigev_notify = SIGEV_SIGNAL;
        event.sigev_signo = number;
        event.sigev_value.sival_ptr = &timer;
        if (timer_create(CLOCK_MONOTONIC, &event, &timer)) return PyErr_SetFromErrno(PyExc_OSError);
        has_timer = 1;
    }
    heard_within_s = seconds;
    if (sigaction(number, NULL, &ours)) return PyErr_SetFromErrno(PyExc_OSError);
    if (!(ours.sa_flags & SA_SIGINFO) || ours.sa_sigaction != handle) {
        pythons = ours;
        ours.sa_flags |= SA_SIGINFO;
        ours.sa_sigaction = handle;
        if (sigaction(number, &ours, NULL)) return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

static PyObject *put_off(PyObject *self, PyObject *arguments) {
    double seconds;
    if (!PyArg_ParseTuple(arguments, "d", &seconds)) return NULL;
    if (has_timer) set_timer(seconds);
    Py_RETURN_NONE;
}

static PyObject *forget(PyObject *self, PyObject *unused) {
    has_timer = 0;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"put_in", put_in, METH_VARARGS, "Puts our handler for a signal in front of Python's."},
    {"put_off", put_off, METH_VARARGS, "Puts the end off to this many seconds from now; 0: forever."},
    {"forget", forget, METH_NOARGS, "Forgets the timer, which a forked child does not have."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_deadline", NULL, -1, methods};

PyMODINIT_FUNC PyInit__deadline(void) { return PyModule_Create(&module); }
