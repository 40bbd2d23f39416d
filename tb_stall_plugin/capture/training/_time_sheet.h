/* A time sheet: at any instant, one entry is on top, and the time belongs to it.
 *
 * Python between two steps costs several times what it takes by itself, because it finds nothing in
 * the caches and lets the threads of TensorFlow fall asleep. `time_sheet.py` does the same in
 * Python, and says what each name means.
 */
typedef struct {
    PyObject_HEAD
    long long rank, row_ns, count;
} Entry;

typedef struct {
    PyObject_HEAD
    PyObject *clock_ns, *top, *below;
    long long since_ns;
    unsigned long long thread;
} Sheet;

static PyObject *entry_type, *sheet_type;

static int is_entry(PyObject *object) {
    return object != NULL && PyObject_TypeCheck(object, (PyTypeObject *)entry_type);
}

/* Gives the time since the last call to the entry on top. */
static int time_passes(Sheet *self) {
    PyObject *now;
    long long now_ns;
    if (self->clock_ns == NULL || !is_entry(self->top)) {
        PyErr_SetString(PyExc_TypeError, "a time sheet needs a clock and entries");
        return -1;
    }
    now = PyObject_CallObject(self->clock_ns, NULL);
    if (now == NULL) return -1;
    now_ns = PyLong_AsLongLong(now);
    Py_DECREF(now);
    if (now_ns == -1 && PyErr_Occurred()) return -1;
    ((Entry *)self->top)->row_ns += now_ns - self->since_ns;
    self->since_ns = now_ns;
    return 0;
}

static int enter(Sheet *self, PyObject *entry) {
    PyObject *before;
    if (!is_entry(entry)) {
        PyErr_SetString(PyExc_TypeError, "only entries can be entered");
        return -1;
    }
    if (time_passes(self) < 0 || PyList_Append(self->below, self->top) < 0) return -1;
    before = self->top;
    Py_INCREF(entry);
    self->top = entry;
    Py_DECREF(before);
    ((Entry *)entry)->count++;
    return 0;
}

static int leave(Sheet *self) {
    Py_ssize_t last = self->below == NULL ? -1 : PyList_Size(self->below) - 1;
    PyObject *left, *below;
    if (last < 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_IndexError, "nothing was entered");
        return -1;
    }
    if (time_passes(self) < 0) return -1;
    below = PyList_GetItem(self->below, last);
    if (below == NULL) return -1;
    Py_INCREF(below);
    left = self->top;
    self->top = below;
    Py_DECREF(left);
    return PyList_SetSlice(self->below, last, last + 1, NULL);
}

static PyObject *sheet_enter(PyObject *self, PyObject *entry) {
    if (enter((Sheet *)self, entry) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *sheet_leave(PyObject *self, PyObject *outcome) {
    (void)outcome;
    if (leave((Sheet *)self) < 0) return NULL;
    Py_RETURN_NONE;
}

/* The call of a span: a tuple of a sheet and an entry. */
static PyObject *timed(PyObject *span, PyObject *call, PyObject *arguments, PyObject *named) {
    PyObject *object, *entry, *type, *value, *traceback, *result;
    Sheet *sheet;
    if (!PyArg_ParseTuple(span, "O!O!", sheet_type, &object, entry_type, &entry)) return NULL;
    sheet = (Sheet *)object;
    if (sheet->thread != PyThread_get_thread_ident() || !is_entry(sheet->top) ||
        ((Entry *)sheet->top)->rank >= ((Entry *)entry)->rank)
        return PyObject_Call(call, arguments, named);
    if (enter(sheet, entry) < 0) return NULL;
    result = PyObject_Call(call, arguments, named);
    PyErr_Fetch(&type, &value, &traceback);
    if (leave(sheet) < 0) { /* takes precedence, as in a `finally` of Python */
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        Py_XDECREF(result);
        return NULL;
    }
    PyErr_Restore(type, value, traceback);
    return result;
}

static int entry_init(PyObject *object, PyObject *arguments, PyObject *named) {
    (void)named;
    return PyArg_ParseTuple(arguments, "L", &((Entry *)object)->rank) ? 0 : -1;
}

static int sheet_init(PyObject *object, PyObject *arguments, PyObject *named) {
    Sheet *self = (Sheet *)object;
    (void)named;
    if (self->below != NULL) {
        PyErr_SetString(PyExc_TypeError, "a time sheet is made once");
        return -1;
    }
    if (!PyArg_ParseTuple(arguments, "OO!", &self->clock_ns, entry_type, &self->top)) return -1;
    Py_INCREF(self->clock_ns);
    Py_INCREF(self->top);
    self->below = PyList_New(0);
    return self->below == NULL ? -1 : 0;
}

static int sheet_traverse(PyObject *object, visitproc visit, void *arg) {
    Sheet *self = (Sheet *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->clock_ns);
    Py_VISIT(self->top);
    Py_VISIT(self->below);
    return 0;
}

static int sheet_clear(PyObject *object) {
    Sheet *self = (Sheet *)object;
    Py_CLEAR(self->clock_ns);
    Py_CLEAR(self->top);
    Py_CLEAR(self->below);
    return 0;
}

static void sheet_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(object);
    sheet_clear(object);
    release(object);
    Py_DECREF(type);
}

static PyMemberDef entry_members[] = {
    {"rank", T_LONGLONG, offsetof(Entry, rank), 0, NULL},
    {"row_ns", T_LONGLONG, offsetof(Entry, row_ns), 0, NULL},
    {"count", T_LONGLONG, offsetof(Entry, count), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMemberDef sheet_members[] = {
    {"clock_ns", T_OBJECT_EX, offsetof(Sheet, clock_ns), READONLY, NULL},
    {"top", T_OBJECT_EX, offsetof(Sheet, top), 0, NULL},
    {"below", T_OBJECT_EX, offsetof(Sheet, below), READONLY, NULL},
    {"since_ns", T_LONGLONG, offsetof(Sheet, since_ns), 0, NULL},
    {"thread", T_ULONGLONG, offsetof(Sheet, thread), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef sheet_methods[] = {
    {"enter", sheet_enter, METH_O, NULL},
    {"leave", sheet_leave, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot entry_slots[] = {
    {Py_tp_init, entry_init}, {Py_tp_members, entry_members}, {0, NULL}};

static PyType_Slot sheet_slots[] = {
    {Py_tp_init, sheet_init},       {Py_tp_traverse, sheet_traverse}, {Py_tp_clear, sheet_clear},
    {Py_tp_dealloc, sheet_dealloc}, {Py_tp_members, sheet_members},   {Py_tp_methods, sheet_methods},
    {0, NULL},
};

static PyType_Spec entry_spec = {
    .name = "tb_stall_plugin.capture.training._around.Entry",
    .basicsize = sizeof(Entry),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = entry_slots,
};

static PyType_Spec sheet_spec = {
    .name = "tb_stall_plugin.capture.training._around.Sheet",
    .basicsize = sizeof(Sheet),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = sheet_slots,
};
