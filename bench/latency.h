/* Latencies in log-linear buckets under 1 % wide, for percentiles without samples. */
#pragma once
#include <stdint.h>

enum { SUB_BITS = 7, SUB_COUNT = 1 << SUB_BITS, BUCKETS = 40 * SUB_COUNT };

typedef struct {
    uint64_t buckets[BUCKETS], count, max_ns, sum_ns;
} Latency;

static int bucket_of(uint64_t ns) {
    if (ns < SUB_COUNT) return (int)ns;
    int shift = 63 - __builtin_clzll(ns) - SUB_BITS;
    int bucket = (shift + 1) * SUB_COUNT + (int)((ns >> shift) - SUB_COUNT);
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static double bucket_ns(int bucket) {
    if (bucket < SUB_COUNT) return bucket;
    int shift = bucket / SUB_COUNT - 1;
    return ((double)(SUB_COUNT + bucket % SUB_COUNT) + 0.5) * (double)(1ull << shift);
}

static inline void add_latency(Latency *latency, uint64_t ns) {
    latency->buckets[bucket_of(ns)]++;
    latency->count++;
    latency->sum_ns += ns;
    if (ns > latency->max_ns) latency->max_ns = ns;
}

static double mean_us(const Latency *latency) {
    return latency->count ? (double)latency->sum_ns / (double)latency->count / 1000 : 0;
}

static double percentile_us(const Latency *latency, double share) {
    uint64_t wanted = (uint64_t)(share * (double)latency->count), seen = 0;
    for (int i = 0; i < BUCKETS; i++)
        if ((seen += latency->buckets[i]) > wanted) return bucket_ns(i) / 1000;
    return (double)latency->max_ns / 1000;
}
