"""Write Strassen's identity, and naive schemes of uneven sizes, as people write them: `python make_handwritten.py`.

Every function gives files by name. All of them are right; the names say what is unusual about them.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np

import lcma

FOLDER = Path(__file__).parent / "handwritten"

PRODUCTS = {
    1: ("a11 + a22", "b11 + b22"),
    2: ("a21 + a22", "b11"),
    3: ("a11", "b12 - b22"),
    4: ("a22", "b21 - b11"),
    5: ("a11 + a12", "b22"),
    6: ("a21 - a11", "b11 + b12"),
    7: ("a12 - a22", "b21 + b22"),
}
OUTPUTS = {"c11": "m1 + m4 - m5 + m7", "c12": "m3 + m5", "c21": "m2 + m4", "c22": "m1 - m2 + m3 + m6"}

PLAIN = [f"m{r} = ({a})({b})" for r, (a, b) in PRODUCTS.items()] + [f"{c} = {form}" for c, form in OUTPUTS.items()]


def each(change, lines=PLAIN):
    return "\n".join(change(line) for line in lines) + "\n"


def blocks(pattern):
    """All blocks and products renamed: {l} letter, {i} {j} row and column."""

    def change(line):
        return re.sub(r"([abc])(\d)(\d)", lambda m: pattern.format(l=m[1], i=m[2], j=m[3], L=m[1].upper()), line)

    return change


def zero_based(line, pattern="{l}{i}{j}"):
    return re.sub(
        r"([abc])(\d)(\d)", lambda m: pattern.format(l=m[1], i=int(m[2]) - 1, j=int(m[3]) - 1, L=m[1].upper()), line
    )


def latex(body, begin="\\begin{align*}", end="\\end{align*}"):
    return f"{begin}\n{body}\n{end}\n"


def latex_line(line, names="{l}_{{{i}{j}}}"):
    line = blocks(names)(line)
    line = re.sub(r"m(\d)", r"M_{\1}", line)
    return line.replace(" = ", " &= ")


def equations():
    """Text: equations in every spelling."""
    numbered = [f"{i}. {line}" for i, line in enumerate(PLAIN, 1)]
    star = [line.replace(")(", ") * (") for line in PLAIN]
    long = [line.replace("c11 = m1 + m4 - m5", "c11 = m1 + m4\n    - m5") for line in PLAIN]
    yield "plain.txt", "\n".join(PLAIN) + "\n"
    yield "stars.txt", "\n".join(star) + "\n"
    yield "assign.txt", each(lambda line: line.replace("=", ":=") + ";")
    yield "arrows.txt", each(lambda line: line.replace("=", "<-"))
    yield "colons.txt", each(lambda line: line.replace(" =", ":"))
    yield "heading.txt", "Strassen:\nC = AB\n\n" + "\n".join(PLAIN) + "\n"
    yield "heading_sizes.txt", "Strassen's algorithm, n = 2, 7 multiplications\nomega = log2(7) = 2.807\n" + each(str)
    prose = "The seven products are\n\n{}\n\nand the result is then assembled as follows:\n\n{}\n\nThat is all.\n"
    yield "prose.txt", prose.format("\n".join(PLAIN[:7]), "\n".join(PLAIN[7:]))
    yield "fenced.md", "# Strassen\n\nUses **7** products.\n\n```\n" + each(str) + "```\n"
    yield "fenced_python.md", "Some code:\n\n```python\n" + each(str, star) + "```\n"
    yield "numbered.txt", "\n".join(numbered) + "\n"
    yield "numbered_brackets.txt", "\n".join(f"({i}) {line}" for i, line in enumerate(PLAIN, 1)) + "\n"
    yield "bullets.md", each(lambda line: f"- {line}")
    yield "star_bullets.md", each(lambda line: f"* {line}", star)
    yield "trailing_dots.txt", each(lambda line: f"{line}.")
    yield "trailing_commas.txt", each(lambda line: f"{line},")
    yield "slashes.txt", "// Strassen 1969\n" + each(lambda line: f"{line}  // as printed", star)
    yield "percent.m", "% Strassen, 2 x 2\n" + each(lambda line: f"{line}; % step", star)
    yield "one_line.txt", "; ".join(PLAIN) + "\n"
    yield "commas_one_line.txt", ", ".join(PLAIN) + "\n"
    yield "underscores.txt", each(blocks("{l}_{i}{j}"), [re.sub(r"m(\d)", r"m_\1", line) for line in PLAIN])
    yield "underscores_two.txt", each(blocks("{l}_{i}_{j}"))
    yield "brackets.txt", each(blocks("{l}[{i}][{j}]"))
    yield "brackets_comma.txt", each(blocks("{L}[{i}, {j}]"))
    yield "parentheses.txt", each(blocks("{l}({i},{j})"))
    yield "capitals.txt", each(str.upper)
    yield "mixed_case.txt", each(blocks("{L}{i}{j}"))
    yield "product_brackets.txt", each(lambda line: re.sub(r"m(\d)", r"M[\1]", line))
    yield "zero_based.txt", each(zero_based)
    yield "zero_based_brackets.py", each(lambda line: zero_based(line, "{L}[{i}][{j}]"), star)
    yield "zero_based_comma.txt", each(lambda line: zero_based(line, "{l}[{i},{j}]"))
    xyz = str.maketrans("abc", "xyz")
    yield "xyz.txt", each(lambda line: re.sub(r"[abc](?=\d\d)", lambda m: m[0].translate(xyz), line))
    pqr = str.maketrans("abc", "pqr")
    yield "pqr.txt", each(lambda line: re.sub(r"[abc](?=\d\d)", lambda m: m[0].translate(pqr), line))
    yield "other_products.txt", each(lambda line: re.sub(r"m(\d)", r"Q\1", line))
    roman = ["", "I", "II", "III", "IV", "V", "VI", "VII"]
    yield "roman.txt", each(lambda line: re.sub(r"m(\d)", lambda m: roman[int(m[1])], line))
    yield "outputs_first.txt", "\n".join(PLAIN[7:] + PLAIN[:7]) + "\n"
    yield "continued.txt", "\n".join(long) + "\n"
    yield "accumulated.txt", "\n".join([*PLAIN[:7], "c11 = m1 + m4", "c11 -= m5", "c11 += m7", *PLAIN[8:]]) + "\n"
    yield "added_to_itself.py", "\n".join([*star[:7], "c11 = m1 + m4 - m5", "c11 = c11 + m7", *PLAIN[8:]]) + "\n"
    yield (
        "inline.txt",
        "\n".join(["c11 = a11 b11 + a12 b21", "c12 = a11 b12 + a12 b22"])
        + "\n"
        + ("c21 = a21*b11 + a22*b21\nc22 = (a21)(b12) + (a22)(b22)\n"),
    )
    yield "named_sums.txt", ("s1 = a11 + a22\nt1 = b11 + b22\nm1 = s1 * t1\n" + "\n".join(PLAIN[1:]) + "\n")
    yield (
        "unicode.txt",
        each(
            lambda line: (
                re.sub(r"([abcm])(\d+)", lambda m: m[1] + "".join(chr(0x2080 + int(d)) for d in m[2]), line)
                .replace("-", "\u2212")
                .replace(")(", ")\u00b7(")
            )
        ),
    )
    yield "matmul.py", each(lambda line: re.sub(r"\((.*)\)\((.*)\)", r"np.dot(\1, \2)", line))
    yield "at_sign.py", each(lambda line: line.replace(")(", ") @ ("))
    yield (
        "letters.txt",
        (
            "p1 = a(f - h)\np2 = (a + b)h\np3 = (c + d)e\np4 = d(g - e)\np5 = (a + d)(e + h)\np6 = (b - d)(g + h)\n"
            "p7 = (a - c)(e + f)\nr11 = p5 + p4 - p2 + p6\nr12 = p1 + p2\nr21 = p3 + p4\nr22 = p1 + p5 - p3 - p7\n"
        ),
    )
    yield (
        "running_index.txt",
        each(lambda line: re.sub(r"([abc])(\d)(\d)", lambda m: f"{m[1]}{2 * int(m[2]) + int(m[3]) - 2}", line)),
    )
    yield "transposed_outputs.txt", each(lambda line: re.sub(r"^c(\d)(\d)", r"c\2\1", line))
    yield "crlf.txt", "\r\n".join(PLAIN) + "\r\n"
    yield "tabs.txt", each(lambda line: "\t" + line.replace(" = ", "\t=\t"))
    yield "chain.txt", "\n".join([*PLAIN[:7], PLAIN[7] + " = a11 b11 + a12 b21", *PLAIN[8:]]) + "\n"
    rows = " \\\\\n".join(latex_line(line) for line in PLAIN)
    yield "align.tex", latex(rows)
    yield "align_commas.tex", latex(" \\\\\n".join(latex_line(line, "{l}_{{{i},{j}}}") for line in PLAIN))
    big = [re.sub(r"\((.*?)\)\((.*?)\)", r"\\left(\1\\right) \\cdot \\left(\2\\right)", line) for line in PLAIN]
    yield "left_right.tex", latex(" \\\\[2pt]\n".join(latex_line(line, "{L}_{{{i}{j}}}") for line in big))
    yield "dollars.tex", each(lambda line: f"${latex_line(line).replace('&', '')}$, \\\\")
    bold = "\\mathbf{{{L}}}_{{{i}{j}}}"
    yield "bold.tex", "\\[\n" + "\n\\]\n\\[\n".join(latex_line(x, bold).replace("&", "") for x in PLAIN) + "\n\\]\n"
    yield "times.tex", latex(" \\\\\n".join(latex_line(line).replace(")(", ") \\times (") for line in PLAIN))
    tagged = [f"{latex_line(line)} \\tag{{{i}}}" for i, line in enumerate(PLAIN, 1)]
    yield "tags.tex", latex(" \\\\\n".join(tagged))


def trilinear():
    """Text: products of three sums, the third factor by C^T."""
    scheme = lcma.resolve("strassen")[0]
    lines = [line for line in lcma.schemes_db.formats.render(scheme, "exp").decode().splitlines() if line]
    yield "trilinear_heading.txt", "Strassen, trilinear form\n\n" + "\n".join(lines) + "\n"
    yield "trilinear_numbered.txt", "\n".join(f"{i}. {line}" for i, line in enumerate(lines, 1)) + "\n"
    yield "trilinear_sum.txt", "T = " + "\n  + ".join(lines) + "\n"
    yield "trilinear_xyz.txt", "\n".join(line.translate(str.maketrans("abc", "xyz")) for line in lines) + "\n"
    yield "trilinear_zero_based.txt", "\n".join(zero_based(line) for line in lines) + "\n"
    yield (
        "trilinear_cyclic.txt",
        ("(a11+a22)(b11+b22)(c11+c22)\n(a21+a22)(b11)(c12-c22) cyclic\n(a22)(b21-b11)(c11+c12) cyclic\n"),
    )


def factors(name):
    scheme = lcma.resolve(name)[0]
    return [factor.dense.reshape(scheme.rank, -1) for factor in scheme.factors], scheme


def arrays():
    """Arrays: npz, npy, JSON and Python, products as rows or as columns."""
    (u, v, w), _ = factors("strassen")
    (x, y, z), uneven = factors("naive:2x3x4")
    m, k, n = uneven.target.shape

    def npz(**parts):
        stream = io.BytesIO()
        np.savez(stream, **parts)
        return stream.getvalue()

    def npy(array):
        stream = io.BytesIO()
        np.save(stream, array)
        return stream.getvalue()

    yield "rows.npz", npz(u=u, v=v, w=w)
    yield "columns.npz", npz(U=x.T, V=y.T, W=z.T)
    yield "floats.npz", npz(A=u.astype(float), B=v.astype(float), C=w.astype(float))
    yield "factors_npz.npz", npz(factors=np.stack([u, v, w]))
    yield "by_ct.npz", npz(u=x, v=y, w=uneven.w.transposed().dense.reshape(uneven.rank, -1))
    yield "matrices.npz", npz(u=x.reshape(-1, m, k), v=y.reshape(-1, k, n), w=z.reshape(-1, m, n))
    yield (
        "matrices_last.npz",
        npz(
            u=uneven.u.dense.transpose(1, 2, 0),
            v=uneven.v.dense.transpose(1, 2, 0),
            w=uneven.w.dense.transpose(1, 2, 0),
        ),
    )
    yield "more_members.npz", npz(u=u, v=v, w=w, rank=np.array(7), shape=np.array([2, 2, 2]))
    yield "unnamed.npz", npz(arr_0=u, arr_1=v, arr_2=w)
    yield "stacked_rows.npy", npy(np.stack([u, v, w]))
    yield "stacked_columns.npy", npy(np.stack([u.T, v.T, w.T]))
    yield "stacked_last.npy", npy(np.stack([u, v, w], axis=-1))
    yield "stacked_floats.npy", npy(np.stack([u, v, w]).astype(np.float64))
    yield "stacked_small.npy", npy(np.stack([u, v, w]).astype(np.int8))
    yield "side_by_side.npy", npy(np.hstack([u, v, w]).astype(np.float32))
    yield "lower.json", json.dumps({"u": u.tolist(), "v": v.tolist(), "w": w.tolist()})
    yield "upper.json", json.dumps({"U": x.T.tolist(), "V": y.T.tolist(), "W": z.T.tolist(), "rank": 24}, indent=1)
    yield "factors.json", json.dumps({"name": "Strassen", "factors": [u.tolist(), v.tolist(), w.tolist()]})
    yield "list.json", json.dumps([x.tolist(), y.tolist(), z.tolist()])
    yield "nested.json", json.dumps({"scheme": {"alpha": u.tolist(), "beta": v.tolist(), "gamma": w.tolist()}})
    products = [{"a": p.tolist(), "b": q.tolist(), "c": s.tolist()} for p, q, s in zip(u, v, w, strict=True)]
    yield "products.json", json.dumps({"products": products})
    matrices = [
        {"u": p.tolist(), "v": q.tolist(), "w": s.tolist()}
        for p, q, s in zip(uneven.u.dense, uneven.v.dense, uneven.w.dense, strict=True)
    ]
    yield "product_matrices.json", json.dumps(matrices)
    yield (
        "halves.json",
        json.dumps({"u": (2 * u).tolist(), "v": [[f"{a}/2" for a in row] for row in v.tolist()], "w": w.tolist()}),
    )
    named = "".join(f"{name} = {part.tolist()}\n" for name, part in zip("UVW", (u, v, w), strict=True))
    yield "assigned.py", f'"""Strassen."""\n\n{named}'
    arrays_ = "".join(f"{n} = np.array({p.tolist()})\n" for n, p in zip("uvw", (x.T, y.T, z.T), strict=True))
    yield "np_arrays.py", "import numpy as np\n\n# products are columns\n" + arrays_ + "\nprint(u.shape)\n"
    yield "dict.py", f"scheme = {{'u': {u.tolist()}, 'v': {v.tolist()}, 'w': {w.tolist()}}}\n"
    yield "tuple.py", f"factors = ({u.tolist()}, {v.tolist()}, {w.tolist()})\n"
    yield (
        "fractions.py",
        (
            f"from fractions import Fraction\nU = {u.tolist()}\n".replace("1", "Fraction(2, 2)")
            + f"V = {v.tolist()}\nW = {w.tolist()}\n"
        ),
    )
    table = "".join(
        f"{name}:\n" + "".join(" ".join(f"{a:2d}" for a in row) + "\n" for row in part) + "\n"
        for name, part in zip("UVW", (u, v, w), strict=True)
    )
    yield "tables.txt", table
    yield (
        "fenced_json.md",
        "# Strassen\n\n```json\n" + json.dumps({"u": u.tolist(), "v": v.tolist(), "w": w.tolist()}) + "\n```\n",
    )


def files() -> dict[str, bytes]:
    """Every file by name."""
    found: dict[str, bytes] = {}
    for name, content in (*equations(), *trilinear(), *arrays()):
        assert name not in found, name
        found[name] = content if isinstance(content, bytes) else content.encode()
    return found


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in files().items():
        (FOLDER / name).write_bytes(content)
    print(f"{len(files())} files in {FOLDER}")
