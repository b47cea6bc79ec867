// What decoders compute again and again, in float32: correlations, misfits and descents.
//
// Not the integers of the reference, but floats that are added in one order: WIDTH parts of every sum,
// on machines of all widths. Functions that work on a panel do so for the parts from a pointer on,
// LANES of them.

#pragma once

#include <limits>

#include "sums.h"

namespace VARIANT {

ALWAYS_INLINE F with_sign(F a, I sign) { return floats(exclusive_or(bits(a), sign)); }

// Real part and minus the imaginary part of (a - i b) e^{2 pi i t}, times 2^BITS.
ALWAYS_INLINE void rotate(F t, F a, F b, F &real, F &minus_imag) {
    F rest, c, s;
    I sign;
    reduce(Phases<float>{t}, rest, sign);
    cos_sin(rest, c, s);
    c = with_sign(c, sign);
    s = with_sign(s, sign);
    real = fma(a, c, mul(b, s));
    minus_imag = sub(mul(b, c), mul(a, s));
}

// Numbers of the last vector of a row, beyond which nothing may be read or written.
ALWAYS_INLINE F load_some(const float *p, int64_t n) {
    float lane[LANES] = {};
    std::copy(p, p + n, lane);
    return load(lane);
}
ALWAYS_INLINE void store_some(float *p, F a, int64_t n) {
    float lane[LANES];
    store(lane, a);
    std::copy(lane, lane + n, p);
}

// t (n, m), re and im (m,), real and minus_imag (n, m) OUT
inline void rotate_rows(const float *t, const float *re, const float *im, int64_t n, int64_t m, float *real,
                        float *minus_imag) {
    const int64_t rest = m % LANES, whole = m - rest;
    const F last_re = load_some(re + whole, rest), last_im = load_some(im + whole, rest);
    for (; n > 0; n--, t += m, real += m, minus_imag += m) {
        F x, y;
        for (int64_t j = 0; j < whole; j += LANES) {
            rotate(load(t + j), load(re + j), load(im + j), x, y);
            store(real + j, x);
            store(minus_imag + j, y);
        }
        rotate(load_some(t + whole, rest), last_re, last_im, x, y);
        store_some(real + whole, x, rest);
        store_some(minus_imag + whole, y, rest);
    }
}

// --- the correlation function and its gradient ------------------------------------------------------

constexpr int POINTS = 4;          // of a tile: their phases and slopes stay in registers
constexpr int PANELS_OF_SUM = 32;  // summed in float32 before their sum is added in float64

// Adds a panel to sums (POINTS, 1 + d, WIDTH): the value, then the gradient.
inline void add_panel(const float *points, const float *panel, const float *re, const float *im, int64_t d,
                      float *sums) {
    F t[POINTS][VECTORS], slope[POINTS][VECTORS];
    UNROLL for (int r = 0; r < POINTS; r++) UNROLL for (int v = 0; v < VECTORS; v++) t[r][v] = set(0.0f);
    for (int64_t k = 0; k < d; k++) {
        F turns[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; v++) turns[v] = load(panel + k * PANEL + v * WIDTH);
        UNROLL for (int r = 0; r < POINTS; r++) {
            const F value = set(points[r * d + k]);
            UNROLL for (int v = 0; v < VECTORS; v++) t[r][v] = fma(value, turns[v], t[r][v]);
        }
    }
    UNROLL for (int r = 0; r < POINTS; r++) {
        float *place = sums + r * (1 + d) * WIDTH;
        F total = load(place);
        UNROLL for (int v = 0; v < VECTORS; v++) {
            F real;
            rotate(t[r][v], load(re + v * WIDTH), load(im + v * WIDTH), real, slope[r][v]);
            total = add(total, real);
        }
        store(place, total);
    }
    for (int64_t k = 0; k < d; k++) {
        F turns[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; v++) turns[v] = load(panel + k * PANEL + v * WIDTH);
        UNROLL for (int r = 0; r < POINTS; r++) {
            float *place = sums + (r * (1 + d) + 1 + k) * WIDTH;
            F total = load(place);
            UNROLL for (int v = 0; v < VECTORS; v++) total = fma(slope[r][v], turns[v], total);
            store(place, total);
        }
    }
}

// points (L, d) with L a multiple of POINTS, panels (panels, d, PANEL), re and im (panels, PANEL),
// result (L, 1 + d) OUT
inline void correlation(const float *points, int64_t L, int64_t d, const float *panels, int64_t n_panels,
                        const float *re, const float *im, double *result) {
    const int64_t width = 1 + d;
    Buffer<float> sums(POINTS * width * WIDTH);
    std::fill(result, result + L * width, 0.0);
    for (int64_t row = 0; row < L; row += POINTS)
        for (int64_t first = 0; first < n_panels; first += PANELS_OF_SUM) {
            std::fill((float *)sums, sums + POINTS * width * WIDTH, 0.0f);
            for (int64_t p = first; p < std::min<int64_t>(first + PANELS_OF_SUM, n_panels); p++)
                for (int part = 0; part < WIDTH; part += LANES)
                    add_panel(points + row * d, panels + p * d * PANEL + part, re + p * PANEL + part,
                              im + p * PANEL + part, d, sums + part);
            for (int64_t i = 0; i < POINTS * width; i++)
                result[row * width + i] += sum_of_parts(sums + i * WIDTH);
        }
}

// --- the misfit of Gaussians ------------------------------------------------------------------------
// A block of frequencies is gone through twice while it is in cache: phases, envelopes and waves of
// all components, with their sum; then, the residual known, the sums that gradients need.

constexpr int COMPONENTS = 4;       // of a tile
constexpr int PANELS_OF_BLOCK = 8;  // summed in float32, then added in float64
constexpr double UNIT = 1.0 / 4194304.0;
constexpr double LOG_2 = 0.6931471805599453, PI = 3.141592653589793;
constexpr double HALVINGS = 2.0 * PI * PI / LOG_2;  // e^{-s^2 w^2 / 2} = 2^{-HALVINGS s^2 turns^2}
constexpr double TURN = 2.0 * PI;

constexpr float POWER[8] = {  // 2^x = sum of c_n x^n, to 6e-9 for |x| <= 1/2
    1.0f, 0.6931471805599453f, 0.2402265069591007f, 0.055504108664821576f, 0.009618129107628477f, 0.0013333558146428441f, 0.00015403530393381606f, 1.5252733804059838e-05f};

// 2^-h for h >= 0, to 2e-7; never below 2^-60, which no sum sees
ALWAYS_INLINE F power_of_half(F h) {
    h = least(h, set(60.0f));
    const F magic = set(TO_INTEGERS), shifted = add(h, magic);
    const F rest = sub(sub(shifted, magic), h);
    F value = set(POWER[7]);
    UNROLL for (int n = 6; n >= 0; n--) value = fma(value, rest, set(POWER[n]));
    return floats(sub(bits(value), shift_left<23>(bits(shifted))));
}

struct Problem {
    const float *panels;   // (panels, d, PANEL)
    const float *z;        // (panels, 2, PANEL)
    const float *weights;  // (panels, PANEL)
    int64_t n_panels, d;
};

// Writes waves out (COMPONENTS, 2, PANEL) of components at a panel, and adds them to model (2, PANEL);
// rates are the halvings that an axis has at frequency 1.
inline void add_waves(const float *centers, const float *rates, const float *alpha, const float *panel,
                      int64_t d, float *out, float *model) {
    F t[COMPONENTS][VECTORS], h[COMPONENTS][VECTORS], total[2][VECTORS];
    UNROLL for (int r = 0; r < COMPONENTS; r++)
        UNROLL for (int v = 0; v < VECTORS; v++) t[r][v] = h[r][v] = set(0.0f);
    for (int64_t k = 0; k < d; k++) {
        F turns[VECTORS], squares[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; v++) {
            turns[v] = load(panel + k * PANEL + v * WIDTH);
            squares[v] = mul(turns[v], turns[v]);
        }
        UNROLL for (int r = 0; r < COMPONENTS; r++) {
            const F c = set(centers[r * d + k]), e = set(rates[r * d + k]);
            UNROLL for (int v = 0; v < VECTORS; v++) {
                t[r][v] = fma(c, turns[v], t[r][v]);
                h[r][v] = fma(e, squares[v], h[r][v]);
            }
        }
    }
    UNROLL for (int part = 0; part < 2; part++)
        UNROLL for (int v = 0; v < VECTORS; v++) total[part][v] = load(model + part * PANEL + v * WIDTH);
    UNROLL for (int r = 0; r < COMPONENTS; r++) {
        const F weight = set(alpha[r] * (float)UNIT);
        UNROLL for (int v = 0; v < VECTORS; v++) {
            F rest, cosine, sine;
            I sign;
            reduce(Phases<float>{t[r][v]}, rest, sign);
            const F envelope = with_sign(power_of_half(h[r][v]), sign);
            cos_sin(rest, cosine, sine);
            cosine = mul(cosine, envelope);
            sine = mul(sine, envelope);
            store(out + r * 2 * PANEL + v * WIDTH, cosine);
            store(out + r * 2 * PANEL + PANEL + v * WIDTH, sine);
            total[0][v] = fma(weight, cosine, total[0][v]);
            total[1][v] = fma(weight, sine, total[1][v]);
        }
    }
    UNROLL for (int part = 0; part < 2; part++)
        UNROLL for (int v = 0; v < VECTORS; v++) store(model + part * PANEL + v * WIDTH, total[part][v]);
}

// Adds a panel to sums (COMPONENTS, 1 + 2 d, WIDTH): by weight, by center, by squared spread.
inline void add_slopes(const float *psi, const float *panel, const float *re, const float *im, int64_t d,
                       float *sums) {
    const int64_t line = (1 + 2 * d) * WIDTH;
    F real[COMPONENTS][VECTORS], imag[COMPONENTS][VECTORS];
    UNROLL for (int r = 0; r < COMPONENTS; r++) {
        F total = load(sums + r * line);
        UNROLL for (int v = 0; v < VECTORS; v++) {
            const F a = load(re + v * WIDTH), b = load(im + v * WIDTH);
            const F c = load(psi + r * 2 * PANEL + v * WIDTH);
            const F s = load(psi + r * 2 * PANEL + PANEL + v * WIDTH);
            real[r][v] = fma(a, c, mul(b, s));
            imag[r][v] = sub(mul(a, s), mul(b, c));
            total = add(total, real[r][v]);
        }
        store(sums + r * line, total);
    }
    for (int64_t k = 0; k < d; k++) {
        F turns[VECTORS], squares[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; v++) {
            turns[v] = load(panel + k * PANEL + v * WIDTH);
            squares[v] = mul(turns[v], turns[v]);
        }
        UNROLL for (int r = 0; r < COMPONENTS; r++) {
            float *first = sums + r * line + (1 + k) * WIDTH, *second = first + d * WIDTH;
            F by_center = load(first), by_square = load(second);
            UNROLL for (int v = 0; v < VECTORS; v++) {
                by_center = fma(imag[r][v], turns[v], by_center);
                by_square = fma(real[r][v], squares[v], by_square);
            }
            store(first, by_center);
            store(second, by_square);
        }
    }
}

struct Misfit {
    Problem problem;
    int64_t T, d, width;  // components, a multiple of COMPONENTS
    Buffer<float> centers, rates, alpha, waves, residual, sums;
    Buffer<double> result;  // (T, 1 + 2 d)

    Misfit(const Problem &problem, int64_t n_components)
        : problem(problem), T((n_components + COMPONENTS - 1) / COMPONENTS * COMPONENTS), d(problem.d),
          width(1 + 2 * d), centers(T * d), rates(T * d), alpha(T), waves(PANELS_OF_BLOCK * T * 2 * PANEL),
          residual(PANELS_OF_BLOCK * 2 * PANEL), sums(COMPONENTS * width * WIDTH), result(T * width) {}

    // The value, with result filled in; centers, rates and alpha are what it is asked for.
    double evaluate() {
        double value = 0.0;
        std::fill((double *)result, result + T * width, 0.0);
        for (int64_t first = 0; first < problem.n_panels; first += PANELS_OF_BLOCK) {
            const int64_t n = std::min<int64_t>(PANELS_OF_BLOCK, problem.n_panels - first);
            std::fill((float *)residual, residual + PANELS_OF_BLOCK * 2 * PANEL, 0.0f);
            for (int64_t p = 0; p < n; p++) {
                float *rest = residual + p * 2 * PANEL;
                for (int64_t row = 0; row < T; row += COMPONENTS)
                    for (int part = 0; part < WIDTH; part += LANES)
                        add_waves(centers + row * d, rates + row * d, alpha + row,
                                  problem.panels + (first + p) * d * PANEL + part, d,
                                  waves + (p * T + row) * 2 * PANEL + part, rest + part);
                value = weigh(problem.z + (first + p) * 2 * PANEL, problem.weights + (first + p) * PANEL, rest,
                              value);
            }
            for (int64_t row = 0; row < T; row += COMPONENTS) {
                std::fill((float *)sums, sums + COMPONENTS * width * WIDTH, 0.0f);
                for (int64_t p = 0; p < n; p++)
                    for (int part = 0; part < WIDTH; part += LANES)
                        add_slopes(waves + (p * T + row) * 2 * PANEL + part,
                                   problem.panels + (first + p) * d * PANEL + part,
                                   residual + p * 2 * PANEL + part,
                                   residual + p * 2 * PANEL + PANEL + part, d, sums + part);
                for (int64_t i = 0; i < COMPONENTS * width; i++)
                    result[row * width + i] += UNIT * (double)sum_of_parts(sums + i * WIDTH);
            }
        }
        return value;
    }

    // The model's sums at a panel become weighted residuals; their squares are added to the value.
    static double weigh(const float *z, const float *weights, float *model, double value) {
        for (int j = 0; j < PANEL; j++)
            for (int part = 0; part < 2; part++) {
                const float difference = z[part * PANEL + j] - model[part * PANEL + j];
                const float weighted = weights[j] * difference;
                value += (double)(weighted * difference);
                model[part * PANEL + j] = weighted;
            }
        return value;
    }
};

// --- the joint descent --------------------------------------------------------------------------------
// Limited-memory BFGS with a weak Wolfe line search (Nocedal and Wright 2006, chapters 3 and 7).
// x holds T alpha >= 0, then C / unit, then S / unit.

struct Moments {
    const double *mean;        // (d,)
    const double *covariance;  // (d, d)
    bool full;                 // whether it is known off its diagonal
    double strength;
};

constexpr int MEMORY = 10, TRIALS = 12;
constexpr double ARMIJO = 1e-4, WOLFE = 0.9;

inline double dot(const double *a, const double *b, int64_t size) {  // in eight sums
    double sums[8] = {0, 0, 0, 0, 0, 0, 0, 0}, total = 0.0;
    const int64_t n = size - size % 8;
    for (int64_t first = 0; first < n; first += 8)
        for (int i = 0; i < 8; i++) sums[i] += a[first + i] * b[first + i];
    for (int64_t i = n; i < size; i++) sums[0] += a[i] * b[i];
    for (int i = 0; i < 8; i++) total += sums[i];
    return total;
}

struct Descent {
    Misfit misfit;
    Moments moments;
    int64_t T, d, n;
    double unit;
    Buffer<double> alpha, C, S, by_alpha, by_C, by_S, P, bent, e, E;

    Descent(const Problem &problem, const Moments &moments, int64_t T, double unit)
        : misfit(problem, T), moments(moments), T(T), d(problem.d), n(T * (1 + 2 * d)), unit(unit), alpha(T),
          C(T * d), S(T * d), by_alpha(T), by_C(T * d), by_S(T * d), P(T * d), bent(T * d), e(d), E(d * d) {}

    double add_penalty() {  // of wrong moments, times its strength
        double per_square = 0.0;
        for (int64_t k = 0; k < d; k++) per_square += moments.covariance[k * d + k];
        per_square = 1.0 / per_square;
        const double per_fourth = per_square * per_square, strength = moments.strength;
        double mass = -1.0;
        std::fill((double *)bent, bent + T * d, 0.0);
        std::fill((double *)e, e + d, 0.0);
        std::fill((double *)E, E + d * d, 0.0);
        for (int64_t i = 0; i < T; i++) {
            mass += alpha[i];
            for (int64_t k = 0; k < d; k++) {
                P[i * d + k] = C[i * d + k] - moments.mean[k];
                e[k] += alpha[i] * P[i * d + k];
                E[k * d + k] += alpha[i] * S[i * d + k] * S[i * d + k];
            }
        }
        for (int64_t k = 0; k < d; k++)
            for (int64_t j = 0; j < d; j++)
                if (moments.full || k == j) {
                    double &entry = E[k * d + j];
                    for (int64_t i = 0; i < T; i++) entry += alpha[i] * P[i * d + k] * P[i * d + j];
                    entry -= moments.covariance[k * d + j];
                    for (int64_t i = 0; i < T; i++) bent[i * d + k] += entry * P[i * d + j];
                }
        double value = mass * mass;
        for (int64_t k = 0; k < d; k++) {
            value += per_square * e[k] * e[k];
            for (int64_t j = 0; j < d; j++) value += per_fourth * E[k * d + j] * E[k * d + j];
        }
        for (int64_t i = 0; i < T; i++) {
            double linear = 0.0, square = 0.0;
            for (int64_t k = 0; k < d; k++) {
                const int64_t at = i * d + k;
                linear += P[at] * e[k];
                square += bent[at] * P[at] + S[at] * S[at] * E[k * d + k];
                const double slope = 4.0 * per_fourth * bent[at] + 2.0 * per_square * e[k];
                by_C[at] += strength * alpha[i] * slope;
                by_S[at] += strength * alpha[i] * 4.0 * per_fourth * S[at] * E[k * d + k];
            }
            by_alpha[i] += strength * 2.0 * (mass + per_square * linear + per_fourth * square);
        }
        return strength * value;
    }

    double evaluate(const double *x, double *gradient) {
        const int64_t width = 1 + 2 * d;
        for (int64_t i = 0; i < T; i++) {
            alpha[i] = x[i] / (double)T;
            misfit.alpha[i] = (float)alpha[i];
            for (int64_t k = 0; k < d; k++) {
                const int64_t at = i * d + k;
                C[at] = unit * x[T + at];
                S[at] = unit * x[T + T * d + at];
                misfit.centers[at] = (float)C[at];
                misfit.rates[at] = (float)(HALVINGS * S[at] * S[at]);
            }
        }
        double value = misfit.evaluate();
        for (int64_t i = 0; i < T; i++) {
            const double *sums = misfit.result + i * width;
            by_alpha[i] = -2.0 * sums[0];
            for (int64_t k = 0; k < d; k++) {
                const int64_t at = i * d + k;
                by_C[at] = 2.0 * TURN * alpha[i] * sums[1 + k];
                by_S[at] = 2.0 * (TURN * TURN) * alpha[i] * S[at] * sums[1 + d + k];
            }
        }
        if (moments.strength > 0.0) value += add_penalty();
        for (int64_t i = 0; i < T; i++) {
            gradient[i] = by_alpha[i] / (double)T;
            for (int64_t k = 0; k < d; k++) {
                const int64_t at = i * d + k;
                gradient[T + at] = unit * by_C[at];
                gradient[T + T * d + at] = unit * by_S[at];
            }
        }
        return value;
    }

    double run(double *x, int64_t iterations, double tolerance, double floor) {
        Buffer<double> steps(MEMORY * n), changes(MEMORY * n), g(n), free(n), p(n), trial(n), g_trial(n), change(n);
        double products[MEMORY];
        double value = evaluate(x, g);
        int64_t n_pairs = 0;
        for (int64_t iteration = 0; iteration < iterations && !(value <= floor); iteration++) {
            for (int64_t i = 0; i < n; i++)  // weights at 0 that want below it stay there
                free[i] = i < T && x[i] <= 0.0 && g[i] > 0.0 ? 0.0 : g[i];
            const double norm = std::sqrt(dot(free, free, n));
            if (norm == 0.0) break;
            find_direction(free, steps, changes, products, n_pairs, p);
            for (int64_t i = 0; i < T; i++)
                if (x[i] <= 0.0 && (p[i] < 0.0 || g[i] > 0.0)) p[i] = 0.0;
            if (dot(free, p, n) >= 0.0) {  // rounding has spoilt the pairs: by the gradient
                n_pairs = 0;
                for (int64_t i = 0; i < n; i++) p[i] = -free[i];
            }
            double step = n_pairs ? 1.0 : 1.0 / norm, low = 0.0, reached = value;
            double high = std::numeric_limits<double>::infinity();
            bool found = false;
            for (int tries = 0; tries < TRIALS; tries++) {
                for (int64_t i = 0; i < n; i++) {
                    trial[i] = x[i] + step * p[i];
                    if (i < T && trial[i] < 0.0) trial[i] = 0.0;
                    change[i] = trial[i] - x[i];
                }
                reached = evaluate(trial, g_trial);
                const double slope = dot(g, change, n);
                found = reached <= value + ARMIJO * slope;
                if (!found) high = step;
                else if (dot(g_trial, change, n) < WOLFE * slope) low = step;
                else break;
                step = std::isinf(high) ? 2.0 * low : 0.5 * (low + high);
            }
            if (!found || !(reached < value)) {
                if (n_pairs == 0) break;
                n_pairs = 0;  // once more, by the gradient alone
                continue;
            }
            const int64_t slot = n_pairs % MEMORY;
            const double product = dot(change, g_trial, n) - dot(change, g, n);
            if (product > 0.0) {
                products[slot] = product;
                for (int64_t k = 0; k < n; k++) {
                    steps[slot * n + k] = change[k];
                    changes[slot * n + k] = g_trial[k] - g[k];
                }
                n_pairs++;
            }
            const double gain = value - reached;
            value = reached;
            std::copy((double *)trial, trial + n, x);
            std::copy((double *)g_trial, g_trial + n, (double *)g);
            if (gain <= tolerance * value) break;
        }
        return value;
    }

    void find_direction(const double *g, const double *steps, const double *changes, const double *products,
                        int64_t n_pairs, double *p) {
        double factors[MEMORY];
        for (int64_t i = 0; i < n; i++) p[i] = -g[i];
        const int64_t first = std::max<int64_t>(0, n_pairs - MEMORY);
        for (int64_t j = n_pairs - 1; j >= first; j--) {
            const int64_t i = j % MEMORY;
            factors[i] = dot(steps + i * n, p, n) / products[i];
            for (int64_t k = 0; k < n; k++) p[k] += -factors[i] * changes[i * n + k];
        }
        if (n_pairs) {
            const int64_t i = (n_pairs - 1) % MEMORY;
            const double scale = products[i] / dot(changes + i * n, changes + i * n, n);
            for (int64_t k = 0; k < n; k++) p[k] *= scale;
        }
        for (int64_t j = first; j < n_pairs; j++) {
            const int64_t i = j % MEMORY;
            const double factor = factors[i] - dot(changes + i * n, p, n) / products[i];
            for (int64_t k = 0; k < n; k++) p[k] += factor * steps[i * n + k];
        }
    }
};

}  // namespace VARIANT
