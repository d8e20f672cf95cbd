"""Make the sample files of every format: `python tests/schemes_db/make_samples.py` writes them into samples/.

All are of <2,3,4:22>, Strassen's identity twice beside each other and a naive product for the third
column of A: three sizes that differ, so that a transposed factor can't pass. Over Q some products
are scaled by 2 and 1/2, over Q(i) by 1 + i and (1 - i)/2; mod 2 and mod 3 some signs are turned.
"""

from __future__ import annotations

import io
import json
from fractions import Fraction
from pathlib import Path

import numpy as np

import lcma
from lcma.schemes_db import Q, Z
from lcma.schemes_db.formats import render
from lcma.schemes_db.gaussian import gaussian
from lcma.schemes_db.program import Lin, Load, Product
from lcma.schemes_db.ring import QI
from lcma.schemes_db.scheme import Scheme
from lcma.schemes_db.straightline import program_of

FOLDER = Path(__file__).parent / "samples"
SHAPE = (2, 3, 4)


def ternary() -> Scheme:
    """<2,3,4:22> over Z."""
    s = [factor.dense for factor in lcma.resolve("strassen")[0].factors]
    u, v, w = np.zeros((22, 2, 3), int), np.zeros((22, 3, 4), int), np.zeros((22, 2, 4), int)
    for half in range(2):
        rows, cols = slice(7 * half, 7 * half + 7), slice(2 * half, 2 * half + 2)
        u[rows, :, :2], v[rows, :2, cols], w[rows, :, cols] = s
    for r, (i, j) in enumerate(np.ndindex(2, 4), start=14):
        u[r, i, 2] = v[r, 2, j] = w[r, i, j] = 1
    return Scheme.from_arrays(lcma.Target.general(*SHAPE), u, v, w, Z)


def rational() -> Scheme:
    """The same with U of every third product doubled and W halved."""
    u, v, w = (factor.dense.copy() for factor in ternary().factors)
    u[::3] *= 2
    w *= 2
    w[::3] //= 2
    return Scheme.from_arrays(lcma.Target.general(*SHAPE), u, v, w, Q, denominators=(1, 1, 2))


def complex_() -> Scheme:
    """The same with U of every third product times 1 + i and W times (1 - i)/2."""
    u, v, w = (factor.dense for factor in ternary().factors)
    scaled = np.zeros(len(u), bool)
    scaled[::3] = True
    pairs = [np.stack([x, np.zeros_like(x)], axis=3) for x in (u, v, 2 * w)]
    pairs[0][scaled] = np.stack([u, u], axis=3)[scaled]
    pairs[2][scaled] = np.stack([w, -w], axis=3)[scaled]
    return Scheme.from_arrays(lcma.Target.general(*SHAPE), *pairs, QI, denominators=(1, 1, 2))


def only_mod(p: int) -> Scheme:
    """The same with every coefficient in 0, ..., p - 1: valid modulo p and nowhere else."""
    u, v, w = (factor.dense.copy() for factor in ternary().factors)
    return Scheme.from_arrays(lcma.Target.general(*SHAPE), u % p, v % p, w % p, Z)


def rows(scheme: Scheme, transpose: bool) -> list[list[list[object]]]:
    """The factors as R rows of numbers, the third by C or by its transpose."""
    factors = (scheme.u, scheme.v, scheme.w.transposed() if transpose else scheme.w)
    result = []
    for factor in factors:
        dense: list[list[object]] = [[0] * factor.blocks for _ in range(factor.rank)]
        for r in range(factor.rank):
            for index, value in factor.coefficients(r):
                dense[r][index] = value
        result.append(dense)
    return result


def text_exp(scheme: Scheme) -> str:
    """Every dialect of .exp in turn: all parentheses, bare factors, a trailing /2, a leading sign, no `*` between."""
    lines = []
    for number, line in enumerate(render(scheme, "exp").decode().splitlines()):
        a, b, c = line.split(")*(")
        a, c = a.lstrip("("), c.rstrip(")")
        bare = [x if "+" not in x and "-" not in x else f"({x})" for x in (a, b, c)]
        if number % 4 == 1:
            line = "*".join(bare)
        elif number % 4 == 2:
            line = "(" + a + ") (" + b + ") " + bare[2]
        elif number % 4 == 3:
            line = f"-({a})*(-2*({b}))*({c})/2" if scheme.ring != Z else f"-({a})*({b})*(-({c}))"
        lines.append(line)
    return "\n".join(lines) + "\n"


def text_lifted(scheme: Scheme) -> str:
    """No `*` between factors, single blocks bare, spaces around signs."""
    lines = []
    for line in render(scheme, "exp").decode().splitlines():
        factors = line.strip("()").split(")*(")
        spaced = [x.replace("+", " + ").replace("-", " - ").strip() for x in factors]
        lines.append(" ".join(x if " " not in x.strip() else f"({x})" for x in spaced))
    return "\n".join(lines) + "\n"


def text_tensor(scheme: Scheme) -> str:
    """The same products with comments and spaces around them."""
    head = "# products of a 2 x 3 and a 3 x 4 matrix\n# Transposed form C=(A*B)^T\n\n"
    return head + render(scheme, "exp").decode().replace("+", " + ")


def text_yacas(scheme: Scheme) -> str:
    """Assignments with :=, ended by semicolons."""
    lines = [line for line in render(scheme, "equations").decode().splitlines() if not line.startswith("#")]
    return "".join(line.replace("m", "P").replace("=", ":=", 1).replace(")(", ") * (") + ";\n" for line in lines)


def text_mathematica(schemes: list[Scheme]) -> str:
    def braces(factor: object, r: int) -> str:
        dense = rows_of(factor, r)
        return "{" + ",".join("{" + ",".join(map(str, row)) + "}" for row in dense) + "}"

    texts = []
    for scheme in schemes:
        factors = (scheme.u, scheme.v, scheme.w.transposed())
        texts.append(",\n".join("{" + ", ".join(braces(f, r) for f in factors) + "}" for r in range(scheme.rank)))
    if len(texts) == 1:
        return "(* one scheme, product by product *)\n" + texts[0] + "\n"
    return "{\n" + ",\n".join("{" + text + "}" for text in texts) + "\n}\n"


def rows_of(factor: object, r: int) -> list[list[object]]:
    """One product of a factor as a matrix."""
    dense: list[list[object]] = [[0] * factor.cols for _ in range(factor.rows)]
    for index, value in factor.coefficients(r):
        dense[index // factor.cols][index % factor.cols] = value
    return dense


def sides(scheme: Scheme) -> dict[str, tuple[list[dict], list[dict]]]:
    """For u, v and w: the shared sums and the rows, as {index: coefficient} over inputs and shared sums."""
    program = program_of(scheme)
    m, k, n = scheme.target.shape
    where: dict[int, tuple[str, int]] = {}
    shared: dict[str, list[dict]] = {"u": [], "v": [], "w": []}
    inputs = {"u": m * k, "v": k * n, "w": scheme.rank}
    finals: dict[str, list[dict]] = {"u": [], "v": [], "w": [{} for _ in range(m * n)]}
    for op in program.ops:
        if isinstance(op, Load):
            width = k if op.operand == "A" else n
            where[op.dst] = ("u" if op.operand == "A" else "v", op.block[0] * width + op.block[1])
        elif isinstance(op, Lin):
            side = where[op.terms[0][1]][0]
            shared[side].append({where[src][1]: value for value, src in op.terms})
            where[op.dst] = (side, inputs[side] + len(shared[side]) - 1)
        elif isinstance(op, Product):
            finals["u"].append({where[op.left][1]: 1})
            finals["v"].append({where[op.right][1]: 1})
            where[op.dst] = ("w", len(finals["u"]) - 1)
        else:
            finals["w"][op.block[0] * n + op.block[1]] = {where[src][1]: value for value, src in op.terms}
    return {side: (shared[side], finals[side]) for side in "uvw"}


def text_reduced(scheme: Scheme) -> str:
    data: dict[str, object] = {"n": list(SHAPE), "m": scheme.rank, "z2": False, "complexity": {"naive": 0}}
    for side, (shared, final) in sides(scheme).items():
        if side == "w":  # by the transpose of C
            final = [final[i * SHAPE[2] + j] for j in range(SHAPE[2]) for i in range(SHAPE[0])]
        for key, forms in ((f"{side}_fresh", shared), (side, final)):
            data[key] = [[{"index": i, "value": jsonable(value)} for i, value in form.items()] for form in forms]
    return json.dumps(data, indent=None) + "\n"


def jsonable(value: object) -> int | str:
    fraction = Fraction(str(value))
    return int(fraction) if fraction.denominator == 1 else str(fraction)


def texts_slp(scheme: Scheme) -> dict[str, str]:
    """The three programs; shared sums are t0, t1, ..."""
    texts = {}
    inputs = {"u": SHAPE[0] * SHAPE[1], "v": SHAPE[1] * SHAPE[2], "w": scheme.rank}
    for role, (side, (shared, final)) in zip("LRP", sides(scheme).items(), strict=True):

        def name(index: int, count: int = inputs[side]) -> str:
            return f"i{index}" if index < count else f"t{index - count}"

        def total(form: dict) -> str:
            parts = [f"{'-' if value < 0 else '+'}{coefficient(value)}{name(i)}" for i, value in form.items()]
            return "".join(parts).removeprefix("+")

        def coefficient(value: object) -> str:
            return "" if abs(value) == 1 else f"{abs(value)}*"

        statements = [f"t{i}:={total(form)};" for i, form in enumerate(shared)]
        statements += [f"o{i}:={total(form)};" for i, form in enumerate(final)]
        texts[f"slp_{role}.slp"] = "\n".join(statements) + "\n"
    return texts


def text_fmm(schemes: list[Scheme], pairs: bool = False) -> str:
    lines = [] if len(schemes) == 1 else [str(len(schemes))]
    for scheme in schemes:
        lines.append(f"{' '.join(map(str, SHAPE))} {scheme.rank}")
        for factor in rows(scheme, transpose=True):
            numbers = [Fraction(str(x)) for row in factor for x in row]
            lines.append(" ".join(f"{x.numerator} {x.denominator}" if pairs else str(x) for x in numbers))
    return "\n".join(lines) + "\n"


def text_bini(scheme: Scheme) -> str:
    u, v, w = rows(scheme, transpose=False)
    lines = [f"Bini {' '.join(map(str, SHAPE))} {scheme.rank}", "product Gamma Alpha Beta"]
    for r, parts in enumerate(zip(w, u, v, strict=True), start=1):
        lines.append(f"{r:3d} ; " + " ; ".join(" ".join(f"{x!s:>2}" for x in part) for part in parts))
    return "\n".join(lines) + "\n"


def text_fast_matmul(scheme: Scheme) -> str:
    blocks = []
    for factor in rows(scheme, transpose=False):
        blocks.append("\n".join(" ".join(map(str, row)) for row in zip(*factor, strict=True)))
    return "\n#\n".join(blocks) + "\n"


def text_alphaevolve(scheme: Scheme) -> str:
    """Arrays of complex decimals, -0. among them."""
    arrays = []
    for factor in rows(scheme, transpose=True):
        lines = []
        for row in zip(*factor, strict=True):
            values = [complex(*(float(part) for part in (gaussian(x).real, gaussian(x).imag))) for x in row]
            lines.append("[" + ", ".join(f"{x.real:g}{x.imag:+g}j" if x else "-0.+0.j" for x in values) + "]")
        arrays.append("np.array([" + ",\n    ".join(lines) + "], dtype=np.complex64)")
    return "import numpy as np\n# <2,3,4>\ndecomposition_234 = (" + ",\n".join(arrays) + ")\n"


def text_notebook(schemes: list[Scheme]) -> str:
    """A notebook with a cell of text, a cell of other code, and a cell a scheme."""
    cells: list[dict] = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# <2,3,4> as (np.array("]},
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": ["def rank(x):\n", "  return x[0].shape[1]\n"]},
    ]
    for scheme in schemes:
        source = text_alphaevolve(scheme).splitlines(keepends=True)
        cells.append({"cell_type": "code", "metadata": {}, "outputs": [], "source": source})
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 0}) + "\n"


def arrays(scheme: Scheme, transpose: bool, dtype: str = "i4") -> list[np.ndarray]:
    """Integer arrays (entries, R)."""
    return [np.array(factor, dtype=object).astype(dtype).T for factor in rows(scheme, transpose)]


def npz(**members: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **members)
    return stream.getvalue()


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def bytes_alphatensor(scheme: Scheme) -> bytes:
    """A rectangular scheme: an object array."""
    parts = np.empty(3, dtype=object)
    parts[:] = arrays(scheme, transpose=True)
    return npz(**{"2,3,4": parts})


def bytes_sparse(scheme: Scheme, by_product: bool = True) -> bytes:
    members = {}
    for key, factor in zip("uvw", rows(scheme, transpose=False), strict=True):
        lists = factor if by_product else [list(column) for column in zip(*factor, strict=True)]
        terms = [[(i, Fraction(str(x))) for i, x in enumerate(row) if x] for row in lists]
        flat = [term for row in terms for term in row]
        members[f"{key}_indptr"] = np.cumsum([0, *map(len, terms)])
        members[f"{key}_indices"] = np.array([i for i, _ in flat])
        members[f"{key}_numerators"] = np.array([x.numerator for _, x in flat])
        members[f"{key}_denominators"] = np.array([x.denominator for _, x in flat])
    members["metadata_json"] = np.array(json.dumps({"tensor": list(SHAPE), "rank": scheme.rank}))
    return npz(**members)


def bytes_flip_rational(schemes: list[Scheme]) -> bytes:
    table = []
    for scheme in schemes:
        numbers = [Fraction(str(x)) for factor in rows(scheme, transpose=False) for row in factor for x in row]
        table.append([part for x in numbers for part in (x.numerator, x.denominator)])
    return npy(np.array(table, dtype=np.int64))


def bytes_flip_modular(scheme: Scheme, p: int) -> bytes:
    words = []
    for parts in zip(*rows(scheme, transpose=False), strict=True):
        for part in parts:
            residues = [int(x) % p for x in part]
            words += [sum(1 << j for j, x in enumerate(residues) if x == digit) for digit in range(1, p)]
    return npy(np.array([words], dtype=np.uint64))


def text_arrays(scheme):
    """JSON with u, v and w, a product a row, fractions as text."""
    parts = [[[str(x) if x != int(x) else int(x) for x in row] for row in part] for part in rows(scheme, False)]
    return json.dumps(dict(zip("uvw", parts, strict=True))) + "\n"


def bytes_arrays(scheme):
    """An archive of u, v and w, a product a row."""
    parts = [np.array([[int(x) for x in row] for row in part]) for part in rows(scheme, False)]
    stream = io.BytesIO()
    np.savez(stream, **dict(zip("uvw", parts, strict=True)))
    return stream.getvalue()


def samples() -> dict[str, bytes]:
    """Every sample file by name."""
    z, q, qi = ternary(), rational(), complex_()
    texts = {
        "lcma.json": render(qi, "lcma-json").decode(),
        "fmm.json": render(q, "fmm-json").decode(),
        "fmm_reduced.json": text_reduced(q),
        "equations.txt": render(qi, "equations").decode(),
        "yacas.txt": text_yacas(z),
        "dialects.exp": text_exp(q),
        "gaussian.exp": render(qi, "exp").decode(),
        "mod2.exp": render(only_mod(2), "exp").decode(),
        "lifted.txt": text_lifted(z),
        "tensor.txt": text_tensor(z),
        "one.m": text_mathematica([q]),
        "several.m": text_mathematica([z, q]),
        "triads.mpl": render(q, "maple").decode(),
        "one.sms": render(q, "sms").decode(),
        **dict(zip(("sms_L.sms", "sms_R.sms", "sms_P.sms"), split_sms(render(q, "sms").decode()), strict=True)),
        **texts_slp(q),
        "fmm.txt": text_fmm([z]),
        "fmm_several.txt": text_fmm([z, only_mod(2)]),
        "fmm_pairs.txt": text_fmm([q], pairs=True),
        "bini.txt": text_bini(z),
        "bini_mod2.txt": text_bini(only_mod(2)).replace("product", "# valid mod 2 only\nproduct"),
        "fast_matmul.txt": text_fast_matmul(z),
        "alphaevolve.txt": text_alphaevolve(qi),
        "alphaevolve.ipynb": text_notebook([q, qi]),
        "arrays.json": text_arrays(q),
    }
    return {name: text.encode() for name, text in texts.items()} | {
        "lcma.npz": render(qi, "lcma-npz"),
        "alphatensor.npz": bytes_alphatensor(z),
        "sparse.npz": bytes_sparse(q),
        "sparse_entries.npz": bytes_sparse(q, by_product=False),
        "arrays.npz": bytes_arrays(z),
        "flip_rational.npy": bytes_flip_rational([z, q]),
        "flip_mod2.npy": bytes_flip_modular(z, 2),
        "flip_mod3.npy": bytes_flip_modular(z, 3),
    }


def split_sms(text: str) -> list[str]:
    parts = text.split("0 0 0\n")[:3]
    return [part + "0 0 0\n" for part in parts]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in samples().items():
        (FOLDER / name).write_bytes(content)
    print(f"{len(samples())} files in {FOLDER}")
