"""Every token counts: a text is read only if each statement that names a block, a product or a factor is understood."""

import json
import re
from pathlib import Path

import pytest

from lcma.errors import SchemeFormatError
from lcma.schemes_db.formats import parse_text
from lcma.verify import judge

PRODUCTS = [
    "m1 = (a11 + a22)*(b11 + b22)",
    "m2 = (a21 + a22)*b11",
    "m3 = a11*(b12 - b22)",
    "m4 = a22*(b21 - b11)",
    "m5 = (a11 + a12)*b22",
    "m6 = (a21 - a11)*(b11 + b12)",
    "m7 = (a12 - a22)*(b21 + b22)",
]
OUTPUTS = ["c11 = m1 + m4 - m5 + m7", "c12 = m3 + m5", "c21 = m2 + m4", "c22 = m1 - m2 + m3 + m6"]
LINES = [*PRODUCTS, *OUTPUTS]
TRILINEAR = [
    "(a11+a22)*(b11+b22)*(c11+c22)",
    "(a21+a22)*b11*(c12-c22)",
    "a11*(b12-b22)*(c21+c22)",
    "a22*(b21-b11)*(c11+c12)",
    "(a11+a12)*b22*(c21-c11)",
    "(a21-a11)*(b11+b12)*c22",
    "(a12-a22)*(b21+b22)*c11",
]
U = [[1, 0, 0, 1], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 0, 1], [1, 1, 0, 0], [-1, 0, 1, 0], [0, 1, 0, -1]]
V = [[1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, -1], [-1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]]
W = [[1, 0, 0, 1], [0, 0, 1, -1], [0, 1, 0, 1], [1, 0, 1, 0], [-1, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]]
LISTS = f"u = {U}\nv = {V}\nw = {W}\n"
ARRAYS = f"import numpy as np\nu = np.array({U})\nv = np.array({V})\nw = np.array({W})\n"


def matlab(rows):
    return f"[{'; '.join(' '.join(map(str, row)) for row in rows)}]"


MATLAB = f"U = {matlab(U)};\nV = {matlab(V)};\nW = {matlab(W)};\n"


def text(*lines):
    return "\n".join(lines) + "\n"


def refused(content):
    with pytest.raises(SchemeFormatError) as caught:
        [judge(reading, "file") for reading in parse_text(content)]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [text(*LINES), text(*TRILINEAR), LISTS, ARRAYS, MATLAB])
def test_what_the_cases_are_made_from_is_right(content):
    (reading,) = parse_text(content)
    assert judge(reading, "file").ok


@pytest.mark.parametrize("change", [
    "u *= 2", "u += v", "w /= 2", "w[0] = 0", "w[0][1] = 5", "w[:, 0] *= -1", "w[0, 0] = -w[0, 0]", "u = np.abs(u)",
    "for i in range(7):\n    w[i] = -w[i]", "for x in (u, v):\n    x *= 2", "for i in range(7): u[i] *= 2", "fix(u)",
    "np.negative(u, out=u)", "t = np.multiply(u, 2, out=u)", "t = scale(u)", "u.sort()", "exec('u *= 2')", "del u[0]",
    "u = u[::-1]", "u = u[[1, 0, 2, 3, 4, 5, 6]]", "u = np.roll(u, 1, axis=0)", "u = u.reshape(7, 4, order='F')",
    "u, v = v, u", "if True:\n    u = v", "w = u if False else w", "u = [[2*x for x in r] for r in u]", "u = u + 1",
    "u = u.astype(bool)", "f = u[0]\nf[0] = 3", "def fix():\n    global u\n    u = 2*u\nfix()",
    "def fix():\n    u[0] = 0\nfix()", "globals()['u'] *= 2", f"u = {U[::-1]}", "u = u.cumsum()", "scale u by two",
    "np.add(u, v, u)", "np.dot(u, v, w)",
])  # fmt: skip
def test_statements_that_may_change_an_array_refuse_the_file(change):
    refused(ARRAYS + change + "\n")


@pytest.mark.parametrize("returned", ["u, v, -w", "2*u, v, w", "(u, v, -w)", "u, v, [[-x for x in row] for row in w]"])
def test_a_function_that_returns_other_factors_refuses_the_file(returned):
    body = "def strassen():\n" + "".join(f"    {line}\n" for line in LISTS.splitlines())
    (reading,) = parse_text(body + "    return u, v, w\n")
    assert judge(reading, "file").ok
    refused(body + f"    return {returned}\n")


@pytest.mark.parametrize("value", [
    f"{U}*2", f"2*{U}", f"{U}/3", f"np.array({U}) + 1", f"np.array({U}) - 1", f"np.array({U}) % 2",
    f"np.array({U})//2", f"np.array({U}, dtype=bool)", f"np.array({U}, dtype=np.uint8)", f"np.flip({U})",
    f"{U} + [[0, 0, 0, 0]]", f"np.array({U}) @ m", f"f({U})", f"np.array({U}) % modulus", f"np.array({U})[::-1]",
])  # fmt: skip
def test_values_that_are_no_arrays_as_they_stand_are_refused(value):
    refused(f"import numpy as np\nu = {value}\nv = {V}\nw = {W}\n")


@pytest.mark.parametrize(
    "content",
    [
        MATLAB + "W = W.^2;\n",
        MATLAB + "W(1,1) = 0;\n",
        MATLAB.replace("];\nV", "].*2;\nV"),
        MATLAB + "U = circshift(U, 1);\n",
        json.dumps({"u": U, "v": V, "w": W}) + " * 2",
        json.dumps({"u": U, "v": V, "w": W, "denominator": 2}),
        json.dumps({"u": U, "v": V, "w": W, "scale": 0.5}),
        json.dumps({"u": U, "v": V, "w": W, "equations": [*LINES[:7], "c11 = m1", *OUTPUTS[1:]]}),
        str([U, V, W]).replace("[", "{").replace("]", "}") + " /. 1 -> 2",
        "1 0 0 - 1\n0 0 1 1\n#\n1 0 0 1\n0 0 1 1\n#\n1 0 0 1\n0 0 1 1\n",
        "scale: 2\n" + "\n\n".join("\n".join(" ".join(map(str, row)) for row in part) for part in (U, V, W)),
        "\n\n".join("\n".join(" ".join(map(str, row)).replace(" -1", " - 1") for row in part) for part in (U, V, W)),
    ],
)
def test_scalings_beside_the_numbers_are_applied_or_refused(content):
    refused(content)


@pytest.mark.parametrize("change", [
    "u = 2*u\nw = w/2", "u = -u\nw = -1*w", "u = u.T\nv = v.T\nw = w.T",
    "u = np.transpose(u)\nv = v.transpose()\nw = w.T",
    "u = u.reshape(7, 2, 2)\nv = v.reshape((7, 2, 2))\nw = w.reshape(-1, 2, 2)",
    "print(u.shape)\nassert u.shape == (7, 4)", "u = np.array(u, dtype=float)", "u = u.astype(np.int8)",
    "n = 2\nrank = 7",
    "T = np.einsum('ri,rj,rk->ijk', u, v, w)\n\ndef check(u, v, w):\n    for r in range(7):\n        u[r] = 0\n",
])  # fmt: skip
def test_scalings_transposes_and_checks_of_arrays_are_understood(change):
    (reading,) = parse_text(ARRAYS + change + "\n")
    assert judge(reading, "file").ok


@pytest.mark.parametrize("change", [
    "c11 *= 2", "m1 /= 2", "m1 = (a11)*(b11)", "c11 = m1", "c12, c21 = c21, c12", "swap c12 and c21",
    "Finally negate c12.", "for i in range(2):\n    c11 += m7", "if flag:\n    c11 = c11 + m7",
    "while x:\n    c11 = c11 + m7", "C = 2*C", "C /= 2", "C = C.T", "return 2*C", "return C.T", "return -C",
    "c11[0] = 0", "np.negative(c11, out=c11)", "c11 = abs(c11)", "where c11 is to be doubled",
    "and (a11)*(b11)*(c11)", "alpha = 2\nc11 = alpha*c11", "+1", "C = [[c11, c21], [c12, c22]]",
    "return 2*np.block([[c11, c12], [c21, c22]])", "t = np.negative(c11, out=c11)", "t = swap(c11, c12)",
    "print(c11.fill(0))", "del c11", "assert fix(c11)", "x = y = c11 = 0", "cout << (c11 *= 2)", 'printf("%d", c11++)',
    "++c11", "add(c11, m7)", "copy(m1, c11)", "i = m1\ni = m2", "return (c12, c11, c21, c22)", "return [c12 c11] end",
])  # fmt: skip
def test_statements_that_may_change_an_output_refuse_the_equations(change):
    refused(text(*LINES, change))


@pytest.mark.parametrize("line", ["t = 2*t", "z = 3", "alpha = sqrt(2)", "w[0] = 3", "omega = log2(7) = 2.807"])
def test_names_that_nothing_uses_may_be_set_to_anything(line):
    (reading,) = parse_text(text(line, *LINES, line))
    assert judge(reading, "file").ok


@pytest.mark.parametrize("outputs", [
    ["C = [[m1 + m4 - m5 + m7, m3 + m5], [m2 + m4, m1 - m2 + m3 + m6]]"],
    [*OUTPUTS, "C = [[c11, c12], [c21, c22]]"], [*OUTPUTS, "return [[m1 + m4 - m5 + m7, m3 + m5], [c21, c22]]"],
    [line.replace("c11", "r").replace("c12", "s").replace("c21", "t").replace("c22", "u") for line in OUTPUTS],
    ["I = m1 + m4", "c11 = I - m5 + m7", *OUTPUTS[1:]],
])  # fmt: skip
def test_outputs_may_be_a_matrix_or_four_letters(outputs):
    (reading,) = parse_text(text(*PRODUCTS, *outputs))
    assert judge(reading, "file").ok


@pytest.mark.parametrize(
    "change", ["C11 = m1", "C11 += m1", "C11 = 0", "C = [c11 c12/; c21 c22]", "M1 = a11*b11", "M1 *= 2"]
)
def test_a_name_in_the_other_case_is_no_other_name(change):
    refused(text(*LINES, change))
    refused(text(change, *LINES))


def test_a_matrix_of_other_sums_than_the_outputs_refuses_the_file():
    refused(text(*LINES, "C = [[m1 + m4 - m5 - m7, m3 + m5], [m2 + m4, m1 - m2 + m3 + m6]]"))


@pytest.mark.parametrize("change", [
    "A = 2*A", "A *= 2", "A = A.T", "A, B = B, A", "A = A / 2", "every output is doubled: c11 -> 2*c11",
])  # fmt: skip
def test_statements_that_may_change_an_operand_refuse_the_equations(change):
    refused(text(change, *LINES))


@pytest.mark.parametrize("first", [
    "m1 = (a11 + a22)*(b11 + b22) 3", "m1 = (a11 + a22)*(b11 + b22) (times 2)",
    "m1 = (a11 + a22)*(b11 + b22) 2 times", "m1 = (a11 + a22)*(b11 + b22) % 2", "m1 = (a11 + a22)*(b11 + b22)//2",
    "m1 = abs((a11 + a22)*(b11 + b22))", "m1 = ((a11 + a22)*(b11 + b22))^2", "m1 = (a11 + a22)'*(b11 + b22)",
    "m1 = (a11 & a22)*(b11 + b22)", "m1 = (a11 | a22)*(b11 + b22)", "m1 = (~a11 + a22)*(b11 + b22)",
    "m1 = (a11 + a22 + 1)*(b11 + b22)", "m1 = (a11 + a22)*(b11 + b22) + d", "m1 = f(a11 + a22, b11 + b22)",
    "m1 = (a11 + a22).T*(b11 + b22)",
])  # fmt: skip
def test_tokens_that_are_not_understood_refuse_the_equation(first):
    refused(text(first, *LINES[1:]))


@pytest.mark.parametrize("lines", [
    [*TRILINEAR[:6], "and " + TRILINEAR[6]], [*TRILINEAR, "and (a11)*(b11)*(c11)"],
    ["twice " + TRILINEAR[0], *TRILINEAR[1:]], [TRILINEAR[0] + " 2", *TRILINEAR[1:]],
    [TRILINEAR[0] + " % 2", *TRILINEAR[1:]], [TRILINEAR[0] + "'", *TRILINEAR[1:]],
    ["for i in range(2):", "    " + TRILINEAR[0], *TRILINEAR[1:]], ["2*[" + TRILINEAR[0] + "]", *TRILINEAR[1:]],
    ["the following is halved: " + TRILINEAR[0], *TRILINEAR[1:]], [*TRILINEAR, "-"],
])  # fmt: skip
def test_tokens_that_are_not_understood_refuse_trilinear_products(lines):
    refused(text(*lines))


@pytest.mark.parametrize(
    "program",
    [
        "import sys\ndef pretty(a1, b1):\n    c1 = a1*b1\n    return c1\nprint(pretty(1, 2))\n",
        "n = 1000;\nA1 = rand(n); B1 = rand(n);\ntic; C1 = A1*B1; toc\nt = toc;\n",
        "A11 = rand(5); B11 = rand(5);\nC11 = A11*B11;\ndisp(norm(C11))\n",
        "import numpy as np\na1 = np.random.rand(3, 3)\nb1 = np.random.rand(3, 3)\nc1 = a1 @ b1\nassert len(c1) == 3\n",
        "for i in range(3):\n    x1 = a1*b1\n    y1 += x1\n",
        "% timing\nfor k = 1:10\n  C11 = A11*B11;\nend\n",
        "def strassen(A, B):\n    h = len(A) // 2\n    A11, A12 = A[:h, :h], A[:h, h:]\n" + text(*LINES),
        "def strassen(A, B):\n    a11, a12, a21, a22 = split(A)\n" + text(*LINES),
        "class Strassen:\n" + text(*(f"    self.{line}" for line in LINES)),
    ],
)
def test_programs_get_no_verdict(program):
    refused(program)


@pytest.mark.parametrize("first", ["[[[1]], [[1]], [[1]]]", "[[1, 0, 0, 1], [1, 0, 0, 1], [1, 0, 0, 1]]"])
def test_a_factor_is_no_scheme_by_itself_beside_others_that_are_no_matrices(first):
    with pytest.raises(SchemeFormatError, match=r"V has shape \(1,\)"):
        parse_text(f"U = {first}\nV = [1]\nW = [1]\n")


@pytest.mark.parametrize("as_text", [lambda data: json.dumps(data), lambda data: ARRAYS + f"shape = {data['shape']}\n"])
def test_sizes_that_contradict_the_factors_refuse_the_file(as_text):
    data = {"U": U, "V": V, "W": W}
    assert judge(parse_text(as_text(data | {"shape": [2, 2, 2]}))[0], "file").ok
    with pytest.raises(SchemeFormatError, match="shape 2, 2, 3, but the factors have shapes"):
        parse_text(as_text(data | {"shape": [2, 2, 3]}))


def test_equations_that_contradict_the_numbers_refuse_the_file():
    data = {"n": [2, 2, 2], "m": 7, "z2": False, "multiplications": PRODUCTS, "elements": OUTPUTS, "u": U, "v": V}
    data["w"] = [[row[0], row[2], row[1], row[3]] for row in W]
    (reading,) = parse_text(json.dumps(data))
    assert judge(reading, "file").ok
    for change in (
        {"u": [[2, *U[0][1:]], *U[1:]]},
        {"elements": ["c11 = m1", *OUTPUTS[1:]]},
        {"multiplications": ["m1 = (a11 + a22)*(b11 - b22)", *PRODUCTS[1:]]},
        {"scale": 2},
    ):
        refused(json.dumps(data | change))
    (reading,) = parse_text(json.dumps(data | {"elements": ["c11: see the paper"]}))
    assert judge(reading, "file").ok


@pytest.mark.parametrize(
    "line",
    [
        "assign m1 = (a11 + a22) * (b11 + b22);",
        "wire signed [31:0] m1 = (a11 + a22) * (b11 + b22);",
        "my $m1 = ($a11 + $a22) * ($b11 + $b22);",
        "$m1 = ($a[0][0] + $a[1][1]) * ($b[0][0] + $b[1][1]);",
        "M1 ← (A11 ⊕ A22) ⊗ (B11 ⊕ B22)",
        "double const m1{(a11 + a22) * (b11 + b22)};",
        "let m1 = &(&a11 + &a22) * &(&b11 + &b22);",
        "begin\nm1 = (a11 + a22)*(b11 + b22)",
    ],
)
def test_languages_that_nobody_publishes_in_are_refused(line):
    refused(text(line, *LINES[1:]))


@pytest.mark.parametrize("change", [
    ("4,A,22,1\n", "4,A,22,1\n4,A,22,1\n"),
    ("4,A,22,1\n", "4,A,22,1\nscaled by 2\n"),
    ("4,A,22,1\n", "4,A,22,1\nA = A.T\n"),
    ("4,A,22,1\n", "4,A,22,1\nall values transposed\n"),
    ("4,A,22,1\n", "4,A,22,1,2\n"),
    ("4,A,22,1\n", "4,D,22,1\n"),
    ("4,A,22,1\n", "4,A,22,one\n"),
    ("4,A,22,1\n", ""),
    ("4,A,22,1\n", "product,left,block,coefficient\n"),
    ("coefficient", "coefficient * 2"),
])  # fmt: skip
def test_tables_of_coefficients_account_for_every_row(change):
    table = (Path(__file__).parent / "dialects" / "coefficients.csv").read_text()
    old, new = change
    assert old in table
    refused(table.replace(old, new, 1))


def test_a_statement_without_end_is_refused_in_linear_time():
    refused("c11 = m1" + "+a11" * (1 << 16))
    refused("c11 = m1\n" + "+a11\n" * (1 << 16))
    refused(text(*LINES, "print(c11" + " += " * (1 << 16)))


@pytest.mark.parametrize(
    "line",
    [
        "*".join(["((a11)*(b11) + (a12)*(b21))"] * 40) + "*(c11)",
        "(a11)" * 20_000,
        f"[{'*'.join(f'a[{i},1]' for i in range(9_000))}]",
    ],
    ids=["sums", "factors", "cells"],
)
def test_products_without_end_are_refused_in_linear_time(line):
    refused(text(*TRILINEAR, line))
    refused(text(*LINES, f"c11 = {line}"))


@pytest.mark.parametrize("place", ["a[10000000000002][2]", "b[1][30000000000]", "c[70000000001][70000000001]"])
def test_a_block_far_outside_every_grid_is_refused_without_listing_the_blocks_before_it(place):
    a, b, c = (place if place[0] == name else f"{name}[1][1]" for name in "abc")
    refused(f"m1 = (a[2][2] + {a})*({b} - b[2][2])\nm2 = (a[1][2])*(b[2][1])\n{c} = m1 + m2\nc[2][2] = m1\n")


@pytest.mark.parametrize(
    "head", ["-U:", "2U:", "U (halved):", "U (x2):", "U/2:", "U^T:", "2*U =", "U times two", "- U/3:"]
)
def test_headings_that_change_a_table_refuse_it(head):
    tables = ["\n".join(" ".join(map(str, row)) for row in part) for part in (U, V, W)]
    (reading,) = parse_text("\n\n".join(f"{name}:\n{part}" for name, part in zip("UVW", tables, strict=True)))
    assert judge(reading, "file").ok
    refused("\n\n".join(f"{name}\n{part}" for name, part in zip((head, "V:", "W:"), tables, strict=True)))


def test_long_tables_are_found():
    tables = ["\n".join(" ".join(map(str, row)) + " " * 4000 for row in part) for part in (U, V, W)]
    for between in ("\n\n", "\n# next\n"):
        (reading,) = parse_text(between.join(tables))
        assert judge(reading, "file").ok


@pytest.mark.parametrize("array", ["[1 0; 0 1; 1]", "Matrix(2, 2, [[1, 0], [1]])", "{{1, 0}, {1}}'"])
def test_rows_of_unlike_lengths_are_no_matrix(array):
    refused(f"U = {U}\nV = {V}\nW = {array}\n")


def test_strings_and_keys_of_json_may_be_any():
    data = {"": 'say "U" # no \\ comment // here', "1": None, "has space": {"-": [{}, True]}, "u": U, "v": V, "w": W}
    (reading,) = parse_text(json.dumps(data))
    assert judge(reading, "file").ok


@pytest.mark.parametrize("lead", [[], ["product"]])
def test_a_table_with_blocks_as_its_head_is_no_scheme(lead):
    heads = [f"{letter}{i}{j}" for letter in "abc" for i in (1, 2) for j in (1, 2)]
    rows = [f"m{r} {' '.join(map(str, [*u, *v, *w]))}" for r, (u, v, w) in enumerate(zip(U, V, W, strict=True), 1)]
    refused("\n".join([" ".join([*lead, *heads]), *rows]))


@pytest.mark.parametrize("name", ["-c11", "2*c11", "1/2 c11", "c11/2", "|c11|", "c11^T", "-m1", "m1'"])
def test_names_that_are_set_are_names(name):
    old = "m1 =" if "m" in name else "c11 ="
    refused("\n".join(LINES).replace(old, f"{name} =", 1))


@pytest.mark.parametrize("name", ["-u", "2*u", "u'", "u.T", "u[0]"])
def test_arrays_that_are_set_have_names(name):
    refused(LISTS.replace("u =", f"{name} =", 1))


ALL_CHANGED = [
    "scale all by two", "All outputs are then halved.", "The result must be transposed.", "Multiply every c by two.",
    "Finally, exchange the two off-diagonal blocks of the result.", "The sign of every output is reversed.",
    "Each output has to be taken twice.",
]  # fmt: skip


@pytest.mark.parametrize("sentence", ALL_CHANGED)
@pytest.mark.parametrize("content", [text(*LINES), LISTS], ids=["equations", "arrays"])
def test_sentences_that_change_all_results_refuse_the_file(content, sentence):
    refused(content + sentence + "\n")
    refused(f"```\n{content}```\n\n{sentence}\n")


@pytest.mark.parametrize("content", [LISTS, json.dumps({"u": U, "v": V, "w": W})])
def test_a_product_of_single_numbers_beside_arrays_is_no_scheme(content):
    refused(f"{content}\n(a11)*(b11)*(c11)\n")


@pytest.mark.parametrize("sentence", [
    "The matrix A is multiplied by B in seven products.", "Both matrices are divided into four blocks.",
    "Strassen (1969) showed that two matrices can be multiplied as follows:", "All of this holds over any ring.",
])  # fmt: skip
def test_sentences_that_describe_the_product_are_passed_over(sentence):
    (reading,) = parse_text(text(sentence, *LINES, sentence))
    assert judge(reading, "file").ok


@pytest.mark.parametrize("change", [
    "for r in u: r[0] = 0", "for r in u: print(r)", "u //= 2", "x, y = u, v\nx[0] = 0",
    "print(u := v)", "print(u.pop())",
    "assert u.sort() is None", 'print(f"{u.sort()}")', "for u, v in x: pass", "if True: u = v", "u: object = v",
    "match u:\n    case _: u[0] = 0", "scale = 2", "* 2", "0 0 0 1",
])  # fmt: skip
def test_changes_within_other_statements_refuse_the_file(change):
    refused(LISTS + change + "\n")


@pytest.mark.parametrize("statement", [
    'np.savez("s.npz", u=u, v=v)', "rows = u.shape[0]", "nnz = np.count_nonzero(u)",
])  # fmt: skip
def test_statements_that_look_at_arrays_are_passed_over(statement):
    (reading,) = parse_text(ARRAYS + statement + "\n")
    assert judge(reading, "file").ok


@pytest.mark.parametrize("key", [
    "scales", "weights", "lambda", "signs", "offset", "den", "negated", "permutation", "denominators", "transposed",
])  # fmt: skip
def test_settings_that_may_change_the_numbers_refuse_the_file(key):
    for value in (2, [2, 1, 1], True):
        refused(json.dumps({"u": U, "v": V, "w": W, key: value}))
        refused(json.dumps({key: value, "u": U, "v": V, "w": W}))


def test_remarks_in_a_table_are_read():
    refused(json.dumps({"u": U, "v": V, "w": W, "note": "all values are doubled"}))
    (reading,) = parse_text(json.dumps({"u": U, "v": V, "w": W, "note": "found in 1969", "seed": 3, "offset": 0}))
    assert judge(reading, "file").ok


def test_what_an_output_is_said_to_be_must_agree():
    refused(text(*PRODUCTS, OUTPUTS[0] + " = m2", *OUTPUTS[1:]))
    (reading,) = parse_text(text(*PRODUCTS, OUTPUTS[0] + " = a11*b11 + a12*b21", *OUTPUTS[1:]))
    assert judge(reading, "file").ok
    refused(text(*LINES, "return c11, c21, c12, c22"))


@pytest.mark.parametrize("line", ["c11 += m1", "c11 = 0"])
def test_a_name_in_a_matrix_that_is_set_is_set_by_nothing_else(line):
    sums = [output.partition("= ")[2] for output in OUTPUTS]
    refused(text(*PRODUCTS, f"[c11, c12; c21, c22] = [{', '.join(sums[:2])}; {', '.join(sums[2:])}]", line))


def test_a_product_of_products_in_a_trilinear_form_is_refused():
    refused(text(*TRILINEAR, "a11*b11*(c11 + a11*b11*c11)"))


def test_a_block_that_is_set_to_another_refuses_the_equations():
    lines = [
        re.sub(r"([abc])(\d)(\d)", lambda match: f"{match[1]}[{int(match[2]) - 1}, {int(match[3]) - 1}]", line)
        for line in LINES
    ]
    (reading,) = parse_text(text(*lines))
    assert judge(reading, "file").ok
    refused(text("a[0, 0] = a[0, 1]", *lines))
    refused(text("a[0, 0] += a[0, 1]", *lines))


@pytest.mark.parametrize("line", ["* 2", "]", "all products are doubled", "x2"])
def test_what_stands_beside_triads_must_be_statements(line):
    maple = (Path(__file__).parent / "samples" / "triads.mpl").read_text()
    refused(maple + line + "\n")
    refused(line + "\n" + maple)


@pytest.mark.parametrize("content", [
    "m1 = a1*b1\nm2 = a0*b0\nm3 = (a0 + a1)*(b0 + b1)\nc0 = m2\nc1 = m3 - m1 - m2\nc2 = m1\n",
    "c1 = a2*b3 - a3*b2\nc2 = a3*b1 - a1*b3\nc3 = a1*b2 - a2*b1\n",
    "q0 = a0*b0 - a1*b1 - a2*b2 - a3*b3\nq1 = a0*b1 + a1*b0 + a2*b3 - a3*b2\n"
    "q2 = a0*b2 - a1*b3 + a2*b0 + a3*b1\nq3 = a0*b3 + a1*b2 - a2*b1 + a3*b0\n",
    "U = [[1, 2, 3], [4, 5, 6]]\nV = [[1, 0], [0, 1]]\n", "[[1, 2, 3], [4, 5, 6], [7, 8, 9]]",
    "K1 = h*f1; K2 = h*f2; y1 = y0 + (K1 + K2)/2\n",
], ids=["karatsuba", "cross", "quaternions", "two", "square", "runge"])  # fmt: skip
def test_other_bilinear_maps_and_matrices_get_no_verdict(content):
    refused(content)


@pytest.mark.parametrize("change", ["from tools import u", "import tools as u", "def u(): pass", "rank = 8"])
def test_statements_that_bind_a_factor_anew_or_contradict_it_refuse_the_file(change):
    refused(LISTS + change + "\n")


def test_a_function_of_mathematica_behind_a_matrix_is_no_comment():
    arrays = [str(part).replace("[", "{").replace("]", "}") for part in (U, V, W)]
    content = "\n".join(f"{name} = {part};" for name, part in zip("uvw", arrays, strict=True)) + "\n"
    (reading,) = parse_text(content)
    assert judge(reading, "file").ok
    refused(content.replace("};", "} // Reverse;", 1))


@pytest.mark.parametrize(
    "change", ["U(:,1) = -U(:,1);", "for i=1:7 U(i,1) = 0; end", "U(1,1) = 0;", "[U, V] = deal(V, U);"]
)
def test_parts_of_matrices_of_matlab_that_are_set_refuse_the_file(change):
    refused(MATLAB + change + "\n")


@pytest.mark.parametrize("line", ["* 2", "x2", "all products are doubled", "scale: 2", "0 0 0 1", "-"])
def test_a_table_of_bini_accounts_for_every_line(line):
    table = (Path(__file__).parent / "samples" / "bini.txt").read_text()
    refused(line + table if line == "-" else f"{line}\n{table}")
    refused(f"{table}{line}\n")
