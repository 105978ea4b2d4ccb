// Softmax cross entropy and its gradient, softmax, predictions and their counts.
//
//	loss    = Σ_r  log Σ_c exp(z[r][c]) - z[r][label[r]]      over r with split = want, label ≥ 0
//	grad[r] = scale·(softmax(z[r]) - onehot(label[r])),  0 for all other rows
//
// Variant: a warp per row. Exponentials and sums are double. Each lane adds in the order of
// columns, and the sums of lanes are added in halves. A block has 256 rows. The losses of its
// eight warps are added in order, and the host adds the blocks in order.
#include "common.cuh"

// Softmax has a warp's values of a row: the largest element, except NaNs, and the sum of exp(z -
// top).
struct Softmax { float top; double sum; };

DEVICE Softmax softmaxOf(const float *z, int cols, int lane) {
    Softmax s = {-infinity(), 0};
    for (int c = lane; c < cols; c += 32) s.top = z[c] > s.top ? z[c] : s.top;
    s.top = Group(32).largest(s.top);
    for (int c = lane; c < cols; c += 32) s.sum += exponentialDouble((double)z[c] - (double)s.top);
    s.sum = sumDouble(s.sum);
    return s;
}

DEVICE float probability(const Softmax &s, float z, double scale) {
    return (float)(exponentialDouble((double)z - (double)s.top) * (scale / s.sum));
}

// Counts of a block: rows; wrong is set if a label has no column.
const int rowsOfBlock = 256, wrong = -1;

// crossEntropy has blocks of 32 x 8. grad may be z, or none.
KERNEL crossEntropy(float *grad, const float *z, const int *labels, const u8 *split, double *losses, i64 *counts, i64 rows, int classes, u32 want, float scale) {
    SHARED double sums[8];
    SHARED int numbers[8];
    int lane = threadX(), y = threadY(), count = 0;
    bool bad = false;
    double loss = 0;
    i64 first = (i64)blockX() * rowsOfBlock, end = first + rowsOfBlock < rows ? first + rowsOfBlock : rows;
    for (i64 row = first + y; row < end; row += 8) {
        const float *from = z + row * classes;
        int label = labels[row];
        bool counts = split[row] == want && label >= 0;
        if (counts && label >= classes) {
            bad = true;
            continue;
        }
        if (!counts) {
            if (grad)
                for (int c = lane; c < classes; c += 32) grad[row * classes + c] = 0;
            continue;
        }
        Softmax s = softmaxOf(from, classes, lane);
        double at = 0; // in the lane that has the label's column
        for (int c = lane; c < classes; c += 32) {
            float v = from[c];
            if (c == label) at = v;
            if (!grad) continue;
            float p = probability(s, v, scale);
            grad[row * classes + c] = c == label ? p - scale : p;
        }
        loss += logarithm(s.sum) + (double)s.top - sumDouble(at);
        count++;
    }
    if (lane == 0) sums[y] = loss, numbers[y] = bad ? wrong : count;
    barrier();
    if (lane > 0 || y > 0) return;
    for (int k = 1; k < 8; k++) {
        loss += sums[k];
        count += numbers[k];
        bad |= numbers[k] == wrong;
    }
    losses[blockX()] = loss;
    counts[blockX()] = bad ? wrong : count;
}

// softmax has blocks of 32 x 8, with a warp per row. dst may be x.
KERNEL softmax(float *dst, const float *x, i64 rows, int cols) {
    i64 row = (i64)blockX() * 8 + threadY();
    if (row >= rows) return;
    Softmax s = softmaxOf(x + row * cols, cols, threadX());
    for (int c = threadX(); c < cols; c += 32) dst[row * cols + c] = probability(s, x[row * cols + c], 1);
}

// largestColumn returns the first of the largest elements of a row, 0 if none is above -Inf.
DEVICE int largestColumn(const float *x, int cols) {
    float top = -infinity();
    int at = 0x7fffffff;
    for (int c = threadX(); c < cols; c += 32)
        if (x[c] > top) top = x[c], at = c;
    for (int step = 16; step > 0; step /= 2) {
        float value = __nvvm_shfl_sync_bfly_f32(0xffffffffu, top, step, 0x1f);
        int column = __nvvm_shfl_sync_bfly_i32(0xffffffffu, at, step, 0x1f);
        if (value > top || (value == top && column < at)) top = value, at = column;
    }
    return at == 0x7fffffff ? 0 : at;
}

// argmax has blocks of 32 x 8, with a warp per row.
KERNEL argmax(int *dst, const float *x, i64 rows, int cols) {
    i64 row = (i64)blockX() * 8 + threadY();
    if (row >= rows) return;
    int at = largestColumn(x + row * cols, cols);
    if (threadX() == 0) dst[row] = at;
}

// accuracy has blocks of 32 x 8 threads for 256 rows. counts has the counts of each block:
// correct rows by split, all rows with a label by split, and rows of an unknown split.
KERNEL accuracy(i64 *counts, const float *z, const int *labels, const u8 *split, i64 rows, int classes) {
    SHARED int numbers[8][9];
    int y = threadY(), lane = threadX(), mine = 0; // count with the lane's number
    i64 first = (i64)blockX() * rowsOfBlock, end = first + rowsOfBlock < rows ? first + rowsOfBlock : rows;
    for (i64 row = first + y; row < end; row += 8) {
        int label = labels[row], part = split[row];
        if (label < 0) continue;
        bool right = largestColumn(z + row * classes, classes) == label;
        if (part >= 4) mine += lane == 8;
        else mine += (lane == part && right) || lane == 4 + part;
    }
    if (lane < 9) numbers[y][lane] = mine;
    barrier();
    if (y > 0 || lane >= 9) return;
    for (int k = 1; k < 8; k++) mine += numbers[k][lane];
    counts[(i64)blockX() * 9 + lane] = mine;
}
