/* One event and its stats, from bytes to numbers; and the state that reading a plane carries along.
 *
 * Bytes are never trusted: each level is bounded by the one above it (_wire.h), numbers are checked
 * before they are added, an event that makes no sense is skipped and counted.
 */
#ifndef STALL_EVENTS_H
#define STALL_EVENTS_H

#include "_tables.h"
#include "_wire.h"

/* The same constants are in event_columns.py. */
#define TIME_LIMIT_PS ((int64_t)1 << 60)     /* thirteen days; sums of three still fit in int64 */
#define OVERHANG_PS 1000                     /* a child may end this much after its parent */
#define EVENT_LIMIT ((uint64_t)16 << 20)     /* bytes; real events have a few hundred at most */
#define TEXT_LIMIT ((size_t)64 << 10)        /* longer texts are cut */
#define UNNAMED_KINDS 4096                   /* further ids without a name share the last one */
#ifndef WINDOW
#define WINDOW ((size_t)256 << 10)
#endif
#define TELL_EVERY ((int64_t)4 << 20)        /* bytes between two calls of `progress` */
#define LINE_HEADER_BYTES 20                 /* room for the longest key and number */

enum { START, DURATION, NAME, PARENT, FOLDED, ROW_COLUMNS };
enum { STAT_EVENT, STAT_VALUE, STAT_KIND, STAT_COLUMNS };
enum { KIND_INT, KIND_DOUBLE, KIND_TEXT, KIND_REF, KIND_NONE };
enum { NO_COLUMN = 255 };
static const size_t row_sizes[ROW_COLUMNS] = {8, 8, 4, 4, 4};
static const size_t stat_sizes[STAT_COLUMNS] = {4, 8, 1};

typedef struct {
    int64_t start_ps, duration_ps;
    int64_t position; /* where its bytes are in the file, to read its stats once it has a row */
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
    int32_t row; /* of the innermost kept event from here outward, or -1 */
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
    size_t known_events; /* the first of `events`; the others have no name */
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
    PyObject *progress;    /* called with the current position in the file */
    int64_t tell_at;       /* the position at which it is called next */
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

/* The slot of an event id; ids that the tables do not name get their own slots. */
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
            if (field.number == 5) aggregated = true; /* replaces the offset */
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

#endif
