#include "cuda.h"

enum { bins = 64 };

// counts[b] += how many elements of x [n] are b modulo 64. Blocks count in shared
// memory first.
extern "C" __global__ void histogram(int n, const uint *x, int *counts) {
    __shared__ int mine[bins];
    for (int b = threadX; b < bins; b += threadsX) mine[b] = 0;
    barrier();
    for (int i = blockX * threadsX + threadX; i < n; i += blocksX * threadsX)
        atomicAddInt(&mine[x[i] % bins], 1);
    barrier();
    for (int b = threadX; b < bins; b += threadsX)
        if (mine[b]) atomicAddInt(&counts[b], mine[b]);
}
