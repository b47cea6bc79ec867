// What a row adds, on a GPU: the operations of docs/format.md, one by one.
//
// REAL is float or double, the precision of the phases; COSINE and SINE are the polynomials of
// contract.py, lowest degree first. Sums are int32 in registers for at most 256 rows, then int64:
// integers add up to the same in any order, so that nothing here depends on the launch.
//
// A test compiles the first half for the processor (HOST).

typedef long long int64;
typedef unsigned long long uint64;

__device__ __forceinline__ float horner(const float *c, int degree, float u) {
    float value = c[degree];
#pragma unroll
    for (int i = degree - 1; i >= 0; --i) value = __fmaf_rn(value, u, c[i]);
    return value;
}

// A phase of t turns less its half turns, |r| <= 1/4, and whether their number is odd.
__device__ __forceinline__ float residue(float t, unsigned &odd) {
    const float magic = 6291456.0f;  // 1.5 * 2^22: beside it the last bit is half a turn
    const float shifted = __fadd_rn(t, magic);
    odd = __float_as_uint(shifted) & 1u;
    return __fsub_rn(t, __fsub_rn(shifted, magic));
}

__device__ __forceinline__ float residue(double t, unsigned &odd) {
    const double magic = 3377699720527872.0;  // 1.5 * 2^51, likewise
    const double shifted = __dadd_rn(t, magic);
    odd = (unsigned)(__double_as_longlong(shifted) & 1);
    return __double2float_rn(__dsub_rn(t, __dsub_rn(shifted, magic)));
}

// Add the integers of a phase, each with MAGIC_BITS on top, modulo 2^32.
const unsigned MAGIC_BITS = 0x4B400000u;  // 1.5 * 2^23 as float: beside it the last bit is one

template <typename Real>
__device__ __forceinline__ void add_waves(Real t, float weight, unsigned &cosine, unsigned &sine) {
    const float c[] = COSINE, s[] = SINE;
    unsigned odd;
    const float r = residue(t, odd);
    const float u = __fmul_rn(r, r);
    const float w = __uint_as_float(__float_as_uint(weight) ^ (odd << 31));
    const float magic = __uint_as_float(MAGIC_BITS);
    cosine += __float_as_uint(__fmaf_rn(horner(c, 5, u), w, magic));
    sine += __float_as_uint(__fmaf_rn(__fmul_rn(horner(s, 4, u), r), w, magic));
}

// The sum of n integers, without what was on top of them.
__device__ __forceinline__ int64 widened(unsigned sum, int n) {
    return (int64)(int)(sum - (unsigned)n * MAGIC_BITS);
}

#ifndef HOST

// CuPy always compiles with -ftz=true: floats below 2^-126 would be 0. They are not for these, which are
// PTX without .ftz. The waves above round them away beside larger numbers.
__device__ __forceinline__ float fused(float a, float b, float c) {
    float value;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(value) : "f"(a), "f"(b), "f"(c));
    return value;
}

__device__ __forceinline__ float times(float a, float b) {
    float value;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
    return value;
}

__device__ __forceinline__ float plus(float a, float b) {
    float value;
    asm("add.rn.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
    return value;
}

__device__ __forceinline__ float minus(float a, float b) {
    float value;
    asm("sub.rn.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
    return value;
}

__device__ __forceinline__ double wide(float a) {
    double value;
    asm("cvt.f64.f32 %0, %1;" : "=d"(value) : "f"(a));
    return value;
}

__device__ __forceinline__ float narrow(double a) {
    float value;
    asm("cvt.rn.f32.f64 %0, %1;" : "=f"(value) : "d"(a));
    return value;
}

// Whether a < b, of numbers that are not negative.
__device__ __forceinline__ bool is_less(float a, float b) { return __float_as_int(a) < __float_as_int(b); }

__device__ __forceinline__ double wide(double a) { return a; }
__device__ __forceinline__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double minus(double a, double b) { return __dsub_rn(a, b); }

// The second number, as precise as the first.
__device__ __forceinline__ float like(float, float b) { return b; }
__device__ __forceinline__ double like(double, float b) { return wide(b); }

const int THREADS = 256, MOST_ROWS = 256;  // rows of an int32 sum

// Rows x' = (x - center) per_unit and their squared norms, a thread for each.
extern "C" __global__ void __launch_bounds__(THREADS) normalise(
    const REAL *X,           // IN  (n, d)
    const double *center, const double *per_unit,  // IN  (d,)
    int64 n, int d,
    double *rows,            // OUT  (n, d)
    double *squared_norms    // OUT  (n,)
) {
    const int64 row = (int64)blockIdx.x * THREADS + threadIdx.x;
    if (row >= n) return;
    double sum = 0.0;
    for (int k = 0; k < d; ++k) {
        const double x = __dmul_rn(__dsub_rn(wide(X[row * d + k]), center[k]), per_unit[k]);
        rows[row * d + k] = x;
        sum = __dadd_rn(sum, __dmul_rn(x, x));
    }
    squared_norms[row] = sum;
}

// Dense frequencies. A block has BF of them and takes the rows BR at a time. A thread has a tile of TR
// rows by TF frequencies, with its phases in registers while the columns go by, KC at a time.
const int TR = 16, TF = 4, ACROSS = 32, DOWN = THREADS / ACROSS, KC = 16;
const int BF = ACROSS * TF, BR = DOWN * TR;

__device__ void load_turns(
    float (*omega)[BF], const float *turns, int column, int first, int d, int m) {
    for (int i = threadIdx.x; i < KC * BF; i += THREADS) {
        const int k = column + i / BF, j = first + i % BF;
        omega[i / BF][i % BF] = k < d && j < m ? turns[(int64)k * m + j] : 0.0f;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) add_dense(
    const REAL *rows,      // IN  (n, d)
    const float *weights,  // IN  (n,)
    const float *turns,    // IN  (d, m)
    int64 n, int d, int m,
    uint64 *totals         // IN/OUT  (2, m)
) {
    __shared__ __align__(16) REAL x[KC][BR + 4];  // 4: fewer threads write to one bank
    __shared__ __align__(16) float omega[KC][BF];
    __shared__ float w[BR];
    const int across = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS, from = blockIdx.x * BF;
    unsigned narrow[2][TF] = {};
    int64 wide[2][TF] = {};
    int n_rows = 0;
    if (d <= KC) load_turns(omega, turns, 0, from, d, m);
    for (int64 first = (int64)blockIdx.y * BR; first < n; first += (int64)gridDim.y * BR) {
        REAL t[TR][TF] = {};
        for (int column = 0; column < d; column += KC) {
            __syncthreads();
            if (d > KC) load_turns(omega, turns, column, from, d, m);
            for (int i = threadIdx.x; i < BR * KC; i += THREADS) {
                const int row = i / KC, k = i % KC;
                const bool is_inside = first + row < n && column + k < d;
                x[k][row] = is_inside ? rows[(first + row) * d + column + k] : (REAL)0;
            }
            if (threadIdx.x < BR)
                w[threadIdx.x] = first + threadIdx.x < n ? weights[first + threadIdx.x] : 0.0f;
            __syncthreads();
            const int stop = min(KC, d - column);
#pragma unroll 2
            for (int k = 0; k < stop; ++k)
#pragma unroll
                for (int f = 0; f < TF; ++f) {
                    const REAL o = like((REAL)0, omega[k][across * TF + f]);
#pragma unroll
                    for (int r = 0; r < TR; ++r) t[r][f] = fused(x[k][down * TR + r], o, t[r][f]);
                }
        }
#pragma unroll
        for (int r = 0; r < TR; ++r)
#pragma unroll
            for (int f = 0; f < TF; ++f)
                add_waves(t[r][f], w[down * TR + r], narrow[0][f], narrow[1][f]);
        n_rows += TR;
        if (n_rows == MOST_ROWS) {
#pragma unroll
            for (int f = 0; f < 2 * TF; ++f) {
                wide[f / TF][f % TF] += widened(narrow[f / TF][f % TF], n_rows);
                narrow[f / TF][f % TF] = 0;
            }
            n_rows = 0;
        }
    }
#pragma unroll
    for (int f = 0; f < 2 * TF; ++f) {
        const int j = from + across * TF + f % TF;
        const int64 sum = wide[f / TF][f % TF] + widened(narrow[f / TF][f % TF], n_rows);
        if (j < m) atomicAdd(&totals[(int64)(f / TF) * m + j], (uint64)sum);
    }
}

// Structured frequencies: a block has one block of SIZE of them, and takes the rows TOGETHER at a time
// through three Hadamard transforms in shared memory.
#ifdef SIZE

const int NUMBERS = SIZE * TOGETHER, SLOTS = SIZE > THREADS ? SIZE / THREADS : 1;
const int EACH = NUMBERS / THREADS / SLOTS;  // rows that a thread sees of a frequency at a time

__device__ void transform(REAL *y, const float *signs, bool is_up) {
    for (int i = threadIdx.x; i < NUMBERS; i += THREADS) y[i] = times(y[i], like(y[i], signs[i % SIZE]));
    for (int level = 1; level < SIZE; level *= 2) {
        const int stride = is_up ? level : SIZE / 2 / level;
        __syncthreads();
        for (int i = threadIdx.x; i < NUMBERS / 2; i += THREADS) {
            const int low = i / stride * 2 * stride + i % stride;
            const REAL a = y[low], b = y[low + stride];
            y[low] = plus(a, b);
            y[low + stride] = minus(a, b);
        }
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS) add_structured(
    const REAL *rows,      // IN  (n, d)
    const float *weights,  // IN  (n,)
    const float *signs,    // IN  (blocks, 3, SIZE)
    const float *radii,    // IN  (m,)
    int64 n, int d, int m,
    uint64 *totals         // IN/OUT  (2, m)
) {
    extern __shared__ __align__(16) unsigned char memory[];
    REAL *y = (REAL *)memory;
    unsigned narrow[2][SLOTS] = {};
    int64 wide[2][SLOTS] = {};
    int n_rows = 0;
    signs += (int64)blockIdx.x * 3 * SIZE;
    for (int64 first = (int64)blockIdx.y * TOGETHER; first < n; first += (int64)gridDim.y * TOGETHER) {
        __syncthreads();
        for (int i = threadIdx.x; i < NUMBERS; i += THREADS) {
            const int64 row = first + i / SIZE;
            y[i] = row < n && i % SIZE < d ? rows[row * d + i % SIZE] : (REAL)0;
        }
        __syncthreads();
        transform(y, signs, true);
        transform(y, signs + SIZE, false);
        transform(y, signs + 2 * SIZE, true);
#pragma unroll
        for (int s = 0; s < SLOTS; ++s)
            for (int e = 0; e < EACH; ++e) {
                const int i = threadIdx.x + THREADS * (s + SLOTS * e);
                const int64 row = first + i / SIZE;
                const int j = blockIdx.x * SIZE + i % SIZE;
                const REAL t = times(y[i], like(y[i], j < m ? radii[j] : 0.0f));
                add_waves(t, row < n ? weights[row] : 0.0f, narrow[0][s], narrow[1][s]);
            }
        n_rows += EACH;
        if (n_rows + EACH > MOST_ROWS) {
#pragma unroll
            for (int s = 0; s < 2 * SLOTS; ++s) {
                wide[s / SLOTS][s % SLOTS] += widened(narrow[s / SLOTS][s % SLOTS], n_rows);
                narrow[s / SLOTS][s % SLOTS] = 0;
            }
            n_rows = 0;
        }
    }
#pragma unroll
    for (int s = 0; s < 2 * SLOTS; ++s) {
        const int j = blockIdx.x * SIZE + (threadIdx.x + THREADS * (s % SLOTS)) % SIZE;
        const int64 sum = wide[s / SLOTS][s % SLOTS] + widened(narrow[s / SLOTS][s % SLOTS], n_rows);
        if (j < m) atomicAdd(&totals[(int64)(s / SLOTS) * m + j], (uint64)sum);
    }
}

#endif

// Cells, as in kernels/contract.py. First the nearest center of each row is found, then all is added.
// A sum of squares goes through the columns in order, so that threads share centers and rows out.

__device__ __forceinline__ void take_nearer(float s, int j, float &least, int &label) {
    if (is_less(s, least) || (!is_less(least, s) && j < label)) least = s, label = j;
}

__device__ __forceinline__ float squared_distance(const double *x, const float *c, int d) {
    float s = 0.0f;
    for (int k = 0; k < d; ++k) {
        const float e = minus(narrow(x[k]), c[k]);
        s = fused(e, e, s);
    }
    return s;
}

// The nearest center of all, by tiles of SIDE rows and SIDE centers; a thread has EDGE x EDGE of them.
const int SIDE = 128, EDGE = 8, DEPTH = 8, LANES = SIDE / EDGE;

extern "C" __global__ void __launch_bounds__(THREADS) find_nearest(
    const double *rows,    // IN  (n, d)
    const float *centers,  // IN  (n_centers, d)
    int64 n, int d, int n_centers,
    int *labels,           // OUT  (n,)
    float *squares         // OUT  (n,)
) {
    __shared__ __align__(16) float x[DEPTH][SIDE + 4], c[DEPTH][SIDE + 4];
    const int across = threadIdx.x % LANES, down = threadIdx.x / LANES;
    for (int64 first = (int64)blockIdx.x * SIDE; first < n; first += (int64)gridDim.x * SIDE) {
        float least[EDGE];
        int label[EDGE];
        for (int r = 0; r < EDGE; ++r) least[r] = __int_as_float(0x7f800000), label[r] = 0;
        for (int from = 0; from < n_centers; from += SIDE) {
            float s[EDGE][EDGE] = {};
            for (int column = 0; column < d; column += DEPTH) {
                __syncthreads();
                for (int i = threadIdx.x; i < SIDE * DEPTH; i += THREADS) {
                    const int row = i / DEPTH, k = i % DEPTH;
                    const bool has_column = column + k < d;
                    x[k][row] = has_column && first + row < n
                        ? narrow(rows[(first + row) * d + column + k]) : 0.0f;
                    c[k][row] = has_column && from + row < n_centers
                        ? centers[(int64)(from + row) * d + column + k] : 0.0f;
                }
                __syncthreads();
#pragma unroll
                for (int k = 0; k < DEPTH; ++k) {
                    float a[EDGE], b[EDGE];
#pragma unroll
                    for (int r = 0; r < EDGE; ++r) a[r] = x[k][down * EDGE + r], b[r] = c[k][across * EDGE + r];
#pragma unroll
                    for (int r = 0; r < EDGE; ++r)
#pragma unroll
                        for (int f = 0; f < EDGE; ++f) {
                            const float e = minus(a[r], b[f]);  // columns beyond d add 0
                            s[r][f] = fused(e, e, s[r][f]);
                        }
                }
            }
#pragma unroll
            for (int r = 0; r < EDGE; ++r)
#pragma unroll
                for (int f = 0; f < EDGE; ++f) {
                    const int j = from + across * EDGE + f;
                    if (j < n_centers) take_nearer(s[r][f], j, least[r], label[r]);
                }
        }
#pragma unroll
        for (int r = 0; r < EDGE; ++r) {
            for (int lane = LANES / 2; lane > 0; lane /= 2) {
                const float other = __shfl_xor_sync(0xffffffffu, least[r], lane);
                const int at = __shfl_xor_sync(0xffffffffu, label[r], lane);
                take_nearer(other, at, least[r], label[r]);
            }
            const int64 row = first + down * EDGE + r;
            if (across == 0 && row < n) labels[row] = label[r], squares[row] = least[r];
        }
    }
}

// The nearest center of a group that is known, a warp for each row.
extern "C" __global__ void __launch_bounds__(THREADS) find_in_group(
    const double *rows,    // IN  (n, d)
    const float *centers,  // IN  (cells, d)
    const int64 *starts,   // IN  (n_groups + 1,)
    int64 n, int d,
    int *labels,           // IN/OUT  (n,): the group, then the cell
    float *squares         // OUT  (n,)
) {
    const int lane = threadIdx.x % 32, warps = THREADS / 32;
    for (int64 row = (int64)blockIdx.x * warps + threadIdx.x / 32; row < n; row += (int64)gridDim.x * warps) {
        const int group = labels[row];
        float least = __int_as_float(0x7f800000);
        int label = (int)starts[group];
        for (int j = (int)starts[group] + lane; j < (int)starts[group + 1]; j += 32)
            take_nearer(squared_distance(rows + row * d, centers + (int64)j * d, d), j, least, label);
        for (int other = 16; other > 0; other /= 2) {
            const float s = __shfl_xor_sync(0xffffffffu, least, other);
            take_nearer(s, __shfl_xor_sync(0xffffffffu, label, other), least, label);
        }
        __syncwarp();
        if (lane == 0) labels[row] = label, squares[row] = least;
    }
}

// The nearest center in the PROBES groups whose middles are nearest, a thread for each row.
#ifdef PROBES

extern "C" __global__ void __launch_bounds__(THREADS) find_in_groups(
    const double *rows,    // IN  (n, d)
    const float *centers,  // IN  (cells, d)
    const int64 *starts,   // IN  (n_groups + 1,)
    const float *middles,  // IN  (n_groups, d)
    int n_groups, int64 n, int d,
    int *labels,           // OUT  (n,)
    float *squares         // OUT  (n,)
) {
    for (int64 row = (int64)blockIdx.x * THREADS + threadIdx.x; row < n; row += (int64)gridDim.x * THREADS) {
        const double *x = rows + row * d;
        float least = __int_as_float(0x7f800000), near[PROBES];
        int groups[PROBES], label = 0;
        for (int p = 0; p < PROBES; ++p) near[p] = least, groups[p] = -1;
        for (int g = 0; g < n_groups; ++g) {
            float s = squared_distance(x, middles + (int64)g * d, d);
            int at = g;
            for (int p = 0; p < PROBES; ++p)  // the nearer one stays, of two as near the first
                if (is_less(s, near[p]) || (!is_less(near[p], s) && at < groups[p])) {
                    const float farther = near[p];
                    const int other = groups[p];
                    near[p] = s, groups[p] = at;
                    s = farther, at = other;
                }
        }
        for (int p = 0; p < PROBES; ++p)
            for (int j = groups[p] < 0 ? 0 : (int)starts[groups[p]]; j < (groups[p] < 0 ? 0 : (int)starts[groups[p] + 1]); ++j)
                take_nearer(squared_distance(x, centers + (int64)j * d, d), j, least, label);
        labels[row] = label, squares[row] = least;
    }
}

#endif

// What rows add to their cells, a warp for each row; without axes, squares of all columns in two limbs.
#ifdef SQUARE_BITS

__device__ __forceinline__ int64 steps_of(double factor, double offset, double per_unit) {
    return __double2ll_rn(__dmul_rn(__dmul_rn(factor, offset), per_unit));
}

extern "C" __global__ void __launch_bounds__(THREADS) add_cells(
    const double *rows,         // IN  (n, d)
    const double *coordinates,  // IN  (n, p); not looked at without axes
    const double *factors,      // IN  (n,), or null: 1
    const float *centers,       // IN  (cells, d)
    const double *middles,      // IN  (cells, p): coordinates of the centers; null without axes
    const int *labels,          // IN  (n,)
    const float *squares,       // IN  (n,)
    double per_unit, float limit, double weight_unit, int64 n, int d, int p,
    uint64 *totals              // IN/OUT  (cells, 1 + 3 d), with axes (cells, 2 + d + p)
) {
    const int lane = threadIdx.x % 32, warps = THREADS / 32;
    const int64 width = middles ? 2 + d + p : 1 + 3 * d;
    for (int64 row = (int64)blockIdx.x * warps + threadIdx.x / 32; row < n; row += (int64)gridDim.x * warps) {
        if (is_less(limit, squares[row])) continue;
        const int64 label = labels[row];
        const double f = factors ? factors[row] : 1.0, root = __dsqrt_rn(f);
        uint64 *cell = totals + label * width, length = 0;
        if (lane == 0) atomicAdd(cell, (uint64)__double2ll_rn(__dmul_rn(f, weight_unit)));
        for (int k = lane; k < d; k += 32) {
            const double offset = __dsub_rn(rows[row * d + k], wide(centers[label * d + k]));
            const int64 w = steps_of(root, offset, per_unit);
            const uint64 square = (uint64)w * (uint64)w;
            atomicAdd(cell + 1 + k, (uint64)steps_of(f, offset, per_unit));
            length += square;
            if (!middles) {
                atomicAdd(cell + 1 + d + k, square & ((1ull << SQUARE_BITS) - 1));
                atomicAdd(cell + 1 + 2 * d + k, square >> SQUARE_BITS);
            }
        }
        if (!middles) continue;
        for (int other = 16; other > 0; other /= 2) length += __shfl_xor_sync(0xffffffffu, length, other);
        if (lane == 0) atomicAdd(cell + 1 + d, length);
        for (int a = lane; a < p; a += 32) {
            const double along = __dsub_rn(coordinates[row * p + a], middles[label * p + a]);
            const int64 w = steps_of(root, along, per_unit);
            atomicAdd(cell + 2 + d + a, (uint64)w * (uint64)w);
        }
    }
}

// Coordinates along axes, a thread for each.
extern "C" __global__ void __launch_bounds__(THREADS) project(
    const double *rows,  // IN  (n, d)
    const float *axes,   // IN  (p, d)
    int64 n, int d, int p,
    double *result       // OUT  (n, p)
) {
    for (int64 i = (int64)blockIdx.x * THREADS + threadIdx.x; i < n * p; i += (int64)gridDim.x * THREADS) {
        const double *x = rows + i / p * d;
        const float *a = axes + i % p * d;
        double s = 0.0;
        for (int k = 0; k < d; ++k) s = fused(x[k], wide(a[k]), s);
        result[i] = s;
    }
}

#endif

// First and second moments, as in kernels/contract.py. A block has SUM_LANES of the sums and takes the rows
// TILE at a time; sums 0 to d - 1 are of the rounded coordinates, d to 2 d - 1 of their rests, the
// others of products of the columns first[s] and second[s].
#ifdef TILE

extern "C" __global__ void __launch_bounds__(THREADS) add_moments(
    const double *rows,     // IN  (n, d)
    const double *factors,  // IN  (n,), or null: 1
    const int *first, const int *second,  // IN  (n_sums,)
    double per_unit, int64 n, int d, int n_sums,
    uint64 *limbs           // IN/OUT  (3, n_sums)
) {
    extern __shared__ __align__(16) unsigned char memory[];
    double *v = (double *)memory;          // (TILE, d)
    int *low = (int *)(v + TILE * d), *high = low + TILE * d;
    const int s = blockIdx.x * SUM_LANES + threadIdx.x % SUM_LANES, group = threadIdx.x / SUM_LANES;
    int64 sums[3] = {};
    for (int64 from = (int64)blockIdx.y * TILE; from < n; from += (int64)gridDim.y * TILE) {
        const int n_rows = (int)min((int64)TILE, n - from);
        __syncthreads();
        for (int i = threadIdx.x; i < n_rows * d; i += THREADS) {
            const double x = rows[from * d + i], f = factors ? factors[from + i / d] : 1.0;
            v[i] = __dmul_rn(__dmul_rn(f, x), per_unit);
            const int64 w = __double2ll_rn(__dmul_rn(__dmul_rn(__dsqrt_rn(f), x), per_unit));
            low[i] = (int)(w & ((1 << LIMB_BITS) - 1));
            high[i] = (int)(w >> LIMB_BITS);
        }
        __syncthreads();
        if (s >= n_sums) continue;
        const int a = first[s], b = second[s];
        for (int r = group; r < n_rows; r += THREADS / SUM_LANES) {
            const int p = r * d + a, q = r * d + b;
            if (s < d) {
                sums[0] += __double2ll_rn(v[p]);
            } else if (s < 2 * d) {
                const double rest = __dsub_rn(v[p], rint(v[p]));
                sums[0] += __double2ll_rn(__dmul_rn(rest, (double)(1 << LIMB_BITS)));
            } else {
                sums[0] += (int64)low[p] * low[q];
                sums[1] += (int64)low[p] * high[q] + (int64)high[p] * low[q];
                sums[2] += (int64)high[p] * high[q];
            }
        }
    }
    for (int limb = 0; limb < 3 && s < n_sums; ++limb)
        if (sums[limb]) atomicAdd(&limbs[(int64)limb * n_sums + s], (uint64)sums[limb]);
}

#endif
#endif
