"""Schemes of formats with a side of 2, put together from Strassen triples of inner products and found by annealing.

The entries of C = A B, A (p, 2) and B (2, n), are inner products of rows of A and columns of B. For integer vectors r
and c the inner product (r A)(B c) takes two products, in one of three variants (`arrangement`). Strassen's scheme is a
statement about three of them: if r3 = r1 + s r2 and c3 = c1 + u c2 with signs s and u, and the three are of different
variants, then one more product yields (r1 A)(B c2) and (r2 A)(B c1). So N inner products with enough triples among
them have a scheme of rank p n + N: two products for each of the N, and one for each of the p n - N dimensions of
bilinear forms that are missing. One triple has 3 + 1 = 4 dimensions: 2 x 2 x 2 in 7 products. The schemes of Hopcroft
and Kerr (1971), of rank (3 p n + max(p, n)) / 2 rounded up, are of this form, with triples that share no more than
they must; with more triples among fewer inner products the rank is lower.
"""
