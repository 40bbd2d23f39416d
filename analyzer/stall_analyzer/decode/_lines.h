/* The decoder's hot loop: events of a line, nested as they come, into rows and totals.
 *
 * Bytes are never trusted: each level is bounded by the one above it (_wire.h), numbers are checked
 * before they are added, an event that makes no sense is skipped and counted.
 */
#ifndef STALL_LINES_H
#define STALL_LINES_H

#include "_tables.h"
#include "_wire.h"

/* The same constants stand in columns.py. */
#define TIME_LIMIT_PS ((int64_t)1 << 60)     /* thirteen days; sums of three still fit in int64 */
#define OVERHANG_PS 1000                     /* a child may end so much after its parent */
#define EVENT_LIMIT ((uint64_t)16 << 20)     /* bytes; real events have some hundred at most */
#define TEXT_LIMIT ((size_t)64 << 10)        /* longer texts are cut */
#define UNNAMED_KINDS 4096                   /* ids without a name beyond these share the last one */
#define WINDOW ((size_t)256 << 10)
#define LINE_HEADER_BYTES 20                 /* the longest key and number */

enum { START, DURATION, NAME, PARENT, FOLDED, ROW_COLUMNS };
enum { STAT_EVENT, STAT_VALUE, STAT_KIND, STAT_COLUMNS };
enum { KIND_INT, KIND_DOUBLE, KIND_TEXT, KIND_REF, KIND_NONE };
enum { NO_COLUMN = 255 };
static const size_t row_sizes[ROW_COLUMNS] = {8, 8, 4, 4, 4};
static const size_t stat_sizes[STAT_COLUMNS] = {4, 8, 1};

typedef struct {
    int64_t start_ps, duration_ps;
    int64_t position; /* of its bytes in the file, to read its stats once it has a row */
    uint32_t size;
    int32_t slot;
    bool kept;
} Event;

typedef struct {
    int64_t id;
    int kind;
    uint8_t column;
    uint64_t value;
    Span text;
} Stat;

typedef struct {
    int64_t end_ps;
    int32_t slot;
    int32_t row; /* of the innermost kept event from here outwards, or -1 */
} Frame;

typedef struct {
    int64_t count;
    uint64_t total_ps, self_ps; /* unsigned: damaged files may make them overflow */
} Totals;

typedef struct {
    int64_t stopped_at; /* its end, or where its bytes stopped making sense */
    int64_t good, bad;
    int64_t name_begin, name_end; /* display name in the file; it is written after the events */
} LineResult;

typedef struct {
    Window window, far; /* the second for bytes read out of order */
    IdMap events, stats;
    size_t known_events; /* the first ones of `events`; those after them have no name */
    const int64_t *keep_from_ps, *join_gap_ps;
    const uint32_t *bits;
    const uint8_t *stat_column, *pinned; /* by stat number; by column */
    uint8_t identity_column;
    Table rows, *stat_tables;
    size_t stat_table_count;
    int64_t unnamed_rows_left;
    Stat *found; /* those of the current event that have a column */
    size_t found_count, found_capacity;
    TextMap texts;
    Totals *totals, *line_totals; /* by slot; the second of the current line only */
    size_t totals_capacity;
    int32_t *touched; /* slots with something in line_totals */
    size_t touched_count, touched_capacity;
    Frame *stack;
    size_t depth, stack_capacity;
    size_t line_first_row;
    Stat last_identity; /* of the last row */
    PyThreadState *thread; /* while the GIL is released */
    bool no_memory;
} Reader;

/* ------------------------------------------------------------------ one stat, one event */

static bool parse_stat(Span body, Stat *stat) {
    Field field;
    int status;
    uint64_t id = 0;
    take_varint(&body, 1 << 3 | VARINT, &id);
    *stat = (Stat){.id = (int64_t)id, .kind = KIND_NONE};
    while ((status = next_field(&body, &field)) > 0) {
        int kind = KIND_NONE;
        if (field.type == VARINT) {
            if (field.number == 1) stat->id = (int64_t)field.value;
            if (field.number == 3 || field.number == 4) kind = KIND_INT;
            if (field.number == 7) kind = KIND_REF;
        } else if (field.type == FIXED64) {
            if (field.number == 2) kind = KIND_DOUBLE;
        } else if (field.type == BYTES) {
            if (field.number == 5 || field.number == 6) kind = KIND_TEXT;
        }
        if (kind != KIND_NONE) {
            stat->kind = kind;
            stat->value = field.value;
            stat->text = field.bytes;
        }
    }
    return status == 0;
}

/* Remembers the stat if it has a column. False when its bytes make no sense. */
static bool find_stat(Reader *reader, Span body, bool *pinned) {
    Stat stat;
    if (!parse_stat(body, &stat)) return false;
    int32_t number = id_find(&reader->stats, stat.id);
    stat.column = number < 0 ? NO_COLUMN : reader->stat_column[number];
    if (stat.column == NO_COLUMN) return true;
    if (reader->pinned[stat.column]) *pinned = true;
    if (make_room((void **)&reader->found, reader->found_count, &reader->found_capacity,
                  sizeof stat))
        reader->found[reader->found_count++] = stat;
    else
        reader->no_memory = true;
    return true;
}

/* The slot of an event id; ids that the tables do not name get slots of their own. */
static int32_t slot_of(Reader *reader, int64_t id) {
    int32_t slot = id_find(&reader->events, id);
    if (slot >= 0) return slot;
    size_t last = reader->known_events + UNNAMED_KINDS - 1;
    if (reader->events.count > last) return (int32_t)last;
    if (!id_add(&reader->events, id)) {
        reader->no_memory = true;
        return 0;
    }
    return (int32_t)reader->events.count - 1;
}

enum { BAD = -1, DROPPED = 0, FOUND = 1 };

static int parse_event(Reader *reader, Span body, int64_t shift_ps, Event *event) {
    uint64_t id = 0, offset_bits = 0, duration_bits = 0;
    bool aggregated = false, pinned = false;
    Field field;
    int status;
    reader->found_count = 0;
    take_varint(&body, 1 << 3 | VARINT, &id);
    take_varint(&body, 2 << 3 | VARINT, &offset_bits);
    take_varint(&body, 3 << 3 | VARINT, &duration_bits);
    while ((status = next_field(&body, &field)) > 0) {
        if (field.number == 4 && field.type == BYTES) {
            if (!find_stat(reader, field.bytes, &pinned)) return BAD;
        } else if (field.type == VARINT) {
            if (field.number == 1) id = field.value;
            if (field.number == 2) offset_bits = field.value, aggregated = false;
            if (field.number == 3) duration_bits = field.value;
            if (field.number == 5) aggregated = true; /* takes the place of the offset */
        }
    }
    if (status < 0) return BAD;
    if (aggregated) return DROPPED; /* a sum over many events has no place in time */
    int64_t offset = (int64_t)offset_bits, duration = (int64_t)duration_bits;
    if (offset <= -TIME_LIMIT_PS || offset >= TIME_LIMIT_PS) return BAD;
    if (duration < 0 || duration >= TIME_LIMIT_PS) return BAD;
    int64_t start = shift_ps + offset;
    if (start < 0 || start + duration >= TIME_LIMIT_PS) return BAD;

    int32_t slot = slot_of(reader, (int64_t)id);
    event->start_ps = start;
    event->duration_ps = duration;
    event->slot = slot;
    event->kept = true;
    if (pinned) return FOUND;
    if ((size_t)slot < reader->known_events) {
        int64_t keep_from = reader->keep_from_ps[slot];
        if (keep_from < 0) return DROPPED;
        event->kept = duration >= keep_from;
    } else {
        event->kept = reader->unnamed_rows_left > 0;
        if (event->kept) reader->unnamed_rows_left--;
    }
    return FOUND;
}

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
    for (const Stat *stat = reader->found; stat < reader->found + reader->found_count; stat++) {
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
    for (const Stat *stat = reader->found; stat < reader->found + reader->found_count; stat++)
        if (stat->column == reader->identity_column) identity = *stat;
    return identity;
}

/* Whether the event goes on what the last row of its line began. */
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

/* One pass over the line. Events go straight to add_event while they are in order; with a sorter
 * they are only collected. FAILED means no memory (or a Python error is set). */
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
        if (!window_get(&reader->window, position, wanted, &header, &reader->no_memory))
            return reader->no_memory ? FAILED : DONE;
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
                    return reader->no_memory ? FAILED : DONE;
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
    if (status == UNSORTED) { /* no profiler is known to write such lines: undo, sort, do again */
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
            find_stats_again(reader, event);
            if (reader->no_memory || !add_event(reader, event)) status = FAILED;
        }
        free(sorter.events);
    }
    settle_totals(reader, true);
    return status == DONE;
}

#endif
