/* Reads a broker's answer: bounds-checked big-endian fields, flexible encoding, batches. */
#pragma once
#include "client.h"

enum { BATCH_HEADER_BYTES = 61, MAGIC = 2 };

typedef struct {
    const uint8_t *at, *end;
} Reader;

static const uint8_t *take(Reader *reader, size_t size) {
    if ((size_t)(reader->end - reader->at) < size) die("an answer ends too early");
    const uint8_t *start = reader->at;
    reader->at += size;
    return start;
}
static int16_t int16(Reader *r) { uint16_t v; memcpy(&v, take(r, 2), 2); return (int16_t)be16toh(v); }
static int32_t int32(Reader *r) { uint32_t v; memcpy(&v, take(r, 4), 4); return (int32_t)be32toh(v); }
static int64_t int64(Reader *r) { uint64_t v; memcpy(&v, take(r, 8), 8); return (int64_t)be64toh(v); }
static uint32_t varint(Reader *r) {
    uint32_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        uint8_t byte = *take(r, 1);
        value |= (uint32_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    die("an answer has an endless varint");
    return 0;
}
static void compact(Reader *r) { uint32_t n = varint(r); if (n > 1) take(r, n - 1); }
static void tags(Reader *r) {
    for (uint32_t n = varint(r); n > 0; n--) { varint(r); take(r, varint(r)); }
}

/* Walk whole batches from `at`; return the offset behind the last one, and where it ends. */
static inline int64_t walk(const uint8_t *at, size_t size, int64_t offset, size_t *whole) {
    *whole = 0;
    while (size - *whole >= BATCH_HEADER_BYTES) {
        Reader r = {at + *whole, at + size};
        int64_t base_offset = int64(&r);
        int32_t length = int32(&r);
        take(&r, 4);
        if (*take(&r, 1) != MAGIC || length < BATCH_HEADER_BYTES - 12)
            die("bytes at offset %ld of the fetched log are not a batch", (long)offset);
        if ((size_t)length + 12 > size - *whole) break;
        take(&r, 6); /* crc, attributes */
        int64_t last_offset = base_offset + int32(&r);
        if (last_offset < offset) die("fetched offset %ld after %ld", (long)last_offset, (long)offset);
        offset = last_offset + 1;
        *whole += (size_t)length + 12;
    }
    return offset;
}
