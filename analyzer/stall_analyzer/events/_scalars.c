/* Reads the scalars and histograms of an event file whose layout is known, as a Python module.
 *
 * A file may contain millions of them, and those of a tag differ only in time, step and values.
 * Python parses the first of each layout and decides what it is; those that follow are read here.
 * A record with anything unusual (its layout, a checksum, its time) is also left to Python.
 * Without this module, Python reads them all, slowly; the tests compare the two.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../decode/_wire.h"

/* The same constants are in event_scalars.py. */
#define LATEST_WALL_S (9223372036854775808.0 / 1e9)
#define MOST_VALUES 64      /* of a record */
#define LONGEST_LAYOUT 4096 /* bytes */
enum { HEADER = 12, CRC = 4 }; /* around the data: its length and the checksum of that; its own */
enum { SUMMARY = 5, VALUE = 1, SIMPLE_VALUE = 2, TENSOR = 8 };
enum { DTYPE = 1, SHAPE = 2, CONTENT = 4, FLOAT = 1, DOUBLE = 2 };

typedef struct {
    int64_t column, step;
    double wall_s, value;
} Row;

/* Sums over the histograms of a tag in a chunk: see HistogramSums. */
typedef struct {
    int64_t number, records, zero_run, same_run;
    int64_t at, size; /* of the last one's content in the chunk */
} Histograms;

/* ---- CRC-32C, eight bytes at a time, as TFRecord masks it ---- */

static uint32_t crc_table[8][256];

static void fill_crc_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0);
        crc_table[0][byte] = crc;
    }
    for (int slice = 1; slice < 8; slice++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t crc = crc_table[slice - 1][byte];
            crc_table[slice][byte] = (crc >> 8) ^ crc_table[0][crc & 0xff];
        }
}

static uint32_t masked_crc(const uint8_t *data, size_t size) {
    uint32_t crc = 0xFFFFFFFFu;
    for (; size >= 8; data += 8, size -= 8) {
        uint32_t low, high;
        memcpy(&low, data, 4); /* hosts are little-endian */
        memcpy(&high, data + 4, 4);
        low ^= crc;
        crc = crc_table[7][low & 0xff] ^ crc_table[6][low >> 8 & 0xff] ^
              crc_table[5][low >> 16 & 0xff] ^ crc_table[4][low >> 24] ^
              crc_table[3][high & 0xff] ^ crc_table[2][high >> 8 & 0xff] ^
              crc_table[1][high >> 16 & 0xff] ^ crc_table[0][high >> 24];
    }
    for (; size; data++, size--) crc = (crc >> 8) ^ crc_table[0][(crc ^ *data) & 0xff];
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

static bool has_crc(const uint8_t *data, size_t size, const uint8_t *stored) {
    uint32_t crc;
    memcpy(&crc, stored, 4);
    return crc == masked_crc(data, size);
}

/* ---- one record ---- */

typedef struct {
    double wall_s;
    int64_t step;
    Span values[MOST_VALUES]; /* four bytes each; the content of a histogram */
    size_t count;
    bool is_histogram;
    char layout[LONGEST_LAYOUT]; /* all bytes of the summary but those */
    size_t layout_size;
} Found;

/* The content of a tensor: of a float without dimensions, or of doubles. */
static bool find_content(Span tensor, Span *content, bool *are_doubles) {
    uint64_t dtype = 0;
    bool has_content = false, has_dimensions = false;
    Field field;
    int status;
    while ((status = next_field(&tensor, &field)) > 0) {
        if (field.number == DTYPE && field.type == VARINT) dtype = field.value;
        else if (field.number == SHAPE && field.type == BYTES) has_dimensions |= field.size > 0;
        else if (field.number == CONTENT && field.type == BYTES && field.size && !has_content) {
            *content = field.bytes;
            has_content = true;
        } else return false;
    }
    *are_doubles = dtype == DOUBLE;
    bool is_one_float = dtype == FLOAT && !has_dimensions && content->end - content->at == 4;
    return status == 0 && has_content && (*are_doubles || is_one_float);
}

/* What a value of a summary holds; false where that is neither a float nor doubles alone. */
static bool find_value(Span value, Span *content, bool *are_doubles) {
    bool has_content = false;
    Field field;
    int status;
    *are_doubles = false;
    while ((status = next_field(&value, &field)) > 0) {
        bool is_simple = field.number == SIMPLE_VALUE && field.type == FIXED32;
        if (!is_simple && field.number != TENSOR) continue;
        if (has_content || !(is_simple || field.type == BYTES)) return false;
        if (is_simple) *content = field.bytes;
        else if (!find_content(field.bytes, content, are_doubles)) return false;
        has_content = true;
    }
    return status == 0 && has_content;
}

static bool copy(Found *found, const uint8_t *begin, const uint8_t *end) {
    size_t size = (size_t)(end - begin);
    if (size > LONGEST_LAYOUT - found->layout_size) return false;
    memcpy(found->layout + found->layout_size, begin, size);
    found->layout_size += size;
    return true;
}

/* False for a record that is anything but a time, a step and floats, or one histogram. */
static bool split(Span data, Found *found) {
    Field field;
    uint64_t step = 0;
    if (next_field(&data, &field) <= 0 || field.number != 1 || field.type != FIXED64) return false;
    memcpy(&found->wall_s, &field.value, 8);
    if (!(found->wall_s > 0 && found->wall_s < LATEST_WALL_S)) return false; /* NaN is neither */
    take_varint(&data, 2 << 3 | VARINT, &step);
    found->step = (int64_t)step;
    const uint8_t *copied = data.at, *end = data.end;
    if (next_field(&data, &field) <= 0 || field.number != SUMMARY || field.type != BYTES ||
        data.at != end)
        return false;
    Span summary = field.bytes;
    found->count = found->layout_size = 0;
    found->is_histogram = false;
    while (summary.at != summary.end) {
        if (next_field(&summary, &field) <= 0 || field.number != VALUE || field.type != BYTES ||
            found->count == MOST_VALUES || found->is_histogram)
            return false;
        Span *value = &found->values[found->count++];
        if (!find_value(field.bytes, value, &found->is_histogram)) return false;
        if (found->is_histogram && found->count > 1) return false;
        if (!copy(found, copied, value->at)) return false;
        copied = value->end;
    }
    return found->count > 0 && copy(found, copied, end);
}

/* ---- all records of a chunk, up to the first unusual one ---- */

typedef struct {
    char *bytes;
    size_t size, capacity;
} Rows;

static bool add_row(Rows *rows, const void *row, size_t size) {
    if (rows->size + size > rows->capacity) {
        size_t larger = rows->capacity ? rows->capacity * 2 : 4096;
        char *grown = realloc(rows->bytes, larger);
        if (!grown) {
            PyErr_NoMemory();
            return false;
        }
        rows->bytes = grown;
        rows->capacity = larger;
    }
    memcpy(rows->bytes + rows->size, row, size);
    rows->size += size;
    return true;
}

/* The columns of a layout, borrowed: a tuple, or the number of a histogram. NULL if it is not
 * known, or with a Python error set. One double may be a scalar as well: those are left to Python. */
static PyObject *columns_of(PyObject *layouts, const Found *found) {
    PyObject *key = PyBytes_FromStringAndSize(found->layout, (Py_ssize_t)found->layout_size);
    if (!key) return NULL;
    PyObject *columns = PyDict_GetItemWithError(layouts, key);
    Py_DECREF(key);
    if (!columns || found->is_histogram) return columns && PyLong_Check(columns) ? columns : NULL;
    if (!PyTuple_Check(columns) || PyTuple_Size(columns) != (Py_ssize_t)found->count) {
        PyErr_SetString(PyExc_ValueError, "a layout has a column for each of its values");
        return NULL;
    }
    return columns;
}

static bool add_scalars(Rows *rows, const Found *found, PyObject *columns) {
    for (size_t i = 0; i < found->count; i++) {
        float value;
        memcpy(&value, found->values[i].at, 4);
        long long column = PyLong_AsLongLong(PyTuple_GetItem(columns, (Py_ssize_t)i));
        if (column == -1 && PyErr_Occurred()) return false;
        Row row = {column, found->step, found->wall_s, value};
        if (!add_row(rows, &row, sizeof row)) return false;
    }
    return true;
}

/* Whether all values of a histogram are zero: 1 or 0, or -1 if it has none. histogram_sums.py does
 * the same. */
static int are_zeros(Span content) {
    int found = -1;
    double bucket[3]; /* its edges, and how many values are between them */
    if ((size_t)(content.end - content.at) % sizeof bucket) return -1;
    for (; content.at != content.end; content.at += sizeof bucket) {
        memcpy(bucket, content.at, sizeof bucket);
        if (!(bucket[2] > 0)) continue;
        if (bucket[0] != 0 || bucket[1] != 0) return 0; /* most often already at the first bucket */
        found = 1;
    }
    return found;
}

/* `likely`: where in the rows this tag should be; tags mostly come in the same order again. */
static bool add_histogram(Rows *rows, size_t *likely, const Found *found, PyObject *number,
                          const uint8_t *chunk) {
    long long tag = PyLong_AsLongLong(number);
    if (tag == -1 && PyErr_Occurred()) return false;
    Span content = found->values[0];
    int zeros = are_zeros(content);
    if (zeros < 0) return true; /* another format, or no values at all */
    Histograms *all = (Histograms *)rows->bytes;
    size_t count = rows->size / sizeof *all, i = *likely;
    if (i >= count || all[i].number != tag)
        for (i = 0; i < count && all[i].number != tag; i++) continue;
    if (i == count) {
        if (!add_row(rows, &(Histograms){.number = tag}, sizeof *all)) return false;
        all = (Histograms *)rows->bytes;
    }
    Histograms *mine = &all[i];
    int64_t size = content.end - content.at;
    bool is_same = mine->records && mine->size == size &&
                   !memcmp(chunk + mine->at, content.at, (size_t)size);
    mine->records++;
    mine->zero_run = zeros ? mine->zero_run + 1 : 0;
    mine->same_run = is_same ? mine->same_run + 1 : 1;
    mine->at = content.at - chunk;
    mine->size = size;
    *likely = i + 1;
    return true;
}

static PyObject *take_known(PyObject *module, PyObject *args) {
    (void)module;
    const uint8_t *chunk;
    Py_ssize_t size, at;
    PyObject *layouts, *result = NULL;
    if (!PyArg_ParseTuple(args, "y#nO!", &chunk, &size, &at, &PyDict_Type, &layouts)) return NULL;
    if (at < 0 || at > size) {
        PyErr_SetString(PyExc_ValueError, "a place outside of the chunk");
        return NULL;
    }
    Rows scalars = {0}, histograms = {0};
    size_t likely = 0;
    double first_s = 0, last_s = 0; /* of histograms */
    Found found;
    Py_ssize_t records = 0;
    while (size - at >= HEADER + CRC) {
        const uint8_t *header = chunk + at, *data = header + HEADER;
        uint64_t length;
        memcpy(&length, header, 8);
        if (length > (uint64_t)(size - at - HEADER - CRC) || !has_crc(header, 8, header + 8)) break;
        if (!split((Span){data, data + length}, &found)) break;
        PyObject *columns = columns_of(layouts, &found);
        if (!columns && PyErr_Occurred()) goto done;
        if (!columns) break;
        if (found.is_histogram) { /* its checksum would take longer than all the rest */
            if (!add_histogram(&histograms, &likely, &found, columns, chunk)) goto done;
            if (!last_s || found.wall_s < first_s) first_s = found.wall_s;
            if (found.wall_s > last_s) last_s = found.wall_s;
        } else {
            if (!has_crc(data, (size_t)length, data + length)) break;
            if (!add_scalars(&scalars, &found, columns)) goto done;
        }
        at += (Py_ssize_t)(HEADER + length + CRC);
        records++;
    }
    result = Py_BuildValue("nny#y#dd", at, records, scalars.size ? scalars.bytes : "",
                           (Py_ssize_t)scalars.size, histograms.size ? histograms.bytes : "",
                           (Py_ssize_t)histograms.size, first_s, last_s);
done:
    free(scalars.bytes);
    free(histograms.bytes);
    return result;
}

static PyObject *layout_of(PyObject *module, PyObject *args) {
    (void)module;
    const uint8_t *data;
    Py_ssize_t size;
    Found found;
    if (!PyArg_ParseTuple(args, "y#", &data, &size)) return NULL;
    if (split((Span){data, data + size}, &found))
        return PyBytes_FromStringAndSize(found.layout, (Py_ssize_t)found.layout_size);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"layout_of", layout_of, METH_VARARGS, "What records have in common; see _scalars.pyi."},
    {"take_known", take_known, METH_VARARGS, "Take usual records; see _scalars.pyi."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_scalars", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

/* Raised with each change of what goes in or comes out: Python then does not use an older build. */
#define INTERFACE 2

PyMODINIT_FUNC PyInit__scalars(void) {
    fill_crc_table();
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0) Py_CLEAR(module);
    return module;
}
