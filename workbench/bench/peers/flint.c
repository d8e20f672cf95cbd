/* Products modulo n by FLINT's nmod_mat_mul; entries are residues, 0 <= x < n, in 64 bits. */
#include <flint/flint.h>
#include <flint/nmod_mat.h>

#include "peer.h"

static nmod_mat_t a, b, c;

static void load(nmod_mat_t matrix, const char *path, slong rows, slong cols, mp_limb_t modulus) {
    nmod_mat_init(matrix, rows, cols, modulus);
    FILE *file = opened(path, "rb");
    for (slong i = 0; i < rows; i++) read_all(matrix->rows[i], sizeof(mp_limb_t), (size_t)cols, file);
    fclose(file);
}

static void multiply(void) { nmod_mat_mul(c, a, b); }

static void write_product(FILE *file) {
    for (slong i = 0; i < c->r; i++) write_all(c->rows[i], sizeof(mp_limb_t), (size_t)c->c, file);
}

int main(int argc, char **argv) {
    if (argc < 7) return 2;
    slong m = atol(argv[3]), k = atol(argv[4]), n = atol(argv[5]);
    mp_limb_t modulus = strtoul(argv[6], NULL, 10);
    load(a, argv[1], m, k, modulus);
    load(b, argv[2], k, n, modulus);
    nmod_mat_init(c, m, n, modulus);
    return serve(multiply, write_product);
}
