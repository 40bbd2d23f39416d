/* Protobuf's wire format over a file that is never read whole.
 *
 * A Span is a piece of memory that nobody reads past; every level of a message is bounded by the
 * Span of the level above it. A Window is the part of the file that is in memory right now.
 */
#ifndef STALL_WIRE_H
#define STALL_WIRE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <io.h>
static int64_t read_at(int fd, void *into, size_t size, int64_t position) {
    return _lseeki64(fd, position, SEEK_SET) < 0 ? -1 : _read(fd, into, (unsigned)size);
}
#else
#include <unistd.h>
static int64_t read_at(int fd, void *into, size_t size, int64_t position) {
    int64_t got;
    do {
        got = pread(fd, into, size, (off_t)position);
    } while (got < 0 && errno == EINTR);
    return got;
}
#endif

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

typedef struct {
    const uint8_t *at, *end;
} Span;

typedef struct {
    uint64_t number;
    int type;
    uint64_t value; /* of a VARINT or FIXED64 */
    Span bytes;     /* of BYTES, set by next_field only */
    uint64_t size;  /* bytes of payload that follow the header */
} Field;

static inline bool read_varint(Span *span, uint64_t *value) {
    uint64_t result = 0;
    if (span->at < span->end && *span->at < 0x80) { /* most numbers are a single byte */
        *value = *span->at++;
        return true;
    }
    for (int shift = 0; shift <= 63 && span->at < span->end; shift += 7) {
        uint8_t byte = *span->at++;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return true;
        }
    }
    return false; /* cut off, or longer than ten bytes */
}

/* Reads the key and the value or length after it, but no payload. */
static inline bool read_field_header(Span *span, Field *field) {
    uint64_t key;
    if (!read_varint(span, &key)) return false;
    field->number = key >> 3;
    field->type = (int)(key & 7);
    field->value = field->size = 0;
    if (field->number == 0) return false;
    switch (field->type) {
    case VARINT: return read_varint(span, &field->value);
    case BYTES: return read_varint(span, &field->size);
    case FIXED64: field->size = 8; return true;
    case FIXED32: field->size = 4; return true;
    default: return false;
    }
}

/* 1: a field was read; 0: the span is used up; -1: its bytes make no sense. */
static inline int next_field(Span *span, Field *field) {
    if (span->at == span->end) return 0;
    if (!read_field_header(span, field)) return -1;
    if (field->size > (uint64_t)(span->end - span->at)) return -1;
    if (field->type == FIXED64) memcpy(&field->value, span->at, 8); /* hosts are little-endian */
    field->bytes.at = span->at;
    span->at += field->size;
    field->bytes.end = span->at;
    return 1;
}

/* The number after the one-byte key, if that key is next: the quick way for fields that are always
 * written in the same order. Leaves the span alone otherwise, damage included. */
static inline bool take_varint(Span *span, uint8_t key, uint64_t *value) {
    if (span->at == span->end || *span->at != key) return false;
    Span rest = {span->at + 1, span->end};
    if (!read_varint(&rest, value)) return false;
    *span = rest;
    return true;
}

typedef struct {
    int fd;
    size_t ahead; /* how much to read at once if less is requested */
    uint8_t *data;
    size_t size, capacity;
    int64_t position; /* of data[0] in the file */
    int error;        /* errno if the file could not be read, which is not the same as its end */
} Window;

/* `size` bytes of the file at `position`, all in memory until the next call. False when the file
 * ends before, when it cannot be read (`error`), or (with *no_memory set) when there is no room. */
static inline bool window_get(Window *window, int64_t position, size_t size, Span *span,
                              bool *no_memory) {
    int64_t skip = position - window->position;
    if (skip < 0 || (uint64_t)skip + size > window->size) {
        size_t wanted = size > window->ahead ? size : window->ahead;
        if (wanted > window->capacity) {
            uint8_t *data = realloc(window->data, wanted);
            if (!data) {
                *no_memory = true;
                return false;
            }
            window->data = data;
            window->capacity = wanted;
        }
        window->position = position;
        window->size = 0;
        while (window->size < wanted) {
            int64_t got = read_at(window->fd, window->data + window->size, wanted - window->size,
                                  position + (int64_t)window->size);
            if (got < 0) {
                window->error = errno;
                return false;
            }
            if (got == 0) break;
            window->size += (size_t)got;
        }
        if (window->size < size) return false;
        skip = 0;
    }
    span->at = window->data + skip;
    span->end = span->at + size;
    return true;
}

#endif
