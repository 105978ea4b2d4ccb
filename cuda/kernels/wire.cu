// Rows for other ranks as bytes, and back: the payloads of the codecs of package
// siafu/halo/codec, with the same bits as on the processor.
//
//	encode   bytes of meant[i] = X[index[i]] - lost[i],  lost[i] = decoded - meant[i]
//	decode   X[index[i]] = or += values of bytes
//
// X is x followed by more. Without index it is i, and without lost it is 0. Half rows are
// bfloat16. Grid rows are codes of 8, 4 or 2 bits, lower columns in lower bits, rounded at
// random (siafu/kernels/quantise.go). Each each consecutive rows share an offset and a step of
// bfloat16:
//
//	code[c] = floor((meant[c] - offset)/step + u[c])
//
// Rows whose span is not finite have the step rawStep and codes of 0, and are written to raw.
//
// Variant: blocks of 32 x 8, with a warp per row or per grid's rows, which it reads twice. Each
// lane has the words of a Philox draw for eight of 256 columns, and gets the words of its own
// columns by shuffles.
#include "common.cuh"

DEVICE i64 rowHere() { return (i64)blockX() * 8 + threadY(); }

static const u16 rawStep = 0x7fc0;

// Rows has X and an index of it.
struct Rows {
    float *x;
    i64 own;
    float *more;
    const u32 *index;

    DEVICE_MEMBER i64 at(i64 i) const { return index ? index[i] : i; }
    DEVICE_MEMBER float *row(i64 at, int cols) const { return at < own ? x + at * cols : more + (at - own) * cols; }
};

// Meant is a row to be sent.
struct Meant {
    const float *x;
    float *lost; // none: errors are not fed back
    int cols;

    DEVICE_MEMBER float of(int c) const { return lost ? x[c] - lost[c] : x[c]; }
    DEVICE_MEMBER void keep(int c, float error) const {
        if (lost) lost[c] = error;
    }
};

// Extent has the least and the largest element of rows, and whether all are finite.
struct Extent {
    float lo, hi, wrong;

    DEVICE_MEMBER Extent() : lo(infinity()), hi(-infinity()), wrong(0) {}
    // add includes the elements of a row, some in each lane.
    DEVICE_MEMBER void add(const Group &g, const Meant &m) {
        for (int c = g.lane; c < m.cols; c += 32) {
            float v = m.of(c);
            if (!(v - v == 0)) wrong = 1;
            lo = v < lo ? v : lo, hi = v > hi ? v : hi;
        }
    }
    // finite combines the extents of all lanes. Without elements the extent is 0.
    DEVICE_MEMBER bool finite(const Group &g, int cols) {
        lo = cols ? -g.largest(-lo) : 0, hi = cols ? g.largest(hi) : 0;
        return g.largest(wrong) == 0;
    }
};

// narrowedDown returns the largest bfloat16 that is not above v. narrowedUp returns the least
// that is not below v, which is positive.
DEVICE u16 narrowedDown(float v) {
    if (v == 0) return 0;
    return (u16)((__builtin_bit_cast(u32, v) + (v < 0 ? 0xffff : 0)) >> 16);
}
DEVICE u16 narrowedUp(float v) { return (u16)((__builtin_bit_cast(u32, v) + 0xffff) >> 16); }

// Grid is a kernels.Grid.
struct Grid {
    u16 offset, step;
    bool spans;

    DEVICE_MEMBER Grid(float lo, float hi, bool finite, u32 top) {
        offset = narrowedDown(lo), step = 0, spans = finite;
        double span = (double)hi - (double)widened(offset);
        if (span != 0) {
            const float least = 1.0f / (1 << 30) / (1 << 30) / (1 << 30) / (1 << 20);
            float s = (float)span / (float)top;
            step = narrowedUp(s > least ? s : least);
            if ((double)widened(step) * (double)top < span) step++;
            spans = finite && span < 3.40282346638528859812e+38 / 2;
        }
        if (!spans) offset = 0, step = rawStep;
    }
};

// Draws has the inputs of the random numbers of a kernels.Rounding.
struct Draws { u32 key0, key1, epoch, layer; };

// number returns the 16 bits of column 32·j + lane of the 256 columns whose words the group has.
DEVICE u32 number(const Group &g, const Words &w, int j) {
    int i = g.lane & 15, from = 4 * j + ((i & 7) >> 1);
    Words theirs;
#pragma unroll
    for (int k = 0; k < 4; k++) theirs.w[k] = g.of(w.w[k], from);
    u32 both = word(theirs, (i >> 3 << 1) | (i & 1));
    return g.lane & 16 ? both >> 16 : both & 0xffff;
}

// putCodes writes the codes of 32 columns from dst on. code belongs to this lane's column.
DEVICE void putCodes(const Group &g, u8 *dst, u32 code, int bits, bool there) {
    int each = 8 / bits;
    u32 byte = code;
    for (int k = 1; k < each; k++) byte |= g.of(code, (g.lane + k) & 31) << (k * bits);
    if (there && g.lane % each == 0) dst[g.lane / each] = (u8)byte;
}

// encodeRow rounds a row to its grid.
DEVICE void encodeRow(const Group &g, const Meant &m, const Grid &grid, u8 *codes, int bits, u32 top, u32 id, const Draws &d) {
    float offset = widened(grid.offset), step = widened(grid.step);
    float inverse = grid.step ? 65536.0f / step : 0;
    for (int base = 0; base < m.cols; base += 256) {
        Words words = philox(id, base / 8 + g.lane, d.epoch, d.layer, d.key0, d.key1);
        for (int j = 0; j < 8 && base + 32 * j < m.cols; j++) {
            int c = base + 32 * j + g.lane;
            u32 code = 0, u = number(g, words, j);
            if (c < m.cols) {
                float v = m.of(c);
                code = ((u32)__nvvm_f2i_rn((v - offset) * inverse) + u) >> 16;
                code = code < top ? code : top;
                m.keep(c, ((float)code * step + offset) - v);
            }
            putCodes(g, codes + (base + 32 * j) * bits / 8, code, bits, c < m.cols);
        }
    }
}

KERNEL encodeGrid(u16 *offsets, u16 *steps, int each, u8 *codes, int bits, i64 count, int cols, float *x, i64 own, float *more,
                  const u32 *index, float *lost, float *raw, const u32 *ids, u32 key0, u32 key1, u32 epoch, u32 layer,
                  u32 sumsKey1, u32 sumsLayer) {
    i64 shared = rowHere(), from = shared * each, to = from + each < count ? from + each : count;
    if (from >= count) return;
    Group g(32);
    Rows rows{x, own, more, index};
    Extent extent;
    for (i64 i = from; i < to; i++) extent.add(g, Meant{rows.row(rows.at(i), cols), lost ? lost + i * cols : 0, cols});
    u32 top = (1u << bits) - 1;
    bool finite = extent.finite(g, cols);
    Grid grid(extent.lo, extent.hi, finite, top);
    if (g.lane == 0) offsets[shared] = grid.offset, steps[shared] = grid.step;
    int stride = (cols * bits + 7) / 8;
    for (i64 i = from; i < to; i++) {
        i64 at = rows.at(i);
        Meant m{rows.row(at, cols), lost ? lost + i * cols : 0, cols};
        u8 *here = codes + i * stride;
        if (grid.spans) {
            bool sum = at >= own;
            Draws draws{key0, sum ? sumsKey1 : key1, epoch, sum ? sumsLayer : layer};
            encodeRow(g, m, grid, here, bits, top, ids ? ids[i] : (u32)i, draws);
            continue;
        }
        for (int b = g.lane; b < stride; b += 32) here[b] = 0;
        for (int c = g.lane; c < cols; c += 32) raw[i * cols + c] = m.of(c), m.keep(c, 0);
    }
}

KERNEL decodeGrid(const u16 *offsets, const u16 *steps, int each, const u8 *codes, int bits, i64 count, int cols, float *x, i64 own,
                  float *more, const u32 *index, const float *raw, int add) {
    i64 i = rowHere(), shared = i / each;
    if (i >= count) return;
    bool isRaw = steps[shared] == rawStep;
    if (isRaw && !raw) return;
    Rows rows{x, own, more, index};
    float *to = rows.row(rows.at(i), cols), offset = widened(offsets[shared]), step = widened(steps[shared]);
    u32 top = (1u << bits) - 1;
    codes += i * ((cols * bits + 7) / 8);
    for (int c = threadX(); c < cols; c += 32) {
        float v = isRaw ? raw[i * cols + c] : (float)(codes[c * bits / 8] >> (c * bits % 8) & top) * step + offset;
        to[c] = add ? v + to[c] : v;
    }
}

KERNEL encodeHalf(u16 *dst, i64 count, int cols, float *x, i64 own, float *more, const u32 *index, float *lost) {
    i64 i = rowHere();
    if (i >= count) return;
    Group g(32);
    Rows rows{x, own, more, index};
    Meant m{rows.row(rows.at(i), cols), lost ? lost + i * cols : 0, cols};
    Extent extent;
    if (lost) extent.add(g, m);
    bool finite = extent.finite(g, cols);
    for (int c = g.lane; c < cols; c += 32) {
        float v = m.of(c);
        u16 half = narrowed(v);
        dst[i * cols + c] = half;
        m.keep(c, finite ? widened(half) - v : 0);
    }
}

KERNEL decodeHalf(const u16 *src, i64 count, int cols, float *x, i64 own, float *more, const u32 *index, int add) {
    i64 i = rowHere();
    if (i >= count) return;
    Rows rows{x, own, more, index};
    float *to = rows.row(rows.at(i), cols);
    for (int c = threadX(); c < cols; c += 32) {
        float v = widened(src[i * cols + c]);
        to[c] = add ? v + to[c] : v;
    }
}
