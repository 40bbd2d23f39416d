/* Takes the scalars of an event file whose layout is known: what Python sees of it.
 *
 * A file may hold millions of them, and those of a tag look the same but for time, step and value.
 * Python parses the first of each layout and decides what it is; those that follow are taken here.
 * Whatever is unusual about a record (its layout, a checksum, its time) is left to Python, too.
 * Without this module Python takes them all, slowly; the tests hold the two against each other.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../decode/_wire.h"

/* The same constants stand in event_scalars.py. */
#define LATEST_WALL_S (9223372036854775808.0 / 1e9)
#define MOST_VALUES 64      /* of a record */
#define LONGEST_LAYOUT 4096 /* bytes */
enum { HEADER = 12, CRC = 4 }; /* around the data: its length and the checksum of that; its own */
enum { SUMMARY = 5, VALUE = 1, SIMPLE_VALUE = 2, TENSOR = 8 };
enum { DTYPE = 1, SHAPE = 2, CONTENT = 4, FLOAT = 1 };

typedef struct {
    int64_t column, step;
    double wall_s, value;
} Row;

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
    const uint8_t *values[MOST_VALUES]; /* where they stand, four bytes each */
    size_t count;
    char layout[LONGEST_LAYOUT]; /* all bytes of the summary but those */
    size_t layout_size;
} Scalars;

/* Where a tensor holds a float of no dimensions; NULL for any other. */
static const uint8_t *float_in(Span tensor) {
    const uint8_t *content = NULL;
    bool is_float = false;
    Field field;
    int status;
    while ((status = next_field(&tensor, &field)) > 0) {
        if (field.number == DTYPE && field.type == VARINT) is_float = field.value == FLOAT;
        else if (field.number == SHAPE && field.type == BYTES && !field.size) continue;
        else if (field.number == CONTENT && field.type == BYTES && field.size == 4 && !content)
            content = field.bytes.at;
        else return NULL;
    }
    return status == 0 && is_float ? content : NULL;
}

/* Where a value of a summary holds its number; NULL where that is not a float alone. */
static const uint8_t *number_in(Span value) {
    const uint8_t *number = NULL;
    Field field;
    int status;
    while ((status = next_field(&value, &field)) > 0) {
        bool is_simple = field.number == SIMPLE_VALUE && field.type == FIXED32;
        if (!is_simple && field.number != TENSOR) continue;
        if (number || !(is_simple || field.type == BYTES)) return NULL;
        number = is_simple ? field.bytes.at : float_in(field.bytes);
        if (!number) return NULL;
    }
    return status == 0 ? number : NULL;
}

/* False for a record that is anything but a time, a step and numbers. */
static bool split(Span data, Scalars *found) {
    Field field;
    uint64_t step = 0;
    if (next_field(&data, &field) <= 0 || field.number != 1 || field.type != FIXED64) return false;
    memcpy(&found->wall_s, &field.value, 8);
    if (!(found->wall_s > 0 && found->wall_s < LATEST_WALL_S)) return false; /* NaN is neither */
    take_varint(&data, 2 << 3 | VARINT, &step);
    found->step = (int64_t)step;
    const uint8_t *copied = data.at, *end = data.end;
    if (next_field(&data, &field) <= 0 || field.number != SUMMARY || field.type != BYTES ||
        data.at != end || (size_t)(end - copied) > LONGEST_LAYOUT)
        return false;
    Span summary = field.bytes;
    found->count = found->layout_size = 0;
    while (summary.at != summary.end) {
        if (next_field(&summary, &field) <= 0 || field.number != VALUE || field.type != BYTES ||
            found->count == MOST_VALUES)
            return false;
        const uint8_t *number = number_in(field.bytes);
        if (!number) return false;
        found->values[found->count++] = number;
        memcpy(found->layout + found->layout_size, copied, (size_t)(number - copied));
        found->layout_size += (size_t)(number - copied);
        copied = number + 4;
    }
    memcpy(found->layout + found->layout_size, copied, (size_t)(end - copied));
    found->layout_size += (size_t)(end - copied);
    return found->count > 0;
}

/* ---- all records of a chunk, up to the first unusual one ---- */

typedef struct {
    Row *rows;
    size_t count, capacity;
} Rows;

static bool add_row(Rows *rows, Row row) {
    if (rows->count == rows->capacity) {
        size_t larger = rows->capacity ? rows->capacity * 2 : 64;
        Row *grown = realloc(rows->rows, larger * sizeof *grown);
        if (!grown) {
            PyErr_NoMemory();
            return false;
        }
        rows->rows = grown;
        rows->capacity = larger;
    }
    rows->rows[rows->count++] = row;
    return true;
}

/* The columns of a layout, borrowed; NULL where it is not known, or with a Python error set. */
static PyObject *columns_of(PyObject *layouts, const Scalars *found) {
    PyObject *key = PyBytes_FromStringAndSize(found->layout, (Py_ssize_t)found->layout_size);
    if (!key) return NULL;
    PyObject *columns = PyDict_GetItemWithError(layouts, key);
    Py_DECREF(key);
    if (columns && (!PyTuple_Check(columns) || PyTuple_Size(columns) != (Py_ssize_t)found->count)) {
        PyErr_SetString(PyExc_ValueError, "a layout has a column for each of its values");
        return NULL;
    }
    return columns;
}

static bool add_rows(Rows *rows, const Scalars *found, PyObject *columns) {
    for (size_t i = 0; i < found->count; i++) {
        float value;
        memcpy(&value, found->values[i], 4);
        long long column = PyLong_AsLongLong(PyTuple_GetItem(columns, (Py_ssize_t)i));
        if (column == -1 && PyErr_Occurred()) return false;
        if (!add_row(rows, (Row){column, found->step, found->wall_s, value})) return false;
    }
    return true;
}

static PyObject *take_scalars(PyObject *module, PyObject *args) {
    (void)module;
    const uint8_t *chunk;
    Py_ssize_t size, at;
    PyObject *layouts, *result = NULL;
    if (!PyArg_ParseTuple(args, "y#nO!", &chunk, &size, &at, &PyDict_Type, &layouts)) return NULL;
    if (at < 0 || at > size) {
        PyErr_SetString(PyExc_ValueError, "a place outside of the chunk");
        return NULL;
    }
    Rows rows = {0};
    Scalars found;
    Py_ssize_t records = 0;
    while (size - at >= HEADER + CRC) {
        const uint8_t *header = chunk + at, *data = header + HEADER;
        uint64_t length;
        memcpy(&length, header, 8);
        if (length > (uint64_t)(size - at - HEADER - CRC) || !has_crc(header, 8, header + 8)) break;
        if (!split((Span){data, data + length}, &found)) break;
        PyObject *columns = columns_of(layouts, &found);
        if (!columns && PyErr_Occurred()) goto done;
        if (!columns || !has_crc(data, (size_t)length, data + length)) break;
        if (!add_rows(&rows, &found, columns)) goto done;
        at += (Py_ssize_t)(HEADER + length + CRC);
        records++;
    }
    result = Py_BuildValue("nny#", at, records, rows.count ? (const char *)rows.rows : "",
                           (Py_ssize_t)(rows.count * sizeof *rows.rows));
done:
    free(rows.rows);
    return result;
}

static PyObject *layout_of(PyObject *module, PyObject *args) {
    (void)module;
    const uint8_t *data;
    Py_ssize_t size;
    Scalars found;
    if (!PyArg_ParseTuple(args, "y#", &data, &size)) return NULL;
    if (split((Span){data, data + size}, &found))
        return PyBytes_FromStringAndSize(found.layout, (Py_ssize_t)found.layout_size);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"layout_of", layout_of, METH_VARARGS, "What records have in common; see _scalars.pyi."},
    {"take_scalars", take_scalars, METH_VARARGS, "Take usual scalars; see _scalars.pyi."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_scalars", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__scalars(void) {
    fill_crc_table();
    return PyModule_Create(&definition);
}
