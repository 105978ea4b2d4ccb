#include "cuda.h"

enum { tile = 16 };

// c [m x n] = a [m x k] b [k x n], a tile of 16 x 16 a block.
extern "C" __global__ void matmul(int m, int n, int k, const float *a, const float *b, float *c) {
    __shared__ float as[tile][tile + 1], bs[tile][tile];
    int x = threadX, y = threadY;
    int row = blockY * tile + y, col = blockX * tile + x;
    float sum = 0;
    for (int p = 0; p < k; p += tile) {
        as[y][x] = row < m && p + x < k ? a[(int64)row * k + p + x] : 0;
        bs[y][x] = col < n && p + y < k ? b[(int64)(p + y) * n + col] : 0;
        barrier();
        for (int q = 0; q < tile; q++) sum = __builtin_fmaf(as[y][q], bs[q][x], sum);
        barrier();
    }
    if (row < m && col < n) c[(int64)row * n + col] = sum;
}
