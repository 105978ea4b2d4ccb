// Parts of normalisations of rows and of columns, and a ReLU with a learned slope.
//
//	moments   Σ_r x[r][c] and Σ_r x[r][c]·y[r][c]
//	affine    dst = g·a + z·b + c, with a, b and c of each column
//	layer     x̂ = (z - mean) / sqrt(var + ε) of a row,  dst = x̂·gain + bias
//	unit      dst = z / ‖z‖ of a row
//
// Variant: sums over rows are double, divided into blocks of rows by a rule that depends only on
// shapes. A block has eight sums, each over every eighth row, which are added in order.
// sumDoubles adds the blocks in order. Normalisations of rows have a warp per row, and add the
// sums of lanes in halves.
#include "common.cuh"

// fold adds the eight sums of a column in a block of 32 x 8, in the thread with y 0.
DEVICE double fold(double sum) {
    SHARED double sums[8][32];
    barrier(); // until the sums of the previous call have been read
    sums[threadY()][threadX()] = sum;
    barrier();
    sum = sums[0][threadX()];
#pragma unroll
    for (int k = 1; k < 8; k++) sum += sums[k][threadX()];
    return sum;
}

// columnMoments has blocks of 32 x 8: 32 columns of the rows of part blockY. A part is 2·cols
// long.
KERNEL columnMoments(double *parts, const float *x, const float *y, i64 rows, int cols, int count) {
    int col = blockX() * 32 + threadX(), part = blockY();
    double first = 0, second = 0;
    if (col < cols)
        for (i64 row = part * rows / count + threadY(), end = (part + 1) * rows / count; row < end; row += 8) {
            double v = x[row * cols + col];
            first += v;
            second += v * (double)y[row * cols + col];
        }
    first = fold(first);
    second = fold(second);
    if (threadY() > 0 || col >= cols) return;
    parts[(i64)part * 2 * cols + col] = first;
    parts[(i64)part * 2 * cols + cols + col] = second;
}

// sumDoubles sets dst[i] to the sum of count parts of size n, in order. sumRounded rounds it.
KERNEL sumDoubles(double *dst, const double *parts, i64 n, int count) {
    i64 i = thread();
    if (i >= n) return;
    double sum = 0;
    for (int k = 0; k < count; k++) sum += parts[k * n + i];
    dst[i] = sum;
}

KERNEL sumRounded(float *dst, const double *parts, i64 n, i64 stride, int count) {
    i64 i = thread();
    if (i >= n) return;
    double sum = 0;
    for (int k = 0; k < count; k++) sum += parts[k * stride + i];
    dst[i] = (float)sum;
}

// affineColumns has blocks of 32 x 8, with a row of threads per row. z may be none, and dst may
// be g.
KERNEL affineColumns(float *dst, const float *g, const float *a, const float *z, const float *b, const float *c, i64 rows, int cols) {
    i64 row = (i64)blockX() * 8 + threadY();
    if (row >= rows) return;
    for (int col = threadX(); col < cols; col += 32) {
        i64 at = row * cols + col;
        float v = g[at] * a[col] + c[col];
        dst[at] = z ? v + z[at] * b[col] : v;
    }
}

// RowMoments has the mean of a row, and 1 over the root of its variance plus eps.
struct RowMoments { float mean, scale; };

DEVICE RowMoments momentsOf(const float *z, int cols, float eps) {
    double sum = 0, squares = 0;
    for (int c = threadX(); c < cols; c += 32) sum += z[c];
    double mean = sumDouble(sum) / cols;
    for (int c = threadX(); c < cols; c += 32) {
        double d = (double)z[c] - mean;
        squares += d * d;
    }
    return {(float)mean, 1 / __builtin_sqrtf((float)(sumDouble(squares) / cols + eps))};
}

// layerNorm has blocks of 32 x 8, with a warp per row. dst may be z.
KERNEL layerNorm(float *dst, const float *z, const float *gain, const float *bias, i64 rows, int cols, float eps) {
    i64 row = (i64)blockX() * 8 + threadY();
    if (row >= rows) return;
    z += row * cols;
    RowMoments m = momentsOf(z, cols, eps);
    for (int c = threadX(); c < cols; c += 32) dst[row * cols + c] = (z[c] - m.mean) * m.scale * gain[c] + bias[c];
}

// layerNormMoments has a warp per row. stats [rows x 2] gets the mean and the scale.
KERNEL layerNormMoments(float *stats, const float *z, i64 rows, int cols, float eps) {
    i64 row = (i64)blockX() * 8 + threadY();
    if (row >= rows) return;
    RowMoments m = momentsOf(z + row * cols, cols, eps);
    if (threadX() == 0) stats[2 * row] = m.mean, stats[2 * row + 1] = m.scale;
}

// layerNormParts computes the gradients of bias and then gain for the rows of part blockY, in
// blocks of 32 x 8.
KERNEL layerNormParts(double *parts, const float *g, const float *z, const float *stats, i64 rows, int cols, int count) {
    int col = blockX() * 32 + threadX(), part = blockY();
    double bias = 0, gain = 0;
    if (col < cols)
        for (i64 row = part * rows / count + threadY(), end = (part + 1) * rows / count; row < end; row += 8) {
            double v = g[row * cols + col];
            bias += v;
            gain += v * (double)((z[row * cols + col] - stats[2 * row]) * stats[2 * row + 1]);
        }
    bias = fold(bias);
    gain = fold(gain);
    if (threadY() > 0 || col >= cols) return;
    parts[(i64)part * 2 * cols + col] = bias;
    parts[(i64)part * 2 * cols + cols + col] = gain;
}

// layerNormGrad computes dst = s·(d - mean(d) - x̂·mean(d·x̂)), d = g·w, with a warp per row.
// dst may be g.
KERNEL layerNormGrad(float *dst, const float *g, const float *z, const float *w, const float *stats, i64 rows, int cols) {
    i64 row = (i64)blockX() * 8 + threadY();
    if (row >= rows) return;
    float mean = stats[2 * row], scale = stats[2 * row + 1];
    double sum = 0, along = 0;
    for (int c = threadX(); c < cols; c += 32) {
        double d = (double)g[row * cols + c] * (double)w[c];
        sum += d;
        along += d * (double)((z[row * cols + c] - mean) * scale);
    }
    float m = (float)(sumDouble(sum) / cols), a = (float)(sumDouble(along) / cols);
    for (int c = threadX(); c < cols; c += 32) {
        i64 at = row * cols + c;
        dst[at] = scale * (g[at] * w[c] - m - (z[at] - mean) * scale * a);
    }
}

// Smaller norms of a row are replaced by this one, as on the CPU.
constexpr double leastNorm = 1e-12;

// normOf returns the L2 norm of a warp's row.
DEVICE double normOf(const float *z, int cols) {
    double squares = 0;
    for (int c = threadX(); c < cols; c += 32) squares += (double)z[c] * (double)z[c];
    return __builtin_sqrt(sumDouble(squares));
}

// unitRows divides rows by their norms, with ball only rows with norms above 1. Blocks have 32 x
// 8 threads, with a warp per row. dst may be z.
KERNEL unitRows(float *dst, const float *z, i64 rows, int cols, int ball) {
    i64 row = (i64)blockX() * 8 + threadY();
    if (row >= rows) return;
    z += row * cols;
    double norm = normOf(z, cols), by = norm < leastNorm ? leastNorm : norm;
    bool stays = ball && norm <= 1;
    for (int c = threadX(); c < cols; c += 32) dst[row * cols + c] = stays ? z[c] : (float)((double)z[c] / by);
}

// unitRowsGrad computes dst = (g - y (y·g)) / ‖z‖, y = z/‖z‖, with a warp per row. dst may be g.
KERNEL unitRowsGrad(float *dst, const float *g, const float *z, i64 rows, int cols, int ball) {
    i64 row = (i64)blockX() * 8 + threadY();
    if (row >= rows) return;
    z += row * cols;
    g += row * cols;
    double norm = normOf(z, cols), along = 0;
    bool stays = ball && norm <= 1;
    for (int c = threadX(); c < cols; c += 32) along += (double)g[c] * (double)z[c];
    along = sumDouble(along) / (norm * norm);
    for (int c = threadX(); c < cols; c += 32) {
        double d = norm <= leastNorm ? 0 : ((double)g[c] - along * (double)z[c]) / norm;
        dst[row * cols + c] = stays ? g[c] : (float)d;
    }
}

// prelu computes dst[i] = z[i] > 0 ? z[i] : slope[0]·z[i].
KERNEL prelu(float *dst, const float *z, const float *slope, i64 n) {
    i64 i = thread();
    if (i < n) dst[i] = z[i] > 0 ? z[i] : slope[0] * z[i];
}

// preluGrad computes the gradient of z, and the gradient of the slope for each part blockX: 32
// elements of a part at a time. dst may be g.
KERNEL preluGrad(float *dst, double *parts, const float *g, const float *z, const float *slope, i64 n, int count) {
    i64 part = blockX();
    double sum = 0;
    for (i64 i = part * n / count + threadY() * 32 + threadX(), end = (part + 1) * n / count; i < end; i += 256) {
        float v = g[i], x = z[i];
        if (!(x > 0)) sum += (double)v * (double)x;
        dst[i] = x > 0 ? v : v * slope[0];
    }
    sum = sumDouble(fold(sum));
    if (threadX() == 0 && threadY() == 0) parts[part] = sum;
}
