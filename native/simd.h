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
#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#define VARIANT plain
#else
#error "define SIMD_AVX512, SIMD_AVX2, SIMD_NEON or SIMD_PLAIN"
#endif

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
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

#else  // plain: any machine, also one without fused multiply-adds; the compiler finds its vectors

constexpr int LANES = 4;
template <typename T> using Vector __attribute__((vector_size(16))) = T;
using F = Vector<float>;
using D = Vector<double>;
using I = Vector<int32_t>;
using L = Vector<int64_t>;
constexpr double TO_INTEGERS_64 = 6755399441055744.0;  // 1.5 2^52: a last bit worth one

ALWAYS_INLINE F set(float x) { return F{x, x, x, x}; }
ALWAYS_INLINE D set(double x) { return D{x, x}; }
ALWAYS_INLINE I set(int32_t x) { return I{x, x, x, x}; }
template <typename V, typename T> ALWAYS_INLINE V load_vector(const T *p) {
    V a;
    std::memcpy(&a, p, sizeof a);
    return a;
}
ALWAYS_INLINE F load(const float *p) { return load_vector<F>(p); }
ALWAYS_INLINE D load(const double *p) { return load_vector<D>(p); }
ALWAYS_INLINE I load(const int32_t *p) { return load_vector<I>(p); }
ALWAYS_INLINE void store(float *p, F a) { std::memcpy(p, &a, sizeof a); }
ALWAYS_INLINE void store(double *p, D a) { std::memcpy(p, &a, sizeof a); }
ALWAYS_INLINE void store(int32_t *p, I a) { std::memcpy(p, &a, sizeof a); }
ALWAYS_INLINE F add(F a, F b) { return a + b; }
ALWAYS_INLINE D add(D a, D b) { return a + b; }
ALWAYS_INLINE I add(I a, I b) { return (I)((Vector<uint32_t>)a + (Vector<uint32_t>)b); }
ALWAYS_INLINE F sub(F a, F b) { return a - b; }
ALWAYS_INLINE D sub(D a, D b) { return a - b; }
ALWAYS_INLINE I sub(I a, I b) { return (I)((Vector<uint32_t>)a - (Vector<uint32_t>)b); }
ALWAYS_INLINE F mul(F a, F b) { return a * b; }
ALWAYS_INLINE D mul(D a, D b) { return a * b; }
ALWAYS_INLINE I select(I is_true, I a, I b) { return (is_true & a) | (~is_true & b); }
ALWAYS_INLINE F select(I is_true, F a, F b) { return (F)select(is_true, (I)a, (I)b); }
ALWAYS_INLINE F least(F a, F b) { return select(a < b, a, b); }
ALWAYS_INLINE void take_less(F a, I i, F &least, I &index) {
    const I is_less = a < least;
    least = select(is_less, a, least);
    index = select(is_less, i, index);
}
ALWAYS_INLINE uint32_t equal_bits(F a, F b) {
    const I bit = (a == b) & I{1, 2, 4, 8};
    return (uint32_t)(bit[0] | bit[1] | bit[2] | bit[3]);
}
ALWAYS_INLINE float lane_least(F a) {
    const float low = a[0] < a[1] ? a[0] : a[1], high = a[2] < a[3] ? a[2] : a[3];
    return low < high ? low : high;
}
ALWAYS_INLINE I exclusive_or(I a, I b) { return a ^ b; }
template <int N> ALWAYS_INLINE I shift_left(I a) { return (I)((Vector<uint32_t>)a << N); }
ALWAYS_INLINE I bits(F a) { return (I)a; }
ALWAYS_INLINE F floats(I a) { return (F)a; }
#if defined(__SSE2__)  // what the compiler does not find
ALWAYS_INLINE D low_half(F a) { return _mm_cvtps_pd(a); }
ALWAYS_INLINE D high_half(F a) { return _mm_cvtps_pd(_mm_movehl_ps(a, a)); }
ALWAYS_INLINE F narrow(D a, D b) { return _mm_movelh_ps(_mm_cvtpd_ps(a), _mm_cvtpd_ps(b)); }
ALWAYS_INLINE I low_bits(D a, D b) { return (I)_mm_shuffle_ps((F)a, (F)b, 0x88); }
ALWAYS_INLINE bool any(I is_true) { return _mm_movemask_ps((F)is_true) != 0; }
#else
ALWAYS_INLINE D low_half(F a) { return D{(double)a[0], (double)a[1]}; }
ALWAYS_INLINE D high_half(F a) { return D{(double)a[2], (double)a[3]}; }
ALWAYS_INLINE F narrow(D a, D b) { return F{(float)a[0], (float)a[1], (float)b[0], (float)b[1]}; }
ALWAYS_INLINE I low_bits(D a, D b) {
    const Vector<uint64_t> p = (Vector<uint64_t>)a, q = (Vector<uint64_t>)b;
    return I{(int32_t)(uint32_t)p[0], (int32_t)(uint32_t)p[1], (int32_t)(uint32_t)q[0], (int32_t)(uint32_t)q[1]};
}
ALWAYS_INLINE bool any(I is_true) { return (is_true[0] | is_true[1] | is_true[2] | is_true[3]) != 0; }
#endif
ALWAYS_INLINE D widen(const float *p) { return D{(double)p[0], (double)p[1]}; }

// Numbers below 2^51, to the nearest integers: by their last bit beside TO_INTEGERS_64. Larger ones are integers.
ALWAYS_INLINE D rint(D a) {
    const D magic = set(TO_INTEGERS_64);
    const L is_small = (a < set(2251799813685248.0)) & (a > set(-2251799813685248.0));
    const L sign = (L)a & (L)set(-0.0);
    return (D)((((L)((a + magic) - magic) & is_small) | ((L)a & ~is_small)) | sign);
}

// The sum and its exact error (Knuth).
ALWAYS_INLINE D two_sum(D a, D b, D &error) {
    const D sum = a + b, rest = sum - a;
    error = (a - (sum - rest)) + (b - rest);
    return sum;
}

// The sum rounded to odd: a later rounding to nearest is then as if it were the only one. Where the
// sum is not exact, it is cut towards 0 and gets a last bit of 1.
ALWAYS_INLINE D sum_to_odd(D a, D b) {
    using U = Vector<uint64_t>;
    D error;
    const D sum = two_sum(a, b, error);
    const U is_rounded = (U)(error != set(0.0)) >> 63, is_too_large = (U)((L)sum ^ (L)error) >> 63;
    return (D)(((U)sum - (is_rounded & is_too_large)) | is_rounded);
}

// a b + c rounded once. The product of float32 is exact in float64; that the sum is rounded there first
// does harm only where it then lies between two float32, or among those of fewer than 24 bits.
__attribute__((noinline)) static F fma_by_odd(F a, F b, F c) {
    return narrow(sum_to_odd(low_half(a) * low_half(b), low_half(c)),
                  sum_to_odd(high_half(a) * high_half(b), high_half(c)));
}
ALWAYS_INLINE F fma(F a, F b, F c) {
    const D low = low_half(a) * low_half(b) + low_half(c), high = high_half(a) * high_half(b) + high_half(c);
    const F sum = narrow(low, high);
    const I is_between = (low_bits(low, high) & 0x1FFFFFFF) == 0x10000000;
    const I is_tiny = (F)((I)sum & INT32_MAX) <= set(0x1p-126f);
    const I is_unsure = is_between | is_tiny;  // not of infinities
    if (__builtin_expect(!any(is_unsure), 1)) return sum;
    return select(is_unsure, fma_by_odd(a, b, c), sum);
}

// The same, b a float32 number: products of its 24 bits with either half of a are exact.
ALWAYS_INLINE D fma(D a, D b, D c) {
    const D wide = a * 134217729.0, high_a = wide - (wide - a), product = a * b;  // Veltkamp's halves
    D low = (high_a * b - product) + (a - high_a) * b;
    D middle = two_sum(c, low, low);
    const D high = two_sum(product, middle, middle);
    return high + sum_to_odd(low, middle);
}

#endif

constexpr int DOUBLES = LANES / 2;

// a b + c of integers that leave nothing to round
ALWAYS_INLINE D add_product(D a, D b, D c) {
#if defined(SIMD_PLAIN)
    return a * b + c;
#else
    return fma(a, b, c);
#endif
}

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
