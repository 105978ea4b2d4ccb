// The epilogue of a layer and its gradient, sums of columns, sums of matrices, and means of
// heads.
//
//	forward   h = dropout(f(z + bias)),  f = identity, ReLU or ELU
//	backward  ∇z = dropout'(∇h) · f'(…), and its sums over rows
//
// Variant: one pass. Forward, a thread has four neighbouring columns, whose random words are one
// draw. Backward reads h, which shows the effect of ReLU or ELU and of dropout, so that no mask
// is drawn: zeros of an ELU are -0, and dropped elements are +0. Sums of columns are divided
// into blocks of rows by a rule that depends only on shapes. A block has eight sums, each over
// every eighth row, which are added in order. sumParts adds the blocks in order.
#include "common.cuh"

enum { nothing, relu, elu };

template <int f> DEVICE float activated(float v) {
    if (f == relu) return v < 0 ? 0 : v;
    if (f == elu && !(v > 0)) {
        float e = exponentialLess1(v);
        return e == 0 ? -0.0f : e;
    }
    return v;
}

// forward has blocks of 32 x 8, with a row of threads per row of the matrix.
template <int f> DEVICE void forward(float *dst, const float *z, i64 rows, int cols, const float *bias, Mask mask) {
    i64 row = (i64)blockX() * 8 + threadY();
    if (row >= rows) return;
    u32 id = mask.active() ? mask.id(row) : 0;
    for (int col = threadX() * 4; col < cols; col += 128) {
        Words words;
        if (mask.active()) words = mask.words(id, col / 4);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (col + j >= cols) continue;
            i64 at = row * cols + col + j;
            float v = z[at];
            if (bias) v += bias[col + j];
            v = activated<f>(v);
            dst[at] = mask.active() ? mask.drop(v, words.w[j]) : v;
        }
    }
}

KERNEL biasDropout(float *dst, const float *z, i64 rows, int cols, const float *bias, MASK) { forward<nothing>(dst, z, rows, cols, bias, THE_MASK); }
KERNEL biasReLUDropout(float *dst, const float *z, i64 rows, int cols, const float *bias, MASK) { forward<relu>(dst, z, rows, cols, bias, THE_MASK); }
KERNEL biasELUDropout(float *dst, const float *z, i64 rows, int cols, const float *bias, MASK) { forward<elu>(dst, z, rows, cols, bias, THE_MASK); }

// gradient returns the gradient of an element from the gradient of h and from h.
template <int f> DEVICE float gradient(float g, float h, float scale, float kept) {
    if (f == relu) return h > 0 ? g * scale : 0;
    float slope = (h < 0 ? h : 0) * kept + 1;
    return __builtin_bit_cast(u32, h) != 0 ? g * scale * slope : 0;
}

// backward has blocks of 32 x 8: 32 columns of the rows of part blockY. It writes dst unless f
// is the identity, and parts unless there are none.
template <int f> DEVICE void backward(float *dst, float *parts, const float *g, const float *h, i64 rows, int cols, int count, float scale, float kept) {
    SHARED float sums[8][32];
    int col = blockX() * 32 + threadX(), y = threadY(), part = blockY();
    float sum = 0;
    if (col < cols)
        for (i64 row = part * rows / count + y, end = (part + 1) * rows / count; row < end; row += 8) {
            i64 at = row * cols + col;
            float v = g[at];
            if (f != nothing) dst[at] = v = gradient<f>(v, h[at], scale, kept);
            sum += v;
        }
    if (!parts) return;
    sums[y][threadX()] = sum;
    barrier();
    if (y > 0 || col >= cols) return;
#pragma unroll
    for (int k = 1; k < 8; k++) sum += sums[k][threadX()];
    parts[(i64)part * cols + col] = sum;
}

KERNEL columnSums(float *parts, const float *g, i64 rows, int cols, int count) { backward<nothing>(0, parts, g, 0, rows, cols, count, 1, 1); }
KERNEL reluGradient(float *dst, float *parts, const float *g, const float *h, i64 rows, int cols, int count, float scale) {
    backward<relu>(dst, parts, g, h, rows, cols, count, scale, 1);
}
KERNEL eluGradient(float *dst, float *parts, const float *g, const float *h, i64 rows, int cols, int count, float scale, float kept) {
    backward<elu>(dst, parts, g, h, rows, cols, count, scale, kept);
}

// add computes dst[i] += x[i].
KERNEL add(float *dst, const float *x, i64 n) {
    i64 i = thread();
    if (i < n) dst[i] += x[i];
}

// meanHeads computes dst[r][c] = bias[c] + Σ_h x[r][h·width+c]/heads, n = rows·width.
KERNEL meanHeads(float *dst, const float *x, const float *bias, i64 n, int heads, int width, float scale) {
    i64 i = thread();
    if (i >= n) return;
    i64 row = i / width;
    int col = (int)(i - row * width);
    float sum = bias[col];
    for (int h = 0; h < heads; h++) sum = fma(x[(row * heads + h) * width + col], scale, sum);
    dst[i] = sum;
}

// meanHeadsGrad computes dst[r][h·width+c] = g[r][c]/heads, n = rows·heads·width.
KERNEL meanHeadsGrad(float *dst, const float *g, i64 n, int heads, int width, float scale) {
    i64 i = thread();
    if (i >= n) return;
    i64 row = i / (heads * width);
    int col = (int)(i - row * heads * width) % width;
    dst[i] = g[row * width + col] * scale;
}
