// What every yardstick shares: operands read from flat files into memory that
// asks for huge pages, as siafu's own operands do, and the commands on
// standard input, once "ready" is said:
//
//	run SECONDS   repeat until the time is over, at least once; answers the
//	              least seconds of a repetition
//	save PATH     write the result; answers "saved"

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static void fail(const char *what, const char *path) {
    fprintf(stderr, "%s ", what);
    perror(path);
    exit(1);
}

static void *room(size_t bytes) {
    void *p = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) fail("map", "memory");
    madvise(p, bytes + 1, MADV_HUGEPAGE);
    return p;
}

// operand reads the file NAME of folder DIR, which has the given length. Spare
// bytes behind it are zero.
static void *operand(const char *dir, const char *name, size_t bytes, size_t spare) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    char *p = room(bytes + spare);
    FILE *f = fopen(path, "rb");
    if (!f || fread(p, 1, bytes, f) != bytes) fail("read", path);
    fclose(f);
    return p;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static double least(double budget, void (*once)(void)) {
    double best = 1e300, begin = now(), before = begin;
    do {
        once();
        double after = now();
        if (after - before < best) best = after - before;
        before = after;
    } while (before - begin < budget);
    return best;
}

static void save(const char *path, const float *result, size_t n) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(result, sizeof *result, n, f) != n || fclose(f)) fail("write", path);
}

// serve obeys commands until standard input ends. The first repetition, which
// touches memory for the first time, is over before.
static int serve(void (*once)(void), const float *result, size_t n) {
    char line[4096];
    once();
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "run ", 4)) {
            printf("%.9f\n", least(atof(line + 4), once));
        } else if (!strncmp(line, "save ", 5)) {
            save(line + 5, result, n);
            puts("saved");
        }
        fflush(stdout);
    }
    return 0;
}
