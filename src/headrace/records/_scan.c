/* The scanner: checksums and record walks over bytes that strangers send.
 *
 * scan_fallback.py is its twin, sentence for sentence. Nothing here trusts a
 * length: every read is preceded by a comparison with the end of the buffer.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

#include "_scan_crc.h"
#include "_scan_find.h"
#include "_scan_walk.h"

/* What a check found, as Python is told: (kind, what). */
enum { CORRUPT = 0, INVALID = 1, BAD_RECORDS = 2, MAX_TIMESTAMP = 3 };

/* Buffers from this size on are read without the GIL: what takes a worker thread this long must
 * not hold the event loop, and for fewer bytes giving the GIL away costs more than it frees. */
enum { GIL_FREE_BYTES = 64 * 1024 };

enum {
    LENGTH_AT = 8,
    MAGIC_AT = 16,
    CRC_AT = 17,
    CHECKSUM_START = 21,
    ATTRIBUTES_AT = 21,
    LAST_OFFSET_DELTA_AT = 23,
    BASE_TIMESTAMP_AT = 27,
    MAX_TIMESTAMP_AT = 35,
    COUNT_AT = 57,
    HEADER_SIZE = 61,
    LENGTH_PREFIX_SIZE = 12,
    MIN_BATCH_LENGTH = HEADER_SIZE - LENGTH_PREFIX_SIZE,
    CURRENT_MAGIC = 2,
    CODEC_MASK = 0x07,
    LOG_APPEND_TIME_BIT = 0x08,
    CONTROL_BIT = 0x20,
    RESERVED_ATTRIBUTES = 0xFF80,
};

/* ---- batches ---- */

static inline int64_t
batch_size(const uint8_t *header)
{
    return (int64_t)read_i32(header + LENGTH_AT) + LENGTH_PREFIX_SIZE;
}

static int
length_fault(const uint8_t *header, Sentence sentence)
{
    return fault(sentence, "batch length is %d, below %d", (int)read_i32(header + LENGTH_AT),
                 MIN_BATCH_LENGTH);
}

static int
magic_fault(const uint8_t *header, Sentence sentence)
{
    return fault(sentence, "magic is %d, not %d", header[MAGIC_AT], CURRENT_MAGIC);
}

/* 0 when the checksum of the `size` bytes of this batch is the stored one. */
static int
check_crc(const uint8_t *batch, Py_ssize_t size, Sentence sentence)
{
    uint32_t stored = read_u32(batch + CRC_AT);
    uint32_t computed = crc_of(batch + CHECKSUM_START, (size_t)(size - CHECKSUM_START));
    if (computed == stored)
        return 0;
    return fault(sentence, "CRC-32C is %08x, the header says %08x", (unsigned)computed,
                 (unsigned)stored);
}

/* 0 when the bytes are one batch that a producer may append; *kind says what a fault is. */
static int
check_one_batch(const uint8_t *batch, Py_ssize_t size, Walk *walk, int *kind, Sentence sentence)
{
    *kind = INVALID;
    if (size == 0)
        return fault(sentence, "there is no batch");
    if (size > MAGIC_AT && batch[MAGIC_AT] != CURRENT_MAGIC)
        return magic_fault(batch, sentence);
    *kind = CORRUPT;
    if (size < HEADER_SIZE)
        return fault(sentence, "a batch of %zd bytes is shorter than its header", size);
    if (read_i32(batch + LENGTH_AT) < MIN_BATCH_LENGTH)
        return length_fault(batch, sentence);
    int64_t expected = batch_size(batch);
    if (expected > size)
        return fault(sentence, "the batch has %zd of its %lld bytes", size, (long long)expected);
    if (expected == size && check_crc(batch, size, sentence))
        return 1;
    *kind = INVALID;
    if (expected < size)
        return fault(sentence, "%lld bytes follow the batch", (long long)(size - expected));
    unsigned attributes = read_u16(batch + ATTRIBUTES_AT);
    if (attributes & CONTROL_BIT)
        return fault(sentence, "a client may not write a control batch");
    int count = read_i32(batch + COUNT_AT);
    int64_t offsets = (int64_t)read_i32(batch + LAST_OFFSET_DELTA_AT) + 1;
    if (count <= 0)
        return fault(sentence, "the batch counts %d records", count);
    if (count != offsets)
        return fault(sentence, "the batch counts %d records over %lld offsets", count,
                     (long long)offsets);
    /* Compressed records are walked when they have been decompressed. */
    walk->max_timestamp = read_i64(batch + MAX_TIMESTAMP_AT);
    if (attributes & CODEC_MASK)
        return 0;
    walk->claims_append_time = (attributes & LOG_APPEND_TIME_BIT) != 0;
    walk->base_timestamp = read_i64(batch + BASE_TIMESTAMP_AT);
    return walk_records(batch + HEADER_SIZE, batch + size, count, walk, sentence);
}

/* Whether a header could be one, before the price of a checksum is paid. */
static inline int
is_plausible(const uint8_t *at, Py_ssize_t available, int64_t min_offset)
{
    if (at[MAGIC_AT] != CURRENT_MAGIC)
        return 0;
    int64_t offsets = (int64_t)read_i32(at + LAST_OFFSET_DELTA_AT) + 1;
    int32_t count = read_i32(at + COUNT_AT);
    return read_i32(at + LENGTH_AT) >= MIN_BATCH_LENGTH && batch_size(at) <= available &&
           !(read_u16(at + ATTRIBUTES_AT) & RESERVED_ATTRIBUTES) && offsets > 0 && count >= 0 &&
           count <= offsets && read_i64(at) >= min_offset;
}

/* ---- what Python sees ---- */

static int
expect_arguments(Py_ssize_t given, Py_ssize_t expected)
{
    if (given == expected)
        return 1;
    PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", expected, given);
    return 0;
}

static PyObject *
sentence_or_none(int is_fault, Sentence sentence)
{
    if (!is_fault)
        Py_RETURN_NONE;
    return PyUnicode_FromString(sentence);
}

static PyObject *
scan_crc32c(PyObject *Py_UNUSED(module), PyObject *buffer)
{
    Py_buffer view;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    uint32_t crc = crc_of(view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(crc);
}

static PyThreadState *
leave_gil(Py_ssize_t size)
{
    return size >= GIL_FREE_BYTES ? PyEval_SaveThread() : NULL;
}

static void
retake_gil(PyThreadState *state)
{
    if (state != NULL)
        PyEval_RestoreThread(state);
}

/* Takes a number of any size as the nearest one of 64 bits; 0 with an exception set. */
static int
take_timestamp(PyObject *argument, int64_t *timestamp)
{
    int overflow;
    *timestamp = PyLong_AsLongLongAndOverflow(argument, &overflow);
    if (overflow != 0)
        *timestamp = overflow > 0 ? INT64_MAX : INT64_MIN;
    return overflow != 0 || *timestamp != -1 || !PyErr_Occurred();
}

/* Takes (needs keys, earliest, latest) from the arguments; 0 with an exception set. */
static int
take_rules(PyObject *const *arguments, Walk *walk)
{
    int needs_keys = PyObject_IsTrue(arguments[0]);
    walk->min_key_length = needs_keys ? 0 : -1;
    return needs_keys >= 0 && take_timestamp(arguments[1], &walk->earliest) &&
           take_timestamp(arguments[2], &walk->latest);
}

/* (BAD_RECORDS, (keyless, wrong times, [(index, kind, timestamp), ...])) */
static PyObject *
describe_faults(const Walk *walk)
{
    PyObject *listed = PyList_New(walk->listed_count);
    if (listed == NULL)
        return NULL;
    for (int i = 0; i < walk->listed_count; i++) {
        const RecordFault *one = &walk->listed[i];
        PyObject *index = PyLong_FromLong(one->index), *kind = PyLong_FromLong(one->kind);
        PyObject *timestamp = PyLong_FromLongLong(one->timestamp);
        PyObject *item = index && kind && timestamp ? PyTuple_Pack(3, index, kind, timestamp) : NULL;
        Py_XDECREF(index);
        Py_XDECREF(kind);
        Py_XDECREF(timestamp);
        if (item == NULL) {
            Py_DECREF(listed);
            return NULL;
        }
        PyList_SET_ITEM(listed, i, item);
    }
    return Py_BuildValue("(i(iiN))", BAD_RECORDS, walk->keyless_count, walk->wrong_time_count,
                         listed);
}

static PyObject *
scan_check_batch(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given)
{
    Py_buffer view;
    Sentence sentence;
    Walk walk = {0};
    int kind;
    if (!expect_arguments(given, 4) || !take_rules(arguments + 1, &walk) ||
        PyObject_GetBuffer(arguments[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyThreadState *state = leave_gil(view.len);
    int is_fault = check_one_batch(view.buf, view.len, &walk, &kind, sentence);
    int is_true = is_fault || walk.max_timestamp ==
                                  read_i64((const uint8_t *)view.buf + MAX_TIMESTAMP_AT);
    retake_gil(state);
    PyBuffer_Release(&view);
    PyObject *found;
    if (is_fault)
        found = Py_BuildValue("(is)", kind, sentence);
    else if (walk.keyless_count || walk.wrong_time_count)
        found = describe_faults(&walk);
    else if (!is_true)
        found = Py_BuildValue("(iL)", MAX_TIMESTAMP, (long long)walk.max_timestamp);
    else
        found = Py_NewRef(Py_None);
    free(walk.listed);
    return found;
}

static PyObject *
scan_check_records(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given)
{
    Py_buffer view;
    Sentence sentence;
    Walk walk = {0};
    if (!expect_arguments(given, 7))
        return NULL;
    long count = PyLong_AsLong(arguments[1]);
    if (count == -1 && PyErr_Occurred())
        return NULL;
    if (count < INT32_MIN || count > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a batch's count has 32 bits");
        return NULL;
    }
    walk.claims_append_time = PyObject_IsTrue(arguments[3]);
    if (walk.claims_append_time < 0 || !take_timestamp(arguments[2], &walk.base_timestamp) ||
        !take_rules(arguments + 4, &walk) ||
        PyObject_GetBuffer(arguments[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const uint8_t *start = view.buf;
    PyThreadState *state = leave_gil(view.len);
    int is_fault = walk_records(start, start + view.len, (int)count, &walk, sentence);
    retake_gil(state);
    PyBuffer_Release(&view);
    PyObject *found;
    if (is_fault)
        found = Py_BuildValue("(is)", INVALID, sentence);
    else if (walk.keyless_count || walk.wrong_time_count)
        found = describe_faults(&walk);
    else
        found = Py_BuildValue("(iL)", MAX_TIMESTAMP, (long long)walk.max_timestamp);
    free(walk.listed);
    return found;
}

/* Takes (buffer, start, end) from the arguments; 0 with an exception set when they are wrong. */
static int
take_bounds(PyObject *const *arguments, Py_buffer *view, Py_ssize_t *start, Py_ssize_t *end)
{
    *start = PyLong_AsSsize_t(arguments[1]);
    if (*start == -1 && PyErr_Occurred())
        return 0;
    *end = PyLong_AsSsize_t(arguments[2]);
    if (*end == -1 && PyErr_Occurred())
        return 0;
    if (PyObject_GetBuffer(arguments[0], view, PyBUF_SIMPLE) < 0)
        return 0;
    if (0 <= *start && *start <= *end && *end <= view->len)
        return 1;
    PyErr_Format(PyExc_ValueError, "[%zd, %zd) is outside a buffer of %zd bytes", *start, *end,
                 view->len);
    PyBuffer_Release(view);
    return 0;
}

static PyObject *
scan_scan_batches(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given)
{
    Py_buffer view;
    Sentence sentence;
    Py_ssize_t position, end;
    if (!expect_arguments(given, 3) || !take_bounds(arguments, &view, &position, &end))
        return NULL;
    const uint8_t *base = view.buf;
    int is_fault = 0;
    PyThreadState *state = leave_gil(end - position);
    while (end - position >= HEADER_SIZE) {
        const uint8_t *batch = base + position;
        int64_t size = batch_size(batch);
        is_fault = 1;
        if (size < HEADER_SIZE) {
            length_fault(batch, sentence);
            break;
        }
        if (batch[MAGIC_AT] != CURRENT_MAGIC) {
            magic_fault(batch, sentence);
            break;
        }
        is_fault = size <= end - position && check_crc(batch, (Py_ssize_t)size, sentence);
        if (is_fault || size > end - position)
            break;
        position += (Py_ssize_t)size;
    }
    retake_gil(state);
    PyBuffer_Release(&view);
    PyObject *what = sentence_or_none(is_fault, sentence);
    return what == NULL ? NULL : Py_BuildValue("(nN)", position, what);
}

static PyObject *
scan_find_batch(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given)
{
    Py_buffer view;
    Sentence sentence;
    Py_ssize_t position, end, found = -1;
    if (!expect_arguments(given, 4))
        return NULL;
    long long min_offset = PyLong_AsLongLong(arguments[3]);
    if (min_offset == -1 && PyErr_Occurred())
        return NULL;
    if (!take_bounds(arguments, &view, &position, &end))
        return NULL;
    const uint8_t *base = view.buf;
    PyThreadState *state = leave_gil(end - position);
    for (; end - position >= HEADER_SIZE && found < 0; position++) {
        const uint8_t *batch = base + position;
        if (is_plausible(batch, end - position, min_offset) &&
            !check_crc(batch, (Py_ssize_t)batch_size(batch), sentence))
            found = position;
    }
    retake_gil(state);
    PyBuffer_Release(&view);
    return PyLong_FromSsize_t(found);
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef scan_methods[] = {
    {"crc32c", scan_crc32c, METH_O, "The CRC-32C of a buffer."},
    {"check_batch", FAST(scan_check_batch), METH_FASTCALL,
     "What there is to say of a producer's bytes before they are appended, or None."},
    {"check_records", FAST(scan_check_records), METH_FASTCALL,
     "The largest timestamp of so many plain records, or why they are not that."},
    {"scan_batches", FAST(scan_scan_batches), METH_FASTCALL,
     "Where the last good batch ends, and what stopped there."},
    {"find_batch", FAST(scan_find_batch), METH_FASTCALL, "Where the next valid batch begins, or -1."},
    {"find_record", scan_find_record, METH_VARARGS, "The first plain record at or after a time."},
    {"find_newest", scan_find_newest, METH_VARARGS, "The first plain record of the largest time."},
    {"find_header", scan_find_header, METH_VARARGS, "The next batch at or after a time."},
    {"find_disorder", scan_find_disorder, METH_O, "Where a time index does not increase, or -1."},
    {NULL, NULL, 0, NULL},
};

static int
scan_exec(PyObject *module)
{
    fill_tables();
#ifdef HAVE_CRC_INSTRUCTION
    if (has_crc_instruction())
        crc_step = crc_by_instruction;
#endif
    const struct {
        const char *name;
        int value;
    } constants[] = {
        {"CORRUPT", CORRUPT},
        {"INVALID", INVALID},
        {"BAD_RECORDS", BAD_RECORDS},
        {"MAX_TIMESTAMP", MAX_TIMESTAMP},
        {"NO_KEY", NO_KEY},
        {"TIME_OUT_OF_RANGE", TIME_OUT_OF_RANGE},
        {"CLAIMS_APPEND_TIME", CLAIMS_APPEND_TIME},
        {"MAX_LISTED_FAULTS", MAX_LISTED_FAULTS},
    };
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value) < 0)
            return -1;
    return 0;
}

static PyModuleDef_Slot scan_slots[] = {
    {Py_mod_exec, scan_exec},
    {0, NULL},
};

static struct PyModuleDef scan_module = {
    PyModuleDef_HEAD_INIT, "_scan", "The scanner in C; see scan.py.", 0,
    scan_methods,          scan_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__scan(void)
{
    return PyModuleDef_Init(&scan_module);
}
