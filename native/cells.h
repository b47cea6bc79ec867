// Cells: which centre a row is nearest to, and what it adds to that cell. The definition is
// kernels/reference.py, to the bit.
//
// Centres lie in panels (panels, d, PANEL) of float32, what is missing in a group's last panel
// filled up with infinities, which are nearest to nothing. A lane is a centre.

#pragma once

#include <algorithm>

#include "sums.h"

namespace VARIANT {

constexpr int PANEL_VECTORS = PANEL / LANES;
static_assert(PANEL == 32, "a bit for each centre of a panel");
constexpr int SQUARE_BITS = 32;  // of the lower limb of squares

// Squared distances of R rows to the centres of a panel, the columns one after the other. Rows share
// what is loaded of the panel.
template <int R>
ALWAYS_INLINE void panel_distances(const float *rows, const float *panel, int64_t d, F (&s)[R][PANEL_VECTORS]) {
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int v = 0; v < PANEL_VECTORS; v++) s[r][v] = set(0.0f);
    for (int64_t k = 0; k < d; k++) {
        F centres[PANEL_VECTORS];
        UNROLL for (int v = 0; v < PANEL_VECTORS; v++) centres[v] = load(panel + k * PANEL + v * LANES);
        UNROLL for (int r = 0; r < R; r++) {
            const F value = set(rows[r * d + k]);
            UNROLL for (int v = 0; v < PANEL_VECTORS; v++) {
                const F offset = sub(value, centres[v]);
                s[r][v] = fma(offset, offset, s[r][v]);
            }
        }
    }
}

constexpr int ROWS_TOGETHER = LANES == 16 ? 6 : 2;  // rows whose sums fit the registers

// The nearest centre among those of some panels; of several the first.
struct Nearest {
    F best[PANEL_VECTORS];
    I panel[PANEL_VECTORS];

    Nearest() {
        UNROLL for (int v = 0; v < PANEL_VECTORS; v++) {
            best[v] = set(HUGE_VALF);
            panel[v] = set((int32_t)0);
        }
    }

    void take(const F (&s)[PANEL_VECTORS], int64_t p) {
        UNROLL for (int v = 0; v < PANEL_VECTORS; v++)
            take_less(s[v], set((int32_t)p), best[v], panel[v]);
    }

    int64_t index(float &distance) const {
        F least_of_all = best[0];
        UNROLL for (int v = 1; v < PANEL_VECTORS; v++) least_of_all = least(best[v], least_of_all);
        distance = lane_least(least_of_all);
        int32_t panels[PANEL];
        uint32_t ties = 0;  // one bit, but for centres at the same distance
        UNROLL for (int v = 0; v < PANEL_VECTORS; v++) {
            store(panels + v * LANES, panel[v]);
            ties |= equal_bits(best[v], set(distance)) << v * LANES;
        }
        int64_t index = INT64_MAX;
        for (; ties != 0; ties &= ties - 1) {
            const int i = __builtin_ctz(ties);
            index = std::min(index, (int64_t)panels[i] * PANEL + i);
        }
        return index;
    }
};

template <int R>
inline void look(const float *rows, const float *panels, int64_t first, int64_t stop, int64_t d,
                 Nearest (&found)[R]) {
    for (int64_t p = first; p < stop; p++) {
        F s[R][PANEL_VECTORS];
        panel_distances<R>(rows, panels + p * d * PANEL, d, s);
        UNROLL for (int r = 0; r < R; r++) found[r].take(s[r], p - first);
    }
}

template <int R>
inline void distances_of(const float *rows, int64_t d, const float *panels, int64_t n_panels, float *result) {
    for (int64_t p = 0; p < n_panels; p++) {
        F s[R][PANEL_VECTORS];
        panel_distances<R>(rows, panels + p * d * PANEL, d, s);
        UNROLL for (int r = 0; r < R; r++)
            UNROLL for (int v = 0; v < PANEL_VECTORS; v++)
                store(result + (r * n_panels + p) * PANEL + v * LANES, s[r][v]);
    }
}

// rows (n, d), panels, distances (n, panels PANEL) OUT
inline void distances(const float *rows, int64_t n, int64_t d, const float *panels, int64_t n_panels,
                      float *result) {
    int64_t row = 0;
    for (; row + ROWS_TOGETHER <= n; row += ROWS_TOGETHER)
        distances_of<ROWS_TOGETHER>(rows + row * d, d, panels, n_panels, result + row * n_panels * PANEL);
    for (; row < n; row++) distances_of<1>(rows + row * d, d, panels, n_panels, result + row * n_panels * PANEL);
}

// Groups of centres: group g has the panels from firsts[g] on, and its centres are numbered from
// starts[g] on. A row looks into the `probes` groups whose own centres (`middles`, in panels) are
// nearest, and into the only one if there is one.
struct Groups {
    const float *panels;
    const int64_t *firsts, *starts;
    int64_t n_groups;
    const float *middles;
    int64_t probes;
};

// The nearest centre of R rows; to_middles has room for R rows of distances to all middles.
template <int R>
inline void nearest_of(const float *rows, int64_t d, const Groups &of, float *to_middles, int32_t *labels,
                       float *squares) {
    if (of.n_groups == 1) {
        Nearest found[R];
        look<R>(rows, of.panels, of.firsts[0], of.firsts[1], d, found);
        for (int r = 0; r < R; r++) labels[r] = (int32_t)(of.starts[0] + found[r].index(squares[r]));
        return;
    }
    const int64_t n_middles = (of.n_groups + PANEL - 1) / PANEL;
    distances_of<R>(rows, d, of.middles, n_middles, to_middles);
    for (int r = 0; r < R; r++) {
        float least = HUGE_VALF, *own = to_middles + r * n_middles * PANEL;
        int64_t label = 0;
        for (int64_t probe = 0; probe < std::min(of.probes, of.n_groups); probe++) {
            const int64_t g = std::min_element(own, own + of.n_groups) - own;
            own[g] = HUGE_VALF;
            Nearest found[1];
            look<1>(rows + r * d, of.panels, of.firsts[g], of.firsts[g + 1], d, found);
            float distance;
            const int64_t index = of.starts[g] + found[0].index(distance);
            if (distance < least || (distance == least && index < label)) {
                least = distance;
                label = index;
            }
        }
        labels[r] = (int32_t)label;
        squares[r] = least;
    }
}

// rows (n, d), labels (n,) and distances (n,) OUT
inline void nearest(const float *rows, int64_t n, int64_t d, const float *panels, const int64_t *firsts,
                    const int64_t *starts, int64_t n_groups, const float *middles, int64_t probes,
                    int32_t *labels, float *squares) {
    const Groups of = {panels, firsts, starts, n_groups, middles, probes};
    Buffer<float> to_middles(ROWS_TOGETHER * ((n_groups + PANEL - 1) / PANEL) * PANEL);
    int64_t row = 0;
    for (; row + ROWS_TOGETHER <= n; row += ROWS_TOGETHER)
        nearest_of<ROWS_TOGETHER>(rows + row * d, d, of, to_middles, labels + row, squares + row);
    for (; row < n; row++) nearest_of<1>(rows + row * d, d, of, to_middles, labels + row, squares + row);
}

// The integer nearest to a number below 2^51, ties to even: a sum with 1.5 2^52 has a last bit worth one.
ALWAYS_INLINE int64_t nearest_integer(double value) {
    const double shifted = value + 6755399441055744.0;
    int64_t pattern;
    std::memcpy(&pattern, &shifted, sizeof pattern);
    return pattern - INT64_C(0x4338000000000000);
}

// What rows add to their cells: weight, offsets, squared offsets in two limbs.
// rows (n, d), factors (n,) and their roots or null, labels (n,), places (n,) among totals, centers
// (cells, d), totals (places, 1 + 3 d) IN/OUT
inline void add_cells(const double *rows, const double *factors, const double *roots, const int32_t *labels,
                      const int32_t *places, int64_t n, int64_t d, const double *centers, double per_unit,
                      double weight_unit, int64_t *totals) {
    for (int64_t row = 0; row < n; row++) {
        const double *x = rows + row * d, *c = centers + labels[row] * d;
        int64_t *cell = totals + (int64_t)places[row] * (1 + 3 * d);
        int64_t *sums = cell + 1, *low = sums + d, *high = low + d;
        const double f = factors == nullptr ? 1.0 : factors[row], root = roots == nullptr ? 1.0 : roots[row];
        cell[0] += nearest_integer(f * weight_unit);
        for (int64_t k = 0; k < d; k++) {
            const double offset = x[k] - c[k];
            const int64_t w = nearest_integer(root * offset * per_unit);
            const uint64_t square = (uint64_t)w * (uint64_t)w;
            sums[k] += nearest_integer(f * offset * per_unit);
            low[k] += (int64_t)(square & ((UINT64_C(1) << SQUARE_BITS) - 1));
            high[k] += (int64_t)(square >> SQUARE_BITS);
        }
    }
}

// Coordinates of rows along axes, which are columns (d, lanes), lanes a multiple of LANES; result
// (n, lanes) OUT
inline void project(const double *rows, int64_t n, int64_t d, const double *columns, int64_t lanes,
                    double *result) {
    constexpr int HALF = LANES / 2;  // float64 numbers in a vector
    for (int64_t row = 0; row < n; row++)
        for (int64_t first = 0; first < lanes; first += LANES) {
            D low = set(0.0), high = set(0.0);
            const double *column = columns + first;
            for (int64_t k = 0; k < d; k++, column += lanes) {
                const D value = set(rows[row * d + k]);
                low = fma(value, load(column), low);
                high = fma(value, load(column + HALF), high);
            }
            store(result + row * lanes + first, low);
            store(result + row * lanes + first + HALF, high);
        }
}

// What rows add to their cells where these have axes: weight, offsets of 16 bits, squared length
// and squared coordinates.
// coordinates (n, p), middles (cells, p), totals (places, 2 + d + p) IN/OUT, the rest as above
inline void add_wide_cells(const double *rows, const double *factors, const double *roots,
                           const int32_t *labels, const int32_t *places, int64_t n, int64_t d,
                           const double *centers, const double *coordinates, const double *middles, int64_t p,
                           double per_unit, double weight_unit, int64_t *totals) {
    for (int64_t row = 0; row < n; row++) {
        const double *x = rows + row * d, *c = centers + labels[row] * d;
        const double *y = coordinates + row * p, *g = middles + labels[row] * p;
        int64_t *cell = totals + (int64_t)places[row] * (2 + d + p), *sums = cell + 1, *squares = sums + d;
        const double f = factors == nullptr ? 1.0 : factors[row], root = roots == nullptr ? 1.0 : roots[row];
        cell[0] += nearest_integer(f * weight_unit);
        int64_t length = 0;
        for (int64_t k = 0; k < d; k++) {
            const double offset = x[k] - c[k];
            const int64_t w = nearest_integer(root * offset * per_unit);
            sums[k] += nearest_integer(f * offset * per_unit);
            length += (int64_t)(int32_t)w * (int32_t)w;
        }
        squares[0] += length;
        for (int64_t a = 0; a < p; a++) {
            const int64_t w = nearest_integer(root * (y[a] - g[a]) * per_unit);
            squares[1 + a] += w * w;
        }
    }
}

}  // namespace VARIANT
