// c[m x n] = op(a) op(b) by the cblas_sgemm that it is linked with, row-major:
// form N is a[m x k] b[k x n], form B a[m x k] b[n x k]ᵀ, form A a[k x m]ᵀ b[k x n].
//
//	sgemm DIR FORM M N K

#include "yardstick.h"
#include <cblas.h>

static long m, n, k;
static CBLAS_TRANSPOSE trans_a = CblasNoTrans, trans_b = CblasNoTrans;
static const float *a, *b;
static float *c;

static void once(void) {
    cblas_sgemm(CblasRowMajor, trans_a, trans_b, m, n, k, 1, a, trans_a == CblasTrans ? m : k,
                b, trans_b == CblasTrans ? k : n, 0, c, n);
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    if (argv[2][0] == 'A') trans_a = CblasTrans;
    if (argv[2][0] == 'B') trans_b = CblasTrans;
    m = atol(argv[3]), n = atol(argv[4]), k = atol(argv[5]);
    a = operand(argv[1], "a", m * k * sizeof *a, 0);
    b = operand(argv[1], "b", k * n * sizeof *b, 0);
    c = room(m * n * sizeof *c);
    return serve(once, c, m * n);
}
