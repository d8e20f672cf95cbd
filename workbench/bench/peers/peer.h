/* What every peer program shares: operands from files, timed products on request.
 *
 * PROGRAM A B M K N MODULUS VARIANT reads the raw operands, prints "ready", and then answers lines of stdin:
 * "multiply" with the seconds of one product, "write PATH" with "done" once the product is in that file. */
#ifndef LCMA_PEER_H
#define LCMA_PEER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static FILE *opened(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (!file) {
        fprintf(stderr, "%s cannot be opened\n", path);
        exit(1);
    }
    return file;
}

static void read_all(void *target, size_t item, size_t count, FILE *file) {
    if (fread(target, item, count, file) != count) {
        fprintf(stderr, "an operand is shorter than its sizes say\n");
        exit(1);
    }
}

static void write_all(const void *source, size_t item, size_t count, FILE *file) {
    if (fwrite(source, item, count, file) != count) {
        fprintf(stderr, "the product cannot be written\n");
        exit(1);
    }
}

static int serve(void (*multiply)(void), void (*write_product)(FILE *)) {
    char line[4096];
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!strcmp(line, "multiply")) {
            double began = now();
            multiply();
            printf("%.9f\n", now() - began);
        } else if (!strncmp(line, "write ", 6)) {
            FILE *file = opened(line + 6, "wb");
            write_product(file);
            if (fclose(file)) return 1;
            printf("done\n");
        } else {
            return 2;
        }
        fflush(stdout);
    }
    return 0;
}

#endif
