#include "cuda.h"

// y[i] += a x[i] for i < n.
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockX * threadsX + threadX;
    if (i < n) y[i] = __builtin_fmaf(a, x[i], y[i]);
}

// y[i] += a x[i], four at a time; n is in fours, and a grid may be smaller than it.
extern "C" __global__ void saxpy4(int n, float a, const float4 *x, float4 *y) {
    for (int i = blockX * threadsX + threadX; i < n; i += blocksX * threadsX) {
        float4 p = x[i], q = y[i];
        q.x += a * p.x; q.y += a * p.y; q.z += a * p.z; q.w += a * p.w;
        y[i] = q;
    }
}
