/* The decoder's hot loop: events of a line, nested as they come, into rows and totals. */
#ifndef STALL_LINES_H
#define STALL_LINES_H

#include "_events.h"

/* ------------------------------------------------------------------ rows */

static bool room_in(Reader *reader, Table *table) {
    if (table->count < table->capacity) return true;
    PyEval_RestoreThread(reader->thread);
    bool grown = table_resize(table, table->capacity ? table->capacity * 2 : 1024);
    reader->thread = PyEval_SaveThread();
    return grown;
}

/* Stats of an event that joins a row have no place in it: `row` is then -1. Their texts are still
 * numbered, as pure.py does. */
static bool add_stats(Reader *reader, int32_t row) {
    for (size_t i = 0; i < reader->found_count; i++) {
        const Stat *stat = &reader->found[i];
        int64_t value = (int64_t)stat->value;
        if (stat->kind == KIND_NONE) continue;
        if (stat->kind == KIND_REF && (value = id_find(&reader->stats, value)) < 0) continue;
        if (stat->kind == KIND_TEXT) {
            size_t size = (size_t)(stat->text.end - stat->text.at);
            value = text_number(&reader->texts, stat->text.at, size < TEXT_LIMIT ? size : TEXT_LIMIT);
            if (value < 0) return false;
        }
        if (row < 0) continue;
        Table *table = &reader->stat_tables[stat->column];
        if (!room_in(reader, table)) return false;
        CELL(table, int32_t, STAT_EVENT, table->count) = row;
        CELL(table, int64_t, STAT_VALUE, table->count) = value;
        CELL(table, uint8_t, STAT_KIND, table->count) = (uint8_t)stat->kind;
        table->count++;
    }
    return true;
}

static bool grow_totals(Reader *reader) {
    size_t capacity = reader->events.count * 2;
    for (int i = 0; i < 2; i++) {
        Totals **totals = i ? &reader->line_totals : &reader->totals;
        Totals *grown = realloc(*totals, capacity * sizeof **totals);
        if (!grown) return false;
        memset(grown + reader->totals_capacity, 0,
               (capacity - reader->totals_capacity) * sizeof *grown);
        *totals = grown;
    }
    reader->totals_capacity = capacity;
    return true;
}

static Stat identity_of(const Reader *reader) {
    Stat identity = {.kind = KIND_NONE};
    for (size_t i = 0; i < reader->found_count; i++)
        if (reader->found[i].column == reader->identity_column) identity = reader->found[i];
    return identity;
}

/* Whether the event continues the last row of its line. */
static bool goes_on(const Reader *reader, const Event *event, int32_t parent) {
    const Table *rows = &reader->rows;
    if ((size_t)event->slot >= reader->known_events || rows->count == reader->line_first_row)
        return false;
    size_t last = rows->count - 1;
    int64_t gap = event->start_ps - CELL(rows, int64_t, START, last) -
                  CELL(rows, int64_t, DURATION, last);
    Stat identity = identity_of(reader);
    return gap < reader->join_gap_ps[event->slot] &&
           CELL(rows, int32_t, NAME, last) == event->slot &&
           CELL(rows, int32_t, PARENT, last) == parent && identity.kind == KIND_INT &&
           reader->last_identity.kind == KIND_INT &&
           reader->last_identity.value == identity.value;
}

/* Nests the event into those before it on the line; its stats are in reader->found. */
static bool add_event(Reader *reader, const Event *event) {
    int64_t end = event->start_ps + event->duration_ps;
    const Frame *top = NULL;
    while (reader->depth) {
        top = &reader->stack[reader->depth - 1];
        if (event->start_ps < top->end_ps && end <= top->end_ps + OVERHANG_PS) break;
        reader->depth--;
        top = NULL;
    }
    if (top && end > top->end_ps) end = top->end_ps;
    uint64_t duration = (uint64_t)(end - event->start_ps);

    if ((size_t)event->slot >= reader->totals_capacity && !grow_totals(reader)) return false;
    Totals *totals = &reader->line_totals[event->slot];
    if (totals->count++ == 0) {
        if (!make_room((void **)&reader->touched, reader->touched_count, &reader->touched_capacity,
                       sizeof *reader->touched))
            return false;
        reader->touched[reader->touched_count++] = event->slot;
    }
    totals->total_ps += duration;
    totals->self_ps += duration;
    if (top) reader->line_totals[top->slot].self_ps -= duration;

    bool named = (size_t)event->slot < reader->known_events;
    uint32_t bits = named ? reader->bits[event->slot] : 0;
    int32_t row = top ? top->row : -1;
    Table *rows = &reader->rows;
    if (row >= 0) CELL(rows, uint32_t, FOLDED, row) |= bits;
    if (event->kept && goes_on(reader, event, row)) {
        size_t last = rows->count - 1;
        CELL(rows, int64_t, DURATION, last) = end - CELL(rows, int64_t, START, last);
        CELL(rows, uint32_t, FOLDED, last) |= bits;
        row = (int32_t)last;
        if (!add_stats(reader, -1)) return false;
    } else if (event->kept) {
        if (rows->count >= INT32_MAX || !room_in(reader, rows)) return false;
        size_t i = rows->count++;
        CELL(rows, int64_t, START, i) = event->start_ps;
        CELL(rows, int64_t, DURATION, i) = (int64_t)duration;
        CELL(rows, int32_t, NAME, i) = event->slot;
        CELL(rows, int32_t, PARENT, i) = row;
        CELL(rows, uint32_t, FOLDED, i) = bits;
        row = (int32_t)i;
        if (!add_stats(reader, row)) return false;
        reader->last_identity = identity_of(reader);
    }
    if (!make_room((void **)&reader->stack, reader->depth, &reader->stack_capacity,
                   sizeof *reader->stack))
        return false;
    reader->stack[reader->depth++] = (Frame){end, event->slot, row};
    return true;
}

/* ------------------------------------------------------------------ lines */

typedef struct {
    int64_t begin, end, shift_ps;
} LineRange;

static void settle_totals(Reader *reader, bool count_them) {
    for (size_t i = 0; i < reader->touched_count; i++) {
        Totals *line = &reader->line_totals[reader->touched[i]];
        Totals *file = &reader->totals[reader->touched[i]];
        if (count_them) {
            file->count += line->count;
            file->total_ps += line->total_ps;
            file->self_ps += line->self_ps;
        }
        *line = (Totals){0};
    }
    reader->touched_count = 0;
}

/* The line's events, found again and put in order. */
typedef struct {
    Event *events;
    size_t count, capacity;
} Sorter;

enum { FAILED = -1, DONE = 0, UNSORTED = 1 };
enum { CHECK_EVERY = 1 << 16 }; /* events sorted between two checks for signals */

/* False if the call raised, or Ctrl-C was pressed. */
static bool tell_progress(Reader *reader, int64_t position) {
    reader->tell_at = position + TELL_EVERY;
    PyEval_RestoreThread(reader->thread);
    PyObject *answer = reader->progress
                           ? PyObject_CallFunction(reader->progress, "L", (long long)position)
                           : NULL;
    bool goes_on = (answer || !reader->progress) && !PyErr_CheckSignals();
    Py_XDECREF(answer);
    reader->thread = PyEval_SaveThread();
    return goes_on;
}

/* Errors after which no event can be read. */
static bool has_failed(const Reader *reader) {
    return reader->no_memory || reader->window.error || reader->far.error;
}

/* One pass over the line. Events go straight to add_event while they are in order; with a sorter
 * they are only collected. FAILED means no memory, a read error, or that a Python error is set. */
static int walk_line(Reader *reader, LineRange line, LineResult *result, Sorter *sorter) {
    int64_t position = line.begin, last_start = 0, last_duration = TIME_LIMIT_PS;
    Event event;
    *result = (LineResult){0};
    while (position < line.end) {
        result->stopped_at = position;
        Span header, body;
        Field field;
        int64_t left = line.end - position;
        size_t wanted = left < LINE_HEADER_BYTES ? (size_t)left : LINE_HEADER_BYTES;
        if (position >= reader->tell_at && !tell_progress(reader, position)) return FAILED;
        if (!window_get(&reader->window, position, wanted, &header, &reader->no_memory))
            return has_failed(reader) ? FAILED : DONE;
        const uint8_t *first = header.at;
        if (!read_field_header(&header, &field)) return DONE;
        position += header.at - first;
        if (field.size > (uint64_t)(line.end - position)) return DONE;
        if (field.number == 11 && field.type == BYTES) {
            result->name_begin = position;
            result->name_end = position + (int64_t)field.size;
        }
        if (field.number == 4 && field.type == BYTES) {
            int found = BAD;
            if (field.size <= EVENT_LIMIT) {
                if (!window_get(&reader->window, position, (size_t)field.size, &body,
                                &reader->no_memory))
                    return has_failed(reader) ? FAILED : DONE;
                found = parse_event(reader, body, line.shift_ps, &event);
                if (reader->no_memory) return FAILED;
            }
            if (found == BAD) result->bad++;
            else result->good++;
            if (found == FOUND) {
                if (sorter) {
                    event.position = position;
                    event.size = (uint32_t)field.size;
                    if (!make_room((void **)&sorter->events, sorter->count, &sorter->capacity,
                                   sizeof event))
                        return FAILED;
                    sorter->events[sorter->count++] = event;
                } else {
                    if (event.start_ps < last_start ||
                        (event.start_ps == last_start && event.duration_ps > last_duration))
                        return UNSORTED;
                    last_start = event.start_ps;
                    last_duration = event.duration_ps;
                    if (!add_event(reader, &event)) return FAILED;
                }
            }
        }
        position += (int64_t)field.size;
    }
    result->stopped_at = line.end;
    return DONE;
}

static int by_time(const void *left, const void *right) {
    const Event *a = left, *b = right;
    if (a->start_ps != b->start_ps) return a->start_ps < b->start_ps ? -1 : 1;
    if (a->duration_ps != b->duration_ps) return a->duration_ps > b->duration_ps ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

static void find_stats_again(Reader *reader, const Event *event) {
    Span body;
    Field field;
    bool pinned;
    reader->found_count = 0;
    if (!event->kept || !window_get(&reader->far, event->position, event->size, &body,
                                    &reader->no_memory))
        return;
    while (next_field(&body, &field) > 0)
        if (field.number == 4 && field.type == BYTES) find_stat(reader, field.bytes, &pinned);
}

static bool read_line(Reader *reader, LineRange line, LineResult *result) {
    size_t first_row = reader->line_first_row = reader->rows.count;
    int64_t unnamed_rows_left = reader->unnamed_rows_left;
    reader->depth = 0;
    int status = walk_line(reader, line, result, NULL);
    if (status == UNSORTED) { /* no known profiler writes such lines: undo, sort, start over */
        reader->rows.count = first_row;
        for (size_t i = 0; i < reader->stat_table_count; i++) {
            Table *table = &reader->stat_tables[i];
            while (table->count && (size_t)CELL(table, int32_t, STAT_EVENT, table->count - 1) >= first_row)
                table->count--;
        }
        reader->unnamed_rows_left = unnamed_rows_left;
        reader->depth = 0;
        settle_totals(reader, false);
        Sorter sorter = {0};
        status = walk_line(reader, line, result, &sorter);
        if (sorter.count) qsort(sorter.events, sorter.count, sizeof *sorter.events, by_time);
        for (size_t i = 0; i < sorter.count && status == DONE; i++) {
            const Event *event = &sorter.events[i];
            if (i % CHECK_EVERY == 0 && !tell_progress(reader, line.end)) status = FAILED;
            find_stats_again(reader, event);
            if (status == FAILED || has_failed(reader) || !add_event(reader, event)) status = FAILED;
        }
        free(sorter.events);
    }
    settle_totals(reader, true);
    return status == DONE;
}

#endif
