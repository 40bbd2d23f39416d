/* The native decoder under libFuzzer: any bytes as the lines of a plane, any tables, and memory and
 * disks that fail at any moment. Whatever they are, read_plane returns a result or raises.
 *
 * The first bytes of an input choose what is given beside the file:
 *   0  the allocation that fails, 0 for none     3  rows for events without a name
 *   1  the read that fails, 0 for none           4  where the file is divided into two lines
 *   2  how many ids of events are known          5  how the events are kept and folded
 */
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long failing_allocation, failing_read;

static bool is_due(long *count) { return *count > 0 && --*count == 0; }

static void *fuzzed_calloc(size_t count, size_t size) {
    return is_due(&failing_allocation) ? NULL : calloc(count, size);
}

static void *fuzzed_realloc(void *old, size_t size) {
    return is_due(&failing_allocation) ? NULL : realloc(old, size);
}

static int fuzzed_resize(PyObject *array, Py_ssize_t size) {
    if (!is_due(&failing_allocation)) return PyByteArray_Resize(array, size);
    PyErr_NoMemory();
    return -1;
}

static ssize_t fuzzed_pread(int fd, void *into, size_t size, off_t at) {
    if (!is_due(&failing_read)) return pread(fd, into, size, at);
    errno = EIO;
    return -1;
}

#define WINDOW ((size_t)64) /* small, so that small files are read in several pieces … */
#define DIRECT_IDS 16       /* … and ids are hashed */
#define calloc fuzzed_calloc
#define realloc fuzzed_realloc
#define PyByteArray_Resize fuzzed_resize
#define pread fuzzed_pread
#include "_xplane.c"
#undef calloc
#undef realloc
#undef PyByteArray_Resize
#undef pread

enum { OPTIONS = 6, STATS = 8, COLUMNS = 3 };

static int file;

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count, (void)arguments;
    Py_InitializeEx(0);
    file = memfd_create("fuzz", 0);
    return file < 0;
}

static PyObject *columns(int count) {
    PyObject *arrays = PyTuple_New(count);
    for (int i = 0; i < count; i++) PyTuple_SetItem(arrays, i, PyByteArray_FromStringAndSize("", 0));
    return arrays;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < OPTIONS) return 0;
    const uint8_t *options = data;
    data += OPTIONS, size -= OPTIONS;
    if (ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size) abort();

    int known = options[2] % 65;
    int64_t ids[64], keep_from[64], join_gap[64], stat_ids[STATS];
    uint32_t bits[64];
    char stat_column[STATS], pinned[COLUMNS] = {0, 1, 0};
    for (int i = 0; i < known; i++) {
        ids[i] = i < 60 ? i : (int64_t)i << 40;
        keep_from[i] = (i + options[5]) % 3 - 1; /* dropped, kept, kept from a picosecond on */
        join_gap[i] = (i ^ options[5]) % 4 ? 0 : 1000;
        bits[i] = 1u << i % 31;
    }
    for (int i = 0; i < STATS; i++) {
        stat_ids[i] = i;
        stat_column[i] = (char)(i % 4 < COLUMNS ? i % 4 : NO_COLUMN);
    }
    int64_t cut = (int64_t)(size * options[4] / 256);
    LineRange lines[2] = {{0, cut, 0}, {cut, (int64_t)size, options[5] * 1000}};

    PyObject *rows = columns(ROW_COLUMNS), *stats = PyTuple_New(COLUMNS);
    for (int i = 0; i < COLUMNS; i++) PyTuple_SetItem(stats, i, columns(STAT_COLUMNS));
    Py_ssize_t wide = known * 8;
    PyObject *arguments = Py_BuildValue(
        "iy#(y#y#y#y#y#y#y#b)(OO)L", file, (char *)lines, (Py_ssize_t)sizeof lines, (char *)ids, wide,
        (char *)keep_from, wide, (char *)join_gap, wide, (char *)bits, wide / 2, (char *)stat_ids,
        (Py_ssize_t)sizeof stat_ids, stat_column, (Py_ssize_t)sizeof stat_column, pinned,
        (Py_ssize_t)sizeof pinned, options[5] % COLUMNS, rows, stats, (long long)options[3]);
    failing_allocation = options[0];
    failing_read = options[1];
    PyObject *result = arguments ? read_plane(NULL, arguments) : NULL;
    failing_allocation = failing_read = 0;
    if (!result && !PyErr_Occurred()) abort(); /* it must say why */
    if (result && PyErr_Occurred()) abort();
    PyErr_Clear();
    Py_XDECREF(result);
    Py_XDECREF(arguments);
    Py_DECREF(rows);
    Py_DECREF(stats);
    return 0;
}
