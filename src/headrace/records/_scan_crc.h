/* CRC-32C, by the processor's own instruction where there is one. Part of _scan.c. */
#ifndef HEADRACE_SCAN_CRC_H
#define HEADRACE_SCAN_CRC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define POLYNOMIAL 0x82F63B78u /* Castagnoli's, bits reversed */

/* The instruction takes three cycles but starts one every cycle, so long inputs
 * are summed as three blocks side by side and joined afterwards. */
enum { LONG_BLOCK = 2048, SHORT_BLOCK = 256 };

static uint32_t slice_table[8][256];
/* What a checksum becomes when so many zero bytes follow, a byte of it at a time. */
static uint32_t long_shift[4][256];
static uint32_t short_shift[4][256];

static inline uint64_t
load_little_endian(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static void
fill_shift_table(uint32_t table[4][256], int zero_bytes)
{
    uint32_t of_bit[32];
    for (int bit = 0; bit < 32; bit++) {
        uint32_t crc = 1u << bit;
        for (int i = 0; i < zero_bytes; i++)
            crc = (crc >> 8) ^ slice_table[0][crc & 0xFF];
        of_bit[bit] = crc;
    }
    for (int byte = 0; byte < 4; byte++)
        for (int value = 0; value < 256; value++) {
            uint32_t crc = 0;
            for (int bit = 0; bit < 8; bit++)
                if (value >> bit & 1)
                    crc ^= of_bit[8 * byte + bit];
            table[byte][value] = crc;
        }
}

static void
fill_tables(void)
{
    for (uint32_t value = 0; value < 256; value++) {
        uint32_t crc = value;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
        slice_table[0][value] = crc;
    }
    for (int slice = 1; slice < 8; slice++)
        for (int value = 0; value < 256; value++) {
            uint32_t crc = slice_table[slice - 1][value];
            slice_table[slice][value] = (crc >> 8) ^ slice_table[0][crc & 0xFF];
        }
    fill_shift_table(long_shift, LONG_BLOCK);
    fill_shift_table(short_shift, SHORT_BLOCK);
}

static uint32_t
crc_by_tables(uint32_t crc, const uint8_t *at, size_t size)
{
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word = load_little_endian(at) ^ crc;
        crc = 0;
        for (int byte = 0; byte < 8; byte++)
            crc ^= slice_table[7 - byte][word >> 8 * byte & 0xFF];
    }
    for (; size > 0; at++, size--)
        crc = (crc >> 8) ^ slice_table[0][(crc ^ *at) & 0xFF];
    return crc;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>
#define HAVE_CRC_INSTRUCTION 1
#define CRC_TARGET __attribute__((target("sse4.2")))
#define CRC_WORD(crc, word) ((uint32_t)_mm_crc32_u64((crc), (word)))
#define CRC_BYTE(crc, byte) _mm_crc32_u8((crc), (byte))
static int
has_crc_instruction(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2");
}
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define HAVE_CRC_INSTRUCTION 1
#define CRC_TARGET
#define CRC_WORD(crc, word) __crc32cd((crc), (word))
#define CRC_BYTE(crc, byte) __crc32cb((crc), (byte))
static int
has_crc_instruction(void)
{
    return 1;
}
#endif

#ifdef HAVE_CRC_INSTRUCTION
static inline uint32_t
shifted(uint32_t table[4][256], uint32_t crc)
{
    return table[0][crc & 0xFF] ^ table[1][crc >> 8 & 0xFF] ^ table[2][crc >> 16 & 0xFF] ^
           table[3][crc >> 24];
}

CRC_TARGET static inline uint32_t
crc_of_three_blocks(uint32_t first, const uint8_t *at, int block, uint32_t table[4][256])
{
    uint32_t second = 0, third = 0;
    for (const uint8_t *end = at + block; at < end; at += 8) {
        first = CRC_WORD(first, load_little_endian(at));
        second = CRC_WORD(second, load_little_endian(at + block));
        third = CRC_WORD(third, load_little_endian(at + 2 * block));
    }
    return shifted(table, shifted(table, first) ^ second) ^ third;
}

CRC_TARGET static uint32_t
crc_by_instruction(uint32_t crc, const uint8_t *at, size_t size)
{
    for (; size >= 3 * LONG_BLOCK; at += 3 * LONG_BLOCK, size -= 3 * LONG_BLOCK)
        crc = crc_of_three_blocks(crc, at, LONG_BLOCK, long_shift);
    for (; size >= 3 * SHORT_BLOCK; at += 3 * SHORT_BLOCK, size -= 3 * SHORT_BLOCK)
        crc = crc_of_three_blocks(crc, at, SHORT_BLOCK, short_shift);
    for (; size >= 8; at += 8, size -= 8)
        crc = CRC_WORD(crc, load_little_endian(at));
    for (; size > 0; at++, size--)
        crc = CRC_BYTE(crc, *at);
    return crc;
}
#endif

static uint32_t (*crc_step)(uint32_t, const uint8_t *, size_t) = crc_by_tables;

static inline uint32_t
crc_of(const uint8_t *at, size_t size)
{
    return ~crc_step(0xFFFFFFFFu, at, size);
}

#endif
