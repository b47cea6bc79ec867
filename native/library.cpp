// Which variants this library holds, and which of them this machine can run.

#include "table.h"

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

#if defined(__x86_64__) || defined(_M_X64)
extern const Kernels kernels_avx512, kernels_avx2;
#elif defined(__aarch64__) || defined(_M_ARM64)
extern const Kernels kernels_neon;
#endif
extern const Kernels kernels_plain;

#if defined(__x86_64__)
#include <cpuid.h>

// What the processor has, and what the system saves when it changes threads.
struct Features {
    bool avx2 = false, avx512 = false;

    Features() {
        unsigned a, b, c, d, low, high, most = __get_cpuid_max(0, nullptr);
        if (most < 7) return;
        __cpuid(1, a, b, c, d);
        const bool has_fma = c & (1u << 12), has_xgetbv = c & (1u << 27);
        if (!has_xgetbv) return;
        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        __cpuid_count(7, 0, a, b, c, d);
        avx2 = has_fma && (low & 0x06) == 0x06 && (b & (1u << 5));
        avx512 = avx2 && (low & 0xE6) == 0xE6 && (b & (1u << 16)) && (b & (1u << 17));
    }
};
#endif

struct Variant {
    const char *name;
    const Kernels *kernels;
};

// What the table looks like: its version, and its size in bytes.
EXPORT int64_t sketchshift_table() { return (TABLE_VERSION << 32) + (int64_t)sizeof(Kernels); }

// The variants that this machine can run, the widest first; ends with a null name. Filled in when the
// library is loaded: threads only read it.
struct Found {
    Variant variants[4] = {};

    Found() {
        int n = 0;
#if defined(__x86_64__)
        const Features features;
        if (features.avx512) variants[n++] = {"avx512", &kernels_avx512};
        if (features.avx2) variants[n++] = {"avx2", &kernels_avx2};
#elif defined(__aarch64__)
        variants[n++] = {"neon", &kernels_neon};
#endif
        variants[n] = {"plain", &kernels_plain};
    }
};

static const Found found;

EXPORT const Variant *sketchshift_variants() { return found.variants; }
