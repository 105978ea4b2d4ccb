#include "cuda.h"

// What else of the language kernels use: functions that are called, memory of a
// thread, constants, variables, generic addresses, loops of lanes that differ.

struct Pair { float x; int64 n; };

__attribute__((noinline)) __device__ float weighed(struct Pair p, const float *w, int k) {
    if (k < 0) return -1;
    float s = 0;
    for (int i = 0; i < k; i++) s += w[i] * p.x;
    return s + (float)p.n;
}

__constant__ float table[8] = {1, 2, 4, 8, 16, 32, 64, 128};
__device__ int calls = 5;
__device__ int *pointer = &calls;

// y[i] = weighed({x[i], i}, table, i % 9 - 1), called from two places.
extern "C" __global__ void called(const float *x, float *y) {
    int i = blockX * threadsX + threadX;
    struct Pair p = {x[i], i};
    float a = weighed(p, table, i % 9 - 1);
    if (i % 2) a = weighed(p, table, 2);
    y[i] = a;
    if (i == 0) atomicAddInt(pointer, 2);
}

// y[i] = the sum of squares of the digits of i, by way of an array of the thread.
extern "C" __global__ void digits(int *y) {
    int i = blockX * threadsX + threadX, n = 0, list[10];
    for (int v = i; v; v /= 10) list[n++] = v % 10;
    int s = 0;
    for (int k = n - 1; k >= 0; k--) s += list[k] * list[(k * 7 + i) % n];
    y[i] = s;
}

// y[i] = how many steps of Collatz's lead i + 1 to 1; lanes leave at different times
// and meet in a vote: y[n + i] = how many lanes of the warp took an even number.
extern "C" __global__ void collatz(int n, int *y) {
    int i = blockX * threadsX + threadX, steps = 0;
    for (int64 v = i + 1; v != 1; steps++) v = v % 2 ? 3 * v + 1 : v / 2;
    y[i] = steps;
    y[n + i] = __builtin_popcount(__nvvm_vote_ballot_sync(allLanes, steps % 2 == 0));
}

// y = x rounded to bfloat16 and to the int8 of a scale, and e^x by ex2.
extern "C" __global__ void narrow(const float *x, unsigned short *half, signed char *byte, float *e) {
    int i = blockX * threadsX + threadX;
    uint u = __builtin_bit_cast(uint, x[i]);
    half[i] = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    float s = __builtin_rintf(x[i] * 40);
    byte[i] = s > 127 ? 127 : s < -127 ? -127 : (int)s;
    e[i] = __nvvm_ex2_approx_f(x[i] * 1.44269504f);
}
