/* The three containers of the decoder: ids to numbers, texts to numbers, and columns that grow. */
#ifndef STALL_TABLES_H
#define STALL_TABLES_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for one more item; doubles, so that appending n items costs O(n). */
static bool make_room(void **items, size_t count, size_t *capacity, size_t item_size) {
    if (count < *capacity) return true;
    size_t larger = *capacity ? *capacity * 2 : 64;
    void *grown = realloc(*items, larger * item_size);
    if (!grown) return false;
    *items = grown;
    *capacity = larger;
    return true;
}

/* Differs in each process, so that nobody can write a file whose ids or texts all fall into one
 * slot. Results never depend on it, because ids and texts are numbered in order of appearance. */
static uint64_t hash_seed;

static inline uint64_t mix(uint64_t key) {
    key ^= hash_seed;
    key = (key ^ (key >> 32)) * 0x9E3779B97F4A7C15u;
    key = (key ^ (key >> 29)) * 0xD6E8FEB86659FD93u;
    return key >> 32;
}

/* ---- ids: int64 -> 0, 1, 2 … in order of insertion ---- */

/* Ids are small as a rule and are then looked up directly; any others are hashed (linear probing,
 * at most half full). */
#ifndef DIRECT_IDS
#define DIRECT_IDS 16384
#endif

typedef struct {
    int32_t *direct; /* number + 1 of ids below DIRECT_IDS */
    int64_t *ids; /* by number */
    size_t count, capacity;
    int32_t *slots; /* number + 1, 0 = free; their count is a power of two */
    size_t slot_count;
} IdMap;

static inline int32_t id_find(const IdMap *map, int64_t id) {
    if (!map->count) return -1;
    if ((uint64_t)id < DIRECT_IDS) return map->direct[id] - 1;
    size_t mask = map->slot_count - 1;
    for (size_t i = mix((uint64_t)id) & mask; map->slots[i]; i = (i + 1) & mask)
        if (map->ids[map->slots[i] - 1] == id) return map->slots[i] - 1;
    return -1;
}

static void id_place(IdMap *map, int32_t number) {
    size_t mask = map->slot_count - 1, i = mix((uint64_t)map->ids[number]) & mask;
    while (map->slots[i]) i = (i + 1) & mask;
    map->slots[i] = number + 1;
}

static bool id_add(IdMap *map, int64_t id) { /* the caller knows that it is new */
    if (!map->direct && !(map->direct = calloc(DIRECT_IDS, sizeof *map->direct))) return false;
    if (!make_room((void **)&map->ids, map->count, &map->capacity, sizeof *map->ids)) return false;
    map->ids[map->count] = id;
    if (map->count * 2 >= map->slot_count) {
        size_t larger = map->slot_count ? map->slot_count * 2 : 128;
        int32_t *slots = calloc(larger, sizeof *slots);
        if (!slots) return false;
        free(map->slots);
        map->slots = slots;
        map->slot_count = larger;
        for (size_t i = 0; i < map->count; i++) id_place(map, (int32_t)i);
    }
    id_place(map, (int32_t)map->count++);
    if ((uint64_t)id < DIRECT_IDS) map->direct[id] = (int32_t)map->count;
    return true;
}

static void id_free(IdMap *map) {
    free(map->direct);
    free(map->ids);
    free(map->slots);
}

/* ---- texts: the same for byte strings, all of them in one arena ---- */

typedef struct {
    size_t begin, size;
    uint64_t hash;
} Text;

typedef struct {
    Text *texts;
    size_t count, capacity;
    char *arena;
    size_t arena_used, arena_capacity;
    int32_t *slots;
    size_t slot_count;
} TextMap;

static bool text_rehash(TextMap *map) {
    size_t larger = map->slot_count ? map->slot_count * 2 : 128;
    int32_t *slots = calloc(larger, sizeof *slots);
    if (!slots) return false;
    for (size_t number = 0; number < map->count; number++) {
        size_t i = mix(map->texts[number].hash) & (larger - 1);
        while (slots[i]) i = (i + 1) & (larger - 1);
        slots[i] = (int32_t)number + 1;
    }
    free(map->slots);
    map->slots = slots;
    map->slot_count = larger;
    return true;
}

static int32_t text_number(TextMap *map, const uint8_t *bytes, size_t size) { /* -1: no memory */
    uint64_t hash = 0xCBF29CE484222325u ^ hash_seed;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001B3u;
    if (map->count * 2 >= map->slot_count && !text_rehash(map)) return -1;
    size_t mask = map->slot_count - 1, i = mix(hash) & mask;
    for (; map->slots[i]; i = (i + 1) & mask) {
        const Text *text = &map->texts[map->slots[i] - 1];
        if (text->hash == hash && text->size == size &&
            (size == 0 || memcmp(map->arena + text->begin, bytes, size) == 0))
            return map->slots[i] - 1;
    }
    if (!make_room((void **)&map->texts, map->count, &map->capacity, sizeof *map->texts)) return -1;
    while (map->arena_used + size > map->arena_capacity)
        if (!make_room((void **)&map->arena, map->arena_capacity, &map->arena_capacity, 1))
            return -1;
    if (size) memcpy(map->arena + map->arena_used, bytes, size);
    map->texts[map->count] = (Text){map->arena_used, size, hash};
    map->arena_used += size;
    map->slots[i] = (int32_t)map->count + 1;
    return (int32_t)map->count++;
}

static void text_free(TextMap *map) {
    free(map->texts);
    free(map->arena);
    free(map->slots);
}

/* ---- columns: the caller's bytearrays, appended to in step; numpy reads them without a copy ---- */

enum { MAX_COLUMNS = 5 };

typedef struct {
    int columns;
    size_t count, capacity; /* rows */
    size_t item_size[MAX_COLUMNS];
    PyObject *array[MAX_COLUMNS]; /* borrowed from the caller's tuple */
    char *data[MAX_COLUMNS];
} Table;

static bool table_resize(Table *table, size_t rows) { /* needs the GIL */
    for (int i = 0; i < table->columns; i++) {
        if (PyByteArray_Resize(table->array[i], (Py_ssize_t)(rows * table->item_size[i]))) return false;
        table->data[i] = PyByteArray_AsString(table->array[i]);
    }
    table->capacity = rows;
    return true;
}

static bool table_open(Table *table, PyObject *arrays, int columns, const size_t *item_size) {
    if (!PyTuple_Check(arrays) || PyTuple_Size(arrays) != columns) {
        PyErr_SetString(PyExc_TypeError, "a table is a tuple of bytearrays, one for each column");
        return false;
    }
    table->columns = columns;
    for (int i = 0; i < columns; i++) {
        PyObject *array = PyTuple_GetItem(arrays, i);
        if (!PyByteArray_Check(array)) {
            PyErr_SetString(PyExc_TypeError, "a column is a bytearray");
            return false;
        }
        size_t rows = (size_t)PyByteArray_Size(array) / item_size[i];
        if (i && rows != table->count) {
            PyErr_SetString(PyExc_ValueError, "columns of unequal length");
            return false;
        }
        table->item_size[i] = item_size[i];
        table->array[i] = array;
        table->data[i] = PyByteArray_AsString(array);
        table->count = table->capacity = rows;
    }
    return true;
}

#define CELL(table, type, column, row) (((type *)(table)->data[column])[row])

#endif
