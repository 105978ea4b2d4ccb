// Products with a sparse feature matrix X, and its non-zeros in a dense matrix.
//
//	sparseProduct   dst[r] = Σ_{e in [begin[r],end[r])} D(vals[e])·x[index[e]]
//	sparseToDense   dst[r][index[e]-from] = D(vals[e])   if that is a column of dst
//
// D is dropout of the non-zeros. With transposed, r is a column of X and index a vertex, for the
// mask. Variant: a group per row, as in spmm.cu. As there, hubs are not in order but divided
// into pieces, and lines has the row of each piece.
#include "common.cuh"

// kept returns a non-zero after dropout.
DEVICE float kept(const Mask &mask, float v, i64 vertex, u32 col) {
    if (!mask.active()) return v;
    return mask.drop(v, word(mask.words(mask.id(vertex), col / 4), col % 4));
}

KERNEL sparseProduct(float *dst, const i64 *begin, const i64 *end, const u32 *index, const float *vals, const u32 *order, const u32 *lines,
                     i64 rows, const float *x, int width, int transposed, int size, MASK) {
    Mask mask = THE_MASK;
    i64 item = group(size);
    if (item >= rows) return;
    Group g(size);
    i64 row = order ? order[item] : item, line = lines ? lines[row] : row;
    for (int left = 0; left < width; left += size) {
        int col = left + g.lane;
        float sum = 0;
        for (i64 e = begin[row], to = end[row]; e < to; e += size) {
            int n = to - e < size ? (int)(to - e) : size;
            u32 at = 0;
            float v = 0;
            if (g.lane < n) {
                at = index[e + g.lane];
                v = vals[e + g.lane];
                v = transposed ? kept(mask, v, at, (u32)line) : kept(mask, v, line, at);
            }
            for (int j = 0; j < n; j++) {
                u32 source = g.of(at, j);
                float w = g.of(v, j);
                // Dropped elements are not multiplied: an infinity would give a NaN.
                if (w != 0 && col < width) sum = fma(w, x[(i64)source * width + col], sum);
            }
        }
        if (col < width) dst[row * width + col] = sum;
    }
}

// sparseToDense has blocks of 32 x 8, with a warp per row. dst must contain zeros.
KERNEL sparseToDense(float *dst, const i64 *offsets, const u32 *index, const float *vals, i64 rows, int cols, u32 from, MASK) {
    Mask mask = THE_MASK;
    i64 row = (i64)blockX() * 8 + threadY();
    if (row >= rows) return;
    for (i64 e = offsets[row] + threadX(), to = offsets[row + 1]; e < to; e += 32) {
        u32 col = index[e];
        if (col < from || col - from >= (u32)cols) continue;
        dst[row * cols + col - from] = kept(mask, vals[e], row, col);
    }
}
