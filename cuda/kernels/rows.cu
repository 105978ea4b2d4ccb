// Rows for other ranks and rows from them; columns of matrices; bfloat16.
//
//	packRows   dst[i] = X[index[i]]      X is x followed by more
//	addRows    X[index[i]] += rows[i]
//
// Variant: blocks of 32 x 8, with a warp per row. Indices are distinct, so that rows are added
// concurrently.
#include "common.cuh"

DEVICE i64 rowHere() { return (i64)blockX() * 8 + threadY(); }

KERNEL packRows(float *dst, const u32 *index, i64 count, const float *x, i64 own, const float *more, int cols) {
    i64 i = rowHere();
    if (i >= count) return;
    i64 row = index[i];
    const float *from = row < own ? x + row * cols : more + (row - own) * cols;
    for (int c = threadX(); c < cols; c += 32) dst[i * cols + c] = from[c];
}

KERNEL addRows(float *dst, i64 own, float *more, const u32 *index, i64 count, const float *rows, int cols) {
    i64 i = rowHere();
    if (i >= count) return;
    i64 row = index[i];
    float *to = row < own ? dst + row * cols : more + (row - own) * cols;
    for (int c = threadX(); c < cols; c += 32) to[c] += rows[i * cols + c];
}

// copyBlock computes dst[r][c] = x[r][c]. The strides of rows are given in elements.
KERNEL copyBlock(float *dst, i64 dstStride, const float *x, i64 xStride, i64 rows, int cols) {
    i64 row = rowHere();
    if (row >= rows) return;
    for (int c = threadX(); c < cols; c += 32) dst[row * dstStride + c] = x[row * xStride + c];
}

// narrow computes dst[r][c] = bf16(scale[r]·x[r][c]). The stride of dst is given in elements.
// Without scales the factor is 1.
KERNEL narrow(u16 *dst, i64 stride, const float *x, i64 rows, int cols, const float *scale) {
    i64 row = rowHere();
    if (row >= rows) return;
    float s = scale ? scale[row] : 1;
    for (int c = threadX(); c < cols; c += 32) dst[row * stride + c] = narrowed(s * x[row * cols + c]);
}
