"""Check schemes in the JSON of FastMatrixMultiplication with nothing but the standard library: check_scheme.py FILE...

C = A B is evaluated for random A and B modulo two primes of 61 bits. A wrong scheme passes with a probability below
2^-118, unless both primes divide what is wrong in a coefficient.
"""

import json
import secrets
import sys
from fractions import Fraction

failed = 0
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    m, k, n = data["n"]
    rows = [[[(place, Fraction(x)) for place, x in enumerate(row) if x] for row in data[key]] for key in "uvw"]
    right = len(rows[0]) == len(rows[1]) == len(rows[2]) == data["m"]
    for prime in (2**61 - 1, 2**61 - 31):
        a, b = ([secrets.randbelow(prime) for _ in range(size)] for size in (m * k, k * n))
        u, v, w = ([[(i, x.numerator * pow(x.denominator, -1, prime)) for i, x in row] for row in one] for one in rows)
        c = [0] * (n * m)  # the third factor is by C transposed
        for left, other, out in zip(u, v, w, strict=False):
            product = sum(x * a[i] for i, x in left) * sum(x * b[i] for i, x in other) % prime
            for i, x in out:
                c[i] += x * product
        wanted = [sum(a[i * k + q] * b[q * n + j] for q in range(k)) for j in range(n) for i in range(m)]
        right = right and all((x - y) % prime == 0 for x, y in zip(c, wanted, strict=True))
    print(f"{'OK' if right else 'WRONG'} {m}x{k}x{n} rank {data['m']} {path}")
    failed += not right
sys.exit(min(failed, 1))
