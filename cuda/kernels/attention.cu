// Attention over the in-neighbours of a vertex. Package siafu/kernels documents the formulae.
//
//	s[v,u] = leaky(l[u] + r[v])    p = softmax of s over u    q = p·keep
//	out[v] = Σ_u q·z[u]
//	ds = p·((g[v]·z[u])·keep - D[v])·leaky'    dr[v] = Σ_u ds    dl[u] = Σ_v ds    dz[u] = Σ_v q·g[v]
//
// Variant: pull. A group computes one head of a row, so that a warp has neighbouring heads of a
// row if they are narrow. The group processes as many edges at a time as it has lanes: each lane
// computes the score of one edge, then each lane computes the sum over these edges for a column.
// The largest score so far is subtracted in the exponents, and sums are rescaled when it grows
// ("online softmax"). Sums over edges are in order, sums over the columns of a head in halves. A
// hub is divided as in spmm.cu; attentionHubs combines the softmaxes of its pieces, and hubSums
// adds their gradients. The gradients load the operands of the next edges' scores, and the ids of
// those after them, before they need them.
#include "common.cuh"

DEVICE float leaky(float v, float slope) { return v > 0 ? v : v * slope; }

// Bounds has the edges of items. Item i is, by order, a row of begin and end. This row belongs
// to a vertex or, by lines, to a piece of a vertex.
struct Bounds {
    const i64 *begin, *end;
    const u32 *cols, *order, *lines;
    i64 count;
    u32 base;
    int loops;
    u32 first;
};

#define BOUNDS const i64 *begin, const i64 *end, const u32 *cols, const u32 *order, const u32 *lines, i64 count, u32 base, int loops, u32 first
#define THE_BOUNDS (Bounds{begin, end, cols, order, lines, count, base, loops, first})

// Edges has the edges of an item, with the self loop of a vertex first. ids are rows of the
// matrix at their other ends.
struct Edges {
    const u32 *cols;
    i64 slot, row; // position of the results, and the vertex
    i64 from, count;
    u32 base, self;
    bool loop;

    DEVICE_MEMBER Edges(const Bounds &b, i64 item) {
        slot = b.order ? b.order[item] : item;
        row = b.lines ? b.lines[slot] : slot;
        loop = b.loops && !(b.lines && slot > 0 && b.lines[slot - 1] == row); // only in the first piece
        cols = b.cols;
        from = b.begin[slot];
        count = b.end[slot] - from + loop;
        base = b.base;
        self = b.first + (u32)row;
    }
    DEVICE_MEMBER u32 id(i64 k) const {
        if (!loop) return cols[from + k] - base;
        return k == 0 ? self : cols[from + k - 1] - base;
    }
    // of returns the lane's edge of those from k on, 0 if there is none.
    DEVICE_MEMBER u32 of(const Group &g, i64 k) const { return k + g.lane < count ? id(k + g.lane) : 0; }
};

// factor returns the dropout factor of an edge and a head.
DEVICE float factor(const Mask &mask, u32 source, u32 target, int head) {
    if (!mask.active()) return 1;
    Words w = philox(mask.id(source), mask.id(target), mask.epoch, mask.layer | (u32)(head / 4) << 16, mask.key0, mask.key1);
    return mask.factor(word(w, head % 4));
}

// weighEdges adds the edges of lanes j to j+N-1, whose rows are loaded concurrently.
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

// weigh computes dst[c] = dst[c]·scale + Σ_j weight_j·x[id_j·stride + c] over the edges of n
// lanes and the columns of a head. With fresh, dst has no value yet.
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

// product returns the lane's part of the product of two rows.
DEVICE float product(const Group &g, const float *row, const float *other, int width) {
    float sum = 0;
    for (int c = g.lane; c < width; c += g.size) sum = fma(row[c], other[c], sum);
    return sum;
}

// across returns own of one lane plus other of its partner, whose number differs in the bit. Lanes with
// the bit give own away and receive other: a lane then has the sum for one of two edges.
DEVICE float across(const Group &g, float own, float other, int bit) {
    bool odd = g.lane & bit;
    float keep = odd ? other : own, give = odd ? own : other;
    return keep + g.partner(give, bit);
}

// dots returns, in each lane, the product of row and the row of x of the lane's edge, for n edges. Four
// edges are processed concurrently: sums over columns are added in pairs of lanes, which also divide the
// edges among them. Edges past n are edges to row 0.
DEVICE float dots(const Group &g, const float *row, const float *x, i64 stride, u32 id, int n, int width) {
    float mine = 0;
    if (g.size < 4) {
        for (int j = 0; j < n; j++) {
            float sum = g.sum(product(g, row, x + g.of(id, j) * stride, width));
            if (g.lane == j) mine = sum;
        }
        return mine;
    }
    for (int j = 0; j < n; j += 4) {
        const float *other[4];
        float sums[4] = {};
#pragma unroll
        for (int k = 0; k < 4; k++) other[k] = x + g.of(id, j + k) * stride;
        for (int c = g.lane; c < width; c += g.size) {
            float v = row[c];
#pragma unroll
            for (int k = 0; k < 4; k++) sums[k] = fma(v, other[k][c], sums[k]);
        }
        float sum = across(g, across(g, sums[0], sums[1], 1), across(g, sums[2], sums[3], 1), 2);
        for (int bit = 4; bit < g.size; bit *= 2) sum += g.partner(sum, bit);
        if ((g.lane & ~3) == j) mine = sum;
    }
    return mine;
}

// Scores are in the emitted rows or packed.
#define SCORES const float *x, const float *scores, i64 scoreStride, const float *r

// attentionGather computes, in stats, the largest score and the sum of each head. If all scores
// are -Inf there is no softmax, and the sum is a NaN.
KERNEL attentionGather(float *dst, float *stats, BOUNDS, SCORES, int heads, int width, float slope, int merge, int size, MASK) {
    Mask mask = THE_MASK;
    i64 item = group(size);
    if (item >= count * heads) return;
    Group g(size);
    int h = (int)(item % heads);
    i64 emitted = (i64)heads * (width + 1);
    Edges edges(THE_BOUNDS, item / heads);
    float *to = dst + (edges.slot * heads + h) * width, *stat = stats + edges.slot * 2 * heads + h;
    float top = -infinity(), sum = 0, near = r[edges.row * heads + h];
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
        float e = s == -infinity() ? 0 : exponential(s - grown);
        sum = sum * scale + g.sum(e);
        top = grown;
        if (live) e *= factor(mask, id + base, edges.self, h);
        weigh(g, to, fresh, scale, x + h * width, emitted, id, e, n, width);
        fresh = false;
    }
    if (fresh) weigh(g, to, true, 1, x, 0, 0, 0, 0, width);
    if (edges.count > 0 && top == -infinity() && !lines) sum = notANumber();
    if (g.lane == 0) stat[0] = top, stat[heads] = sum;
}

// attentionHubs combines the softmaxes of a hub's pieces, which are in parts with their stats.
// Each group computes a head of a hub.
KERNEL attentionHubs(float *dst, float *stats, const float *parts, const float *partStats, const u32 *hubs, const u32 *firsts, i64 count, int heads, int width, int merge, int size) {
    i64 item = group(size);
    if (item >= count * heads) return;
    Group g(size);
    i64 hub = item / heads;
    int h = (int)(item - hub * heads);
    u32 from = firsts[hub], end = firsts[hub + 1];
    float *to = dst + ((i64)hubs[hub] * heads + h) * width, *stat = stats + (i64)hubs[hub] * 2 * heads + h;
    partStats += h;
    float top = -infinity(), sum = 0;
    if (merge && g.lane == 0) top = stat[0], sum = stat[heads];
    float grown = top = g.of(top, 0);
    sum = g.of(sum, 0);
    for (u32 p = from; p < end; p++) {
        float t = partStats[(i64)p * 2 * heads];
        grown = t > grown ? t : grown;
    }
    float scale = sum != 0 && grown != top ? exponential(top - grown) : 1;
    sum *= scale;
    for (u32 p = from; p < end; p++) {
        const float *part = partStats + (i64)p * 2 * heads;
        if (part[heads] != 0) sum += part[heads] * exponential(part[0] - grown);
    }
    for (int c = g.lane; c < width; c += size) {
        float v = merge ? to[c] * scale : 0;
        for (u32 p = from; p < end; p++) {
            const float *part = partStats + (i64)p * 2 * heads;
            if (part[heads] != 0) v = fma(parts[((i64)p * heads + h) * width + c], exponential(part[0] - grown), v);
        }
        to[c] = v;
    }
    if (grown == -infinity()) sum = notANumber();
    if (g.lane == 0) stat[0] = grown, stat[heads] = sum;
}

// attentionFinish has one thread per column.
KERNEL attentionFinish(float *dst, float *lse, const float *stats, i64 count, int heads, int width) {
    i64 i = thread();
    if (i >= count) return;
    i64 item = i / width, row = item / heads;
    int h = (int)(item - row * heads);
    float top = stats[row * 2 * heads + h], sum = stats[row * 2 * heads + heads + h];
    if (sum != 0) dst[i] *= 1 / sum; // else there are no edges
    if (i == item * width) lse[item] = (float)((double)top + logarithm(sum));
}

KERNEL attentionGradDst(float *dr, BOUNDS, SCORES, const float *lse, const float *grad, const float *products, int heads, int width, float slope, int add, int size, MASK) {
    Mask mask = THE_MASK;
    i64 item = group(size);
    if (item >= count * heads) return;
    Group g(size);
    int h = (int)(item % heads);
    i64 emitted = (i64)heads * (width + 1);
    Edges edges(THE_BOUNDS, item / heads);
    i64 at = edges.row * heads + h, to = edges.slot * heads + h;
    float total = add && g.lane == 0 ? dr[to] : 0, near = r[at], out = lse[at], mean = products[at];
    u32 id = edges.of(g, 0), next = edges.of(g, size);
    float score = edges.count > 0 ? scores[id * scoreStride + h] : 0;
    for (i64 k = 0; k < edges.count; k += size) {
        int n = edges.count - k < size ? (int)(edges.count - k) : size;
        bool live = g.lane < n;
        u32 after = edges.of(g, k + 2 * size);
        float s = leaky(near + score, slope), ds = 0;
        score = scores[next * scoreStride + h];
        float dq = dots(g, grad + at * width, x + h * width, emitted, id, n, width);
        if (live) {
            ds = exponential(s - out) * (dq * factor(mask, id + base, edges.self, h) - mean);
            if (!(s > 0)) ds *= slope;
        }
        total += g.sum(ds);
        id = next, next = after;
    }
    if (g.lane == 0) dr[to] = total;
}

// attentionGradSrc has a row for each source. The edges lead to own vertices. Their r, lse and
// products are stride floats apart.
CROWDED(3) attentionGradSrc(float *dst, BOUNDS, const float *x, const float *r, const float *lse, const float *products, i64 stride,
                            const float *grad, int heads, int width, float slope, int size, MASK) {
    Mask mask = THE_MASK;
    i64 item = group(size);
    if (item >= count * heads) return;
    Group g(size);
    int h = (int)(item % heads);
    i64 columns = (i64)heads * width, emitted = columns + heads;
    Edges edges(THE_BOUNDS, item / heads);
    const float *z = x + edges.row * emitted + h * width;
    float *to = dst + edges.slot * emitted + h * width;
    float near = x[edges.row * emitted + columns + h], total = 0;
    bool fresh = true;
    u32 id = edges.of(g, 0), next = edges.of(g, size);
    i64 at = id * stride + h;
    bool any = edges.count > 0;
    float far = any ? r[at] : 0, out = any ? lse[at] : 0, mean = any ? products[at] : 0;
    for (i64 k = 0; k < edges.count; k += size) {
        int n = edges.count - k < size ? (int)(edges.count - k) : size;
        bool live = g.lane < n;
        u32 after = edges.of(g, k + 2 * size);
        float s = leaky(near + far, slope), p = exponential(s - out), ds = 0, q = 0, minus = mean;
        at = next * stride + h;
        far = r[at], out = lse[at], mean = products[at];
        float dq = dots(g, z, grad + h * width, columns, id, n, width);
        if (live) {
            float keep = factor(mask, edges.self, id + base, h);
            q = keep * p;
            ds = p * (dq * keep - minus);
            if (!(s > 0)) ds *= slope;
        }
        total += g.sum(ds);
        weigh(g, to, fresh, 1, grad + h * width, columns, id, q, n, width);
        fresh = false;
        id = next, next = after;
    }
    if (fresh) weigh(g, to, true, 1, grad, 0, 0, 0, 0, width);
    if (g.lane == 0) dst[edges.slot * emitted + columns + h] = total;
}

// packScores sets dst[i] to the scores of emitted row i. count is rows times heads.
KERNEL packScores(float *dst, const float *rows, i64 count, int heads, int width) {
    i64 i = thread();
    if (i >= count) return;
    i64 row = i / heads;
    dst[i] = rows[row * heads * (width + 1) + heads * width + (i - row * heads)];
}

// packGrad sets dst[i] to r[i], lse[i] and products[i], heads each. count is rows times heads.
KERNEL packGrad(float *dst, const float *r, const float *lse, const float *products, i64 count, int heads) {
    i64 i = thread();
    if (i >= count) return;
    i64 row = i / heads;
    float *to = dst + row * 3 * heads + (i - row * heads);
    to[0] = r[i];
    to[heads] = lse[i];
    to[2 * heads] = products[i];
}

// rowDots sets dst[i] to the product of a head of x and of y, with a group for each.
KERNEL rowDots(float *dst, const float *x, const float *y, i64 count, int width, int size) {
    i64 item = group(size);
    if (item >= count) return;
    Group g(size);
    float sum = 0;
    for (int c = g.lane; c < width; c += size) sum = fma(x[item * width + c], y[item * width + c], sum);
    sum = g.sum(sum);
    if (g.lane == 0) dst[item] = sum;
}

// foldScores has one thread per row of w and head.
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

// foldScoresGrad has one thread per column, which reads all rows of w in order.
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
