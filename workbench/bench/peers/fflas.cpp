// Products over GF(p) by FFLAS-FFPACK's fgemm on Givaro::ModularBalanced<double> or <float>; residues in 64 bits.
#include <fflas-ffpack/fflas-ffpack.h>
#include <givaro/modular-balanced.h>

#include <string>
#include <vector>

#include "peer.h"

template <class Element>
struct Product {
    using Field = Givaro::ModularBalanced<Element>;
    static inline Field *field;
    static inline std::vector<Element> a, b, c;
    static inline size_t m, k, n;
    static inline int64_t modulus;

    static std::vector<Element> loaded(const char *path, size_t count) {
        std::vector<int64_t> raw(count);
        FILE *file = opened(path, "rb");
        read_all(raw.data(), sizeof(int64_t), count, file);
        fclose(file);
        std::vector<Element> found(count);
        for (size_t i = 0; i < count; i++) field->init(found[i], raw[i]);
        return found;
    }

    static void multiply() {
        FFLAS::fgemm(*field, FFLAS::FflasNoTrans, FFLAS::FflasNoTrans, m, n, k, field->one, a.data(), k, b.data(), n,
                     field->zero, c.data(), n);
    }

    static void write_product(FILE *file) {
        std::vector<int64_t> row(n);
        for (size_t i = 0; i < m; i++) {
            for (size_t j = 0; j < n; j++) {
                int64_t x = static_cast<int64_t>(c[i * n + j]) % modulus;
                row[j] = x < 0 ? x + modulus : x;
            }
            write_all(row.data(), sizeof(int64_t), n, file);
        }
    }

    static int main(char **argv) {
        m = std::stoul(argv[3]);
        k = std::stoul(argv[4]);
        n = std::stoul(argv[5]);
        modulus = std::stoll(argv[6]);
        if (modulus > static_cast<int64_t>(Field::maxCardinality())) {
            fprintf(stderr, "p is too large for this field\n");
            return 1;
        }
        field = new Field(static_cast<Element>(modulus));
        a = loaded(argv[1], m * k);
        b = loaded(argv[2], k * n);
        c.resize(m * n);
        return serve(multiply, write_product);
    }
};

int main(int argc, char **argv) {
    if (argc < 8) return 2;
    return std::string(argv[7]) == "float" ? Product<float>::main(argv) : Product<double>::main(argv);
}
