/* Finding by time: walks over headers, records and index entries. Part of _scan.c.
 *
 * find_fallback.py is its twin. These run in worker threads: the lock of the interpreter is let
 * go for the whole walk, and no length is trusted.
 */
#ifndef HEADRACE_SCAN_FIND_H
#define HEADRACE_SCAN_FIND_H

#include "_scan_walk.h"

enum {
    FIND_LENGTH_AT = 8,
    FIND_LAST_DELTA_AT = 23,
    FIND_MAX_TIMESTAMP_AT = 35,
    FIND_HEADER_SIZE = 61,
    FIND_PREFIX_SIZE = 12,
    FIND_TIME_ENTRY_SIZE = 12,
};

typedef struct {
    int64_t base_timestamp;
    int64_t base_offset;
    int is_append_time; /* every record's time is base_timestamp */
    int is_newest;      /* the first of the largest time; else the first at or after `timestamp` */
    int64_t timestamp;
    int64_t start_offset;
} Wanted;

typedef struct {
    int is_found;
    int64_t timestamp;
    int64_t offset;
} Found;

static int
beyond_64_bits(Sentence sentence, int index)
{
    return fault(sentence, "record %d has a time or an offset beyond 64 bits", index);
}

/* One record's bytes [at, end), its length not among them; only its place and time are read. */
static int
look_at_record(const uint8_t *at, const uint8_t *end, int index, const Wanted *wanted,
               Found *found, Sentence sentence)
{
    int64_t time_delta = 0, offset_delta = 0, timestamp, offset;
    if (at == end)
        return fault_of_number(sentence, CUT_SHORT, index);
    at++; /* attributes */
    READ_NUMBER(64, &time_delta);
    READ_NUMBER(32, &offset_delta);
    timestamp = wanted->base_timestamp;
    if ((!wanted->is_append_time && __builtin_add_overflow(timestamp, time_delta, &timestamp)) ||
        __builtin_add_overflow(wanted->base_offset, offset_delta, &offset))
        return beyond_64_bits(sentence, index);
    if (offset < wanted->start_offset)
        return 0;
    if (wanted->is_newest ? !found->is_found || timestamp > found->timestamp
                          : timestamp >= wanted->timestamp) {
        found->is_found = 1;
        found->timestamp = timestamp;
        found->offset = offset;
    }
    return 0;
}

static int
walk_for_time(const uint8_t *at, const uint8_t *end, int count, const Wanted *wanted,
              Found *found, Sentence sentence)
{
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
        if (look_at_record(at, at + length, index, wanted, found, sentence))
            return 1;
        if (found->is_found && !wanted->is_newest)
            return 0;
        at += length;
    }
    return 0;
}

/* ---- what Python sees ---- */

static PyObject *
found_or_fault(int is_fault, const Found *found, Sentence sentence)
{
    if (is_fault)
        return PyUnicode_FromString(sentence);
    if (!found->is_found)
        Py_RETURN_NONE;
    return Py_BuildValue("(LL)", (long long)found->timestamp, (long long)found->offset);
}

static PyObject *
scan_find_record(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer view;
    Sentence sentence;
    Wanted wanted = {0};
    Found found = {0};
    long long base_timestamp, base_offset, timestamp, start_offset;
    int count;
    if (!PyArg_ParseTuple(arguments, "y*iLLpLL", &view, &count, &base_timestamp, &base_offset,
                          &wanted.is_append_time, &timestamp, &start_offset))
        return NULL;
    wanted.base_timestamp = base_timestamp;
    wanted.base_offset = base_offset;
    wanted.timestamp = timestamp;
    wanted.start_offset = start_offset;
    const uint8_t *start = view.buf;
    int is_fault;
    Py_BEGIN_ALLOW_THREADS
    is_fault = walk_for_time(start, start + view.len, count, &wanted, &found, sentence);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return found_or_fault(is_fault, &found, sentence);
}

static PyObject *
scan_find_newest(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer view;
    Sentence sentence;
    Wanted wanted = {0};
    Found found = {0};
    long long base_timestamp, base_offset, start_offset;
    int count;
    if (!PyArg_ParseTuple(arguments, "y*iLLpL", &view, &count, &base_timestamp, &base_offset,
                          &wanted.is_append_time, &start_offset))
        return NULL;
    wanted.base_timestamp = base_timestamp;
    wanted.base_offset = base_offset;
    wanted.start_offset = start_offset;
    wanted.is_newest = 1;
    const uint8_t *start = view.buf;
    int is_fault;
    Py_BEGIN_ALLOW_THREADS
    is_fault = walk_for_time(start, start + view.len, count, &wanted, &found, sentence);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return found_or_fault(is_fault, &found, sentence);
}

static PyObject *
scan_find_header(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer view;
    Py_ssize_t start;
    long long timestamp, start_offset;
    if (!PyArg_ParseTuple(arguments, "y*nLL", &view, &start, &timestamp, &start_offset))
        return NULL;
    if (start < 0) {
        PyBuffer_Release(&view);
        PyErr_Format(PyExc_ValueError, "byte %zd is outside a buffer", start);
        return NULL;
    }
    const uint8_t *base = view.buf;
    int64_t position = start, newest = -1;
    int is_found = 0;
    Py_BEGIN_ALLOW_THREADS
    while (position <= (int64_t)view.len - FIND_HEADER_SIZE) {
        const uint8_t *header = base + position;
        int64_t length = read_i32(header + FIND_LENGTH_AT);
        int64_t last_delta = read_i32(header + FIND_LAST_DELTA_AT);
        int64_t max_timestamp = read_i64(header + FIND_MAX_TIMESTAMP_AT);
        int64_t last_offset;
        if (length < FIND_HEADER_SIZE - FIND_PREFIX_SIZE ||
            __builtin_add_overflow(read_i64(header), last_delta, &last_offset)) {
            position = -1 - position;
            break;
        }
        if (last_offset >= start_offset) {
            if (max_timestamp > newest)
                newest = max_timestamp;
            if (max_timestamp >= timestamp) {
                is_found = 1;
                break;
            }
        }
        position += length + FIND_PREFIX_SIZE;
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return Py_BuildValue("(LOL)", (long long)position, is_found ? Py_True : Py_False,
                         (long long)newest);
}

static PyObject *
scan_find_disorder(PyObject *Py_UNUSED(module), PyObject *buffer)
{
    Py_buffer view;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const uint8_t *entry = view.buf;
    Py_ssize_t count = view.len / FIND_TIME_ENTRY_SIZE, index = 0;
    int64_t timestamp = -1, offset = -1;
    Py_BEGIN_ALLOW_THREADS
    for (; index < count; index++, entry += FIND_TIME_ENTRY_SIZE) {
        if (read_i64(entry) <= timestamp || read_i32(entry + 8) <= offset)
            break;
        timestamp = read_i64(entry);
        offset = read_i32(entry + 8);
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return PyLong_FromSsize_t(index < count ? index : -1);
}

#endif
