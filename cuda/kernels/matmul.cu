// Products of dense matrices.
//
//	MatMul        dst[m x n] (+)= a[m x k] b[k x n]
//	MatMulTransB  dst[m x n] (+)= a[m x k] b[n x k]ᵀ
//	MatMulTransA  dst[m x n] (+)= a[k x m]ᵀ b[k x n]
//
// Variant: tiles of 16·T x 16·T of dst, one per block. Each thread has T x T elements in
// registers. Shared memory has 16 of k at a time. One thread adds all terms of an element in the
// order of k, for any T. If k is long and dst is small, k is divided into splits by a rule that
// depends only on shapes. Each split writes its own part, and sumParts adds the parts in order.
// An epilogue (bias, ReLU, dropout) is applied in registers.
#include "common.cuh"

const int depth = 16; // of k in shared memory

// Tile is an operand in shared memory, [depth][16·T], padded so that its columns are in
// different banks.
template <int T> struct Tile { __attribute__((aligned(16))) float at[depth][16 * T + 4]; };

// load sets tile to depth of k, from k on and below end, and 16·T lines from first on and below
// count. With along, neighbours in memory belong to the same line, and stride is the distance of
// two lines; otherwise they belong to the same k. Elements outside are 0.
template <int T, bool along, class E>
DEVICE void load(Tile<T> &tile, const E *x, i64 stride, i64 first, i64 count, i64 k, i64 end) {
#pragma unroll
    for (int t = 0; t < T; t++) {
        int i = threadX() + t * 256;
        int line = along ? i / depth : i % (16 * T), at = along ? i % depth : i / (16 * T);
        float v = 0;
        if (first + line < count && k + at < end) v = widened(along ? x[(first + line) * stride + k + at] : x[(k + at) * stride + first + line]);
        tile.at[at][line] = v;
    }
}

// multiply adds the product of two tiles to acc, in the order of k.
template <int T> DEVICE void multiply(float acc[T][T], const Tile<T> &as, const Tile<T> &bs, int y, int x) {
#pragma unroll
    for (int k = 0; k < depth; k++) {
        float a[T], b[T];
        if (T == 4) {
            *(float4 *)a = *(const float4 *)&as.at[k][y * T];
            *(float4 *)b = *(const float4 *)&bs.at[k][x * T];
        } else {
#pragma unroll
            for (int i = 0; i < T; i++) a[i] = as.at[k][y * T + i], b[i] = bs.at[k][x * T + i];
        }
#pragma unroll
        for (int i = 0; i < T; i++)
#pragma unroll
            for (int j = 0; j < T; j++) acc[i][j] = fma(a[i], b[j], acc[i][j]);
    }
}

// store writes a thread's elements: T rows of T elements.
template <int T> DEVICE void store(float *dst, float acc[T][T], i64 row, int col, i64 m, int n, int add) {
    bool whole = T == 4 && n % 4 == 0 && aligned(dst, 16);
#pragma unroll
    for (int i = 0; i < T; i++) {
        if (row + i >= m || col >= n) continue;
        float *to = dst + (row + i) * n + col;
        if (whole) {
            float4 v = {acc[i][0], acc[i][1 % T], acc[i][2 % T], acc[i][3 % T]};
            *(float4 *)to = add ? *(float4 *)to + v : v;
            continue;
        }
#pragma unroll
        for (int j = 0; j < T; j++)
            if (col + j < n) to[j] = add ? to[j] + acc[i][j] : acc[i][j];
    }
}

// finish returns dropout(relu(acc + bias)).
template <int T> DEVICE void finish(float acc[T][T], i64 row, int col, i64 m, int n, const float *bias, int relu, Mask mask) {
#pragma unroll
    for (int i = 0; i < T; i++) {
        if (row + i >= m) continue;
        Words words;
        if (mask.active()) words = mask.words(mask.id(row + i), col / 4);
#pragma unroll
        for (int j = 0; j < T; j++) {
            float v = acc[i][j];
            if (bias && col + j < n) v += bias[col + j];
            if (relu && v < 0) v = 0;
            if (mask.active()) v = mask.drop(v, T == 4 ? words.w[j] : word(words, (col + j) % 4));
            acc[i][j] = v;
        }
    }
}

template <int T, bool transA, bool transB, bool epilogue, class E>
DEVICE void product(float *dst, const E *a, const float *b, i64 m, int n, i64 k, int splits, int add, const float *bias, int relu, Mask mask) {
    SHARED Tile<T> as, bs;
    i64 top = (i64)blockX() * 16 * T;
    int left = blockY() * 16 * T, part = blockZ();
    int y = threadX() / 16, x = threadX() % 16;
    float acc[T][T] = {};
    i64 from = part * k / splits, end = (part + 1) * k / splits;
    for (; from < end; from += depth) {
        load<T, !transA>(as, a, transA ? m : k, top, m, from, end);
        load<T, transB>(bs, b, transB ? k : n, left, n, from, end);
        barrier();
        multiply<T>(acc, as, bs, y, x);
        barrier();
    }
    i64 row = top + y * T;
    int col = left + x * T;
    if (epilogue) finish<T>(acc, row, col, m, n, bias, relu, mask);
    store<T>(dst + part * m * n, acc, row, col, m, n, add);
}

#define PRODUCT(name, T, transA, transB, E)                                                                \
    CROWDED(T == 4 ? 2 : 4) name(float *dst, const E *a, const float *b, i64 m, int n, i64 k, int splits, int add) { \
        product<T, transA, transB, false>(dst, a, b, m, n, k, splits, add, (const float *)0, 0, Mask{});   \
    }
#define DENSE(name, T, E)                                                                                  \
    CROWDED(T == 4 ? 2 : 4) name(float *dst, const E *a, const float *b, i64 m, int n, i64 k, const float *bias, int relu, MASK) { \
        product<T, false, false, true>(dst, a, b, m, n, k, 1, 0, bias, relu, THE_MASK);                    \
    }

PRODUCT(matMul1, 1, false, false, float)
PRODUCT(matMul4, 4, false, false, float)
PRODUCT(matMulHalf1, 1, false, false, u16)
PRODUCT(matMulHalf4, 4, false, false, u16)
PRODUCT(matMulTransA1, 1, true, false, float)
PRODUCT(matMulTransA4, 4, true, false, float)
PRODUCT(matMulTransAHalf1, 1, true, false, u16)
PRODUCT(matMulTransAHalf4, 4, true, false, u16)
PRODUCT(matMulTransB1, 1, false, true, float)
PRODUCT(matMulTransB4, 4, false, true, float)
DENSE(dense1, 1, float)
DENSE(dense4, 4, float)
DENSE(denseHalf1, 1, u16)
DENSE(denseHalf4, 4, u16)

// sumParts computes dst[i] (+)= Σ_p parts[p][i], in the order of p.
KERNEL sumParts(float *dst, const float *parts, i64 size, int count, int add) {
    i64 i = thread();
    if (i >= size) return;
    float sum = add ? dst[i] : 0;
#pragma unroll 8
    for (int p = 0; p < count; p++) sum += parts[p * size + i];
    dst[i] = sum;
}
