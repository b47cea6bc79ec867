// The kernels for one instruction set; compiled once for each, with its flags.

#include "cells.h"
#include "fit.h"
#include "quotients.h"
#include "table.h"

namespace VARIANT {

static double match(const Problem &problem, const float *centers, const float *rates, const float *alpha,
                    int64_t T, double *result) {
    Misfit misfit(problem, T);
    std::copy(centers, centers + T * problem.d, (float *)misfit.centers);
    std::copy(rates, rates + T * problem.d, (float *)misfit.rates);
    std::copy(alpha, alpha + T, (float *)misfit.alpha);
    const double value = misfit.evaluate();
    std::copy((double *)misfit.result, misfit.result + T * misfit.width, result);
    return value;
}

static double match_of(const float *panels, const float *z, const float *weights, int64_t n_panels, int64_t d,
                       const float *centers, const float *rates, const float *alpha, int64_t T, double *result) {
    return match({panels, z, weights, n_panels, d}, centers, rates, alpha, T, result);
}

static double descend(const float *panels, const float *z, const float *weights, int64_t n_panels, int64_t d,
                      const double *mean, const double *covariance, int32_t full, double strength, double *x,
                      int64_t T, double unit, int64_t iterations, double tolerance, double floor) {
    Descent descent({panels, z, weights, n_panels, d}, {mean, covariance, full != 0, strength}, T, unit);
    return descent.run(x, iterations, tolerance, floor);
}

static void moments_of(const double *rows, const double *factors, const double *roots, const int64_t *starts,
                       const int64_t *slots, int64_t n_runs, int64_t d, double per_unit, int32_t full,
                       int64_t *limbs) {
    moments(rows, factors, roots, starts, slots, n_runs, d, per_unit, full != 0, limbs);
}

// n rounds of CHAINS multiply-adds that do not wait for each other: how fast this machine can be at
// most. values has LANES numbers, IN/OUT.
constexpr int CHAINS = 16;

static void multiply_adds(float *values, int64_t n) {
    const F factor = load(values);
    F sums[CHAINS];
    UNROLL for (int i = 0; i < CHAINS; i++) sums[i] = set((float)i);  // equal chains would be made one
    for (int64_t round = 0; round < n; round++)
        UNROLL for (int i = 0; i < CHAINS; i++) sums[i] = fma(sums[i], factor, factor);
    F total = factor;
    for (int i = 0; i < CHAINS; i++) total = add(total, sums[i]);
    store(values, total);
}

}  // namespace VARIANT

#define NAME_OF(variant) kernels_##variant
#define TABLE_OF(variant) NAME_OF(variant)

extern const Kernels TABLE_OF(VARIANT);
const Kernels TABLE_OF(VARIANT) = {
    VARIANT::LANES,
    VARIANT::PANEL,
    VARIANT::dense<float>,
    VARIANT::dense<double>,
    VARIANT::structured<float>,
    VARIANT::structured<double>,
    VARIANT::normalise<float>,
    VARIANT::normalise<double>,
    VARIANT::moments_of,
    VARIANT::distances,
    VARIANT::nearest,
    VARIANT::add_cells,
    VARIANT::add_wide_cells,
    VARIANT::project,
    VARIANT::central_moments_of,
    VARIANT::rotate_rows,
    VARIANT::correlation,
    VARIANT::match_of,
    VARIANT::descend,
    VARIANT::multiply_adds,
};
