"""What collections and people write, in the spelling of each: Strassen's identity, read and proven."""

import io
import json

import numpy as np
import pytest

import lcma
from lcma.errors import SchemeFormatError
from lcma.schemes_db.formats import parse_bytes, parse_text, read_file, render
from lcma.schemes_db.ring import Z2
from lcma.verify import ApproximateReport, judge
from lcma.verify.files import files_below

SCHEME = lcma.resolve("strassen")[0]
U, V, W = (factor.dense.reshape(7, 4).tolist() for factor in SCHEME.factors)
NAMES = [f"m{r}" for r in range(1, 8)]
BLOCKS = [[f"{letter}{i}{j}" for i in (1, 2) for j in (1, 2)] for letter in "abc"]
EXP = render(SCHEME, "exp").decode()
PLAIN = [line for line in render(SCHEME, "equations").decode().splitlines() if not line.startswith("#")]


def proven(text, target=None):
    (reading,) = parse_text(text, target=target)
    report = judge(reading, "file")
    assert report.ok, report.headline()
    return report


def transposed(rows):
    return [list(row) for row in zip(*rows, strict=True)]


def matlab(rows, separator="\n "):
    return f"[{separator.join(' '.join(map(str, row)) for row in rows)}]"


def latex(rows, kind="pmatrix"):
    return f"\\begin{{{kind}}}\n" + " \\\\\n".join(" & ".join(map(str, row)) for row in rows) + f"\n\\end{{{kind}}}"


def times(rows, factor):
    return [[factor * value for value in row] for row in rows]


def test_signs_after_operators():
    maple = render(SCHEME, "maple").decode()
    for old, new in (("[[-1,0]", "[[1*-1,0*-1]"), ("[0,-1]]", "[0*-1,- -1*-1]]"), ("[1,0]", "[+1,-0]")):
        assert old in maple
        assert proven(maple.replace(old, new)).scheme == SCHEME
    fifth = "(a11+a12)*(b22)*(-c11+c21)"
    assert fifth in EXP
    for other in ("(-a11-a12)*-b22*(c21-c11)", "(a11+a12)*+b22*(c21- +c11)", "(a11- -a12)*b22*(-c11+c21)"):
        assert proven(EXP.replace(fifth, other)).scheme == SCHEME


@pytest.mark.parametrize("unit", ["1j", "I", "i", "(0+1j)"])
def test_complex_coefficients_of_products_and_equations(unit):
    one, other = f"({unit}*a11 + {unit}*a22)", f"(-{unit}*b11 - {unit}*b22)"
    assert proven(EXP.replace("(a11+a22)*(b11+b22)", f"{one}*{other}")).scheme.ring.name == "Q(i)"
    lines = "\n".join([f"m1 = {one}*{other}", *PLAIN[1:]])
    assert proven(lines).scheme.ring.name == "Q(i)"
    halves = lines.replace(one, "((0.5+0.5j)*a11 + (0.5+0.5j)*a22)").replace(other, "((1-1j)*b11 + (1-1j)*b22)")
    assert proven(halves).scheme.ring.name == "Q(i)"


def test_numbers_before_the_arrays_of_a_python_file():
    arrays = ", ".join(f"np.array({part})" for part in map(transposed, (U, V, [[r[0], r[2], r[1], r[3]] for r in W])))
    report = proven(f"import numpy as np\n\nn = 2\nm = 2\np = 2\nrank = 7\n\ndecomposition_222 = ({arrays})\n")
    assert (report.format, report.scheme) == ("alphaevolve", SCHEME)


def test_scaled_and_joined_matrices_of_matlab():
    u, v, w = map(transposed, (U, V, W))
    left, right = [row[:4] for row in u], [row[4:] for row in u]
    for joined in ("[A1 A2]", "[A1, A2]"):
        text = f"A1 = {matlab(left)};\nA2 = {matlab(right)};\nA = {joined};\nB = {matlab(v)};\nC = {matlab(w)};\n"
        assert proven(text).scheme == SCHEME
    stacked = f"A = [{matlab(u[:2])}; {matlab(u[2:])}];\nB = {matlab(v)};\nC = {matlab(w)};\n"
    assert proven(stacked).scheme == SCHEME
    scaled = f"A = 1/2*{matlab(times(u, 2))};\nB = {matlab(v)};\nC = {matlab(w, '; ')};\n"
    assert proven(scaled).scheme == SCHEME
    assert proven(f"U = {matlab(u)}';\nV = {matlab(v)}';\nW = {matlab(w)}';\n").scheme == SCHEME


@pytest.mark.parametrize(("power", "inverse"), [("x2", "x2i"), ("(x+x2)", "xi"), ("x", "xi"), ("x^2", "x^-2")])
def test_powers_of_an_infinitesimal_get_the_border_verdict(power, inverse):
    u, v, w = ([list(map(str, row)) for row in map(list, transposed(part))] for part in (U, V, W))
    for block, entries in ((u, power), (v, inverse)):
        for at in (0, 3):
            block[at][0] = entries
    (reading,) = parse_text("\n#\n".join("\n".join(" ".join(row) for row in part) for part in (u, v, w)))
    report = judge(reading, "file")
    assert isinstance(report, ApproximateReport)
    assert ("border scheme" in report.headline()) == ("+" in power)


FACTOR_NAMES = [("U", "V", "W"), ("u", "v", "w"), ("s_a_222", "s_b_222", "s_c_222"), ("alpha", "beta", "gamma")]


@pytest.mark.parametrize("names", FACTOR_NAMES)
@pytest.mark.parametrize("suffix", [".csv", ".txt", ".npy"])
def test_factors_in_three_files_are_joined(tmp_path, names, suffix):
    for name, part in zip(names, (U, V, transposed(W)), strict=True):
        if suffix == ".npy":
            np.save(tmp_path / f"{name}.npy", np.array(part))
        else:
            separator = "," if suffix == ".csv" else " "
            text = "\n".join(separator.join(map(str, row)) for row in part)
            (tmp_path / f"{name}{suffix}").write_text(text)
    for name in names:
        (reading,) = read_file(tmp_path / f"{name}{suffix}")
        assert judge(reading, name).scheme == SCHEME
        assert any(note.startswith("three files: ") for note in reading.notes)
    if names[0] in "Uu":
        found, _ = files_below(tmp_path, "arrays")
        assert [path.name for path in found] == [f"{names[0]}{suffix}"]
    (tmp_path / f"{names[2]}{suffix}").unlink()
    with pytest.raises(SchemeFormatError, match="three"):
        read_file(tmp_path / f"{names[0]}{suffix}")


def test_whole_schemes_with_the_names_of_parts_stay_whole(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.exp").write_text(EXP)
    (reading,) = read_file(tmp_path / "b.exp")
    assert not any("three files" in note for note in reading.notes)
    assert len(files_below(tmp_path)[0]) == 3


@pytest.mark.parametrize("sizes", ["tensor <2,2,2>: (2x2) times (2x2) -> (2x2)", "2x2x2", ""])
def test_bit_masks_modulo_2(sizes):
    rows = [
        [sum((value & 1) << at for at, value in enumerate(row)) for row in product]
        for product in zip(U, V, W, strict=True)
    ]
    text = f"# certificate over GF(2)\n# {sizes}\n7\n" + "\n".join(" ".join(map(str, row)) for row in rows) + "\n"
    report = proven(text)
    assert report.scheme.ring == Z2
    assert report.scheme.digest == SCHEME.replace(ring=Z2).digest
    assert not judge(parse_text(text.replace("9 9 9", "9 9 8"))[0], "wrong").ok
    with pytest.raises(SchemeFormatError):
        parse_text(text.replace("\n7\n", "\n6\n"))


def test_small_floats_in_archives_are_exact():
    stream = io.BytesIO()
    np.savez(stream, **{name: np.array(part, np.float16) for name, part in zip("uvw", (U, V, W), strict=True)})
    (reading,) = parse_bytes(stream.getvalue())
    assert judge(reading, "half").scheme == SCHEME


@pytest.mark.parametrize("kind", ["pmatrix", "bmatrix", "array"])
def test_factors_as_matrices_of_latex(kind):
    def matrix(rows):
        if kind != "array":
            return latex(rows, kind)
        body = latex(rows).replace("{pmatrix}", "{array}").replace("{array}", "{array}{rrrr}", 1)
        return f"\\left(\n{body}\n\\right)"

    plain = f"\\[ U = {matrix(U)}, \\quad V = {matrix(V)}, \\quad W = {matrix(W)}. \\]\n"
    assert proven(f"\\begin{{document}}\nThe factors are\n{plain}\\end{{document}}\n").scheme == SCHEME
    half = f"$W = \\tfrac{{1}}{{2}} {matrix(times(W, 2))}$\n"
    half = f"\\[\n\\mathbf{{U}} = {matrix(U)}\n\\]\n$$\\mathbf{{V}} = {matrix(V)}$$\n{half}"
    assert proven(half).scheme == SCHEME
    inline = " and ".join(f"${name}={matrix(part)}$" for name, part in zip("UVW", (U, V, W), strict=True))
    assert proven(inline.replace("\n", " ") + ".\n").scheme == SCHEME


def test_lists_with_headings_and_outputs_of_the_transpose():
    bullets = [
        "- Products:",
        *(f"  - {line}" for line in PLAIN[:7]),
        "- Outputs",
        *(f"  - {line}" for line in PLAIN[7:]),
    ]
    assert proven("\n".join(bullets)).scheme == SCHEME
    swapped = {"c12": "c21", "c21": "c12"}
    outputs = dict(line.split(" = ") for line in PLAIN[7:])
    products = "\\begin{align}\n" + " \\\\\n".join(line.replace("=", "&=") for line in PLAIN[:7]) + "\n\\end{align}\n"
    for name in (r"C^T_{%s}", r"C^{\top}_{%s}", r"(C^T)_{%s}", r"C^\mathsf{T}_{%s}"):
        lines = [f"{name % swapped.get(c, c)[1:]} &= {form} \\\\" for c, form in outputs.items()]
        assert proven(products + "\\begin{align}\n" + "\n".join(lines) + "\n\\end{align}\n").scheme == SCHEME
    cells = [[outputs["c11"], outputs["c21"]], [outputs["c12"], outputs["c22"]]]
    assert proven(products + f"\\[ C^T = {latex(cells)} \\]\n").scheme == SCHEME
    names = [["c_{11}", "c_{21}"], ["c_{12}", "c_{22}"]]
    assert proven(products + f"\\[ {latex(names)} = {latex(cells)} \\]\n").scheme == SCHEME


def notebook(*cells):
    sources = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell.splitlines(True)} for cell in cells]
    return json.dumps({"cells": sources, "metadata": {}, "nbformat": 4})


def test_notebooks_with_checks_and_other_results():
    check = (
        "import numpy as np\n\ndef verify_decomposition(decomposition: tuple, n: int, rank: int):\n"
        '  """Checks it.\n\n  Args:\n    decomposition: a tuple = (U, V, W)\n  """\n'
        "  one, two, three = decomposition\n  for i in range(n):\n    assert one.shape[i] == rank, f'{one}'\n"
    )
    parts = map(transposed, (U, V, [[row[0], row[2], row[1], row[3]] for row in W]))
    arrays = ", ".join(f"np.array({part}, dtype=np.float32)" for part in parts)
    cells = [check, f"#@title Data\nmatrices_222 = ({arrays})", "n = 2\nverify_decomposition(matrices_222, n, 7)\n"]
    other = "heights = np.array([1.0, 2.0])\nheights *= 2\nfor i in range(2):\n  heights[i] += 1\nplot(heights)\n"
    (reading,) = parse_text(notebook(*cells, other))
    assert judge(reading, "file").scheme == SCHEME
    for change in ("matrices_222[0][0, 0] = 7\n", "scale(matrices_222)\n", "x = matrices_222[0]\nx *= 2\n"):
        with pytest.raises(SchemeFormatError, match="may change"):
            parse_text(notebook(*cells, change))


def test_outputs_that_are_said_twice_are_read_as_sums_of_products():
    naive = {f"c{i}{j}": f"a{i}1 b1{j} + a{i}2 b2{j}" for i in (1, 2) for j in (1, 2)}
    lines = [line.replace(" = ", f" = {naive[line[:3]]} = ") for line in PLAIN[7:]]
    assert proven("\n".join([*PLAIN[:7], *lines])).scheme == SCHEME


def by_rows(rows):
    return ", ".join(str(value) for row in rows for value in row)


def braces(rows):
    return str(rows).replace("[", "{").replace("]", "}")


def markdown(rows):
    lines = ["|" + " |" * 4, "|" + "---|" * 4, *("| " + " | ".join(map(str, row)) + " |" for row in rows)]
    return "\n".join(lines) + "\n"


LANGUAGES = {
    "sage": lambda name, rows: f"{name} = matrix(QQ, {rows})",
    "fortran": lambda name, rows: f"{name} = reshape([{by_rows(transposed(rows))}], [7, 4])",
    "magma": lambda name, rows: f"{name} := Matrix(Rationals(), 7, 4, [{by_rows(rows)}]);",
    "yaml": lambda name, rows: f"{name}: {rows}",
    "julia": lambda name, rows: f"{name} = Int{matlab(rows, '; ')}",
    "float": lambda name, rows: (
        f"const float {name}[7][4] = {braces([[f'{x}.0f' for x in row] for row in rows])};".replace("'", "")
    ),
    "markdown": lambda name, rows: f"## {name}\n\n{markdown(rows)}",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_arrays_of_more_languages(language):
    arrays = [LANGUAGES[language](name, rows) for name, rows in zip("UVW", (U, V, W), strict=True)]
    assert proven("\n".join(arrays) + "\n").scheme == SCHEME


def test_a_function_of_matlab_that_returns_the_factors_is_read():
    body = "\n".join(f"    {name} = {matlab(rows, '; ')};" for name, rows in zip("ABC", (U, V, W), strict=True))
    assert proven(f"function [A,B,C] = strassen()\n% factors\n{body}\nend\n").scheme == SCHEME


@pytest.mark.parametrize("line", [
    "const {name}: number[][] = {rows};", "const {name}: [[i32; 4]; 7] = {rows};", "var {name} = [][]int{braces}",
    "int[][] {name} = {braces};", "int[,] {name} = {braces};", "{name} <- rbind({rows})",
])  # fmt: skip
def test_arrays_of_languages_that_nobody_publishes_in_are_refused(line):
    factors = zip("UVW", (U, V, W), strict=True)
    with pytest.raises(SchemeFormatError):
        parse_text("\n".join(line.format(name=name, rows=rows, braces=braces(rows)) for name, rows in factors))


@pytest.mark.parametrize(("old", "new"), [
    ("-", "\u2212"), ("-", "\u2011"), ("-", "\uff0d"), ("(", "\u200b("), (" ", "\u00a0"), ("=", "\uff1d"),
    ("\n", "\u2028"), ("1", "\uff11"), ("a", "\U0001d41a"), ("(", "["), (")*(", ").dot("), (" + ", " +\\\n    "),
    (" + ", " &\n  + "),
])  # fmt: skip
def test_characters_of_word_processors_and_marks_of_languages(old, new):
    text = "\n".join(PLAIN).replace(")(", ")*(").replace(old, new)
    assert proven(text.replace(")", "]") if new == "[" else text).scheme == SCHEME


def test_tables_with_minus_signs_of_word_processors():
    tables = ["\n".join(" ".join(map(str, row)) for row in part) for part in (U, V, W)]
    assert proven("\n\n".join(tables).replace("-", "\u2013")).scheme == SCHEME


@pytest.mark.parametrize("line", ["({at}) {product}", "- {product}", "* {product}", "{at}: {product}"])
def test_numbers_and_bullets_of_trilinear_products_are_no_coefficients(line):
    listed = [line.format(at=at, product=product) for at, product in enumerate(EXP.splitlines(), start=1)]
    assert proven("\n".join(listed)).scheme == SCHEME


def test_products_as_texts_of_json():
    assert proven(json.dumps({"products": EXP.splitlines()})).scheme == SCHEME
    assert proven(json.dumps(PLAIN)).scheme == SCHEME


def test_a_table_of_coefficients_of_a_triangular_scheme_needs_no_target():
    scheme = lcma.resolve("eca-stage1")[0]
    rows = [
        f"{r + 1},{letter},{index // factor.cols + 1}{index % factor.cols + 1},{value}"
        for letter, factor in zip("ABC", scheme.factors, strict=True)
        for r in range(scheme.rank)
        for index, value in factor.coefficients(r)
    ]
    report = proven("\n".join(["product,factor,block,coefficient", *rows]))
    assert report.scheme.digest == scheme.digest
