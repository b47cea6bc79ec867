// Central moments of integers, each rounded once to the nearest float64, of equally near ones to the even.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

namespace VARIANT {

__extension__ typedef unsigned __int128 Word;

struct Signed {
    Word size;
    bool is_negative;
};

// The integer of 2 or 4 digits d_i, from -2**31 to 2**31 - 1 each: the sum of d_i 2**(32 i).
template <int DIGITS>
ALWAYS_INLINE Signed signed_of(const int32_t *digits) {
    if (DIGITS == 2) {
        const int64_t sum = digits[1] * ((int64_t)1 << 32) + digits[0];
        return {sum < 0 ? -(uint64_t)sum : (uint64_t)sum, sum < 0};
    }
    Word sum = 0;
    for (int i = DIGITS; i-- > 0;) sum = (sum << 32) + (Word)(int64_t)digits[i];
    const bool is_negative = (sum >> 127) != 0;
    return {is_negative ? -sum : sum, is_negative};
}

// Products of integers, added up in four columns of 64 bits, of which carries are left to the end.
struct Columns {
    Word sums[4] = {};

    Columns() = default;
    Columns(Word a, Word b) { add(a, b); }

    void add(Word a, Word b) {
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) {
                const Word part = (Word)(uint64_t)(a >> 64 * i) * (uint64_t)(b >> 64 * j);
                sums[i + j] += (uint64_t)part;
                sums[i + j + 1] += (uint64_t)(part >> 64);
            }
    }
};

// An integer modulo 2**448, the lowest word first: W P and 2**bits <L, R> have at most 2**384.
struct Wide {
    static constexpr int N = 7, TOP = N - 2;  // the word above is for what a shift brings there
    uint64_t words[N] = {};

    Wide() = default;

    explicit Wide(const Columns &columns) {
        Word sum = 0;
        for (int i = 0; i < N; i++) {
            sum += i < 4 ? columns.sums[i] : 0;
            words[i] = (uint64_t)sum;
            sum >>= 64;
        }
    }

    bool is_negative() const { return words[N - 1] >> 63; }

    bool is_zero() const {
        return std::all_of(std::begin(words), std::end(words), [](uint64_t word) { return word == 0; });
    }

    bool is_below(const Wide &other) const {
        for (int i = N - 1; i >= 0; i--)
            if (words[i] != other.words[i]) return words[i] < other.words[i];
        return false;
    }

    // Add another one, or take it away.
    void add(const Wide &other, bool is_minus) {
        Word sum = is_minus;
        for (int i = 0; i < N; i++) {
            sum += (Word)words[i] + (is_minus ? ~other.words[i] : other.words[i]);
            words[i] = (uint64_t)sum;
            sum >>= 64;
        }
    }

    void shift_up(int bits) {
        const int whole = bits / 64, rest = bits % 64;
        for (int i = N - 1; i >= 0; i--) {
            const uint64_t high = i < whole ? 0 : words[i - whole], low = i <= whole ? 0 : words[i - whole - 1];
            words[i] = rest ? high << rest | low >> (64 - rest) : high;
        }
    }

    // Shift up until the highest bit, of which there must be one, is that of word TOP; return by how many.
    int normalise() {
        int i = TOP;
        while (words[i] == 0) i--;
        const int bits = 64 * (TOP - i) + __builtin_clzll(words[i]);
        shift_up(bits);
        return bits;
    }
};

// a / b, both positive, rounded once. One step of the division by digits of 64 bits (Knuth, Algorithm D) gives
// 65 bits of it; of the rest it matters whether there is any.
static double quotient(Wide a, Wide b) {
    int exponent = b.normalise() - a.normalise();
    if (a.is_below(b)) {
        a.shift_up(1);
        exponent--;
    }
    a.add(b, true);
    const uint64_t high = a.words[Wide::TOP], low = a.words[Wide::TOP - 1], top = b.words[Wide::TOP];
    uint64_t digit = high >= top ? ~0ull : (uint64_t)((((Word)high << 64) + low) / top);  // or less by 1 or 2
    Wide times;
    Word carried = 0;
    for (int i = 0; i < Wide::N; i++) {
        carried += (Word)b.words[i] * digit;
        times.words[i] = (uint64_t)carried;
        carried >>= 64;
    }
    a.shift_up(64);
    for (; a.is_below(times); digit--) times.add(b, true);
    a.add(times, true);
    const uint64_t tail = digit & 0xFFF, half = 0x800, whole = (1ull << 52) + (digit >> 12);
    const bool is_up = tail > half || (tail == half && (!a.is_zero() || (whole & 1)));
    return std::ldexp((double)(whole + is_up), exponent - 52);
}

// (W P - 2**bits <L, R>) / W**2; P / W where there are no L and R.
template <int DIGITS>
double central(Word W, Signed P, const int32_t *left, const int32_t *right, int64_t r, int bits) {
    if (r == 0 && W == 1) {
        const double size = P.size >> 63 ? (double)P.size : (double)(int64_t)P.size;
        return P.is_negative ? -size : size;
    }
    Wide sum;
    sum.add(Wide(Columns(r == 0 ? 1 : W, P.size)), P.is_negative);
    Columns taken[2];  // products above and below 0
    for (int64_t k = 0; k < r; k++) {
        const Signed L = signed_of<DIGITS>(left + k * DIGITS), R = signed_of<DIGITS>(right + k * DIGITS);
        taken[L.is_negative != R.is_negative].add(L.size, R.size);
    }
    for (int i = 0; r != 0 && i < 2; i++) {
        Wide part(taken[i]);
        part.shift_up(bits);
        sum.add(part, i == 0);
    }
    if (sum.is_zero()) return 0.0;
    const bool is_negative = sum.is_negative();
    Wide size;
    size.add(sum, is_negative);
    const double found = quotient(size, Wide(Columns(W, r == 0 ? 1 : W)));
    return is_negative ? -found : found;
}

template <int DIGITS>
void central_moments(const int32_t *weights, const int32_t *products, const int32_t *left, const int32_t *right,
                     int64_t G, int64_t E, int64_t r, int bits, double *result) {
    for (int64_t i = 0; i < G; i++) {
        const Signed W = signed_of<DIGITS>(weights + i * DIGITS);
        for (int64_t k = i * E; k < (i + 1) * E; k++)
            result[k] = central<DIGITS>(W.is_negative || W.size == 0 ? 1 : W.size,
                                        signed_of<DIGITS>(products + k * DIGITS), left + k * r * DIGITS,
                                        right + k * r * DIGITS, r, bits);
    }
}

// weights (G,), products (G, E), left and right (G, E, r), of two digits or four each; result (G, E) OUT. W is
// at least 1.
static void central_moments_of(const int32_t *weights, const int32_t *products, const int32_t *left,
                               const int32_t *right, int64_t G, int64_t E, int64_t r, int64_t n, int64_t bits,
                               double *result) {
    const auto run = n == 2 ? central_moments<2> : central_moments<4>;
    run(weights, products, left, right, G, E, r, (int)bits, result);
}

}  // namespace VARIANT
