// Common parts of all kernels: names of the language that a toolkit would define, some
// mathematical functions with their errors, Philox, and groups of lanes.
//
// clang compiles these files without a CUDA toolkit and its libraries. Each product and each sum
// is rounded (-ffp-contract=off), except in explicit calls of fma.
#pragma once

// A kernel has blocks of 256 threads, and few enough registers that a multiprocessor runs four
// blocks at a time, or the number in CROWDED.
#define CROWDED(blocks) extern "C" __attribute__((global, launch_bounds(256, blocks))) void
#define KERNEL CROWDED(4)
#define DEVICE static inline __attribute__((device, always_inline))
#define DEVICE_MEMBER inline __attribute__((device, always_inline))
#define SHARED static __attribute__((shared))

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

typedef float float4 __attribute__((ext_vector_type(4)));

// The position of a thread. Blocks have 256 threads, or 32 x 8.
DEVICE int threadX() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE int threadY() { return __nvvm_read_ptx_sreg_tid_y(); }
DEVICE int blockX() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE int blockY() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEVICE int blockZ() { return __nvvm_read_ptx_sreg_ctaid_z(); }
DEVICE i64 thread() { return (i64)blockX() * 256 + threadX(); }
DEVICE void barrier() { __syncthreads(); }

DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE float infinity() { return __builtin_inff(); }
DEVICE float notANumber() { return __builtin_nanf(""); }

// power returns 2^n for a normal result.
DEVICE float power(int n) { return __builtin_bit_cast(float, (u32)(n + 127) << 23); }
DEVICE double powerDouble(int n) { return __builtin_bit_cast(double, (u64)(n + 1023) << 52); }

// exponential returns e^x, with an error of at most 1e-7 of a normal result, else of the
// smallest float.
// e^x = 2^n e^r with r in [-ln2/2, ln2/2]; the polynomial is from Cephes (expf).
DEVICE float exponential(float x) {
    if (!(x <= 88.73f)) return x > 0 ? infinity() : x; // a NaN stays a NaN
    if (x < -104.0f) return 0;
    float n = __builtin_rintf(x * 1.44269504f);
    float r = fma(n, -0.693145752f, x);
    r = fma(n, -1.42860677e-6f, r);
    float p = 1.9875691500e-4f;
    p = fma(p, r, 1.3981999507e-3f);
    p = fma(p, r, 8.3334519073e-3f);
    p = fma(p, r, 4.1665795894e-2f);
    p = fma(p, r, 1.6666665459e-1f);
    p = fma(p, r, 5.0000001201e-1f);
    p = fma(p * r, r, r) + 1;
    int k = (int)n, half = k >> 1; // in two steps, for results that are subnormal or near infinity
    return p * power(half) * power(k - half);
}

// exponentialDouble returns e^x, with an error below one unit in the last place. Results below
// normal numbers are 0. The coefficients are from fdlibm (e_exp.c).
DEVICE double exponentialDouble(double x) {
    if (!(x <= 709.78)) return x > 0 ? __builtin_inf() : x;
    if (x < -708.39) return 0;
    double n = __builtin_rint(x * 1.44269504088896338700);
    double hi = x - n * 6.93147180369123816490e-01, lo = n * 1.90821492927058770002e-10;
    double r = hi - lo, t = r * r;
    double c = r - t * (1.66666666666666657415e-01 + t * (-2.77777777770155933842e-03 + t * (6.61375632143793436117e-05 +
        t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08))));
    double y = 1 - ((lo - (r * c) / (2 - c)) - hi);
    int k = (int)n, half = k >> 1;
    return y * powerDouble(half) * powerDouble(k - half);
}

// logarithm returns ln x of a normal x > 0, with an error below one unit in the last place, -Inf
// of 0, and x of an infinity or a NaN. The coefficients are from fdlibm (e_log.c).
DEVICE double logarithm(double x) {
    if (x == 0) return -__builtin_inf();
    if (!(x < __builtin_inf())) return x;
    u64 bits = __builtin_bit_cast(u64, x);
    int k = (int)(bits >> 52) - 1023;
    double m = __builtin_bit_cast(double, (bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
    if (m > 1.41421356237309504880) m *= 0.5, k++;
    double f = m - 1, s = f / (2 + f), s2 = s * s, s4 = s2 * s2;
    double t1 = s2 * (6.666666666666735130e-01 + s4 * (2.857142874366239149e-01 + s4 * (1.818357216161805012e-01 + s4 * 1.479819860511658591e-01)));
    double t2 = s4 * (3.999999999940941908e-01 + s4 * (2.222219843214978396e-01 + s4 * 1.531383769920937332e-01));
    double hfsq = 0.5 * f * f, n = k;
    return n * 6.93147180369123816490e-01 - ((hfsq - (s * (hfsq + t1 + t2) + n * 1.90821492927058770002e-10)) - f);
}

// exponentialLess1 returns e^x - 1 for x <= 0, rounded to a float. The relative error before
// rounding is at most 2e-15. Near 0 it uses Taylor's series.
DEVICE float exponentialLess1(float x) {
    double v = x;
    if (!(v > -0.35)) return (float)(exponentialDouble(v) - 1);
    double p = 1 / 479001600.0;
    p = p * v + 1 / 39916800.0;
    p = p * v + 1 / 3628800.0;
    p = p * v + 1 / 362880.0;
    p = p * v + 1 / 40320.0;
    p = p * v + 1 / 5040.0;
    p = p * v + 1 / 720.0;
    p = p * v + 1 / 120.0;
    p = p * v + 1 / 24.0;
    p = p * v + 1 / 6.0;
    p = p * v + 0.5;
    return (float)(v + p * v * v);
}

// bfloat16 numbers are the upper halves of floats.
DEVICE float widened(float v) { return v; }
DEVICE float widened(u16 v) { return __builtin_bit_cast(float, (u32)v << 16); }

// narrowed returns v rounded to nearest, ties to even.
DEVICE u16 narrowed(float v) {
    if (v != v) return 0x7fc0;
    u32 bits = __builtin_bit_cast(u32, v);
    return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

struct Words { u32 w[4]; };

// philox computes Philox4x32-10 (Salmon et al., SC'11) like package siafu/kernels.
DEVICE Words philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u64 a = (u64)0xD2511F53u * c0, b = (u64)0xCD9E8D57u * c2;
        c0 = (u32)(b >> 32) ^ c1 ^ k0;
        c1 = (u32)b;
        c2 = (u32)(a >> 32) ^ c3 ^ k1;
        c3 = (u32)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return Words{{c0, c1, c2, c3}};
}

// Mask is a kernels.Mask: an element is kept, times scale, if its word is at most last. Scale 0
// means no dropout.
struct Mask {
    const u32 *ids; // of rows; none: the rows themselves
    u32 key0, key1, epoch, layer, last;
    float scale;

    DEVICE_MEMBER bool active() const { return scale != 0; }
    DEVICE_MEMBER u32 id(i64 row) const { return ids ? ids[row] : (u32)row; }
    // words returns the words of the columns 4·block to 4·block+3 of a row.
    DEVICE_MEMBER Words words(u32 id, u32 block) const { return philox(id, block, epoch, layer, key0, key1); }
    DEVICE_MEMBER float factor(u32 word) const { return word <= last ? scale : 0; }
    DEVICE_MEMBER float drop(float v, u32 word) const { return word <= last ? v * scale : 0; }
};

// The parameters of a mask, and the mask of these parameters.
#define MASK const u32 *ids, u32 key0, u32 key1, u32 epoch, u32 layer, u32 last, float scale
#define THE_MASK (Mask{ids, key0, key1, epoch, layer, last, scale})

// word returns the word with an index that is chosen at run time. An array would be in memory.
DEVICE u32 word(const Words &w, u32 i) {
    u32 low = i & 1 ? w.w[1] : w.w[0], high = i & 1 ? w.w[3] : w.w[2];
    return i & 2 ? high : low;
}

// Group is 2^k neighbouring lanes of a warp that work on one row together. The groups of a warp
// diverge, so that all communication names only the group's lanes.
struct Group {
    int size, lane, first; // first is the warp's lane of the group's lane 0
    u32 mask;

    DEVICE_MEMBER explicit Group(int n) {
        int warpLane = threadX() & 31;
        size = n;
        lane = warpLane & (n - 1);
        first = warpLane - lane;
        mask = (n == 32 ? 0xffffffffu : (1u << n) - 1) << first;
    }
    // of returns the value of lane j.
    DEVICE_MEMBER u32 of(u32 v, int j) const { return __nvvm_shfl_sync_idx_i32(mask, v, first + j, 0x1f); }
    DEVICE_MEMBER float of(float v, int j) const { return __nvvm_shfl_sync_idx_f32(mask, v, first + j, 0x1f); }
    // partner returns the value of the lane whose number differs in the bit.
    DEVICE_MEMBER float partner(float v, int bit) const { return __nvvm_shfl_sync_bfly_f32(mask, v, bit, 0x1f); }
    // sum returns the sum over lanes, added in halves, with the same bits in all lanes.
    DEVICE_MEMBER float sum(float v) const {
        for (int step = size / 2; step > 0; step /= 2) v += partner(v, step);
        return v;
    }
    // largest ignores NaNs, unless lane 0 of the group has one.
    DEVICE_MEMBER float largest(float v) const {
        for (int step = size / 2; step > 0; step /= 2) {
            float other = partner(v, step);
            v = other > v ? other : v;
        }
        return v;
    }
};

// sumDouble returns the sum over a warp's lanes, added in halves, with the same bits in all
// lanes.
DEVICE double sumDouble(double v) {
    for (int step = 16; step > 0; step /= 2) {
        u64 bits = __builtin_bit_cast(u64, v);
        u32 low = __nvvm_shfl_sync_bfly_i32(0xffffffffu, (u32)bits, step, 0x1f);
        u32 high = __nvvm_shfl_sync_bfly_i32(0xffffffffu, (u32)(bits >> 32), step, 0x1f);
        v += __builtin_bit_cast(double, (u64)high << 32 | low);
    }
    return v;
}

// group returns the number of the thread's group of size n in the grid.
DEVICE i64 group(int n) { return (i64)blockX() * (256 / n) + threadX() / n; }

// aligned reports whether p is a multiple of the given bytes.
DEVICE bool aligned(const void *p, int bytes) { return ((u64)p & (bytes - 1)) == 0; }
