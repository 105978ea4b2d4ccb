// The product of a sparse and a dense matrix: the gather of a graph layer.
//
//	dst[r] (+)= rowScale[r] · Σ_{e in [begin[r],end[r])} colScale[c]·x[c-base],  c = cols[e]
//
// and with loops the same for c = first+r, before all others.
//
// Variant: pull. A group computes a row. It has as many lanes as the width needs, each with up
// to four neighbouring columns, which it loads at once if the alignment of x allows that. A warp
// has several rows if they are narrow; order groups rows of similar degree, so that the rows of
// a warp end at about the same time. Blocks of a grid's row process slice columns: blocks that
// run at the same time then read a part of x that is in the second-level cache. The edges of a
// row are added in order. Hubs are not in order: their edges are divided into pieces of a fixed
// length, which are the rows of another call, and spmmHubs adds the pieces in order.
#include "common.cuh"

template <int V> struct Lanes { float v[V]; };

// rowOf loads V neighbouring elements at once.
template <int V, class E> DEVICE Lanes<V> rowOf(const E *x) {
    typedef E Elements __attribute__((ext_vector_type(V)));
    Elements v = *(const Elements *)x;
    Lanes<V> r;
#pragma unroll
    for (int i = 0; i < V; i++) r.v[i] = widened((E)v[i]);
    return r;
}

// put computes the first n columns of dst (+)= v·scale. It writes neighbouring columns at once
// if the alignment of dst allows that.
template <int V> DEVICE void put(float *dst, Lanes<V> v, float scale, int add, int n) {
    if (V == 4 && n >= 4 && aligned(dst, 16)) {
        float4 sum = {v.v[0] * scale, v.v[1 % V] * scale, v.v[2 % V] * scale, v.v[3 % V] * scale};
        *(float4 *)dst = add ? *(float4 *)dst + sum : sum;
        return;
    }
#pragma unroll
    for (int i = 0; i < V; i++)
        if (i < n) dst[i] = add ? dst[i] + v.v[i] * scale : v.v[i] * scale;
}

template <int V, class E> DEVICE void addEdge(Lanes<V> &sum, const E *x, float weight) {
    Lanes<V> v = rowOf<V>(x);
#pragma unroll
    for (int i = 0; i < V; i++) sum.v[i] = fma(weight, v.v[i], sum.v[i]);
}

// addEdges adds the edges of lanes j to j+N-1, whose rows are loaded concurrently.
template <int V, int N, class E>
DEVICE void addEdges(Lanes<V> &sum, const Group &g, const E *x, u32 base, u32 id, float weight, int j, int stride, int col, bool mine) {
    i64 at[N];
    float w[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
        at[k] = (i64)(g.of(id, j + k) - base) * stride + col;
        w[k] = g.of(weight, j + k);
    }
    if (!mine) return;
#pragma unroll
    for (int k = 0; k < N; k++) addEdge<V>(sum, x + at[k], w[k]);
}

template <int V, class E>
DEVICE void spmm(float *dst, const i64 *begin, const i64 *end, const u32 *cols, const u32 *order, i64 rows, u32 base,
                 const float *rowScale, const float *colScale, int loops, u32 first, const E *x, int stride, int width, int slice, int add, int size) {
    i64 item = group(size);
    if (item >= rows) return;
    Group g(size);
    i64 row = order ? order[item] : item, from = begin[row], to = end[row];
    float scale = rowScale ? rowScale[row] : 1;
    int begins = blockY() * slice, ends = begins + slice < width ? begins + slice : width;
    for (int left = begins; left < ends; left += size * V) {
        int col = left + g.lane * V;
        bool mine = col < ends;
        Lanes<V> sum = {};
        if (loops && mine) {
            u32 self = first + (u32)row;
            addEdge<V>(sum, x + (i64)(self - base) * stride + col, colScale ? colScale[self] : 1);
        }
        for (i64 e = from; e < to; e += size) {
            int n = to - e < size ? (int)(to - e) : size;
            u32 id = 0;
            float weight = 1;
            if (g.lane < n) {
                id = cols[e + g.lane];
                if (colScale) weight = colScale[id];
            }
            const int some = V * sizeof(E) == 16 ? 4 : 8; // registers bound the loads
            int j = 0;
            for (; j + some <= n; j += some) addEdges<V, some>(sum, g, x, base, id, weight, j, stride, col, mine);
            for (; j < n; j++) addEdges<V, 1>(sum, g, x, base, id, weight, j, stride, col, mine);
        }
        if (mine) put<V>(dst + row * width + col, sum, scale, add, ends - col);
    }
}

#define SPMM(name, V, E)                                                                                                 \
    KERNEL name(float *dst, const i64 *begin, const i64 *end, const u32 *cols, const u32 *order, i64 rows, u32 base,    \
                const float *rowScale, const float *colScale, int loops, u32 first, const E *x, int stride, int width, int slice, int add, int size) { \
        spmm<V>(dst, begin, end, cols, order, rows, base, rowScale, colScale, loops, first, x, stride, width, slice, add, size); \
    }

SPMM(spmm1, 1, float)
SPMM(spmm2, 2, float)
SPMM(spmm4, 4, float)
SPMM(spmmHalf1, 1, u16)
SPMM(spmmHalf2, 2, u16)
SPMM(spmmHalf4, 4, u16)

// pad copies rows to a stride of more columns, which are 0. count is rows times stride.
template <class E> DEVICE void pad(E *dst, const E *x, i64 count, int width, int stride) {
    i64 i = thread();
    if (i >= count) return;
    i64 row = i / stride;
    int col = (int)(i - row * stride);
    dst[i] = col < width ? x[row * width + col] : 0;
}

KERNEL padFloat(float *dst, const float *x, i64 count, int width, int stride) { pad(dst, x, count, width, stride); }
KERNEL padHalf(u16 *dst, const u16 *x, i64 count, int width, int stride) { pad(dst, x, count, width, stride); }

// spmmHubs computes the rows of hubs from their pieces. The pieces of hub h are the rows from
// firsts[h] to firsts[h+1] of parts. count is hubs times width.
template <class E>
DEVICE void spmmHubs(float *dst, const float *parts, const u32 *hubs, const u32 *firsts, i64 count, u32 base,
                     const float *rowScale, const float *colScale, int loops, u32 first, const E *x, int width, int add) {
    i64 i = thread();
    if (i >= count) return;
    i64 h = i / width;
    int col = (int)(i - h * width);
    u32 row = hubs[h], self = first + row;
    float sum = 0;
    if (loops) sum = (colScale ? colScale[self] : 1) * widened(x[(i64)(self - base) * width + col]);
#pragma unroll 4
    for (u32 p = firsts[h]; p < firsts[h + 1]; p++) sum += parts[(i64)p * width + col];
    if (rowScale) sum *= rowScale[row];
    float *to = dst + (i64)row * width + col;
    *to = add ? *to + sum : sum;
}

#define HUBS(name, E)                                                                                            \
    KERNEL name(float *dst, const float *parts, const u32 *hubs, const u32 *firsts, i64 count, u32 base,         \
                const float *rowScale, const float *colScale, int loops, u32 first, const E *x, int width, int add) { \
        spmmHubs(dst, parts, hubs, firsts, count, base, rowScale, colScale, loops, first, x, width, add);        \
    }

HUBS(spmmHubsFloat, float)
HUBS(spmmHubsHalf, u16)

// hubSums computes dst[r] (+)= the sum of the pieces of each hub r, in order, for rows that have
// no other terms. Rows have width columns. count is hubs times width.
KERNEL hubSums(float *dst, const float *parts, const u32 *hubs, const u32 *firsts, i64 count, int width, int add) {
    i64 i = thread();
    if (i >= count) return;
    i64 h = i / width;
    int col = (int)(i - h * width);
    float *to = dst + (i64)hubs[h] * width + col, sum = add ? *to : 0;
    for (u32 p = firsts[h]; p < firsts[h + 1]; p++) sum += parts[(i64)p * width + col];
    *to = sum;
}
