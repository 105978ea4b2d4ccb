// Blends of two matrices, and activations by themselves with their gradients.
//
// Variant: a thread has one element. A GELU is computed in double: below the distribution
// function of the normal distribution is Marsaglia's series around 0 (2004, equation 2),
// all of whose terms have one sign, and Laplace's continued fraction far below 0, where
// the series would lose what is left of 1/2.
#include "common.cuh"

enum { identity, relu, elu, gelu, leakyReLU };

DEVICE double density(double x) { return exponentialDouble(-0.5 * x * x) * 0.39894228040143267794; }

// normal is Φ(x), wrong by 1e-9 of its size at most.
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

// blend is dst[i] = keep·dst[i] + share·x[i]; keep 0 reads no dst.
KERNEL blend(float *dst, float keep, const float *x, float share, i64 n) {
    i64 i = thread();
    if (i >= n) return;
    float v = share * x[i];
    if (keep != 0) v = keep * dst[i] + v;
    dst[i] = v;
}

// activate is dst[i] = f(z[i]).
KERNEL activate(float *dst, const float *z, int f, i64 n) {
    i64 i = thread();
    if (i < n) dst[i] = value(z[i], f);
}

// activateGrad is dst[i] = g[i]·f'(z[i]).
KERNEL activateGrad(float *dst, const float *g, const float *z, int f, i64 n) {
    i64 i = thread();
    if (i < n) dst[i] = g[i] * slope(z[i], f);
}

// larger is dst[i] = max(dst[i], x[i]).
KERNEL larger(float *dst, const float *x, i64 n) {
    i64 i = thread();
    if (i < n && x[i] > dst[i]) dst[i] = x[i];
}

// largerGrad gives dst[i] what is left of the gradient g[i], and takes it away there, where
// x[i] is the largest, m[i].
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
