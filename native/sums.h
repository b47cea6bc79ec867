// Exact sums over rows: waves at frequencies one by one or structured, normalisation, moments.

#pragma once

#include <algorithm>

#include "waves.h"

namespace VARIANT {

// --- frequencies one by one ---------------------------------------------------------------------
// A tile of ROWS rows by VECTORS vectors of frequencies keeps its phases in registers while the
// columns go by; cosines and sines are then added as int32, for at most GROUP rows, and widened.

constexpr int ROWS = 6, VECTORS = 2, PANEL = WIDTH * VECTORS;
constexpr int GROUP = 252;  // a multiple of ROWS; GROUP << BITS fits int32

template <typename Real>
ALWAYS_INLINE void add_tile(const Real *const *x, const float *weights, const float *panel,
                            int64_t d, I (&sums)[VECTORS][2]) {
    Phases<Real> t[ROWS][VECTORS];
    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < VECTORS; v++) clear(t[r][v]);
    for (int64_t k = 0; k < d; k++) {
        Phases<Real> turns[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; v++)
            turns[v] = turns_of(panel + k * PANEL + v * LANES, Real());
        UNROLL for (int r = 0; r < ROWS; r++)
            UNROLL for (int v = 0; v < VECTORS; v++) add_product(x[r][k], turns[v], t[r][v]);
    }
    UNROLL for (int r = 0; r < ROWS; r++) {
        const F weight = set(weights[r]);
        UNROLL for (int v = 0; v < VECTORS; v++) {
            I cosine, sine;
            weighted_integers(t[r][v], weight, cosine, sine);
            sums[v][0] = add(sums[v][0], cosine);
            sums[v][1] = add(sums[v][1], sine);
        }
    }
}

template <typename Real>
void add_group(const Real *rows, const float *weights, const float *panel, int64_t d, int64_t n,
               int64_t *totals) {
    I sums[VECTORS][2];
    UNROLL for (int v = 0; v < VECTORS; v++) sums[v][0] = sums[v][1] = set((int32_t)0);
    for (int64_t row = 0; row < n; row += ROWS) {
        const Real *x[ROWS];
        UNROLL for (int r = 0; r < ROWS; r++) x[r] = rows + (row + r) * d;
        add_tile<Real>(x, weights + row, panel, d, sums);
    }
    const uint32_t magic = (uint32_t)n * (uint32_t)MAGIC_BITS;
    for (int v = 0; v < VECTORS; v++)
        for (int wave = 0; wave < 2; wave++) {
            int32_t lane[LANES];
            store(lane, sums[v][wave]);
            for (int i = 0; i < LANES; i++)
                totals[wave * PANEL + v * LANES + i] += (int32_t)((uint32_t)lane[i] - magic);
        }
}

// Rows of one run (n, d), weights (n,), panels (panels, d, PANEL), totals (2, m) IN/OUT; sums (panels,
// 2, PANEL) of zeros, which they are again, and last (ROWS, d) are for scratch.
template <typename Real>
void add_run(const Real *rows, const float *weights, int64_t n, int64_t d, const float *panels,
             int64_t m, int64_t *sums, Real *last, int64_t *totals) {
    const int64_t n_panels = (m + PANEL - 1) / PANEL, whole = n - n % ROWS;
    float last_weights[ROWS] = {};  // what is missing in the last tile has weight 0
    std::copy(rows + whole * d, rows + n * d, last);
    std::copy(weights + whole, weights + n, last_weights);
    for (int64_t first = 0; first < whole; first += GROUP) {
        const int64_t size = std::min<int64_t>(GROUP, whole - first);
        for (int64_t p = 0; p < n_panels; p++)
            for (int part = 0; part < PANEL; part += VECTORS * LANES)
                add_group<Real>(rows + first * d, weights + first, panels + p * d * PANEL + part, d, size,
                                sums + p * 2 * PANEL + part);
    }
    if (whole < n)
        for (int64_t p = 0; p < n_panels; p++)
            for (int part = 0; part < PANEL; part += VECTORS * LANES)
                add_group<Real>(last, last_weights, panels + p * d * PANEL + part, d, ROWS,
                                sums + p * 2 * PANEL + part);
    for (int64_t wave = 0; wave < 2; wave++)
        for (int64_t j = 0; j < m; j++)
            totals[wave * m + j] += sums[(j / PANEL * 2 + wave) * PANEL + j % PANEL];
    std::fill(sums, sums + n_panels * 2 * PANEL, 0);
}

// Runs of rows: run r has those from starts[r] on, and adds to totals + slots[r] 2 m.
template <typename Real>
void dense(const Real *rows, const float *weights, const int64_t *starts, const int64_t *slots, int64_t n_runs,
           int64_t d, const float *panels, int64_t m, int64_t *totals) {
    Buffer<int64_t> sums((m + PANEL - 1) / PANEL * 2 * PANEL);
    Buffer<Real> last(ROWS * d);
    for (int64_t r = 0; r < n_runs; r++)
        add_run<Real>(rows + starts[r] * d, weights + starts[r], starts[r + 1] - starts[r], d, panels, m, sums,
                      last, totals + slots[r] * 2 * m);
}

// --- structured frequencies ---------------------------------------------------------------------
// Here a lane is a row: a vector holds one coordinate of LANES rows. The butterflies of a few levels
// are done in registers before memory is written, small strides while the rows are in the nearest
// cache; the last three levels go straight into the cosines and sines.

constexpr int VECTOR_GROUP = 256;  // vectors of rows whose integers a lane of int32 can hold
constexpr int NEAR_VECTORS = 512;  // that fit the nearest cache
constexpr int TOGETHER = 4;        // vectors of rows that pass a block while its sums are in cache

ALWAYS_INLINE Phases<float> read(const float *p) { return {load(p)}; }
ALWAYS_INLINE Phases<double> read(const double *p) { return {load(p), load(p + DOUBLES)}; }
ALWAYS_INLINE void write(float *p, const Phases<float> &a) { store(p, a.a); }
ALWAYS_INLINE void write(double *p, const Phases<double> &a) {
    store(p, a.a);
    store(p + DOUBLES, a.b);
}
ALWAYS_INLINE Phases<float> plus(Phases<float> x, Phases<float> y) { return {add(x.a, y.a)}; }
ALWAYS_INLINE Phases<double> plus(Phases<double> x, Phases<double> y) {
    return {add(x.a, y.a), add(x.b, y.b)};
}
ALWAYS_INLINE Phases<float> minus(Phases<float> x, Phases<float> y) { return {sub(x.a, y.a)}; }
ALWAYS_INLINE Phases<double> minus(Phases<double> x, Phases<double> y) {
    return {sub(x.a, y.a), sub(x.b, y.b)};
}
ALWAYS_INLINE Phases<float> times(Phases<float> x, float f) { return {mul(x.a, set(f))}; }
ALWAYS_INLINE Phases<double> times(Phases<double> x, double f) {
    const D factor = set(f);
    return {mul(x.a, factor), mul(x.b, factor)};
}

enum class Order { none, up, down };  // strides 1, 2, 4, ... or ..., 4, 2, 1

template <int RADIX, int STRIDE, typename Real>
ALWAYS_INLINE void butterfly(Phases<Real> (&v)[RADIX]) {
    UNROLL for (int i = 0; i < RADIX; i++)
        if (!(i & STRIDE)) {
            const Phases<Real> a = v[i], b = v[i + STRIDE];
            v[i] = plus(a, b);
            v[i + STRIDE] = minus(a, b);
        }
}

template <int RADIX, Order ORDER, typename Real> ALWAYS_INLINE void butterflies(Phases<Real> (&v)[RADIX]) {
    if constexpr (ORDER == Order::up) {
        butterfly<RADIX, 1>(v);
        butterfly<RADIX, 2>(v);
        if constexpr (RADIX > 4) butterfly<RADIX, 4>(v);
        if constexpr (RADIX > 8) butterfly<RADIX, 8>(v);
    } else if constexpr (ORDER == Order::down) {
        if constexpr (RADIX > 8) butterfly<RADIX, 8>(v);
        if constexpr (RADIX > 4) butterfly<RADIX, 4>(v);
        butterfly<RADIX, 2>(v);
        butterfly<RADIX, 1>(v);
    }
}

// Vectors i, i + h, i + 2 h, ...: butterflies, signs, butterflies.
template <int RADIX, Order BEFORE, Order AFTER, bool SIGNED, typename Real>
ALWAYS_INLINE void pass(const Real *source, const Real *signs, Real *target, int64_t i, int64_t h) {
    Phases<Real> v[RADIX];
    UNROLL for (int r = 0; r < RADIX; r++) v[r] = read(source + (i + h * r) * LANES);
    butterflies<RADIX, BEFORE>(v);
    if constexpr (SIGNED)
        UNROLL for (int r = 0; r < RADIX; r++) v[r] = times(v[r], signs[i + h * r]);
    butterflies<RADIX, AFTER>(v);
    UNROLL for (int r = 0; r < RADIX; r++) write(target + (i + h * r) * LANES, v[r]);
}

template <typename Real>
ALWAYS_INLINE void climb(Real *y, const Real *signs, int64_t size, int64_t first, int64_t span, int radix) {
    for (int64_t h = radix; h < size / 8; h *= 8)
        for (int64_t start = first; start < first + span; start += 8 * h)
            for (int64_t i = start; i < start + h; i++)
                pass<8, Order::none, Order::up, false>(y, signs, y, i, h);
}

// H D1 H D2 H D3 of the lanes of padded (size, LANES), but for the last three levels.
template <int RADIX, typename Real>
void transform(const Real *padded, const Real *signs, Real *y, int64_t size) {
    const int64_t last = size / 8, span = std::max(last, std::min<int64_t>(size, NEAR_VECTORS));
    const Real *second = signs + size, *third = signs + 2 * size;
    for (int64_t first = 0; first < size; first += span) {
        for (int64_t i = first; i < first + span; i += RADIX)
            pass<RADIX, Order::none, Order::up, true>(padded, signs, y, i, 1);
        climb(y, signs, size, first, span, RADIX);
    }
    for (int64_t i = 0; i < last; i++) pass<8, Order::up, Order::down, true>(y, second, y, i, last);
    for (int64_t first = 0; first < size; first += span) {
        for (int64_t h = last / 8; h >= RADIX; h /= 8)
            for (int64_t start = first; start < first + span; start += 8 * h)
                for (int64_t i = start; i < start + h; i++)
                    pass<8, Order::none, Order::down, false>(y, second, y, i, h);
        for (int64_t i = first; i < first + span; i += RADIX)
            pass<RADIX, Order::down, Order::up, true>(y, third, y, i, 1);
        climb(y, third, size, first, span, RADIX);
    }
}

// Last butterflies of vectors i, i + h, ..., i + 7 h; adds their integers to sums (size, 2, LANES).
template <typename Real>
ALWAYS_INLINE void finish(const Real *y, int64_t i, int64_t h, const float *radii, F weight, int32_t *sums) {
    Phases<Real> v[8];
    UNROLL for (int r = 0; r < 8; r++) v[r] = read(y + (i + h * r) * LANES);
    butterflies<8, Order::up>(v);
    UNROLL for (int r = 0; r < 8; r++) {
        const int64_t j = i + h * r;
        I cosine, sine;
        weighted_integers(times(v[r], (Real)radii[j]), weight, cosine, sine);
        int32_t *to = sums + j * 2 * LANES;
        store(to, add(load(to), cosine));
        store(to + LANES, add(load(to + LANES), sine));
    }
}

template <typename Real>
void transform_any(const Real *padded, const Real *signs, Real *y, int64_t size, int radix) {
    if (radix == 4) transform<4>(padded, signs, y, size);
    else if (radix == 8) transform<8>(padded, signs, y, size);
    else transform<16>(padded, signs, y, size);
}

// Rows (n, d) with n up to LANES into lanes (size, LANES), in squares that stay in cache; the lanes of
// rows that are missing hold what they held.
template <typename Real> void transpose(const Real *rows, int64_t n, int64_t d, Real *lanes) {
    const int64_t whole = d - d % LANES;
    for (int64_t first = 0; first < whole; first += LANES)
        for (int64_t lane = 0; lane < n; lane++)
            UNROLL for (int k = 0; k < LANES; k++) lanes[(first + k) * LANES + lane] = rows[lane * d + first + k];
    for (int64_t lane = 0; lane < n; lane++)
        for (int64_t k = whole; k < d; k++) lanes[k * LANES + lane] = rows[lane * d + k];
}

// Adds sums (at least m, 2, LANES) of so many vectors to totals (2, m).
inline void add_lanes(const int32_t *sums, int64_t n_vectors, int64_t m, int64_t *totals) {
    const uint32_t magic = (uint32_t)n_vectors * (uint32_t)MAGIC_BITS;
    const bool is_short = n_vectors * LANES <= VECTOR_GROUP;  // the lanes together fit int32
    for (int64_t j = 0; j < m; j++)
        for (int64_t wave = 0; wave < 2; wave++, sums += LANES) {
            int64_t total = 0;
            uint32_t of_few = 0;
            if (is_short) {
                for (int lane = 0; lane < LANES; lane++) of_few += (uint32_t)sums[lane];
                total = (int32_t)(of_few - LANES * magic);
            } else {
                for (int lane = 0; lane < LANES; lane++) total += (int32_t)((uint32_t)sums[lane] - magic);
            }
            totals[wave * m + j] += total;
        }
}

// rows (n, d), weights (n,), signs (blocks, 3, size), radii (blocks size,), totals (2, m) IN/OUT
template <typename Real>
void structured_run(const Real *rows, const float *weights, int64_t n, int64_t d, const Real *signs,
                const float *radii, int64_t n_blocks, int64_t size, int64_t m, int64_t *totals) {
    int levels = 0;
    while ((int64_t(1) << levels) < size) levels++;
    const int radix = levels % 3 == 0 ? 8 : levels % 3 == 1 ? 16 : 4;
    Buffer<Real> padded(TOGETHER * size * LANES), y(size * LANES);
    Buffer<int32_t> sums(n_blocks * size * 2 * LANES);
    const int64_t h = size / 8;
    for (int64_t group = 0; group < n; group += VECTOR_GROUP * LANES) {
        const int64_t stop = std::min(n, group + (int64_t)VECTOR_GROUP * LANES);
        if (group > 0) std::fill((int32_t *)sums, sums + n_blocks * size * 2 * LANES, 0);
        for (int64_t first = group; first < stop; first += TOGETHER * LANES) {
            float of_lanes[TOGETHER * LANES] = {};  // rows that are missing have weight 0
            std::copy(weights + first, weights + std::min(stop, first + TOGETHER * LANES), of_lanes);
            const int64_t together = std::min<int64_t>(TOGETHER, (stop - first + LANES - 1) / LANES);
            for (int64_t v = 0; v < together; v++) {
                const int64_t row = first + v * LANES;
                transpose(rows + row * d, std::min<int64_t>(LANES, stop - row), d, padded + v * size * LANES);
            }
            for (int64_t block = 0; block < n_blocks; block++)
                for (int64_t v = 0; v < together; v++) {
                    transform_any<Real>(padded + v * size * LANES, signs + block * 3 * size, y, size, radix);
                    const F weight = load(of_lanes + v * LANES);
                    for (int64_t i = 0; i < h; i++)
                        finish<Real>(y, i, h, radii + block * size, weight, sums + block * size * 2 * LANES);
                }
        }
        add_lanes(sums, (stop - group + LANES - 1) / LANES, m, totals);
    }
}

// Runs of rows, as above.
template <typename Real>
void structured(const Real *rows, const float *weights, const int64_t *starts, const int64_t *slots,
                int64_t n_runs, int64_t d, const Real *signs, const float *radii, int64_t n_blocks,
                int64_t size, int64_t m, int64_t *totals) {
    for (int64_t r = 0; r < n_runs; r++)
        structured_run<Real>(rows + starts[r] * d, weights + starts[r], starts[r + 1] - starts[r], d, signs,
                             radii, n_blocks, size, m, totals + slots[r] * 2 * m);
}

// --- once a row -----------------------------------------------------------------------------------

// x' = (x - center) per_unit, and the sum of squares in the order of the columns
template <typename Real>
void normalise(const Real *X, int64_t n, int64_t d, const double *center, const double *per_unit,
               double *rows, double *squared_norms) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < d; k++)
            rows[i * d + k] = ((double)X[i * d + k] - center[k]) * per_unit[k];
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {  // four chains of additions at a time hide their latency
        double s[4] = {0.0, 0.0, 0.0, 0.0};
        for (int64_t k = 0; k < d; k++)
            for (int r = 0; r < 4; r++) s[r] += rows[(i + r) * d + k] * rows[(i + r) * d + k];
        std::copy(s, s + 4, squared_norms + i);
    }
    for (; i < n; i++) {
        double total = 0.0;
        for (int64_t k = 0; k < d; k++) total += rows[i * d + k] * rows[i * d + k];
        squared_norms[i] = total;
    }
}

// --- moments --------------------------------------------------------------------------------------
// Sums of integers in float64, exact below 2^53.

constexpr int STRIP = 64, STRIP_NUMBERS = 4096;  // rows at a time, numbers: the nearest cache
constexpr int STRIPS = 64;                 // strips whose columns have exact sums
constexpr double EXACT = 4503599627370496.0;   // 2^52: squares up to it have exact sums of products
constexpr double LONG_ROW = 1099511627776.0;   // 2^40: what a row of halves adds at most
constexpr double SHORT_ROW = 17592186044416.0; // 2^44: squares of a row, in the mean of a strip
constexpr double LIMB = 1048576.0;             // 2^LIMB_BITS
constexpr int TALL = 4, WIDE = 2 * DOUBLES;    // a tile of products: its sums stay in registers

// rint(v) and rint(LIMB (v - rint(v))), v = K x; returns the sum of squares
inline double round_all(const double *values, int64_t size, double per_unit, double *rounded, double *rests) {
    const int64_t whole = size - size % DOUBLES;
    const D factor = set(per_unit), limb = set(LIMB);
    D total = set(0.0);
    for (int64_t i = 0; i < whole; i += DOUBLES) {
        const D value = mul(load(values + i), factor), integer = rint(value);
        store(rounded + i, integer);
        store(rests + i, rint(mul(sub(value, integer), limb)));
        total = add_product(integer, integer, total);
    }
    double squares[DOUBLES], sum = 0.0;
    store(squares, total);
    for (int64_t i = whole; i < size; i++) {
        const double value = values[i] * per_unit, integer = std::nearbyint(value);
        rounded[i] = integer;
        rests[i] = std::nearbyint((value - integer) * LIMB);
        squares[0] += integer * integer;
    }
    for (int i = 0; i < DOUBLES; i++) sum += squares[i];
    return sum;
}

// Adds sums over rows of a[row, i : i + TALL] times b[row, j : j + WIDE] to tile (TALL, WIDE).
inline void add_products_tile(const double *a, const double *b, int64_t i, int64_t j, int64_t d, int64_t n,
                              double *tile) {
    D sums[TALL][2];
    UNROLL for (int r = 0; r < TALL; r++)
        UNROLL for (int h = 0; h < 2; h++) sums[r][h] = load(tile + r * WIDE + h * DOUBLES);
    for (int64_t row = 0; row < n; row++) {
        const double *left = a + row * d + i, *right = b + row * d + j;
        const D first = load(right), second = load(right + DOUBLES);
        UNROLL for (int r = 0; r < TALL; r++) {
            const D value = set(left[r]);
            sums[r][0] = add_product(value, first, sums[r][0]);
            sums[r][1] = add_product(value, second, sums[r][1]);
        }
    }
    UNROLL for (int r = 0; r < TALL; r++)
        UNROLL for (int h = 0; h < 2; h++) store(tile + r * WIDE + h * DOUBLES, sums[r][h]);
}

// Adds sums over rows of b[row, j : j + WIDE], times a there unless it is null, to line (WIDE,).
inline void add_line(const double *a, const double *b, int64_t j, int64_t d, int64_t n, double *line) {
    D first = load(line), second = load(line + DOUBLES);
    const D one = set(1.0);
    for (int64_t row = 0; row < n; row++) {
        const double *right = b + row * d + j, *left = a == nullptr ? nullptr : a + row * d + j;
        first = add_product(left == nullptr ? one : load(left), load(right), first);
        second = add_product(left == nullptr ? one : load(left + DOUBLES), load(right + DOUBLES), second);
    }
    store(line, first);
    store(line + DOUBLES, second);
}

struct Products {  // of the columns, in three limbs
    int64_t d;
    bool full;
    int64_t n_tiles;
    Buffer<double> tiles;

    Products(int64_t d, bool full)
        : d(d), full(full),
          n_tiles((full ? (d + TALL - 1) / TALL : 1) * ((d + WIDE - 1) / WIDE)),
          tiles(3 * n_tiles * TALL * WIDE) {}

    void add(const double *a, const double *b, int64_t n, int limb) {
        double *tile = tiles + limb * n_tiles * TALL * WIDE;
        for (int64_t i = 0; i < (full ? d : 0); i += TALL)
            for (int64_t j = i; j < d; j += WIDE, tile += TALL * WIDE)
                add_products_tile(a, b, i, j, d, n, tile);
        for (int64_t j = 0; j < (full ? 0 : d); j += WIDE, tile += TALL * WIDE)
            add_line(a, b, j, d, n, tile);
    }

    void flush(int64_t *sums, int64_t stride) {  // to sums (3, stride), as integers
        for (int limb = 0; limb < 3; limb++) {
            const double *tile = (double *)tiles + limb * n_tiles * TALL * WIDE;
            int64_t *to = sums + limb * stride;
            for (int64_t i = 0; i < (full ? d : 0); i += TALL)
                for (int64_t j = i; j < d; j += WIDE, tile += TALL * WIDE)
                    for (int64_t p = i; p < std::min<int64_t>(i + TALL, d); p++)
                        for (int64_t q = std::max(p, j); q < std::min<int64_t>(j + WIDE, d); q++)
                            to[p * d - p * (p - 1) / 2 + q - p] += (int64_t)tile[(p - i) * WIDE + q - j];
            for (int64_t p = 0; p < (full ? 0 : d); p++)
                to[p] += (int64_t)tile[p / WIDE * TALL * WIDE + p % WIDE];
        }
        std::fill((double *)tiles, tiles + 3 * n_tiles * TALL * WIDE, 0.0);
    }
};

// rows of runs (see dense), factors (n,) and their roots or null, limbs of each slot (3, 2 d + products)
// IN/OUT
inline void moments(const double *rows, const double *factors, const double *roots, const int64_t *starts,
                    const int64_t *slots, int64_t n_runs, int64_t d, double per_unit, bool full,
                    int64_t *all_limbs) {
    const int64_t n_products = full ? d * (d + 1) / 2 : d, stride = 2 * d + n_products;
    const int64_t rows_of_strip = std::min<int64_t>(std::max<int64_t>(STRIP_NUMBERS / d, 8), STRIP);
    const int64_t size = rows_of_strip * d, slack = TALL + WIDE, n_lines = (d + WIDE - 1) / WIDE;
    Buffer<double> rounded(size + slack), rests(size + slack), scaled(size);
    Buffer<double> high(size + slack), low(size + slack), lines(2 * n_lines * WIDE);
    Products products(d, full);
    double pending = 0.0;
    int64_t n_strips = 0, *limbs = all_limbs;
    const auto flush_columns = [&] {
        for (int64_t k = 0; k < d; k++) {
            limbs[k] += (int64_t)lines[k];
            limbs[d + k] += (int64_t)lines[n_lines * WIDE + k];
        }
        std::fill((double *)lines, lines + 2 * n_lines * WIDE, 0.0);
    };
    const auto scale = [&](const double *strip, const double *by, int64_t n) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < d; k++) scaled[i * d + k] = by[i] * strip[i * d + k];
        return (const double *)scaled;
    };
    for (int64_t run = 0; run < n_runs; run++) {
        limbs = all_limbs + slots[run] * 3 * stride;
        const int64_t n_rows = starts[run + 1];
        for (int64_t first = starts[run]; first < n_rows; first += rows_of_strip) {
            const int64_t n = std::min(rows_of_strip, n_rows - first);
            const double *strip = rows + first * d;
            const double *values = factors == nullptr ? strip : scale(strip, factors + first, n);
            double squares = round_all(values, n * d, per_unit, rounded, rests);
            for (int64_t j = 0; j < d; j += WIDE) {
                add_line(nullptr, rounded, j, d, n, lines + j);
                add_line(nullptr, rests, j, d, n, lines + n_lines * WIDE + j);
            }
            if (++n_strips % STRIPS == 0) flush_columns();
            if (factors != nullptr) {
                values = scale(strip, roots + first, n);
                squares = round_all(values, n * d, per_unit, rounded, rests);
            }
            const bool is_short = squares <= (double)n * SHORT_ROW;
            const double bound = is_short ? squares : (double)n * LONG_ROW;
            if (pending + bound > EXACT) {
                products.flush(limbs + 2 * d, stride);
                pending = 0.0;
            }
            pending += bound;
            if (is_short) {
                products.add(rounded, rounded, n, 0);
                continue;
            }
            for (int64_t i = 0; i < n * d; i++) {
                high[i] = std::nearbyint(rounded[i] / LIMB);
                low[i] = rounded[i] - high[i] * LIMB;
            }
            products.add(low, low, n, 0);
            products.add(low, high, n, 1);
            products.add(high, low, n, 1);
            products.add(high, high, n, 2);
        }
        products.flush(limbs + 2 * d, stride);
        flush_columns();
        pending = 0.0;
    }
}

}  // namespace VARIANT
