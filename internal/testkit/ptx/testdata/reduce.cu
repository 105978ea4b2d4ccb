#include "cuda.h"

__device__ float warpSum(float x) {
    for (int n = warpThreads / 2; n > 0; n /= 2) x += shuffleDown(x, n);
    return x;
}

// sums[w] = the sum of the 32 elements of warp w.
extern "C" __global__ void warpSums(const float *x, float *sums) {
    int i = blockX * threadsX + threadX;
    float s = warpSum(x[i]);
    if (threadX % warpThreads == 0) sums[i / warpThreads] = s;
}

extern __shared__ float dynamic[];

// sums[b] = the sum of the elements of x [n] whose index i has i / threads % blocks = b.
// Shared: 4 bytes a warp.
extern "C" __global__ void blockSums(int64 n, const float *x, float *sums) {
    float s = 0;
    for (int64 i = blockX * threadsX + threadX; i < n; i += blocksX * threadsX) s += x[i];
    s = warpSum(s);
    int warp = threadX / warpThreads, lane = threadX % warpThreads, warps = threadsX / warpThreads;
    if (lane == 0) dynamic[warp] = s;
    barrier();
    if (warp > 0) return;
    s = warpSum(lane < warps ? dynamic[lane] : 0);
    if (lane == 0) sums[blockX] = s;
}
