/* A call with something done before and after it, without a frame of Python around it.
 *
 * TensorFlow records the whole stack with each op that it builds, so each frame costs a part of
 * tracing. `around.py` does the same in Python, and says what `before` returns; for a span, see
 * `_time_sheet.h`.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "_time_sheet.h"

typedef struct {
    PyObject_HEAD
    PyObject *call;
    PyObject *before; /* may be None */
} Around;

static PyObject *method_type; /* types.MethodType, which the stable ABI lacks */

static int is_none(PyObject *object) { return object == NULL || object == Py_None; }

static int around_init(PyObject *object, PyObject *arguments, PyObject *named) {
    Around *self = (Around *)object;
    PyObject *call, *before, *old;
    (void)named;
    if (!PyArg_ParseTuple(arguments, "OO", &call, &before)) return -1;
    old = self->call;
    Py_INCREF(call);
    self->call = call;
    Py_XDECREF(old);
    old = self->before;
    Py_INCREF(before);
    self->before = before;
    Py_XDECREF(old);
    return 0;
}

/* What `after` raises takes precedence, as in a `finally` of Python. */
static PyObject *with_after(PyObject *after, PyObject *result) {
    PyObject *type = NULL, *value = NULL, *traceback = NULL, *said;
    int failed = result == NULL;
    if (failed) PyErr_Fetch(&type, &value, &traceback);
    said = PyObject_CallFunctionObjArgs(
        after, failed ? Py_None : result, failed ? Py_True : Py_False, NULL);
    if (said == NULL) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        Py_XDECREF(result);
        return NULL;
    }
    Py_DECREF(said);
    if (failed) PyErr_Restore(type, value, traceback);
    return result;
}

static PyObject *instead(PyObject *plan, PyObject *call, PyObject *arguments, PyObject *named) {
    PyObject *other, *others, *other_named, *after, *result;
    if (!PyArg_ParseTuple(plan, "OOOO", &other, &others, &other_named, &after)) return NULL;
    if (!is_none(other)) call = other;
    if (!is_none(others)) {
        arguments = others;
        named = is_none(other_named) ? NULL : other_named;
    }
    result = PyObject_Call(call, arguments, named);
    return is_none(after) ? result : with_after(after, result);
}

static PyObject *around_call(PyObject *object, PyObject *arguments, PyObject *named) {
    Around *self = (Around *)object;
    PyObject *call = self->call, *before = self->before, *plan, *result;
    if (call == NULL) {
        PyErr_SetString(PyExc_TypeError, "there is nothing to call");
        return NULL;
    }
    if (is_none(before)) return PyObject_Call(call, arguments, named);
    Py_INCREF(call); /* `before` may take us out */
    Py_INCREF(before);
    if (PyTuple_Check(before)) {
        result = timed(before, call, arguments, named);
        Py_DECREF(before);
        Py_DECREF(call);
        return result;
    }
    plan = PyObject_Call(before, arguments, named);
    Py_DECREF(before);
    if (plan == NULL) {
        result = NULL;
    } else if (plan == Py_None) {
        result = PyObject_Call(call, arguments, named);
    } else if (PyTuple_Check(plan)) {
        result = instead(plan, call, arguments, named);
    } else {
        PyErr_SetString(PyExc_TypeError, "`before` must return None or a tuple");
        result = NULL;
    }
    Py_XDECREF(plan);
    Py_DECREF(call);
    return result;
}

static PyObject *around_get(PyObject *self, PyObject *instance, PyObject *owner) {
    (void)owner;
    if (is_none(instance)) {
        Py_INCREF(self);
        return self;
    }
    return PyObject_CallFunctionObjArgs(method_type, self, instance, NULL);
}

static int around_traverse(PyObject *object, visitproc visit, void *arg) {
    Around *self = (Around *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->call);
    Py_VISIT(self->before);
    return 0;
}

static int around_clear(PyObject *object) {
    Around *self = (Around *)object;
    Py_CLEAR(self->call);
    Py_CLEAR(self->before);
    return 0;
}

static void around_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(object);
    around_clear(object);
    release(object);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"call", T_OBJECT, offsetof(Around, call), 0, NULL},
    {"before", T_OBJECT, offsetof(Around, before), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_init, around_init},   {Py_tp_call, around_call},         {Py_tp_descr_get, around_get},
    {Py_tp_clear, around_clear}, {Py_tp_traverse, around_traverse}, {Py_tp_dealloc, around_dealloc},
    {Py_tp_members, members},    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tb_stall_plugin.capture.training._around.Around",
    .basicsize = sizeof(Around),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_around", NULL, -1, NULL};

static PyObject *added(PyObject *module, const char *name, PyType_Spec *wanted) {
    PyObject *type = module == NULL ? NULL : PyType_FromSpec(wanted);
    if (type != NULL && PyModule_AddObjectRef(module, name, type) < 0) Py_CLEAR(type);
    return type;
}

PyMODINIT_FUNC PyInit__around(void) {
    PyObject *types = PyImport_ImportModule("types"), *module, *type;
    if (types == NULL) return NULL;
    method_type = PyObject_GetAttrString(types, "MethodType");
    Py_DECREF(types);
    module = method_type == NULL ? NULL : PyModule_Create(&definition);
    entry_type = added(module, "Entry", &entry_spec);
    sheet_type = entry_type == NULL ? NULL : added(module, "Sheet", &sheet_spec);
    type = sheet_type == NULL ? NULL : added(module, "Around", &spec);
    if (type == NULL) Py_CLEAR(module);
    Py_XDECREF(type);
    return module;
}
