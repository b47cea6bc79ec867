// Vectors of one instruction set: a dozen operations, each the same IEEE operation in every lane.
//
// A variant of the kernels is this file and the bodies compiled with the flags of an instruction
// set. No operation here may be fused, reassociated or approximated by the compiler
// (-ffp-contract=off, never -ffast-math): the integers of a sketch are the same on all machines.
//
//   F   LANES float32       I   LANES int32       D   DOUBLES = LANES / 2 float64

#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(SIMD_AVX512)
#include <immintrin.h>
#define VARIANT avx512
#elif defined(SIMD_AVX2)
#include <immintrin.h>
#define VARIANT avx2
#elif defined(SIMD_NEON)
#include <arm_neon.h>
#define VARIANT neon
#elif defined(SIMD_PLAIN)
#define VARIANT plain
#else
#error "define SIMD_AVX512, SIMD_AVX2, SIMD_NEON or SIMD_PLAIN"
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define ALWAYS_INLINE static __forceinline
#define UNROLL
#else
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#if defined(SIMD_PLAIN)
#define UNROLL
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#endif

namespace VARIANT {

#if defined(SIMD_AVX512)

constexpr int LANES = 16;
using F = __m512;
using D = __m512d;
using I = __m512i;

ALWAYS_INLINE F set(float x) { return _mm512_set1_ps(x); }
ALWAYS_INLINE D set(double x) { return _mm512_set1_pd(x); }
ALWAYS_INLINE I set(int32_t x) { return _mm512_set1_epi32(x); }
ALWAYS_INLINE F load(const float *p) { return _mm512_loadu_ps(p); }
ALWAYS_INLINE D load(const double *p) { return _mm512_loadu_pd(p); }
ALWAYS_INLINE I load(const int32_t *p) { return _mm512_loadu_si512(p); }
ALWAYS_INLINE void store(float *p, F a) { _mm512_storeu_ps(p, a); }
ALWAYS_INLINE void store(double *p, D a) { _mm512_storeu_pd(p, a); }
ALWAYS_INLINE void store(int32_t *p, I a) { _mm512_storeu_si512(p, a); }
ALWAYS_INLINE F add(F a, F b) { return _mm512_add_ps(a, b); }
ALWAYS_INLINE D add(D a, D b) { return _mm512_add_pd(a, b); }
ALWAYS_INLINE I add(I a, I b) { return _mm512_add_epi32(a, b); }
ALWAYS_INLINE F sub(F a, F b) { return _mm512_sub_ps(a, b); }
ALWAYS_INLINE D sub(D a, D b) { return _mm512_sub_pd(a, b); }
ALWAYS_INLINE I sub(I a, I b) { return _mm512_sub_epi32(a, b); }
ALWAYS_INLINE F mul(F a, F b) { return _mm512_mul_ps(a, b); }
ALWAYS_INLINE D mul(D a, D b) { return _mm512_mul_pd(a, b); }
ALWAYS_INLINE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
ALWAYS_INLINE D fma(D a, D b, D c) { return _mm512_fmadd_pd(a, b, c); }
ALWAYS_INLINE F least(F a, F b) { return _mm512_min_ps(a, b); }
ALWAYS_INLINE void take_less(F a, I i, F &least, I &index) {  // where a < least
    const __mmask16 is_less = _mm512_cmp_ps_mask(a, least, _CMP_LT_OQ);
    least = _mm512_mask_mov_ps(least, is_less, a);
    index = _mm512_mask_mov_epi32(index, is_less, i);
}
ALWAYS_INLINE uint32_t equal_bits(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
ALWAYS_INLINE float lane_least(F a) { return _mm512_reduce_min_ps(a); }
ALWAYS_INLINE D rint(D a) { return _mm512_roundscale_pd(a, 8); }
ALWAYS_INLINE I exclusive_or(I a, I b) { return _mm512_xor_si512(a, b); }
template <int N> ALWAYS_INLINE I shift_left(I a) { return _mm512_slli_epi32(a, N); }
ALWAYS_INLINE I bits(F a) { return _mm512_castps_si512(a); }
ALWAYS_INLINE F floats(I a) { return _mm512_castsi512_ps(a); }
ALWAYS_INLINE D widen(const float *p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
ALWAYS_INLINE F narrow(D a, D b) {
    return _mm512_castpd_ps(_mm512_insertf64x4(
        _mm512_castps_pd(_mm512_castps256_ps512(_mm512_cvtpd_ps(a))),
        _mm256_castps_pd(_mm512_cvtpd_ps(b)), 1));
}
ALWAYS_INLINE I low_bits(D a, D b) {  // the low halves of float64 bit patterns
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(_mm512_castpd_si512(a))),
                              _mm512_cvtepi64_epi32(_mm512_castpd_si512(b)), 1);
}

#elif defined(SIMD_AVX2)

constexpr int LANES = 8;
using F = __m256;
using D = __m256d;
using I = __m256i;

ALWAYS_INLINE F set(float x) { return _mm256_set1_ps(x); }
ALWAYS_INLINE D set(double x) { return _mm256_set1_pd(x); }
ALWAYS_INLINE I set(int32_t x) { return _mm256_set1_epi32(x); }
ALWAYS_INLINE F load(const float *p) { return _mm256_loadu_ps(p); }
ALWAYS_INLINE D load(const double *p) { return _mm256_loadu_pd(p); }
ALWAYS_INLINE I load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
ALWAYS_INLINE void store(float *p, F a) { _mm256_storeu_ps(p, a); }
ALWAYS_INLINE void store(double *p, D a) { _mm256_storeu_pd(p, a); }
ALWAYS_INLINE void store(int32_t *p, I a) { _mm256_storeu_si256((__m256i *)p, a); }
ALWAYS_INLINE F add(F a, F b) { return _mm256_add_ps(a, b); }
ALWAYS_INLINE D add(D a, D b) { return _mm256_add_pd(a, b); }
ALWAYS_INLINE I add(I a, I b) { return _mm256_add_epi32(a, b); }
ALWAYS_INLINE F sub(F a, F b) { return _mm256_sub_ps(a, b); }
ALWAYS_INLINE D sub(D a, D b) { return _mm256_sub_pd(a, b); }
ALWAYS_INLINE I sub(I a, I b) { return _mm256_sub_epi32(a, b); }
ALWAYS_INLINE F mul(F a, F b) { return _mm256_mul_ps(a, b); }
ALWAYS_INLINE D mul(D a, D b) { return _mm256_mul_pd(a, b); }
ALWAYS_INLINE F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
ALWAYS_INLINE D fma(D a, D b, D c) { return _mm256_fmadd_pd(a, b, c); }
ALWAYS_INLINE F least(F a, F b) { return _mm256_min_ps(a, b); }
ALWAYS_INLINE void take_less(F a, I i, F &least, I &index) {
    const F is_less = _mm256_cmp_ps(a, least, _CMP_LT_OQ);
    least = _mm256_blendv_ps(least, a, is_less);
    index = _mm256_blendv_epi8(index, i, _mm256_castps_si256(is_less));
}
ALWAYS_INLINE uint32_t equal_bits(F a, F b) {
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}
ALWAYS_INLINE float lane_least(F a) {
    __m128 b = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_min_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_min_ss(b, _mm_shuffle_ps(b, b, 1)));
}
ALWAYS_INLINE D rint(D a) { return _mm256_round_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
ALWAYS_INLINE I exclusive_or(I a, I b) { return _mm256_xor_si256(a, b); }
template <int N> ALWAYS_INLINE I shift_left(I a) { return _mm256_slli_epi32(a, N); }
ALWAYS_INLINE I bits(F a) { return _mm256_castps_si256(a); }
ALWAYS_INLINE F floats(I a) { return _mm256_castsi256_ps(a); }
ALWAYS_INLINE D widen(const float *p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
ALWAYS_INLINE F narrow(D a, D b) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(a)), _mm256_cvtpd_ps(b), 1);
}
ALWAYS_INLINE I low_bits(D a, D b) {
    const F low = _mm256_shuffle_ps(_mm256_castpd_ps(a), _mm256_castpd_ps(b), 0x88);
    return _mm256_permute4x64_epi64(_mm256_castps_si256(low), 0xD8);
}

#elif defined(SIMD_NEON)

constexpr int LANES = 4;
using F = float32x4_t;
using D = float64x2_t;
using I = int32x4_t;

ALWAYS_INLINE F set(float x) { return vdupq_n_f32(x); }
ALWAYS_INLINE D set(double x) { return vdupq_n_f64(x); }
ALWAYS_INLINE I set(int32_t x) { return vdupq_n_s32(x); }
ALWAYS_INLINE F load(const float *p) { return vld1q_f32(p); }
ALWAYS_INLINE D load(const double *p) { return vld1q_f64(p); }
ALWAYS_INLINE I load(const int32_t *p) { return vld1q_s32(p); }
ALWAYS_INLINE void store(float *p, F a) { vst1q_f32(p, a); }
ALWAYS_INLINE void store(double *p, D a) { vst1q_f64(p, a); }
ALWAYS_INLINE void store(int32_t *p, I a) { vst1q_s32(p, a); }
ALWAYS_INLINE F add(F a, F b) { return vaddq_f32(a, b); }
ALWAYS_INLINE D add(D a, D b) { return vaddq_f64(a, b); }
ALWAYS_INLINE I add(I a, I b) { return vaddq_s32(a, b); }
ALWAYS_INLINE F sub(F a, F b) { return vsubq_f32(a, b); }
ALWAYS_INLINE D sub(D a, D b) { return vsubq_f64(a, b); }
ALWAYS_INLINE I sub(I a, I b) { return vsubq_s32(a, b); }
ALWAYS_INLINE F mul(F a, F b) { return vmulq_f32(a, b); }
ALWAYS_INLINE D mul(D a, D b) { return vmulq_f64(a, b); }
ALWAYS_INLINE F fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
ALWAYS_INLINE D fma(D a, D b, D c) { return vfmaq_f64(c, a, b); }
ALWAYS_INLINE F least(F a, F b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
ALWAYS_INLINE void take_less(F a, I i, F &least, I &index) {
    const uint32x4_t is_less = vcltq_f32(a, least);
    least = vbslq_f32(is_less, a, least);
    index = vbslq_s32(is_less, i, index);
}
ALWAYS_INLINE uint32_t equal_bits(F a, F b) {
    const uint32_t bit[4] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(vceqq_f32(a, b), vld1q_u32(bit)));
}
ALWAYS_INLINE float lane_least(F a) { return vminvq_f32(a); }
ALWAYS_INLINE D rint(D a) { return vrndnq_f64(a); }
ALWAYS_INLINE I exclusive_or(I a, I b) { return veorq_s32(a, b); }
template <int N> ALWAYS_INLINE I shift_left(I a) { return vshlq_n_s32(a, N); }
ALWAYS_INLINE I bits(F a) { return vreinterpretq_s32_f32(a); }
ALWAYS_INLINE F floats(I a) { return vreinterpretq_f32_s32(a); }
ALWAYS_INLINE D widen(const float *p) { return vcvt_f64_f32(vld1_f32(p)); }
ALWAYS_INLINE F narrow(D a, D b) { return vcombine_f32(vcvt_f32_f64(a), vcvt_f32_f64(b)); }
ALWAYS_INLINE I low_bits(D a, D b) {
    return vcombine_s32(vmovn_s64(vreinterpretq_s64_f64(a)), vmovn_s64(vreinterpretq_s64_f64(b)));
}

#else  // plain: any machine, also one without fused multiply-adds

constexpr int LANES = 4;
template <typename T, int N> struct Vector { T lane[N]; };
using F = Vector<float, LANES>;
using D = Vector<double, LANES / 2>;
using I = Vector<int32_t, LANES>;

// a b + c rounded once: the product of float32 is exact in float64, and a sum that is rounded to
// odd there is rounded to float32 as if it had been exact
ALWAYS_INLINE float fma_of(float a, float b, float c) {
    const double product = (double)a * (double)b, addend = c;
    double sum = product + addend;
    const double rest = sum - product;
    const double error = (product - (sum - rest)) + (addend - rest);
    int64_t pattern, of_error;
    std::memcpy(&pattern, &sum, 8);
    std::memcpy(&of_error, &error, 8);
    const int64_t is_rounded_to_even = (int64_t)(error != 0.0) & ~pattern & 1;
    pattern += (((pattern ^ of_error) >> 63) | 1) & -is_rounded_to_even;  // towards the error
    std::memcpy(&sum, &pattern, 8);
    return (float)sum;
}
ALWAYS_INLINE double fma_of(double a, double b, double c) { return std::fma(a, b, c); }

#define LANEWISE(TYPE, COUNT, EXPRESSION) \
    TYPE r; \
    for (int i = 0; i < COUNT; i++) r.lane[i] = EXPRESSION; \
    return r
ALWAYS_INLINE F set(float x) { LANEWISE(F, LANES, x); }
ALWAYS_INLINE D set(double x) { LANEWISE(D, LANES / 2, x); }
ALWAYS_INLINE I set(int32_t x) { LANEWISE(I, LANES, x); }
ALWAYS_INLINE F load(const float *p) { LANEWISE(F, LANES, p[i]); }
ALWAYS_INLINE D load(const double *p) { LANEWISE(D, LANES / 2, p[i]); }
ALWAYS_INLINE I load(const int32_t *p) { LANEWISE(I, LANES, p[i]); }
ALWAYS_INLINE void store(float *p, F a) { std::memcpy(p, a.lane, sizeof a); }
ALWAYS_INLINE void store(double *p, D a) { std::memcpy(p, a.lane, sizeof a); }
ALWAYS_INLINE void store(int32_t *p, I a) { std::memcpy(p, a.lane, sizeof a); }
ALWAYS_INLINE F add(F a, F b) { LANEWISE(F, LANES, a.lane[i] + b.lane[i]); }
ALWAYS_INLINE D add(D a, D b) { LANEWISE(D, LANES / 2, a.lane[i] + b.lane[i]); }
ALWAYS_INLINE I add(I a, I b) {
    LANEWISE(I, LANES, (int32_t)((uint32_t)a.lane[i] + (uint32_t)b.lane[i]));
}
ALWAYS_INLINE F sub(F a, F b) { LANEWISE(F, LANES, a.lane[i] - b.lane[i]); }
ALWAYS_INLINE D sub(D a, D b) { LANEWISE(D, LANES / 2, a.lane[i] - b.lane[i]); }
ALWAYS_INLINE I sub(I a, I b) {
    LANEWISE(I, LANES, (int32_t)((uint32_t)a.lane[i] - (uint32_t)b.lane[i]));
}
ALWAYS_INLINE F mul(F a, F b) { LANEWISE(F, LANES, a.lane[i] * b.lane[i]); }
ALWAYS_INLINE D mul(D a, D b) { LANEWISE(D, LANES / 2, a.lane[i] * b.lane[i]); }
ALWAYS_INLINE F fma(F a, F b, F c) { LANEWISE(F, LANES, fma_of(a.lane[i], b.lane[i], c.lane[i])); }
ALWAYS_INLINE D fma(D a, D b, D c) {
    LANEWISE(D, LANES / 2, fma_of(a.lane[i], b.lane[i], c.lane[i]));
}
ALWAYS_INLINE F least(F a, F b) { LANEWISE(F, LANES, a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]); }
ALWAYS_INLINE void take_less(F a, I i, F &least, I &index) {
    for (int lane = 0; lane < LANES; lane++)
        if (a.lane[lane] < least.lane[lane]) {
            least.lane[lane] = a.lane[lane];
            index.lane[lane] = i.lane[lane];
        }
}
ALWAYS_INLINE uint32_t equal_bits(F a, F b) {
    uint32_t r = 0;
    for (int lane = 0; lane < LANES; lane++) r |= (uint32_t)(a.lane[lane] == b.lane[lane]) << lane;
    return r;
}
ALWAYS_INLINE float lane_least(F a) {
    float r = a.lane[0];
    for (int lane = 1; lane < LANES; lane++) r = a.lane[lane] < r ? a.lane[lane] : r;
    return r;
}
ALWAYS_INLINE D rint(D a) { LANEWISE(D, LANES / 2, std::nearbyint(a.lane[i])); }
ALWAYS_INLINE I exclusive_or(I a, I b) { LANEWISE(I, LANES, a.lane[i] ^ b.lane[i]); }
template <int N> ALWAYS_INLINE I shift_left(I a) {
    LANEWISE(I, LANES, (int32_t)((uint32_t)a.lane[i] << N));
}
ALWAYS_INLINE I bits(F a) { I r; std::memcpy(&r, &a, sizeof r); return r; }
ALWAYS_INLINE F floats(I a) { F r; std::memcpy(&r, &a, sizeof r); return r; }
ALWAYS_INLINE D widen(const float *p) { LANEWISE(D, LANES / 2, (double)p[i]); }
ALWAYS_INLINE F narrow(D a, D b) {
    LANEWISE(F, LANES, (float)(i < LANES / 2 ? a.lane[i] : b.lane[i - LANES / 2]));
}
ALWAYS_INLINE I low_bits(D a, D b) {
    int64_t wide[LANES];
    std::memcpy(wide, &a, sizeof a);
    std::memcpy(wide + LANES / 2, &b, sizeof b);
    LANEWISE(I, LANES, (int32_t)(uint32_t)(uint64_t)wide[i]);
}
#undef LANEWISE

#endif

constexpr int DOUBLES = LANES / 2;

#if defined(SIMD_AVX512) || defined(SIMD_AVX2)
ALWAYS_INLINE float lane_sum(__m128 a) {
    a = _mm_add_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_add_ss(a, _mm_shuffle_ps(a, a, 1)));
}
ALWAYS_INLINE float lane_sum(__m256 a) {
    return lane_sum(_mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)));
}
#if defined(SIMD_AVX512)
ALWAYS_INLINE float lane_sum(F a) {
    return lane_sum(_mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1)));
}
#endif
#else
ALWAYS_INLINE float lane_sum(F a) {
    float lane[LANES];
    store(lane, a);
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}
#endif

// Sums are kept in WIDTH parts on every machine, whatever the width of its vectors: so they are added
// in one order, and a fit gives the same digits everywhere.
constexpr int WIDTH = 16;

// The sum of WIDTH numbers, by halves.
ALWAYS_INLINE float sum_of_parts(const float *p) {
    F v[WIDTH / LANES];
    for (int i = 0; i < WIDTH / LANES; i++) v[i] = load(p + i * LANES);
    for (int half = WIDTH / LANES / 2; half >= 1; half /= 2)
        for (int i = 0; i < half; i++) v[i] = add(v[i], v[i + half]);
    return lane_sum(v[0]);
}

// Zeros that start at a multiple of 64 bytes: no vector then lies across two cache lines. Followed by
// another 64 bytes, so that a vector may be read from the last number on.
template <typename T> class Buffer {
    void *memory_;
    T *first_;

  public:
    explicit Buffer(int64_t size) : memory_(std::calloc((size_t)size * sizeof(T) + 128, 1)) {
        if (memory_ == nullptr) std::abort();  // a few megabytes at most
        first_ = (T *)(((uintptr_t)memory_ + 63) & ~(uintptr_t)63);
    }
    ~Buffer() { std::free(memory_); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    operator T *() { return first_; }
    operator const T *() const { return first_; }
};

}  // namespace VARIANT
