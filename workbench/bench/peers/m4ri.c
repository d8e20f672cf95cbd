/* Products over GF(2) by M4RI's mzd_mul: words of 64 elements along rows, the lowest bit first. */
#include <m4ri/m4ri.h>

#include "peer.h"

static mzd_t *a, *b, *c;

static mzd_t *loaded(const char *path, int rows, int cols) {
    mzd_t *matrix = mzd_init(rows, cols);
    FILE *file = opened(path, "rb");
    for (int i = 0; i < rows; i++) read_all(matrix->rows[i], sizeof(word), (size_t)matrix->width, file);
    fclose(file);
    return matrix;
}

static void multiply(void) { mzd_mul(c, a, b, 0); }

static void write_product(FILE *file) {
    for (int i = 0; i < c->nrows; i++) write_all(c->rows[i], sizeof(word), (size_t)c->width, file);
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    int m = atoi(argv[3]), k = atoi(argv[4]), n = atoi(argv[5]);
    a = loaded(argv[1], m, k);
    b = loaded(argv[2], k, n);
    c = mzd_init(m, n);
    return serve(multiply, write_product);
}
