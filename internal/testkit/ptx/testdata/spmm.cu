#include "cuda.h"

// y [rows x width] = the sums of the rows of x that the edges of each row name,
// times their weights. A block a row, a thread every so many columns.
extern "C" __global__ void spmm(int width, const int64 *offsets, const uint *cols, const float *weights, const float *x, float *y) {
    int row = blockX;
    for (int c = threadX; c < width; c += threadsX) {
        float sum = 0;
        for (int64 e = offsets[row]; e < offsets[row + 1]; e++)
            sum = __builtin_fmaf(weights[e], x[(int64)cols[e] * width + c], sum);
        y[(int64)row * width + c] = sum;
    }
}
