"""For the one who has matrices and wants their product by a proven scheme."""

import numpy as np

import lcma

rng = np.random.default_rng(0)
a, b = rng.standard_normal((1000, 1203), dtype=np.float32), rng.standard_normal((1203, 801), dtype=np.float32)
truth = a.astype(np.float64) @ b
for scheme, levels in (("strassen", 1), ("winograd", 2), ("laderman", 1)):
    c = lcma.matmul(a, b, scheme=scheme, levels=levels)
    print(f"{scheme}, {levels} level(s): relative error {np.linalg.norm(c - truth) / np.linalg.norm(truth):.1e}")

# Integers are exact, whatever the scheme.
x, y = (rng.integers(-1000, 1000, (99, 99)) for _ in range(2))
print("integers exact:", bool((lcma.matmul(x, y, scheme="strassen") == x @ y).all()))

# Masked attention scores: the scheme works 24 full and 10 half products instead of 24 and 16 of 4 x 4 blocks.
q, k = (rng.standard_normal((512, 256), dtype=np.float32) for _ in range(2))
scores = lcma.matmul(q, np.ascontiguousarray(k.T), scheme="eca-stage1")
print("lower triangle of Q K^T:", np.allclose(scores, np.tril(q @ k.T), atol=1e-3))
