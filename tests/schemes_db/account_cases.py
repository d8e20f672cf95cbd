"""Contents of files that are refused, because something in them is not understood, and contents that are proven."""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
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
PLACES = ("11", "12", "21", "22")
SUMS = [output.partition("= ")[2] for output in OUTPUTS]
TWICE = [f"c{i}{j} = a{i}1 b1{j} + a{i}2 b2{j} = {said}" for (i, j), said in zip(PLACES, SUMS, strict=True)]
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
DATA = {"u": U, "v": V, "w": W}
TABLES = ["\n".join(" ".join(map(str, row)) for row in part) for part in (U, V, W)]


def matlab(rows):
    return f"[{'; '.join(' '.join(map(str, row)) for row in rows)}]"


def mathematica(value):
    return str(value).replace("[", "{").replace("]", "}")


MATLAB = f"U = {matlab(U)};\nV = {matlab(V)};\nW = {matlab(W)};\n"
LISTS_OF_MATHEMATICA = "".join(f"{name} = {mathematica(part)};\n" for name, part in DATA.items())
OF_PYTHON = [re.sub(r"([abc])(\d)(\d)", lambda m: f"{m[1]}[{int(m[2]) - 1}, {int(m[3]) - 1}]", line) for line in LINES]
COEFFICIENTS = (HERE / "dialects" / "coefficients.csv").read_text()
TRIADS, BINI = ((HERE / "samples" / name).read_text() for name in ("triads.mpl", "bini.txt"))
BOTH = {"n": [2, 2, 2], "m": 7, "z2": False, "multiplications": PRODUCTS, "elements": OUTPUTS, **DATA}
BOTH["w"] = [[row[0], row[2], row[1], row[3]] for row in W]
"""Factors, and the equations of the same scheme."""


def text(*lines):
    return "\n".join(lines) + "\n"


def after(content, *lines):
    """The content with each of these lines behind it."""
    return [f"{content}{line}\n" for line in lines]


SIDES = [re.fullmatch(r"\(?([^()]*)\)?\*\(?([^()]*)\)?", line.partition("= ")[2]).groups() for line in PRODUCTS]
ROWS = [(f"m{r}", *sides) for r, sides in enumerate(SIDES, 1)]
THREE = [(str(r), *(side.strip("()") for side in line.split("*"))) for r, line in enumerate(TRILINEAR, 1)]
PAIRS = {
    "products": [{"left": left, "right": right} for left, right in SIDES],
    "outputs": {f"c{place}": said for place, said in zip(PLACES, SUMS, strict=True)},
}


def headed(*heads):
    return "\n\n".join(f"{name}\n{part}" for name, part in zip(heads, TABLES, strict=True))


def block_headings(*lead):
    heads = [f"{letter}{i}{j}" for letter in "abc" for i in (1, 2) for j in (1, 2)]
    rows = [f"m{r} {' '.join(map(str, [*u, *v, *w]))}" for r, (u, v, w) in enumerate(zip(U, V, W, strict=True), 1)]
    return text(" ".join([*lead, *heads]), *rows)


SENTENCES = (
    "scale all by two", "All outputs are then halved.", "The result must be transposed.", "Multiply every c by two.",
    "Finally, exchange the two off-diagonal blocks of the result.", "The sign of every output is reversed.",
    "Each output has to be taken twice.",
)  # fmt: skip
"""They change all results."""

SETTINGS = [
    *("scales", "weights", "lambda", "signs", "offset", "den", "negated", "permutation", "denominators", "transposed")
]

# fmt: off
REFUSED = {
    "an array that may be changed": after(
        ARRAYS, "u *= 2", "u += v", "w /= 2", "w[0] = 0", "w[0][1] = 5", "w[:, 0] *= -1", "w[0, 0] = -w[0, 0]",
        "u = np.abs(u)", "for i in range(7):\n    w[i] = -w[i]", "for x in (u, v):\n    x *= 2",
        "for i in range(7): u[i] *= 2", "fix(u)", "np.negative(u, out=u)", "t = np.multiply(u, 2, out=u)",
        "t = scale(u)", "u.sort()", "exec('u *= 2')", "del u[0]", "u = u[::-1]", "u = u[[1, 0, 2, 3, 4, 5, 6]]",
        "u = np.roll(u, 1, axis=0)", "u = u.reshape(7, 4, order='F')", "u, v = v, u", "if True:\n    u = v",
        "w = u if False else w", "u = [[2*x for x in r] for r in u]", "u = u + 1", "u = u.astype(bool)",
        "f = u[0]\nf[0] = 3", "def fix():\n    global u\n    u = 2*u\nfix()", "def fix():\n    u[0] = 0\nfix()",
        "list(map(u.append, v))", "print(sum(map(u.__setitem__, range(7), v)))", "from tools import *", "exec(code)",
        "globals()['u'] *= 2", f"u = {U[::-1]}", "u = u.cumsum()", "scale u by two", "shape = [2, 2, 3]",
    ),
    "an array that may be changed within a statement": after(
        LISTS, "for r in u: r[0] = 0", "for r in u: print(r)", "u //= 2", "x, y = u, v\nx[0] = 0", "print(u := v)",
        "print(u.pop())", "assert u.sort() is None", 'print(f"{u.sort()}")', "for u, v in x: pass", "if True: u = v",
        "u: object = v", "match u:\n    case _: u[0] = 0", "scale = 2", "* 2", "0 0 0 1",
    ),
    "a factor that is bound anew or contradicted": after(
        LISTS, "from tools import u", "import tools as u", "def u(): pass", "rank = 8",
    ),
    "a value that is no array as it stands": [f"import numpy as np\nu = {value}\nv = {V}\nw = {W}\n" for value in (
        f"{U}*2", f"2*{U}", f"{U}/3", f"np.array({U}) + 1", f"np.array({U}) - 1", f"np.array({U}) % 2",
        f"np.array({U})//2", f"np.array({U}, dtype=bool)", f"np.array({U}, dtype=np.uint8)", f"np.flip({U})",
        f"{U} + [[0, 0, 0, 0]]", f"np.array({U}) @ m", f"f({U})", f"np.array({U}) % modulus", f"np.array({U})[::-1]",
    )],
    "an array that is set under another name": [
        LISTS.replace("u =", f"{name} =", 1) for name in ("-u", "2*u", "u'", "u.T", "u[0]")
    ],
    "arrays of a language that nobody publishes in": [
        text(*(line.format(name, rows, mathematica(rows)) for name, rows in DATA.items())) for line in (
            "const {0}: number[][] = {1};", "const {0}: [[i32; 4]; 7] = {1};", "var {0} = [][]int{2}",
            "int[][] {0} = {2};", "int[,] {0} = {2};", "{0} <- rbind({1})",
        )
    ],
    "rows of unlike lengths": [
        f"U = {U}\nV = {V}\nW = {array}\n"
        for array in ("[1 0; 0 1; 1]", "Matrix(2, 2, [[1, 0], [1]])", "{{1, 0}, {1}}'")
    ],
    "a matrix of MATLAB that may be changed": after(
        MATLAB, "W = W.^2;", "W(1,1) = 0;", "U = circshift(U, 1);", "U(:,1) = -U(:,1);",
        "load('newer.mat')", "load newer", "for i=1:7 U(i,1) = 0; end", "U(1,1) = 0;", "[U, V] = deal(V, U);",
        "clear U", "clear t V;", "clear", "clear all", "clear -regexp ^U", "clear U*", "run('fix.m')",
    ),
    "a matrix or list with a factor, a function or a rule": [
        MATLAB.replace("];\nV", "].*2;\nV"),
        LISTS_OF_MATHEMATICA.replace("};", "} // Reverse;", 1), mathematica([U, V, W]) + " /. 1 -> 2",
    ],
    "tables or bit masks with another rank or other sizes beside them": [
        f"{said}\n{tables}" for said in ("rank: 8", "shape = 2, 2, 3", "a11 = b11") for tables in (
            "\n\n".join(TABLES), f"U =\n{TABLES[0]}\nV =\n{TABLES[1]}\nW =\n{TABLES[2]}",
        )
    ],
    "tables with a scale or signs beside them": [
        "1 0 0 - 1\n0 0 1 1\n#\n1 0 0 1\n0 0 1 1\n#\n1 0 0 1\n0 0 1 1\n", "scale: 2\n" + "\n\n".join(TABLES),
        "\n\n".join(TABLES).replace(" -1", " - 1"),
    ],
    "a heading that changes its table": [headed(head, "V:", "W:") for head in (
        "-U:", "2U:", "U (halved):", "U (x2):", "U/2:", "U^T:", "2*U =", "U times two", "- U/3:",
    )],
    "a table with blocks as its head": [block_headings(), block_headings("product")],
    "JSON with more than the factors": [
        json.dumps(DATA) + " * 2",
        *(json.dumps(DATA | more) for more in (
            {"denominator": 2}, {"scale": 0.5}, {"equations": [*LINES[:7], "c11 = m1", *OUTPUTS[1:]]},
            {"note": "all values are doubled"},
        )),
        *(json.dumps(data) for key in SETTINGS for value in (2, [2, 1, 1], True)
          for data in (DATA | {key: value}, {key: value} | DATA)),
    ],
    "JSON whose equations contradict its factors": [json.dumps(BOTH | change) for change in (
        {"u": [[2, *U[0][1:]], *U[1:]]}, {"elements": ["c11 = m1", *OUTPUTS[1:]]},
        {"multiplications": ["m1 = (a11 + a22)*(b11 - b22)", *PRODUCTS[1:]]}, {"scale": 2},
    )],
    "an output that may be changed": after(
        text(*LINES), "c11 *= 2", "m1 /= 2", "m1 = (a11)*(b11)", "c11 = m1", "c12, c21 = c21, c12",
        "swap c12 and c21", "Finally negate c12.", "for i in range(2):\n    c11 += m7", "if flag:\n    c11 = c11 + m7",
        "while x:\n    c11 = c11 + m7", "C = 2*C", "C /= 2", "C = C.T", "return 2*C", "return C.T", "return -C",
        "c11[0] = 0", "np.negative(c11, out=c11)", "c11 = abs(c11)", "where c11 is to be doubled",
        "and (a11)*(b11)*(c11)", "alpha = 2\nc11 = alpha*c11", "+1", "C = [[c11, c21], [c12, c22]]",
        "return 2*np.block([[c11, c12], [c21, c22]])", "return c11, c21, c12, c22",
        "C = [[m1 + m4 - m5 - m7, m3 + m5], [m2 + m4, m1 - m2 + m3 + m6]]",
    ),
    "an output that may be changed within a statement": after(
        text(*LINES), "t = np.negative(c11, out=c11)", "t = swap(c11, c12)", "print(c11.fill(0))", "del c11",
        "assert fix(c11)", "x = y = c11 = 0", "cout << (c11 *= 2)", 'printf("%d", c11++)', "++c11", "add(c11, m7)",
        "copy(m1, c11)", "i = m1\ni = m2", "return (c12, c11, c21, c22)", "return [c12 c11] end",
    ),
    "a statement that may set any name": [content for line in (
        "load('x')", "exec(code)", "exec code", "eval('m1 = 0')", "run setup.m", "source('x.m')", "include('x.jl')",
        "clear m1", "clear all", 'read "x.mpl":',
    ) for content in (text(*LINES, line), text(*PRODUCTS, line, *OUTPUTS))],
    "a name in the other case": [
        content for change in ("C11 = m1", "C11 += m1", "C11 = 0", "C = [c11 c12/; c21 c22]", "M1 = a11*b11", "M1 *= 2")
        for content in (text(*LINES, change), text(change, *LINES))
    ],
    "an array that a call changes": after(
        ARRAYS, "np.add(u, v, u)", "np.dot(u, v, w)", "print(np.add(u, v, u))", "print(np.abs(u, u))",
        "assert np.mod(u, 2, u).any()", "u.sum(0, int, u[0])", "np.max(u, 0, None, u[0])",
        "print(*map(np.ndarray.sort, u))", "x = np.einsum('ij->ij', u)\nx[0] = 3",
    ),
    "an array that a function of the file changes": after(
        LISTS, *(f"def {head}:\n    {body}\n{call}" for head, body, call in (
            ("check(x)", "x[0] = 9", "check(u)"), ("verify(x, y)", "x[:] = y", "verify(u, v)"),
            ("check(x)", "x *= 2", "print(check(u))"), ("test(x=u)", "x[0] = 9", "test()"),
            ("fix(x)", "x.sort()", "print(max(u, key=fix))"), ("fix(x)", "x[0] = 9", "list(map(fix, u))"),
            ("check(x)", "for row in x:\n        row[0] = 9", "check(u)"),
            ("check(x)", "y = x[0]\n    y[0] = 9", "check(u)"), ("check(x)", "np.negative(x, out=x)", "check(u)"),
        )), "def fix(): u[0] = 9\nfix()", "def check(x): x[0] = 9\ncheck(u)",
    ),
    "a matrix that is changed where it lies": [content for change in (
        "C[:, 0] *= 2", "C[...] *= 2", "C[:] = 0", "C.fill(0)", "A.fill(0)", "np.negative(C, out=C)", "fix(C)",
        "fix(A)", "for row in range(2): C[row][0] *= 2", "C .*= 2", "C .= 2 .* C", "C[:, 1] .= 0", "rmul!(C, 2)",
        "call fix(C)", "C(:,1) = C(:,2);", "C = C(:,[2 1]);", "C([1 2],:) = C([2 1],:);", "A(:,1) = -A(:,1);",
        "C = B*A", "C = A + B", "(A, B) = (B, A)", "[B, A] = deal(A, B);", "swap A and B",
    ) for content in (text(*LINES, change), text(change, *OF_PYTHON))],
    "a line of signs, or of a macro": after(
        text(*LINES), "]*2", "}/2", "2 * (", "1/2", "#define m1 m2", "c12 \u2194 c21", "omit m1"
    ),
    "an output that is said to be something else": [text(*PRODUCTS, OUTPUTS[0] + " = m2", *OUTPUTS[1:])],
    "an output that is said twice, once with a name that has no value": [
        text(*PRODUCTS[:at], *PRODUCTS[at + 1 :], *TWICE) for at in range(7)
    ],
    "an output of a matrix that is set again": after(
        text(*PRODUCTS, f"[c11, c12; c21, c22] = [{', '.join(SUMS[:2])}; {', '.join(SUMS[2:])}]"),
        "c11 = 0",
    ),
    "a block with a letter for its name that may be changed": after(
        (HERE / "handwritten" / "letters.txt").read_text(), "h *= 2", "swap(e, f)", "fix(a)", "d = 2*d", "r11 *= 2",
    ),
    "a name that is no name": [
        *(text(*LINES).replace("c11 =", f"{c} =", 1) for c in ("-c11", "2*c11", "1/2 c11", "c11/2", "|c11|", "c11^T")),
        *(text(*LINES).replace("m1 =", f"{m} =", 1) for m in ("-m1", "m1'")),
    ],
    "an operand that may be changed": [text(change, *LINES) for change in (
        "A = 2*A", "A *= 2", "A = A.T", "A, B = B, A", "A = A / 2", "every output is doubled: c11 -> 2*c11",
    )],
    "a block that is set to another": [
        text(change, *OF_PYTHON) for change in ("a[0, 0] = a[0, 1]", "a[0, 0] += a[0, 1]")
    ],
    "an equation with a token that is not understood": [text(first, *LINES[1:]) for first in (
        "m1 = (a11 + a22)*(b11 + b22) 3", "m1 = (a11 + a22)*(b11 + b22) (times 2)",
        "m1 = (a11 + a22)*(b11 + b22) 2 times", "m1 = (a11 + a22)*(b11 + b22) % 2", "m1 = (a11 + a22)*(b11 + b22)//2",
        "m1 = abs((a11 + a22)*(b11 + b22))", "m1 = ((a11 + a22)*(b11 + b22))^2", "m1 = (a11 + a22)'*(b11 + b22)",
        "m1 = (a11 & a22)*(b11 + b22)", "m1 = (a11 | a22)*(b11 + b22)", "m1 = (~a11 + a22)*(b11 + b22)",
        "m1 = (a11 + a22 + 1)*(b11 + b22)", "m1 = (a11 + a22)*(b11 + b22) + d", "m1 = f(a11 + a22, b11 + b22)",
        "m1 = (a11 + a22).T*(b11 + b22)",
    )],
    "an equation of a language that nobody publishes in": [text(first, *LINES[1:]) for first in (
        "assign m1 = (a11 + a22) * (b11 + b22);", "wire signed [31:0] m1 = (a11 + a22) * (b11 + b22);",
        "my $m1 = ($a11 + $a22) * ($b11 + $b22);", "$m1 = ($a[0][0] + $a[1][1]) * ($b[0][0] + $b[1][1]);",
        "M1 ← (A11 ⊕ A22) ⊗ (B11 ⊕ B22)", "double const m1{(a11 + a22) * (b11 + b22)};",
        "let m1 = &(&a11 + &a22) * &(&b11 + &b22);", "begin\nm1 = (a11 + a22)*(b11 + b22)",
    )],
    "a trilinear product with a token that is not understood": [text(*lines) for lines in (
        [*TRILINEAR[:6], "and " + TRILINEAR[6]], [*TRILINEAR, "and (a11)*(b11)*(c11)"],
        ["twice " + TRILINEAR[0], *TRILINEAR[1:]], [TRILINEAR[0] + " 2", *TRILINEAR[1:]],
        [TRILINEAR[0] + " % 2", *TRILINEAR[1:]], [TRILINEAR[0] + "'", *TRILINEAR[1:]],
        ["for i in range(2):", "    " + TRILINEAR[0], *TRILINEAR[1:]], ["2*[" + TRILINEAR[0] + "]", *TRILINEAR[1:]],
        ["the following is halved: " + TRILINEAR[0], *TRILINEAR[1:]], [*TRILINEAR, "-"],
        [*TRILINEAR, "a11*b11*(c11 + a11*b11*c11)"],
    )],
    "names of sympy in another order": [text("a11, a12 = symbols('a12 a11')", *LINES)],
    "products or sizes of JSON that are not those": [
        json.dumps({"m": 2, "k": 2, "n": 3, **DATA}), json.dumps({"scale": 2, **PAIRS}),
        *(json.dumps({"products": PRODUCTS, "outputs": OUTPUTS, **more}) for more in (
            {"norm": 0.5}, {"signs": [-1] * 7}, {"transposed": True}, {"scaling": {"u": 2}},
            {"note": "w is multiplied by 2"},
        )),
        json.dumps({**PAIRS, "products": [{**one, "sign": -1} for one in PAIRS["products"]]}),
        json.dumps({**PAIRS, "products": [{**PAIRS["products"][0], "sign": -1}, *PAIRS["products"][1:]]}),
    ],
    "a sentence in a product": [text(*PRODUCTS[:6], f"{PRODUCTS[6]} Then {OUTPUTS[0]}", *OUTPUTS[1:])],
    "several schemes as one": [text(*TRILINEAR, "# the same", *TRILINEAR)],
    "a trace that is multiplied": [text(trace, "\n+ ".join(TRILINEAR)) for trace in ("2*tr(ABC) =", "-trace(ABC) =")],
    "a program": [
        "import sys\ndef pretty(a1, b1):\n    c1 = a1*b1\n    return c1\nprint(pretty(1, 2))\n",
        "n = 1000;\nA1 = rand(n); B1 = rand(n);\ntic; C1 = A1*B1; toc\nt = toc;\n",
        "A11 = rand(5); B11 = rand(5);\nC11 = A11*B11;\ndisp(norm(C11))\n",
        "import numpy as np\na1 = np.random.rand(3, 3)\nb1 = np.random.rand(3, 3)\nc1 = a1 @ b1\nassert len(c1) == 3\n",
        "for i in range(3):\n    x1 = a1*b1\n    y1 += x1\n", "% timing\nfor k = 1:10\n  C11 = A11*B11;\nend\n",
        "def strassen(A, B):\n    h = len(A) // 2\n    A11, A12 = A[:h, :h], A[:h, h:]\n" + text(*LINES),
        "def strassen(A, B):\n    a11, a12, a21, a22 = split(A)\n" + text(*LINES),
        "class Strassen:\n" + text(*(f"    self.{line}" for line in LINES)),
    ],
    "another bilinear map, or matrices": [
        "m1 = a1*b1\nm2 = a0*b0\nm3 = (a0 + a1)*(b0 + b1)\nc0 = m2\nc1 = m3 - m1 - m2\nc2 = m1\n",
        "c1 = a2*b3 - a3*b2\nc2 = a3*b1 - a1*b3\nc3 = a1*b2 - a2*b1\n",
        "q0 = a0*b0 - a1*b1 - a2*b2 - a3*b3\nq1 = a0*b1 + a1*b0 + a2*b3 - a3*b2\n"
        "q2 = a0*b2 - a1*b3 + a2*b0 + a3*b1\nq3 = a0*b3 + a1*b2 - a2*b1 + a3*b0\n",
        "U = [[1, 2, 3], [4, 5, 6]]\nV = [[1, 0], [0, 1]]\n", "[[1, 2, 3], [4, 5, 6], [7, 8, 9]]",
        "K1 = h*f1; K2 = h*f2; y1 = y0 + (K1 + K2)/2\n",
    ],
    "a table of coefficients with a row that does not fit": [
        *(COEFFICIENTS.replace("4,A,22,1\n", rows, 1) for rows in (
            "4,A,22,1\n4,A,22,1\n", "4,A,22,1\nscaled by 2\n", "4,A,22,1\nA = A.T\n", "4,A,22,1,2\n", "4,D,22,1\n", "",
            "4,A,22,1\nall values transposed\n", "4,A,22,one\n", "product,left,block,coefficient\n",
        )),
        COEFFICIENTS.replace("coefficient", "coefficient * 2", 1),
    ],
    "a sentence that changes all results": [
        content for sentence in SENTENCES for source in (text(*LINES), LISTS)
        for content in (f"{source}{sentence}\n", f"```\n{source}```\n\n{sentence}\n")
    ],
    "a product of numbers beside arrays": [f"{source}\n(a11)*(b11)*(c11)\n" for source in (LISTS, json.dumps(DATA))],
    "a line beside triads": [content for line in ("* 2", "]", "all products are doubled", "x2")
                             for content in (f"{TRIADS}{line}\n", f"{line}\n{TRIADS}")],
    "a line beside a table of Bini": [
        *(content for line in ("* 2", "x2", "all products are doubled", "scale: 2", "0 0 0 1")
          for content in (f"{line}\n{BINI}", f"{BINI}{line}\n")), f"-{BINI}", f"{BINI}-\n",
    ],
}
PROVEN = {
    "what the cases are made from": [
        text(*LINES), text(*PRODUCTS, *TWICE), text(*TRILINEAR), LISTS, ARRAYS, MATLAB, text(*OF_PYTHON),
        LISTS_OF_MATHEMATICA, headed("U:", "V:", "W:"), json.dumps(DATA | {"shape": [2, 2, 2]}), json.dumps(BOTH),
        json.dumps(BOTH | {"elements": ["c11: see the paper"]}),
    ],
    "scalings, transposes and checks of arrays": after(
        ARRAYS, "u = 2*u\nw = w/2", "u = -u\nw = -1*w", "u = u.T\nv = v.T\nw = w.T",
        "u = np.transpose(u)\nv = v.transpose()\nw = w.T",
        "u = u.reshape(7, 2, 2)\nv = v.reshape((7, 2, 2))\nw = w.reshape(-1, 2, 2)",
        "print(u.shape)\nassert u.shape == (7, 4)", "u = np.array(u, dtype=float)", "u = u.astype(np.int8)",
        "n = 2\nrank = 7", "shape = [2, 2, 2]", 'np.savez("s.npz", u=u, v=v)', "rows = u.shape[0]",
        "nnz = np.count_nonzero(u)", "print(np.max(u, axis=0), np.dot(u.T, v))", "print(list(map(len, u)))",
        "def check(u, v, w):\n    t = np.zeros((4, 4))\n    t[0] = u[0]\n    return t\nprint(check(u, v, w))",
        "T = np.einsum('ri,rj,rk->ijk', u, v, w)\n\ndef check(u, v, w):\n    for r in range(7):\n        u[r] = 0\n",
    ),
    "names beside the matrices that are forgotten": after(MATLAB, "clear t", "clear s t;", "clc; close all"),
    "statements before all others, and prose with the same words": [
        *(text(line, *LINES) for line in ("clear all; clc;", "load('x.mat')", "source('x.m')")),
        *(text(*PRODUCTS, line, *OUTPUTS) for line in (
            "Source: a paper of 1969", "Run time is 7/8.", "clearly m1 is right", "It is clear that m1 is right",
        )),
    ],
    "names that nothing uses": [text(line, *LINES, line) for line in (
        "t = 2*t", "z = 3", "alpha = sqrt(2)", "w[0] = 3", "omega = log2(7) = 2.807", "C = A*B", "C = AB.",
        "strassen(A, B)",
        "C[i][j] += A[i][k]*B[k][j]", "print(C)", "#define N 2", "np.testing.assert_allclose(C, D)",
    )],
    "outputs as a matrix, four letters, or by other sums": [text(*PRODUCTS, *outputs) for outputs in (
        ["C = [[m1 + m4 - m5 + m7, m3 + m5], [m2 + m4, m1 - m2 + m3 + m6]]"],
        [*OUTPUTS, "C = [[c11, c12], [c21, c22]]"],
        [*OUTPUTS, "return [[m1 + m4 - m5 + m7, m3 + m5], [c21, c22]]"],
        [line.replace("c11", "r").replace("c12", "s").replace("c21", "t").replace("c22", "u") for line in OUTPUTS],
        ["I = m1 + m4", "c11 = I - m5 + m7", *OUTPUTS[1:]], [OUTPUTS[0] + " = a11*b11 + a12*b21", *OUTPUTS[1:]],
    )],
    "sentences that describe the product": [text(sentence, *LINES, sentence) for sentence in (
        "The matrix A is multiplied by B in seven products.", "Both matrices are divided into four blocks.",
        "Strassen (1969) showed that two matrices can be multiplied as follows:", "All of this holds over any ring.",
    )],
    "long tables": [between.join(table.replace("\n", " " * 4000 + "\n") for table in TABLES)
                    for between in ("\n\n", "\n# next\n")],
    "characters of word processors and marks of languages": [text(*LINES).replace(old, new) for old, new in (
        ("-", "\u2212"), ("-", "\u2011"), ("-", "\uff0d"), ("(", "\u200b("), (" ", "\u00a0"), ("=", "\uff1d"),
        ("\n", "\u2028"), ("1", "\uff11"), ("a", "\U0001d41a"), (")*(", ").dot("), (" + ", " +\\\n    "),
        (" + ", " &\n  + "),
    )] + [text(*LINES).replace("(", "[").replace(")", "]"), "\n\n".join(TABLES).replace("-", "\u2013")],
    "numbered and bulleted products": [
        text(*(line.format(at=at, product=product) for at, product in enumerate(TRILINEAR, 1)))
        for line in ("({at}) {product}", "- {product}", "* {product}", "{at}: {product}")
    ],
    "tables of sums": [
        text("| | left | right |", "|:--|--:|:-:|", *(f"| `{m}` | {a} | ${b}$ |" for m, a, b in ROWS), "", *OUTPUTS),
        text("|r|A|B|C|", "|-|-|-|-|", *(f"|{'|'.join(row)}|" for row in THREE)), text(*map("\t".join, THREE)),
    ],
    "products and outputs as people write them": [
        json.dumps(PAIRS), text("trace(ABC) =", "\n+ ".join(TRILINEAR)), text("tr(A B C) = " + TRILINEAR[0], *[
            f"+ {line}" for line in TRILINEAR[1:]
        ]),
        text(*PRODUCTS, "C = [m1 + m4 - m5 + m7, m3 + m5; ...", "  -m4 + m2 + 2*m4, m1 - m2 + m3 + m6];"),
        text(*PRODUCTS, f"c = {{{{{SUMS[0]}, {SUMS[1]}}},", f" {{{SUMS[2]}, {SUMS[3]}}}}};"),
        text("a11, a12, a21, a22 = sympy.symbols('a11 a12 a21 a22', commutative=False)", *PRODUCTS,
             *(f"{name}= expand({said})" for name, said in (line.split("= ") for line in OUTPUTS))),
        text(*(line.replace("m" + line[1], "t", 1) + "\n" + "\n".join(
            f"c{i}{j} {'-' if f'- m{line[1]}' in said else '+'}= t" for (i, j), said in zip(PLACES, SUMS, strict=True)
            if f"m{line[1]}" in said) for line in PRODUCTS)),
    ],
    "sentences, tables and lists of other kinds": [
        text("First, " + ", ".join(PRODUCTS) + ". Then " + ", ".join(OUTPUTS) + "."),
        text(*(f": {line}" for line in LINES)), text("r;A;B;C", *map(";".join, THREE)),
        text(*(f"$m_{{{m[1]}}}$ & ${a}$ & ${b}$ \\\\ \\hline" for m, a, b in ROWS), *OUTPUTS),
    ],
    "arrays with types and sizes": [
        "".join(f"{name} = {matlab(rows)}.';\n" for name, rows in DATA.items()),
        ARRAYS + "def multiply(a, b):\n    return w.T @ ((u @ a) * (v @ b))\nif True:\n    print(len(u))\n",
        "".join(f"{name} = Int8{matlab(rows)}\n" for name, rows in DATA.items()),
        "".join(f"{name} = np.array({rows}, float).T\n" for name, rows in DATA.items()),
        json.dumps({"m": 2, "k": 2, "n": 2, "rank": 7, **DATA}),
    ],
    "texts of JSON": [json.dumps({"products": TRILINEAR}), json.dumps(LINES)],
    "any strings, keys and remarks of JSON": [json.dumps(DATA | more) for more in (
        {"": 'say "U" # no \\ comment // here', "1": None, "has space": {"-": [{}, True]}},
        {"note": "found in 1969", "seed": 3, "offset": 0},
    )],
}
# fmt: on
