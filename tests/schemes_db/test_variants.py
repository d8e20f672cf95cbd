"""Files of `dialects` with one token changed: what no longer means the same is refused, or read as it is meant."""

from pathlib import Path

import pytest

from lcma.errors import SchemeFormatError
from lcma.schemes_db.formats import parse_text
from lcma.schemes_db.resolve import resolve
from lcma.verify import judge

HERE = Path(__file__).parent
DIALECTS = HERE / "dialects"
KNOWN = {resolve(name)[0].digest for name in ("strassen", "winograd", "laderman")}

REPLACED = {
    "flat_sizes.c": [
        ("U[7][4]", "U[7][5]"),
        ("U[7][4]", "U[8][4]"),
        ("U[7][4]", "U[7][4][2]"),
        ("U[7][4]", "U[6][4]"),
        ("V[7][4]", "V[7][4], X[7][4]"),
        ("V[7][4]", "V[7]"),
        ("};", "} + 1;"),
        ("{1, ", "{2/2, "),
        ("{1, ", "{1^2, "),
        ("};", "}; U[0][0] = 3;"),
        ("};", "};\n#define SCALE 2\n"),
        ("};", "};\n#define RANK 14\n"),
        ("};", "};\n#define U V\n"),
        ("};", "};\nconst int shape[3] = {2, 2, 3};"),
    ],
    "c_arrays.h": [("U[7][4]", "U[7][5]"), ("U[7][4]", "U[8][4]"), ("V[7][4]", "V[7]"), ("};", "}; U[0][0] = 3;")],
    "flat.h": [("#define RANK 7", "#define RANK 14"), ("RANK * 4", "RANK * 5")],
    "std_array.cpp": [
        ("4>, 7>", "4>, 6>"),
        ("4>, 7>", "5>, 7>"),
        ("{{\n", "{{{\n"),
        ("}};", "}}; U[0][0] = 2;"),
        ("constexpr", "using U = int;\nconstexpr"),
    ],
    "angle.mpl": [
        (">>:\nV", ">>:\n0x3 0x9 0x1\nV"),
        ("<1 | 0", "<1, 0"),
        ("<1 | 0", "<1 | | 0"),
        (">>", ">"),
        (">>", ">>^2"),
        (">>:", ">>: U[1, 1] := 0:"),
        (">>:", ">>*V:"),
        ("<<", "map(x -> 2*x, <<"),
        (" | ", " + "),
    ],
    "std_array_three.cpp": [("3>, 3>, 23>", "3>, 3>, 22>"), ("3>, 3>, 23>", "9>, 23>, 1>"), ("{{{{", "{{{{{{")],
    "laderman.magma": [
        ("Q := Rationals()", "Q := Sequence()"),
        ("Matrix(Q, 23, 9", "Matrix(Q, 22, 9"),
        ("Matrix(Q, 23, 9", "Matrix(P, 23, 9"),
        ("]);", "])*Q;"),
    ],
    "winograd.jl": [
        ("p3; u3", "p3, u3"),
        ("p3; u3 - p4", "p3; 2 u3 - p4"),
        ("    [p1", "    2*[p1"),
        ("p5]\n", "p5]'*2\n"),
        ("p5]\n", "p5] + A\n"),
        ("A[1, :]", "A[:, 1]"),
    ],
    "laderman_rows.py": [
        ("return [", "return 2*["),
        ("    ]\n", "    ][::-1]\n"),
        ("    ]\n", "    ] + C\n"),
        ("(a11, a12, a13)", "(a11, a13, a12)"),
        ("(a11, a12, a13)", "(a11, a12)"),
    ],
    "winograd.js": [
        ("= A;", "= A.map(f);"),
        ("= A;", "= B;"),
        ("return [[", "return [[["),
    ],
    "function.magma": [
        ("Matrix(2, 2", "Matrix(2, 3"),
        ("Matrix(2, 2", "2*Matrix(2, 2"),
        ("m6]);", "m6])*2;"),
        ("return Matrix", "return f() + Matrix"),
    ],
    "proc.mpl": [
        ("Matrix([[", "2*Matrix([["),
        ("Matrix([[", "Transpose([["),
        ("m6]])", "m6]])^2"),
        ("]]);", "]], f());"),
    ],
    "coefficients_by_row.csv": [
        ("term,matrix,row,col,value", "term,matrix,col,row,value"),
        ("1,A,1,1,1\n", "1,A,1,1,1,1\n"),
        ("1,A,1,1,1\n", "1,A,1,x,1\n"),
        ("1,A,1,1,1\n", "1,A,11,1\n"),
        ("1,A,1,1,1\n", "1,A,1,1,1\n1,A,1,1,1\n"),
    ],
    "steps.md": [("**Step 2.** Set", "**Step 2.** Halve all results"), ("**Step 2.** Set", "**Step 2.** c11 *= 2")],
    "script.m": [("1;\n", "2;\n"), ("1;\n", "1\n"), ("1;\n", "1 0 0 1;\n"), ("];\nV", "];\n1;\nV")],
    "matrix.m2": [("matrix {", "map {"), ("}}", "}}^2"), ("}}\n", "}} + 1\n")],
    "cells.m": [
        ("V{7}", "V{8}"),
        ("V{7}", "V{6}"),
        ("W{7} =", "W{7}(1) ="),
        ("W{7} =", "X{7} ="),
        ("U{1} =", "U = {}; U{1}(:) ="),
    ],
    "numbered.py": [("A7 =", "A0 ="), ("A7 = ", "A7 = 2 + ")],
    "numbered.tex": [("A_{7}", "A_{8}"), ("A_{7} =", "A_{7}^T =")],
    "sparse.json": [
        ("[0, 0, 1]", "[0, 0, 1], [0, 0, 1]"),
        ("[0, 0, 1]", "[0, 0]"),
        ("[0, 0, 1]", "[0, 0, 1, 1]"),
        ("[0, 0, 1]", "[0, -1, 1]"),
        ("[0, 0, 1]", "[0, 900000, 1]"),
        ("[0, 0, 1]", "[0, 0.5, 1]"),
        ("[[0, 0, 1], [1, 1, 1]]", "[]"),
        ('"u"', '"sign": -1, "u"'),
        ('"u"', '"x"'),
    ],
    "sparse_from_one.json": [('"rank": 7', '"scale": 7'), ('"rank": 7', '"rank": 8'), ("[1, 1, 1]", "[128, 0, 1]")],
    "blocks.json": [
        ('"a11"', '"b11"'),
        ('"a11"', '"a1"'),
        ('"a11": 1', '"a11": "x"'),
        ('"a11"', '"a22": 1, "a11"'),
        ('"left"', '"scale": 2, "left"'),
        ('"left"', '"right"'),
        ('"products"', '"denominator": 2, "products"'),
    ],
    "layout.txt": [
        ("[a b; c d] * [e f; g h]", layout)
        for layout in (
            "[a c; b d] * [e f; g h]",
            "[e f; g h] * [a b; c d]",
            "[a b; c d] * [e f; g -h]",
            "[a b; c d]*2 * [e f; g h]",
            "2*[a b; c d] * [e f; g h]",
            "[a b c d] * [e f g h]",
            "[a b; c d]' * [e f; g h]",
            "[a b; c d] + [e f; g h]",
            "(a c; b d)(e f; g h)",
            "let A = (a c; b d)",
            "Let A = [a b; c d] and B = [e g; f h].",
            "A = [e f; g h]",
        )
    ],
    "layout.tex": [
        (r"a & b \\ c & d", r"a & bb \\ c & d"),
        (r"a & b \\ c & d", r"a & b \\ c && d"),
        (r"\begin{pmatrix} r", r"\begin{pmatrix scaled by 2} r"),
        (r"r & s \\ t & u", r"r & s \\ t & v"),
        (r"a & b \\ c & d", r"a & c \\ b & d"),
        (r"\begin{pmatrix} r", r"2\begin{pmatrix} r"),
    ],
    "rows.py": [
        ("a11, a12 = A[0]", "a12, a11 = A[0]"),
        ("a11, a12 = A[0]", "a11, a12, a21 = A[0]"),
        ("a11, a12 = A[0]", "a11, *a12 = A[0]"),
        ("A[0]", "2*A[0]"),
        ("A[0]", "A[0] + 1"),
        ("A[0]", "A[1]"),
        ("A[0]", "A[0].T"),
        ("A[0]", "A[:, 0]"),
        ("A[0]", "split(A)"),
        ("B[0]", "A[0]"),
        ("    a21", "    A = A[::-1]\n    a21"),
    ],
    "rows_nested.py": [
        ("= A", "= A.T"),
        ("= A", "= -A"),
        ("= A", "= A, 2"),
        ("(a, b), (c, d) = A", "(a, b), (c, d) = B"),
        ("(a, b), (c, d)", "a, b, c, d"),
        ("(a, b)", "2*(a, b)"),
    ],
}
"""Changes that are refused, by the file."""

ADDED = {
    "cells.m": [
        "U = 2*U;",
        "U{1} = 0;",
        "W{7}(1, 1) = 0;",
        "U{8} = f(1);",
        "U{8} = [1 0; 0 0];",
        "V = cell(1, 7);",
        "V = zeros(2, 2, 7);",
        "U(:, :, 1) = 0;",
        "for r = 1:7, W{r} = W{r}'; end",
        "scale = 2;",
    ],
    "numbered.py": ["C1[0] = 2", "C7 *= 2", "C1 = C7", "A = 2*A", "del C7"],
}
"""Lines that are refused below a file."""

MEANT = [
    ("cells.m", "%", "U = cell(1, 7);\nV = zeros(2, 2, 7);\nW = {};\n%"),
    ("flat.h", "RANK * 4", ""),
    ("laderman.magma", "Q := Rationals()", "Q := Integers()"),
    ("winograd.jl", "    [p1", "    return [p1"),
    ("winograd.js", "const ", "let "),
    ("float.h", "1.0f", "2.0/2"),
    ("flat.h", "#define RANK 7", "#define R 7"),
    ("layout.txt", "[a b; c d] * [e f; g h]", "let A = (a b; c d), B = (e f; g h)"),
    ("layout.txt", "[a b; c d] * [e f; g h]", "Let A = [a b; c d] and B = [e f; g h]."),
    ("layout.txt", "[a b; c d] * [e f; g h]", "(a b; c d)(e f; g h)"),
    ("layout.txt", "[a b; c d] * [e f; g h]", "C = A*B, A = [a b; c d], B = [e f; g h]"),
    ("layout.tex", "pmatrix", "bmatrix"),
    ("rows.py", "A[0]", "A[0, :]"),
    ("rows_nested.py", "(a, b), (c, d)", "[[a, b], [c, d]]"),
    ("rows_nested.py", "(a, b), (c, d) = A", "a, b = A[0]\n    c, d = A[1]"),
    ("rows_nested.py", "(a, b), (c, d) = A", "const [a, b] = A[0];\n    const [c, d] = A[1];"),
    ("sparse_from_one.json", '"products"', '"shape": [2, 2, 2], "products"'),
]
"""Changes that leave the scheme as it is: a file, what is replaced everywhere in it, and by what."""


def changed(name, old, new, most=-1):
    content = (DIALECTS / name).read_text()
    assert old in content
    return content.replace(old, new, most)


def refused(content):
    with pytest.raises(SchemeFormatError) as caught:
        [judge(reading, "file") for reading in parse_text(content)]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "old", "new"), [(name, *one) for name, several in REPLACED.items() for one in several]
)
def test_a_change_of_what_a_file_means_is_refused(name, old, new):
    refused(changed(name, old, new, 1))


def test_outputs_in_other_places_than_their_matrix_says_are_refuted():
    (reading,) = parse_text(changed("layout.tex", r"r & s \\ t & u", r"r & t \\ s & u"))
    assert not judge(reading, "file").ok


@pytest.mark.parametrize(("name", "line"), [(name, one) for name, several in ADDED.items() for one in several])
def test_a_line_that_changes_a_matrix_is_refused(name, line):
    refused(f"{(DIALECTS / name).read_text()}{line}\n")


@pytest.mark.parametrize(("name", "old", "new"), MEANT)
def test_another_spelling_of_the_same_is_proven(name, old, new):
    (reading,) = parse_text(changed(name, old, new))
    assert judge(reading, name).scheme.digest in KNOWN
