/* SPDX-License-Identifier: Apache-2.0 */
/* Fast writer of the ordinary pre-image: a block of common token ids without extra keys. */
#include "ref/hash/template.h"

#include <assert.h>
#include <string.h>

/* Where the parent stands: behind protocol, frame head and its own head; behind the array's head and its own. */
enum { PICKLE_PARENT_AT = 13, CBOR_PARENT_AT = 3, CBOR_SHORT_PARENT_AT = 2, CBOR_SHORT_MAX = 23 };

/* The widths of token ids are random to the branch predictor, so an id is always written as eight bytes, and only the
 * step forward depends on its width. */
static inline void write_u64_le(uint8_t *out, uint64_t value) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    memcpy(out, &value, sizeof value);
}

/* The token writers collect all bits of the ids in *bits, so that ids out of range are noticed at the end. */
static uint8_t *tokens_pickle(uint8_t *out, const int64_t *tokens, size_t count, uint64_t *bits) {
    for (size_t i = 0; i < count; i++) {
        uint64_t token = (uint64_t)tokens[i];
        *bits |= token;
        unsigned wide = token > UINT8_MAX, wider = token > UINT16_MAX;
        uint64_t opcode = 0x4bu + 2 * wide - 3 * wider; /* BININT1 4b, BININT2 4d, BININT 4a */
        write_u64_le(out, opcode | token << 8);
        out += 2 + wide + 2 * wider;
    }
    return out;
}

static uint8_t *tokens_cbor(uint8_t *out, const int64_t *tokens, size_t count, uint64_t *bits) {
    for (size_t i = 0; i < count; i++) {
        uint64_t token = (uint64_t)tokens[i];
        *bits |= token;
        unsigned beyond_head = token > CBOR_SHORT_MAX, wide = token > UINT8_MAX, wider = token > UINT16_MAX;
        unsigned bytes = beyond_head + wide + 2 * wider; /* 0, 1, 2 or 4 */
        uint64_t head = beyond_head ? 0x18u + wide + wider : token;
        uint64_t argument = __builtin_bswap32((uint32_t)token) >> ((32 - 8 * bytes) & 31);
        write_u64_le(out, head | argument << 8);
        out += 1 + bytes;
    }
    return out;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define WITH_BYTE_COMPRESS __attribute__((target("avx512f,avx512bw,avx512vbmi2,popcnt")))

/* Eight ids at a time: each lane of eight bytes takes opcode and value, then the bytes that the id does not need are
 * squeezed out of the whole vector. Writes 64 bytes. The rest of fewer than eight goes the slow way. */
WITH_BYTE_COMPRESS static uint8_t *tokens_pickle_wide(uint8_t *out, const int64_t *tokens, size_t count,
                                                      uint64_t *bits) {
    __m512i all = _mm512_setzero_si512();
    const __m512i byte_max = _mm512_set1_epi64(UINT8_MAX), short_max = _mm512_set1_epi64(UINT16_MAX);
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m512i ids = _mm512_loadu_si512(tokens + i);
        all = _mm512_or_si512(all, ids);
        __mmask8 wide = _mm512_cmpgt_epu64_mask(ids, byte_max), wider = _mm512_cmpgt_epu64_mask(ids, short_max);
        __m512i opcodes = _mm512_mask_blend_epi64(wide, _mm512_set1_epi64(0x4b), _mm512_set1_epi64(0x4d));
        opcodes = _mm512_mask_blend_epi64(wider, opcodes, _mm512_set1_epi64(0x4a));
        __m512i needed = _mm512_mask_blend_epi64(wide, _mm512_set1_epi64(0xffff), _mm512_set1_epi64(0xffffff));
        needed = _mm512_mask_blend_epi64(wider, needed, _mm512_set1_epi64(0xffffffffff));
        __mmask64 keep = _mm512_movepi8_mask(needed);
        __m512i lanes = _mm512_or_si512(_mm512_slli_epi64(ids, 8), opcodes);
        _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(keep, lanes));
        out += __builtin_popcountll(keep);
    }
    *bits |= (uint64_t)_mm512_reduce_or_epi64(all);
    _mm256_zeroupper(); /* gcc 12 forgets it before a tail call, and then SHA instructions crawl */
    return tokens_pickle(out, tokens + i, count - i, bits);
}

/* The same; the value stands in a lane as four bytes from high to low, and its leading ones are squeezed out. */
WITH_BYTE_COMPRESS static uint8_t *tokens_cbor_wide(uint8_t *out, const int64_t *tokens, size_t count, uint64_t *bits) {
    __m512i all = _mm512_setzero_si512();
    const __m512i head_max = _mm512_set1_epi64(CBOR_SHORT_MAX), byte_max = _mm512_set1_epi64(UINT8_MAX),
                  short_max = _mm512_set1_epi64(UINT16_MAX);
    const __m512i high_to_low =
        _mm512_broadcast_i32x4(_mm_set_epi64x((long long)0x80808008090a0b80, (long long)0x8080800001020380));
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m512i ids = _mm512_loadu_si512(tokens + i);
        all = _mm512_or_si512(all, ids);
        __mmask8 beyond = _mm512_cmpgt_epu64_mask(ids, head_max), wide = _mm512_cmpgt_epu64_mask(ids, byte_max),
                 wider = _mm512_cmpgt_epu64_mask(ids, short_max);
        __m512i heads = _mm512_mask_blend_epi64(beyond, ids, _mm512_set1_epi64(0x18));
        heads = _mm512_mask_blend_epi64(wide, heads, _mm512_set1_epi64(0x19));
        heads = _mm512_mask_blend_epi64(wider, heads, _mm512_set1_epi64(0x1a));
        __m512i needed = _mm512_mask_blend_epi64(beyond, _mm512_set1_epi64(0xff), _mm512_set1_epi64(0xff000000ff));
        needed = _mm512_mask_blend_epi64(wide, needed, _mm512_set1_epi64(0xffff0000ff));
        needed = _mm512_mask_blend_epi64(wider, needed, _mm512_set1_epi64(0xffffffffff));
        __mmask64 keep = _mm512_movepi8_mask(needed);
        __m512i lanes = _mm512_or_si512(_mm512_shuffle_epi8(ids, high_to_low), heads);
        _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(keep, lanes));
        out += __builtin_popcountll(keep);
    }
    *bits |= (uint64_t)_mm512_reduce_or_epi64(all);
    _mm256_zeroupper(); /* gcc 12 forgets it before a tail call, and then SHA instructions crawl */
    return tokens_cbor(out, tokens + i, count - i, bits);
}
#else
#define tokens_pickle_wide tokens_pickle /* never asked for: moon_cpu_detect says no */
#define tokens_cbor_wide   tokens_cbor
#endif

static size_t write_pickle(size_t parent_bytes, const int64_t *tokens, size_t count, const struct moon_cpu *cpu,
                           uint8_t *out, uint64_t *bits) {
    static const uint8_t front[3] = {0x80, 5, 0x95};               /* PROTO 5, FRAME */
    static const uint8_t end[3] = {0x85, 0x86, 0x87};              /* TUPLE1 to TUPLE3 */
    static const uint8_t tail[5] = {0x94, 0x4e, 0x87, 0x94, 0x2e}; /* MEMOIZE, NONE, TUPLE3, MEMOIZE, STOP */
    out[11] = 0x43;                                                /* SHORT_BINBYTES */
    out[12] = (uint8_t)parent_bytes;
    uint8_t *at = out + PICKLE_PARENT_AT + parent_bytes;
    *at++ = 0x94; /* MEMOIZE */
    if (count > 3)
        *at++ = 0x28; /* MARK */
    at = cpu->byte_compress ? tokens_pickle_wide(at, tokens, count, bits) : tokens_pickle(at, tokens, count, bits);
    *at++ = count > 3 ? 0x74 /* TUPLE */ : end[count - 1];
    memcpy(at, tail, sizeof tail);
    at += sizeof tail;
    memcpy(out, front, sizeof front);
    write_u64_le(out + 3, (uint64_t)(at - out - 11));
    return (size_t)(at - out);
}

static size_t write_cbor(size_t parent_bytes, const int64_t *tokens, size_t count, const struct moon_cpu *cpu,
                         uint8_t *out, uint64_t *bits) {
    bool is_short = parent_bytes <= CBOR_SHORT_MAX;
    out[0] = 0x83; /* array of 3 */
    out[1] = is_short ? (uint8_t)(0x40 | parent_bytes) : 0x58;
    if (!is_short)
        out[2] = (uint8_t)parent_bytes;
    uint8_t *at = out + (is_short ? CBOR_SHORT_PARENT_AT : CBOR_PARENT_AT) + parent_bytes;
    if (count <= CBOR_SHORT_MAX) {
        *at++ = (uint8_t)(0x80 | count);
    } else if (count <= UINT8_MAX) {
        *at++ = 0x98;
        *at++ = (uint8_t)count;
    } else {
        *at++ = 0x99;
        *at++ = (uint8_t)(count >> 8);
        *at++ = (uint8_t)(count & 0xff);
    }
    at = cpu->byte_compress ? tokens_cbor_wide(at, tokens, count, bits) : tokens_cbor(at, tokens, count, bits);
    *at++ = 0xf6;
    return (size_t)(at - out);
}

size_t moon_template_write(enum moon_serialisation serialisation, size_t parent_bytes, const int64_t *tokens,
                           size_t count, const struct moon_cpu *cpu, uint8_t *out) {
    assert(count >= 1 && count <= MOON_TEMPLATE_TOKENS_MAX);
    assert(parent_bytes == MOON_SHA256_BYTES || parent_bytes <= CBOR_SHORT_MAX);
    uint64_t bits = 0;
    size_t length = serialisation == MOON_PICKLE ? write_pickle(parent_bytes, tokens, count, cpu, out, &bits)
                                                 : write_cbor(parent_bytes, tokens, count, cpu, out, &bits);
    return bits <= INT32_MAX ? length : 0;
}

#if defined(__x86_64__)
/* The digest reads the message in pieces of 16 bytes. A piece that was not written as one makes the CPU wait until both
 * parts have left its store buffer, for each block of a chain anew; so the pieces around the parent are put together
 * here. */
#define PLACE_PARENT(at)                                                                                               \
    do {                                                                                                               \
        __m128i *pieces = (__m128i *)(void *)out;                                                                      \
        __m128i low = _mm_loadu_si128((const __m128i *)(const void *)parent);                                          \
        __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(parent + 16));                                  \
        __m128i before = _mm_srli_si128(_mm_slli_si128(_mm_loadu_si128(pieces), 16 - (at)), 16 - (at));                \
        __m128i after = _mm_slli_si128(_mm_srli_si128(_mm_loadu_si128(pieces + 2), (at)), (at));                       \
        _mm_storeu_si128(pieces, _mm_or_si128(before, _mm_slli_si128(low, (at))));                                     \
        _mm_storeu_si128(pieces + 1, _mm_or_si128(_mm_srli_si128(low, 16 - (at)), _mm_slli_si128(high, (at))));        \
        _mm_storeu_si128(pieces + 2, _mm_or_si128(_mm_srli_si128(high, 16 - (at)), after));                            \
    } while (0)

static void place_long_parent(uint8_t *out, const uint8_t *parent, bool pickle) {
    if (pickle)
        PLACE_PARENT(PICKLE_PARENT_AT);
    else
        PLACE_PARENT(CBOR_PARENT_AT);
}
#else
static void place_long_parent(uint8_t *out, const uint8_t *parent, bool pickle) {
    memcpy(out + (pickle ? PICKLE_PARENT_AT : CBOR_PARENT_AT), parent, MOON_SHA256_BYTES);
}
#endif

void moon_template_parent(enum moon_serialisation serialisation, const uint8_t *parent, size_t parent_bytes,
                          uint8_t *out) {
    if (parent_bytes == MOON_SHA256_BYTES)
        place_long_parent(out, parent, serialisation == MOON_PICKLE);
    else
        memcpy(out + (serialisation == MOON_PICKLE ? PICKLE_PARENT_AT : CBOR_SHORT_PARENT_AT), parent, parent_bytes);
}
