// Cosines and sines of phases in turns: the definition is kernels/reference.py, to the bit.

#pragma once

#include "simd.h"

namespace VARIANT {

constexpr int BITS = 22;
constexpr float TO_HALF_TURNS = 6291456.0f;     // 1.5 2^22: a last bit worth half a turn
constexpr double TO_HALF_TURNS_64 = 3377699720527872.0;  // 1.5 2^51
constexpr float TO_INTEGERS = 12582912.0f;      // 1.5 2^23: a last bit worth one
constexpr int32_t MAGIC_BITS = 0x4B400000;      // the bit pattern of TO_INTEGERS

constexpr float SCALE = 4194304.0f;  // 2^BITS
constexpr float SINE[5] = {6.283185005187988f * SCALE, -41.34165573120117f * SCALE,
                           81.60100555419922f * SCALE, -76.5497817993164f * SCALE,
                           39.536705017089844f * SCALE};
constexpr float COSINE[6] = {1.0f * SCALE, -19.739208221435547f * SCALE,
                             64.9393539428711f * SCALE, -85.45382690429688f * SCALE,
                             60.1482048034668f * SCALE, -25.00679588317871f * SCALE};

// LANES phases: one vector of float32, or two of float64
template <typename Real> struct Phases;
template <> struct Phases<float> { F a; };
template <> struct Phases<double> { D a, b; };

ALWAYS_INLINE void clear(Phases<float> &t) { t.a = set(0.0f); }
ALWAYS_INLINE void clear(Phases<double> &t) { t.a = t.b = set(0.0); }
ALWAYS_INLINE Phases<float> turns_of(const float *p, float) { return {load(p)}; }
ALWAYS_INLINE Phases<double> turns_of(const float *p, double) {
    return {widen(p), widen(p + DOUBLES)};
}
ALWAYS_INLINE void add_product(float x, const Phases<float> &turns, Phases<float> &t) {
    t.a = fma(set(x), turns.a, t.a);
}
ALWAYS_INLINE void add_product(double x, const Phases<double> &turns, Phases<double> &t) {
    const D value = set(x);
    t.a = fma(value, turns.a, t.a);
    t.b = fma(value, turns.b, t.b);
}

// What is left after whole half turns, in float32, and their parity as a sign bit.
ALWAYS_INLINE void reduce(const Phases<float> &t, F &rest, I &sign) {
    const F magic = set(TO_HALF_TURNS), shifted = add(t.a, magic);
    rest = sub(t.a, sub(shifted, magic));
    sign = shift_left<31>(bits(shifted));
}
ALWAYS_INLINE void reduce(const Phases<double> &t, F &rest, I &sign) {
    const D magic = set(TO_HALF_TURNS_64), a = add(t.a, magic), b = add(t.b, magic);
    rest = narrow(sub(t.a, sub(a, magic)), sub(t.b, sub(b, magic)));
    sign = shift_left<31>(low_bits(a, b));
}

// 2^BITS times cosine and sine of |rest| <= 1/4 turns.
ALWAYS_INLINE void cos_sin(F rest, F &cosine, F &sine) {
    const F u = mul(rest, rest);
    F c = set(COSINE[5]), s = set(SINE[4]);
    UNROLL for (int i = 4; i >= 0; i--) c = fma(c, u, set(COSINE[i]));
    UNROLL for (int i = 3; i >= 0; i--) s = fma(s, u, set(SINE[i]));
    cosine = c;
    sine = mul(s, rest);
}

// The bit pattern of a b + TO_INTEGERS, rounded once.
ALWAYS_INLINE I integer_product(F a, F b) {
#if defined(SIMD_PLAIN)  // halves are frequent here: an exact product, rounded in float64
    const D magic = set(TO_INTEGERS_64);
    const D low = low_half(a) * low_half(b) + magic, high = high_half(a) * high_half(b) + magic;
    return add(low_bits(low, high), set(MAGIC_BITS));
#else
    return bits(fma(a, b, set(TO_INTEGERS)));
#endif
}

// Bit patterns whose excess over MAGIC_BITS is what a row of that weight adds.
template <typename Real>
ALWAYS_INLINE void weighted_integers(const Phases<Real> &t, F weight, I &cosine, I &sine) {
    F rest, c, s;
    I sign;
    reduce(t, rest, sign);
    const F signed_weight = floats(exclusive_or(bits(weight), sign));
    cos_sin(rest, c, s);
    cosine = integer_product(c, signed_weight);
    sine = integer_product(s, signed_weight);
}

}  // namespace VARIANT
