// What a variant offers; kernels/cpu/library.py reads this struct through ctypes, field by field.

#pragma once

#include <cstdint>

// Raised with every change below, here and in library.py: an old library is then refused, not called.
constexpr int64_t TABLE_VERSION = 5;

struct Kernels {
    int64_t lanes, panel;
    void (*dense_32)(const float *rows, const float *weights, const int64_t *starts, const int64_t *slots,
                     int64_t n_runs, int64_t d, const float *panels, int64_t m, int64_t *totals);
    void (*dense_64)(const double *rows, const float *weights, const int64_t *starts, const int64_t *slots,
                     int64_t n_runs, int64_t d, const float *panels, int64_t m, int64_t *totals);
    void (*structured_32)(const float *rows, const float *weights, const int64_t *starts, const int64_t *slots,
                          int64_t n_runs, int64_t d, const float *signs, const float *radii, int64_t n_blocks,
                          int64_t size, int64_t m, int64_t *totals);
    void (*structured_64)(const double *rows, const float *weights, const int64_t *starts, const int64_t *slots,
                          int64_t n_runs, int64_t d, const double *signs, const float *radii, int64_t n_blocks,
                          int64_t size, int64_t m, int64_t *totals);
    void (*normalise_32)(const float *X, int64_t n, int64_t d, const double *center, const double *per_unit,
                         double *rows, double *squared_norms);
    void (*normalise_64)(const double *X, int64_t n, int64_t d, const double *center, const double *per_unit,
                         double *rows, double *squared_norms);
    void (*moments)(const double *rows, const double *factors, const double *roots, const int64_t *starts,
                    const int64_t *slots, int64_t n_runs, int64_t d, double per_unit, int32_t full,
                    int64_t *limbs);
    void (*distances)(const float *rows, int64_t n, int64_t d, const float *panels, int64_t n_panels,
                      float *result);
    void (*nearest)(const float *rows, int64_t n, int64_t d, const float *panels, const int64_t *firsts,
                    const int64_t *starts, int64_t n_groups, const float *middles, int64_t probes,
                    int32_t *labels, float *squares);
    void (*add_cells)(const double *rows, const double *factors, const double *roots, const int32_t *labels,
                      const int32_t *places, int64_t n, int64_t d, const double *centers, double per_unit,
                      double weight_unit, int64_t *totals);
    void (*add_wide_cells)(const double *rows, const double *factors, const double *roots, const int32_t *labels,
                           const int32_t *places, int64_t n, int64_t d, const double *centers, const double *coordinates,
                           const double *middles, int64_t p, double per_unit, double weight_unit,
                           int64_t *totals);
    void (*project)(const double *rows, int64_t n, int64_t d, const double *columns, int64_t lanes,
                    double *result);
    void (*central)(const int32_t *weights, const int32_t *products, const int32_t *left, const int32_t *right,
                    int64_t G, int64_t E, int64_t r, int64_t n, int64_t bits, double *result);
    void (*rotate)(const float *t, const float *re, const float *im, int64_t n, int64_t m, float *real,
                   float *minus_imag);
    void (*correlation)(const float *points, int64_t L, int64_t d, const float *panels, int64_t n_panels,
                        const float *re, const float *im, double *result);
    double (*match)(const float *panels, const float *z, const float *weights, int64_t n_panels, int64_t d,
                    const float *centers, const float *rates, const float *alpha, int64_t T, double *result);
    double (*descend)(const float *panels, const float *z, const float *weights, int64_t n_panels, int64_t d,
                      const double *mean, const double *covariance, int32_t full, double strength, double *x,
                      int64_t T, double unit, int64_t iterations, double tolerance, double floor);
    void (*multiply_adds)(float *values, int64_t n);
};
