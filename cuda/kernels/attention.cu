// Attention over the in-neighbours of a vertex; siafu/kernels has the formulae.
//
//	s[v,u] = leaky(l[u] + r[v])    p = softmax of s over u    q = p·keep
//	out[v] = Σ_u q·z[u]
//	ds = p·((g[v]·z[u])·keep - D[v])·leaky'    dr[v] = Σ_u ds    dl[u] = Σ_v ds    dz[u] = Σ_v q·g[v]
//
// Variant: pull. A row's head is a group's, so that a warp has neighbouring heads of
// a row where they are narrow. As many edges as the group has lanes are done at a
// time: each lane makes the score of one, and then all make the edges' sums together,
// a lane a column. The largest score so far is taken out of the exponents, and sums
// are scaled when it grows ("online softmax"). Sums of edges are in order, those of a
// head's columns in halves. A row is never cut, not even that of a hub.
#include "common.cuh"

DEVICE float leaky(float v, float slope) { return v > 0 ? v : v * slope; }

// Edges are those of a row, its self loop the first; ids are of rows of the matrix
// at their other ends.
struct Edges {
    const u32 *cols;
    i64 from, count;
    u32 base, self;
    bool loops;

    DEVICE_MEMBER Edges(const i64 *begin, const i64 *end, const u32 *all, i64 row, u32 b, int loop, u32 first) {
        cols = all;
        from = begin[row];
        count = end[row] - from + (loop != 0);
        base = b;
        self = first + (u32)row;
        loops = loop != 0;
    }
    DEVICE_MEMBER u32 id(i64 k) const {
        if (!loops) return cols[from + k] - base;
        return k == 0 ? self : cols[from + k - 1] - base;
    }
};

// factor is what dropout multiplies an edge of a head by.
DEVICE float factor(const Mask &mask, u32 source, u32 target, int head) {
    if (!mask.active()) return 1;
    Words w = philox(mask.id(source), mask.id(target), mask.epoch, mask.layer | (u32)(head / 4) << 16, mask.key0, mask.key1);
    return mask.factor(word(w, head % 4));
}

// weighEdges adds those of lanes j to j+N-1, whose rows are under way together.
template <int N> DEVICE float weighEdges(const Group &g, float sum, const float *x, i64 stride, u32 id, float weight, int j, int c, int width) {
    const float *from[N];
    float w[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
        from[k] = x + g.of(id, j + k) * stride + c;
        w[k] = g.of(weight, j + k);
    }
    if (c >= width) return sum;
#pragma unroll
    for (int k = 0; k < N; k++) sum = fma(w[k], *from[k], sum);
    return sum;
}

// weigh is dst[c] = dst[c]·scale + Σ_j weight_j·x[id_j·stride + c], of n lanes' edges
// and a head's columns. fresh says that dst has nothing yet.
DEVICE void weigh(const Group &g, float *dst, bool fresh, float scale, const float *x, i64 stride, u32 id, float weight, int n, int width) {
    for (int left = 0; left < width; left += g.size) {
        int c = left + g.lane;
        float sum = fresh || c >= width ? 0 : dst[c] * scale;
        int j = 0;
        for (; j + 4 <= n; j += 4) sum = weighEdges<4>(g, sum, x, stride, id, weight, j, c, width);
        for (; j < n; j++) sum = weighEdges<1>(g, sum, x, stride, id, weight, j, c, width);
        if (c < width) dst[c] = sum;
    }
}

// dots gives each lane the product of row and its own edge's row of x.
DEVICE float dots(const Group &g, const float *row, const float *x, i64 stride, u32 id, int n, int width) {
    float mine = 0;
    for (int j = 0; j < n; j++) {
        const float *other = x + g.of(id, j) * stride;
        float sum = 0;
        for (int c = g.lane; c < width; c += g.size) sum = fma(row[c], other[c], sum);
        sum = g.sum(sum);
        if (g.lane == j) mine = sum;
    }
    return mine;
}

// Scores of emitted rows lie in these rows or, packed, beside one another.
#define EDGES const i64 *begin, const i64 *end, const u32 *cols, i64 rows, u32 base, int loops, u32 first
#define SCORES const float *x, const float *scores, i64 scoreStride, const float *r

// attentionGather: stats are the largest score and the sum of each head.
KERNEL attentionGather(float *dst, float *stats, EDGES, SCORES, int heads, int width, float slope, int merge, int size, MASK) {
    Mask mask = THE_MASK;
    i64 item = group(size);
    if (item >= rows * heads) return;
    Group g(size);
    i64 row = item / heads, emitted = (i64)heads * (width + 1);
    int h = (int)(item - row * heads);
    Edges edges(begin, end, cols, row, base, loops, first);
    float *to = dst + item * width, *stat = stats + row * 2 * heads + h;
    float top = -infinity(), sum = 0, near = r[item];
    if (merge && g.lane == 0) top = stat[0], sum = stat[heads];
    top = g.of(top, 0);
    sum = g.of(sum, 0);
    bool fresh = !merge;
    for (i64 k = 0; k < edges.count; k += size) {
        int n = edges.count - k < size ? (int)(edges.count - k) : size;
        bool live = g.lane < n;
        u32 id = live ? edges.id(k + g.lane) : 0;
        float s = live ? leaky(near + scores[id * scoreStride + h], slope) : -infinity();
        float grown = g.largest(s > top ? s : top);
        float scale = sum != 0 && grown != top ? exponential(top - grown) : 1;
        float e = live ? exponential(s - grown) : 0;
        sum = sum * scale + g.sum(e);
        top = grown;
        if (live) e *= factor(mask, id + base, first + (u32)row, h);
        weigh(g, to, fresh, scale, x + h * width, emitted, id, e, n, width);
        fresh = false;
    }
    if (fresh) weigh(g, to, true, 1, x, 0, 0, 0, 0, width);
    if (g.lane == 0) stat[0] = top, stat[heads] = sum;
}

// attentionFinish: one thread a column.
KERNEL attentionFinish(float *dst, float *lse, const float *stats, i64 count, int heads, int width) {
    i64 i = thread();
    if (i >= count) return;
    i64 item = i / width, row = item / heads;
    int h = (int)(item - row * heads);
    float top = stats[row * 2 * heads + h], sum = stats[row * 2 * heads + heads + h];
    if (sum != 0) dst[i] *= 1 / sum; // else there are no edges
    if (i == item * width) lse[item] = (float)((double)top + logarithm(sum));
}

KERNEL attentionGradDst(float *dr, EDGES, SCORES, const float *lse, const float *grad, const float *products, int heads, int width, float slope, int add, int size, MASK) {
    Mask mask = THE_MASK;
    i64 item = group(size);
    if (item >= rows * heads) return;
    Group g(size);
    i64 row = item / heads, emitted = (i64)heads * (width + 1);
    int h = (int)(item - row * heads);
    Edges edges(begin, end, cols, row, base, loops, first);
    float total = add && g.lane == 0 ? dr[item] : 0, near = r[item], out = lse[item], mean = products[item];
    for (i64 k = 0; k < edges.count; k += size) {
        int n = edges.count - k < size ? (int)(edges.count - k) : size;
        bool live = g.lane < n;
        u32 id = live ? edges.id(k + g.lane) : 0;
        float dq = dots(g, grad + item * width, x + h * width, emitted, id, n, width), ds = 0;
        if (live) {
            float s = leaky(near + scores[id * scoreStride + h], slope);
            ds = exponential(s - out) * (dq * factor(mask, id + base, first + (u32)row, h) - mean);
            if (!(s > 0)) ds *= slope;
        }
        total += g.sum(ds);
    }
    if (g.lane == 0) dr[item] = total;
}

// attentionGradSrc: rows are sources, their edges lead to own vertices. r, lse and
// products of these lie as attend says, so many floats apart.
CROWDED(3) attentionGradSrc(float *dst, EDGES, const float *x, const float *r, const float *lse, const float *products, i64 stride,
                        const float *grad, int heads, int width, float slope, int size, MASK) {
    Mask mask = THE_MASK;
    i64 item = group(size);
    if (item >= rows * heads) return;
    Group g(size);
    i64 row = item / heads, columns = (i64)heads * width, emitted = columns + heads;
    int h = (int)(item - row * heads);
    Edges edges(begin, end, cols, row, base, loops, first);
    const float *z = x + row * emitted + h * width;
    float *to = dst + row * emitted + h * width;
    float near = x[row * emitted + columns + h], total = 0;
    bool fresh = true;
    for (i64 k = 0; k < edges.count; k += size) {
        int n = edges.count - k < size ? (int)(edges.count - k) : size;
        bool live = g.lane < n;
        u32 id = live ? edges.id(k + g.lane) : 0;
        float dq = dots(g, z, grad + h * width, columns, id, n, width), ds = 0, q = 0;
        if (live) {
            i64 at = id * stride + h;
            float s = leaky(near + r[at], slope), keep = factor(mask, first + (u32)row, id + base, h);
            float p = exponential(s - lse[at]);
            q = keep * p;
            ds = p * (dq * keep - products[at]);
            if (!(s > 0)) ds *= slope;
        }
        total += g.sum(ds);
        weigh(g, to, fresh, 1, grad + h * width, columns, id, q, n, width);
        fresh = false;
    }
    if (fresh) weigh(g, to, true, 1, grad, 0, 0, 0, 0, width);
    if (g.lane == 0) dst[row * emitted + columns + h] = total;
}

// packScores is dst[i] = the scores of emitted row i, count being rows times heads.
KERNEL packScores(float *dst, const float *rows, i64 count, int heads, int width) {
    i64 i = thread();
    if (i >= count) return;
    i64 row = i / heads;
    dst[i] = rows[row * heads * (width + 1) + heads * width + (i - row * heads)];
}

// packGrad is dst[i] = r[i], lse[i], products[i] [heads each], count being rows times
// heads.
KERNEL packGrad(float *dst, const float *r, const float *lse, const float *products, i64 count, int heads) {
    i64 i = thread();
    if (i >= count) return;
    i64 row = i / heads;
    float *to = dst + row * 3 * heads + (i - row * heads);
    to[0] = r[i];
    to[heads] = lse[i];
    to[2 * heads] = products[i];
}

// rowDots is dst[i] = the product of a head of x and of y, a group each.
KERNEL rowDots(float *dst, const float *x, const float *y, i64 count, int width, int size) {
    i64 item = group(size);
    if (item >= count) return;
    Group g(size);
    float sum = 0;
    for (int c = g.lane; c < width; c += size) sum = fma(x[item * width + c], y[item * width + c], sum);
    sum = g.sum(sum);
    if (g.lane == 0) dst[item] = sum;
}

// foldScores: one thread a row of w and head.
KERNEL foldScores(float *wide, float *narrow, const float *w, const float *source, const float *target, int in, int heads, int width) {
    i64 i = thread();
    if (i >= (i64)in * heads) return;
    i64 row = i / heads;
    int h = (int)(i - row * heads), columns = heads * width;
    float *to = wide + row * (columns + heads);
    float left = 0, right = 0;
    for (int c = h * width; c < (h + 1) * width; c++) {
        float v = w[row * columns + c];
        to[c] = v;
        left = fma(v, source[c], left);
        right = fma(v, target[c], right);
    }
    to[columns + h] = left;
    narrow[i] = right;
}

// foldScoresGrad: one thread a column, through all rows of w in order.
KERNEL foldScoresGrad(float *gw, float *gsource, float *gtarget, const float *gwide, const float *gnarrow,
                      const float *w, const float *source, const float *target, int in, int heads, int width) {
    int c = (int)thread(), columns = heads * width;
    if (c >= columns) return;
    int h = c / width;
    float left = 0, right = 0, a = source[c], b = target[c];
    for (i64 row = 0; row < in; row++) {
        float gs = gwide[row * (columns + heads) + columns + h], gt = gnarrow[row * heads + h], v = w[row * columns + c];
        gw[row * columns + c] = gwide[row * (columns + heads) + c] + (gs * a + gt * b);
        left = fma(gs, v, left);
        right = fma(gt, v, right);
    }
    gsource[c] = left;
    gtarget[c] = right;
}
