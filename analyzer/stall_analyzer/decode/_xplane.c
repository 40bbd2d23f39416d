/* Reads the events of one plane of an XSpace file into columns, as a Python module.
 *
 * Written by hand, because protobuf would build an object for each of millions of events, and
 * refuses files of 2 GiB. Only the hot loop is native (_lines.h), and the tables of names unless
 * they are damaged. Python finds out which planes and lines there are (scan.py); vocabulary.py
 * decides for each name whether its events are kept, folded or dropped. pure.py and scan.py do
 * exactly the same as this module, slowly; the tests compare them, so a change here needs the same
 * change there.
 */
#define PY_SSIZE_T_CLEAN
#define _FILE_OFFSET_BITS 64
#include <Python.h>

#include "_lines.h"

static PyObject *results_of(Reader *reader, PyObject *lines) {
    PyObject *unnamed = PyList_New(0), *texts = PyList_New(0), *totals = NULL, *result = NULL;
    if (!unnamed || !texts) goto done;
    for (size_t i = reader->known_events; i < reader->events.count; i++) {
        PyObject *id = PyLong_FromLongLong(reader->events.ids[i]);
        if (!id || PyList_Append(unnamed, id)) {
            Py_XDECREF(id);
            goto done;
        }
        Py_DECREF(id);
    }
    for (size_t i = 0; i < reader->texts.count; i++) {
        const Text *text = &reader->texts.texts[i];
        const char *begin = text->size ? reader->texts.arena + text->begin : "";
        PyObject *bytes = PyBytes_FromStringAndSize(begin, (Py_ssize_t)text->size);
        if (!bytes || PyList_Append(texts, bytes)) {
            Py_XDECREF(bytes);
            goto done;
        }
        Py_DECREF(bytes);
    }
    totals = PyBytes_FromStringAndSize((const char *)reader->totals,
                                       (Py_ssize_t)(reader->events.count * sizeof(Totals)));
    if (totals) result = PyTuple_Pack(4, lines, unnamed, totals, texts);
done:
    Py_XDECREF(unnamed);
    Py_XDECREF(texts);
    Py_XDECREF(totals);
    return result;
}

static bool fill_ids(IdMap *map, const char *ids, Py_ssize_t size) {
    for (Py_ssize_t i = 0; i + 8 <= size; i += 8) {
        int64_t id;
        memcpy(&id, ids + i, 8);
        if (!id_add(map, id)) return false;
    }
    return true;
}

static bool read_lines(Reader *reader, const LineRange *ranges, Py_ssize_t count, PyObject *lines) {
    for (Py_ssize_t i = 0; i < count; i++) {
        LineResult line;
        reader->thread = PyEval_SaveThread();
        bool ok = read_line(reader, ranges[i], &line);
        PyEval_RestoreThread(reader->thread);
        if (!ok) {
            int error = reader->window.error ? reader->window.error : reader->far.error;
            if (error && !PyErr_Occurred()) {
                errno = error;
                PyErr_SetFromErrno(PyExc_OSError);
            }
            if (!PyErr_Occurred()) PyErr_NoMemory();
            return false;
        }
        PyObject *item = Py_BuildValue("(nLLLLL)", (Py_ssize_t)reader->rows.count,
                                       (long long)line.good, (long long)line.bad,
                                       (long long)line.stopped_at,
                                       (long long)line.name_begin, (long long)line.name_end);
        if (!item || PyList_Append(lines, item) || PyErr_CheckSignals()) {
            Py_XDECREF(item);
            return false;
        }
        Py_DECREF(item);
    }
    return true;
}

static PyObject *read_plane(PyObject *module, PyObject *args) {
    (void)module;
    Reader reader = {0};
    const char *ranges, *event_ids, *keep_from, *join_gap, *bits, *stat_ids, *stat_column,
        *pinned;
    Py_ssize_t ranges_size, event_ids_size, keep_from_size, join_gap_size, bits_size, stat_ids_size,
        stat_column_size, pinned_size;
    unsigned char identity_column;
    PyObject *row_arrays, *stat_arrays, *progress = NULL, *lines = NULL, *result = NULL;
    long long unnamed_rows;
    int fd;
    if (!PyArg_ParseTuple(args, "iy#(y#y#y#y#y#y#y#b)(OO)L|O", &fd, &ranges, &ranges_size,
                          &event_ids, &event_ids_size, &keep_from, &keep_from_size, &join_gap,
                          &join_gap_size, &bits, &bits_size, &stat_ids, &stat_ids_size,
                          &stat_column, &stat_column_size, &pinned, &pinned_size,
                          &identity_column, &row_arrays, &stat_arrays, &unnamed_rows, &progress))
        return NULL;
    if (keep_from_size != event_ids_size || join_gap_size != event_ids_size || bits_size * 2 != event_ids_size ||
        stat_column_size * 8 != stat_ids_size || !PyTuple_Check(stat_arrays) ||
        PyTuple_Size(stat_arrays) != pinned_size || pinned_size >= NO_COLUMN) {
        PyErr_SetString(PyExc_ValueError, "tables of unequal length");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < stat_column_size; i++)
        if ((uint8_t)stat_column[i] != NO_COLUMN && (uint8_t)stat_column[i] >= pinned_size) {
            PyErr_SetString(PyExc_ValueError, "a stat without a column");
            return NULL;
        }
    reader.window = (Window){.fd = fd, .ahead = WINDOW};
    reader.far = (Window){.fd = fd, .ahead = 1};
    reader.known_events = (size_t)event_ids_size / 8;
    reader.keep_from_ps = (const int64_t *)keep_from; /* bytes objects are aligned for int64 */
    reader.join_gap_ps = (const int64_t *)join_gap;
    reader.bits = (const uint32_t *)bits;
    reader.stat_column = (const uint8_t *)stat_column;
    reader.pinned = (const uint8_t *)pinned;
    reader.identity_column = identity_column;
    reader.unnamed_rows_left = unnamed_rows;
    reader.progress = progress;
    reader.stat_table_count = (size_t)pinned_size;
    reader.stat_tables = calloc(reader.stat_table_count + 1, sizeof *reader.stat_tables);
    lines = PyList_New(0);
    if (!lines || !reader.stat_tables || !fill_ids(&reader.events, event_ids, event_ids_size) ||
        !fill_ids(&reader.stats, stat_ids, stat_ids_size) ||
        (reader.known_events && !grow_totals(&reader))) {
        PyErr_NoMemory();
        goto done;
    }
    bool opened = table_open(&reader.rows, row_arrays, ROW_COLUMNS, row_sizes);
    for (size_t i = 0; opened && i < reader.stat_table_count; i++)
        opened = table_open(&reader.stat_tables[i], PyTuple_GetItem(stat_arrays, (Py_ssize_t)i),
                            STAT_COLUMNS, stat_sizes);
    if (!opened) goto done;
    if (!read_lines(&reader, (const LineRange *)ranges, ranges_size / (Py_ssize_t)sizeof(LineRange), lines))
        goto done;
    bool closed = table_resize(&reader.rows, reader.rows.count);
    for (size_t i = 0; closed && i < reader.stat_table_count; i++)
        closed = table_resize(&reader.stat_tables[i], reader.stat_tables[i].count);
    if (closed && (reader.totals_capacity >= reader.events.count || grow_totals(&reader)))
        result = results_of(&reader, lines);
    else if (!PyErr_Occurred())
        PyErr_NoMemory();
done:
    Py_XDECREF(lines);
    free(reader.stat_tables);
    free(reader.window.data);
    free(reader.far.data);
    free(reader.totals);
    free(reader.line_totals);
    free(reader.touched);
    free(reader.stack);
    free(reader.found);
    id_free(&reader.events);
    id_free(&reader.stats);
    text_free(&reader.texts);
    return result;
}

/* Key and name of an entry of a plane's tables, as scan.py reads them; false if it is damaged. */
static bool read_name(Span entry, int64_t *key, Span *name) {
    Span display_name = {NULL, NULL};
    Field field, part;
    int more, more_parts;
    *key = 0;
    *name = display_name;
    while ((more = next_field(&entry, &field)) > 0) {
        if (field.number == 1 && field.type == VARINT) *key = (int64_t)field.value;
        if (field.number != 2 || field.type != BYTES) continue;
        Span parts = field.bytes;
        while ((more_parts = next_field(&parts, &part)) > 0) {
            if (part.number == 2 && part.type == BYTES) *name = part.bytes;
            if (part.number == 4 && part.type == BYTES) display_name = part.bytes;
        }
        if (more_parts < 0) return false;
    }
    if (name->at == name->end) *name = display_name;
    return more == 0;
}

static PyObject *read_names(PyObject *module, PyObject *args) {
    (void)module;
    const char *data;
    Py_ssize_t size, begin, end;
    if (!PyArg_ParseTuple(args, "y#nn", &data, &size, &begin, &end)) return NULL;
    if (begin < 0 || end > size || begin > end) {
        PyErr_SetString(PyExc_ValueError, "not inside of the data");
        return NULL;
    }
    PyObject *entries = PyList_New(0);
    Span rest = {(const uint8_t *)data + begin, (const uint8_t *)data + end}, name;
    Field field;
    int64_t key;
    while (entries) {
        Span next = rest;
        if (next_field(&next, &field) <= 0 || field.type != BYTES) break;
        if ((field.number != 4 && field.number != 5) || !read_name(field.bytes, &key, &name)) break;
        PyObject *text = PyUnicode_DecodeUTF8(name.at ? (const char *)name.at : "", name.end - name.at, "replace");
        PyObject *entry = text ? Py_BuildValue("(innLN)", (int)field.number,
                                               (Py_ssize_t)(field.bytes.at - (const uint8_t *)data),
                                               (Py_ssize_t)(field.bytes.end - (const uint8_t *)data),
                                               (long long)key, text)
                               : NULL;
        if (!entry || PyList_Append(entries, entry)) Py_CLEAR(entries);
        Py_XDECREF(entry);
        rest = next;
    }
    return entries;
}

static PyMethodDef methods[] = {
    {"read_plane", read_plane, METH_VARARGS, "Read the events of one plane; see _xplane.pyi."},
    {"read_names", read_names, METH_VARARGS, "Read entries of a plane's tables; see _xplane.pyi."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_xplane", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

/* Raised with each change of what goes in or comes out: Python then does not use an older build. */
#define INTERFACE 2

PyMODINIT_FUNC PyInit__xplane(void) {
    PyObject *module = PyModule_Create(&definition);
    PyObject *text = PyUnicode_FromString("seed"); /* Python's hash of a text is seeded at random */
    if (!text) PyErr_Clear();
    else hash_seed = (uint64_t)PyObject_Hash(text) ^ (uint64_t)(uintptr_t)text;
    Py_XDECREF(text);
    if (module && PyModule_AddIntConstant(module, "INTERFACE", INTERFACE)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
