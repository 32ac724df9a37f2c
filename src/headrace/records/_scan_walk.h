/* The walk over plain records, which trusts no length. Part of _scan.c. */
#ifndef HEADRACE_SCAN_WALK_H
#define HEADRACE_SCAN_WALK_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline uint16_t
read_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t
read_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline int32_t
read_i32(const uint8_t *at)
{
    return (int32_t)read_u32(at);
}

static inline int64_t
read_i64(const uint8_t *at)
{
    return (int64_t)((uint64_t)read_u32(at) << 32 | read_u32(at + 4));
}

typedef enum { READ, CUT_SHORT, TOO_LONG } Reading;

/* A zigzag number of at most `bits` bits; moves *at behind it. */
static inline Reading
read_number(const uint8_t **at, const uint8_t *end, int bits, int64_t *number)
{
    const uint8_t *next = *at;
    uint64_t raw = 0;
    for (int shift = 0; shift < bits; shift += 7) {
        if (next >= end)
            return CUT_SHORT;
        uint64_t seven = *next & 0x7F;
        /* The last byte may hold only the bits that are left. */
        int is_too_big = bits - shift < 7 && seven >> (bits - shift) != 0;
        raw |= seven << shift;
        if (*next++ < 0x80) {
            if (is_too_big)
                return TOO_LONG;
            *number = (int64_t)(raw >> 1 ^ (~(raw & 1) + 1));
            *at = next;
            return READ;
        }
    }
    return TOO_LONG;
}

/* ---- faults ---- */

typedef char Sentence[128];

/* Writes the sentence; always 1, so that a check can `return fault(...)`. */
static int
fault(Sentence sentence, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof(Sentence), format, arguments);
    va_end(arguments);
    return 1;
}

static int
fault_of_number(Sentence sentence, Reading reading, int index)
{
    return fault(sentence,
                 reading == CUT_SHORT ? "record %d runs past its length"
                                      : "record %d has a number that is too long",
                 index);
}

/* ---- what a walk looks for ---- */

enum { NO_TIMESTAMP = -1 };

/* What may be wrong with one record while all the others are good. */
enum { NO_KEY = 0, TIME_OUT_OF_RANGE = 1, CLAIMS_APPEND_TIME = 2 };

/* As many faulty records of a batch are listed: librdkafka's largest batch by default. The rest
 * is only counted; their producer hears of them when it has sent the batch without the first. */
enum { MAX_LISTED_FAULTS = 10000 };

typedef struct {
    int64_t timestamp;
    int32_t index;
    int32_t kind;
} RecordFault;

typedef struct {
    /* what the topic and the batch's header say */
    int min_key_length; /* 0 where keys are needed, -1 where null will do */
    int claims_append_time;
    int64_t base_timestamp, earliest, latest;
    /* what was found */
    int64_t max_timestamp;
    int keyless_count, wrong_time_count, listed_count;
    RecordFault *listed; /* freed by whoever made the walk */
} Walk;

/* What is wrong with a record that looks wrong, if anything is. Rare, so out of the walk's way. */
static void __attribute__((noinline, cold))
list_fault(Walk *walk, int index, int64_t key_length, int64_t timestamp)
{
    int kind;
    if (key_length < walk->min_key_length)
        kind = NO_KEY;
    else if (walk->claims_append_time)
        kind = CLAIMS_APPEND_TIME;
    else if (timestamp != NO_TIMESTAMP)
        kind = TIME_OUT_OF_RANGE;
    else
        return;
    if (kind == NO_KEY)
        walk->keyless_count++;
    else
        walk->wrong_time_count++;
    if (walk->listed == NULL)
        walk->listed = malloc(MAX_LISTED_FAULTS * sizeof(RecordFault));
    if (walk->listed != NULL && walk->listed_count < MAX_LISTED_FAULTS)
        walk->listed[walk->listed_count++] = (RecordFault){timestamp, index, kind};
}

/* ---- records ---- */

#define READ_NUMBER(bits, number)                                        \
    do {                                                                 \
        Reading reading = read_number(&at, end, (bits), (number));       \
        if (reading != READ)                                             \
            return fault_of_number(sentence, reading, index);            \
    } while (0)

/* Moves *position behind a key or value, whose length (-1 for null) goes to *length. */
static inline int
skip_field(const uint8_t **position, const uint8_t *end, int index, int64_t *length,
           Sentence sentence)
{
    const uint8_t *at = *position;
    READ_NUMBER(32, length);
    if (*length < -1)
        return fault(sentence, "record %d has a field of %d bytes", index, (int)*length);
    if (*length > end - at)
        return fault_of_number(sentence, CUT_SHORT, index);
    *position = *length > 0 ? at + *length : at;
    return 0;
}

/* One record's bytes [at, end), its length not among them. */
static inline int
check_body(const uint8_t *at, const uint8_t *end, int index, Walk *walk, int64_t *max_timestamp,
           Sentence sentence)
{
    int64_t delta = 0, number = 0, length = 0, header_count = 0;
    if (at == end)
        return fault_of_number(sentence, CUT_SHORT, index);
    at++; /* attributes, of which Kafka has defined none */
    READ_NUMBER(64, &delta);
    READ_NUMBER(32, &number);
    if (number != index)
        return fault(sentence, "record %d has offset delta %d", index, (int)number);
    if (skip_field(&at, end, index, &length, sentence))
        return 1;
    /* Java's sum, which wraps around. */
    int64_t timestamp = (int64_t)((uint64_t)walk->base_timestamp + (uint64_t)delta);
    if (timestamp > *max_timestamp)
        *max_timestamp = timestamp;
    if (timestamp < walk->earliest || timestamp > walk->latest || length < walk->min_key_length)
        list_fault(walk, index, length, timestamp);
    if (skip_field(&at, end, index, &length, sentence))
        return 1;
    READ_NUMBER(32, &header_count);
    if (header_count < 0)
        return fault(sentence, "record %d has %d headers", index, (int)header_count);
    for (; header_count > 0; header_count--) {
        if (skip_field(&at, end, index, &length, sentence))
            return 1;
        if (length < 0)
            return fault(sentence, "record %d has a header without a key", index);
        if (skip_field(&at, end, index, &length, sentence))
            return 1;
    }
    if (at != end)
        return fault(sentence, "record %d is shorter than its length", index);
    return 0;
}

/* 1 when the bytes are not `count` records; of records that are only not wanted `walk` knows. */
static int
walk_records(const uint8_t *at, const uint8_t *end, int count, Walk *walk, Sentence sentence)
{
    int64_t max_timestamp = NO_TIMESTAMP;
    if (walk->claims_append_time) { /* then no time is right */
        walk->earliest = INT64_MAX;
        walk->latest = INT64_MIN;
    }
    if (count < 0)
        return fault(sentence, "the batch counts %d records", count);
    for (int index = 0; index < count; index++) {
        int64_t length = 0;
        Reading reading = read_number(&at, end, 32, &length);
        if (reading == TOO_LONG)
            return fault_of_number(sentence, reading, index);
        if (reading == READ && length < 0)
            return fault(sentence, "record %d has a length of %d", index, (int)length);
        if (reading == CUT_SHORT || length > end - at)
            return fault(sentence, "record %d is cut short", index);
        if (check_body(at, at + length, index, walk, &max_timestamp, sentence))
            return 1;
        at += length;
    }
    if (at != end)
        return fault(sentence, "%td bytes follow the last record", end - at);
    walk->max_timestamp = max_timestamp;
    return 0;
}

#endif
