// dst[r] = row[r] * sum over the edges e of row r of col[c] * x[c], c = cols[e]
//
// The plain loop that a C programmer writes for AVX-512 or, without it, for AVX2: the sum of a row
// stays in registers, 8 vectors at a time, the last one masked; rows of neighbours are prefetched a
// fixed number of edges ahead; threads take 128 rows at a time.
//
//	spmm DIR ROWS EDGES WIDTH THREADS

#include "yardstick.h"
#include <immintrin.h>
#include <omp.h>
#include <stdint.h>

#ifdef __AVX512F__
enum { LANES = 16 };
typedef __m512 vec;
typedef __mmask16 lanes;
#define ZERO _mm512_setzero_ps
#define ALL _mm512_set1_ps
#define LOAD _mm512_loadu_ps
#define LOAD_MASKED(mask, p) _mm512_maskz_loadu_ps(mask, p)
#define STORE _mm512_storeu_ps
#define STORE_MASKED _mm512_mask_storeu_ps
#define FMA _mm512_fmadd_ps
#define MUL _mm512_mul_ps
#define MASK(n) (0xffff >> (16 - (n)))
#else
enum { LANES = 8 };
typedef __m256 vec;
typedef __m256i lanes;
#define ZERO _mm256_setzero_ps
#define ALL _mm256_set1_ps
#define LOAD _mm256_loadu_ps
#define LOAD_MASKED(mask, p) _mm256_maskload_ps(p, mask)
#define STORE _mm256_storeu_ps
#define STORE_MASKED(p, mask, v) _mm256_maskstore_ps(p, mask, v)
#define FMA _mm256_fmadd_ps
#define MUL _mm256_mul_ps
#define MASK(n) _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#endif

enum { BLOCK = 8 * LANES, AHEAD = 16, GRAIN = 128 };

static long rows, edges, width;
static const int64_t *offsets;
static const uint32_t *cols;
static const float *row_scale, *col_scale, *x;
static float *dst;

// block computes vectors*LANES columns of row r from column j on, the last vector
// under a mask.
static inline __attribute__((always_inline)) void block(long r, long j, const int vectors, lanes mask) {
    vec sum[8];
    for (int v = 0; v < vectors; v++) sum[v] = ZERO();
    for (int64_t e = offsets[r]; e < offsets[r + 1]; e++) {
        const char *next = (const char *)(x + cols[e + AHEAD] * width + j);
        for (int d = 0; d < vectors * LANES * 4; d += 64) _mm_prefetch(next + d, _MM_HINT_T0);
        const float *from = x + cols[e] * width + j;
        vec scale = ALL(col_scale[cols[e]]);
        for (int v = 0; v < vectors - 1; v++)
            sum[v] = FMA(scale, LOAD(from + LANES * v), sum[v]);
        sum[vectors - 1] = FMA(scale, LOAD_MASKED(mask, from + LANES * (vectors - 1)), sum[vectors - 1]);
    }
    vec scale = ALL(row_scale[r]);
    float *to = dst + r * width + j;
    for (int v = 0; v < vectors - 1; v++) STORE(to + LANES * v, MUL(scale, sum[v]));
    STORE_MASKED(to + LANES * (vectors - 1), mask, MUL(scale, sum[vectors - 1]));
}

// The number of vectors is a constant in each case, so that sums are registers.
static inline void part(long r, long j, long n) {
    int vectors = (n + LANES - 1) / LANES;
    lanes mask = MASK(n - (vectors - 1) * LANES);
    switch (vectors) {
    case 1: block(r, j, 1, mask); break;
    case 2: block(r, j, 2, mask); break;
    case 3: block(r, j, 3, mask); break;
    case 4: block(r, j, 4, mask); break;
    case 5: block(r, j, 5, mask); break;
    case 6: block(r, j, 6, mask); break;
    case 7: block(r, j, 7, mask); break;
    case 8: block(r, j, 8, mask); break;
    }
}

static void once(void) {
#pragma omp parallel for schedule(dynamic, GRAIN)
    for (long r = 0; r < rows; r++)
        for (long j = 0; j < width; j += BLOCK) part(r, j, width - j < BLOCK ? width - j : BLOCK);
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    const char *dir = argv[1];
    rows = atol(argv[2]), edges = atol(argv[3]), width = atol(argv[4]);
    omp_set_num_threads(atoi(argv[5]));
    offsets = operand(dir, "offsets", (rows + 1) * sizeof *offsets, 0);
    cols = operand(dir, "cols", edges * sizeof *cols, AHEAD * sizeof *cols);
    row_scale = operand(dir, "row_scale", rows * sizeof *row_scale, 0);
    col_scale = operand(dir, "col_scale", rows * sizeof *col_scale, 0);
    x = operand(dir, "x", rows * width * sizeof *x, 0);
    dst = room(rows * width * sizeof *dst);
    return serve(once, dst, rows * width);
}
