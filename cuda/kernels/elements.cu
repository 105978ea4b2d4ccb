// Blends of two matrices, and separate activations with their gradients.
//
// Variant: a thread has one element. A GELU is computed in double. The distribution function of
// the normal distribution is computed with Marsaglia's series around 0 (2004, equation 2), whose
// terms all have one sign, and with Laplace's continued fraction far below 0, where the series
// would lose the difference from 1/2.
#include "common.cuh"

enum { identity, relu, elu, gelu, leakyReLU };

DEVICE double density(double x) { return exponentialDouble(-0.5 * x * x) * 0.39894228040143267794; }

// normal returns Φ(x), with a relative error of at most 1e-9.
DEVICE double normal(double x) {
    if (x > 9) return 1;
    if (x < -40 || x != x) return x * 0;
    if (x < -4) {
        double below = -x;
        for (int k = 40; k > 0; k--) below = -x + k / below;
        return density(x) / below;
    }
    double sum = x, term = x;
    for (int k = 3; k < 240; k += 2) {
        term = term * x * x / k;
        if (sum + term == sum) break;
        sum += term;
    }
    return 0.5 + sum * density(x);
}

DEVICE float value(float x, int f) {
    if (f == gelu) return (float)(x * normal(x));
    if (f == identity || x > 0) return x;
    if (f == elu) return exponentialLess1(x);
    return f == leakyReLU ? x * 0.01f : 0;
}

DEVICE float slope(float x, int f) {
    if (f == gelu) return (float)(normal(x) + x * density(x));
    if (f == identity || x > 0) return 1;
    if (f == elu) return (float)exponentialDouble(x);
    return f == leakyReLU ? 0.01f : 0;
}

// blend computes dst[i] = keep·dst[i] + share·x[i]. With keep 0 it does not read dst.
KERNEL blend(float *dst, float keep, const float *x, float share, i64 n) {
    i64 i = thread();
    if (i >= n) return;
    float v = share * x[i];
    if (keep != 0) v = keep * dst[i] + v;
    dst[i] = v;
}

// activate computes dst[i] = f(z[i]).
KERNEL activate(float *dst, const float *z, int f, i64 n) {
    i64 i = thread();
    if (i < n) dst[i] = value(z[i], f);
}

// activateGrad computes dst[i] = g[i]·f'(z[i]).
KERNEL activateGrad(float *dst, const float *g, const float *z, int f, i64 n) {
    i64 i = thread();
    if (i < n) dst[i] = g[i] * slope(z[i], f);
}

// larger computes dst[i] = max(dst[i], x[i]).
KERNEL larger(float *dst, const float *x, i64 n) {
    i64 i = thread();
    if (i < n && x[i] > dst[i]) dst[i] = x[i];
}

// largerGrad moves the remaining gradient g[i] to dst[i] where x[i] is the maximum m[i].
KERNEL largerGrad(float *dst, float *g, const float *x, const float *m, i64 n, int add) {
    i64 i = thread();
    if (i >= n) return;
    float v = add ? dst[i] : 0;
    if (x[i] == m[i]) {
        v += g[i];
        g[i] = 0;
    }
    dst[i] = v;
}
