// Steps of optimisers, with the same bits as package siafu/kernels: each operation is rounded,
// in the same order.
//
//	sgd    b = μb + (g + λw);  w -= ηb                (without μ: w -= η(g + λw))
//	adam   m = β₁m + (1-β₁)g;  v = β₂v + (1-β₂)g²;  w -= size·m / (sqrt(v)·root + ε)
//
// Variant: one thread per element, one pass.
#include "common.cuh"

KERNEL stepSGD(float *w, const float *grad, i64 n, float rate, float decay) {
    i64 i = thread();
    if (i < n) w[i] -= rate * (grad[i] + decay * w[i]);
}

KERNEL stepMomentum(float *w, const float *grad, float *buffer, i64 n, float rate, float momentum, float decay) {
    i64 i = thread();
    if (i >= n) return;
    float b = momentum * buffer[i] + (grad[i] + decay * w[i]);
    buffer[i] = b;
    w[i] -= rate * b;
}

KERNEL stepAdam(float *w, const float *grad, float *m, float *v, i64 n,
                float shrink, float decay, float b1, float c1, float b2, float c2, float size, float root, float eps) {
    i64 i = thread();
    if (i >= n) return;
    float x = w[i] * shrink, g = grad[i] + decay * x;
    float mean = b1 * m[i] + c1 * g;
    float square = b2 * v[i] + c2 * g * g;
    m[i] = mean;
    v[i] = square;
    w[i] = x - size * mean / (__builtin_sqrtf(square) * root + eps);
}
