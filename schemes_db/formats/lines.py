"""Text as people write it, split into plain statements: LaTeX, code fences, numbering and comments removed.

What is left of a line are statements in one spelling: names as `a11`, `a[1,10]` or `m3`, products
by `*` or side by side, `=` between a name and its value. What a statement means is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain

from ...errors import SchemeFormatError
from .patterns import CHANGES, pattern

MAX_SPLIT = 10_000
"""Characters up to which a line is looked at for remarks and for several names on the left of one sign."""

MAX_GAP = 1000
"""Blanks before a comment: what stands before more of them is not looked at."""

MAX_STATEMENT = 4 << 20
"""Characters of one statement: no sum of blocks or products is longer."""

Statement = tuple[int, str]
"""The number of its line, from 1, and its text."""

_MARKUP = pattern(
    r"[\\$&_^{}`~@<\[\u2080-\u2089\u2190\u2254\u2217\u22c5\u00b7\u00d7\u2219\u2022\u2297\u00bd]"
    r"|[A-Za-z]\(\s*\d|->|\*\*|\*\w+\*\s*:?=|[A-Z] \d|Eq\("
)


def _said_in_words(match: re.Match[str]) -> str:
    """The blank that words between formulas are; a sign, a number and words of a change stay."""
    stays = CHANGES.search(match[1]) or re.fullmatch(r"\s*[-+*/=]*[\d./]*\s*", match[1])
    return match[1] if stays else " "


_ARGUMENT = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
_COMMANDS = tuple(
    (pattern(text), replacement)
    for text, replacement in (
        (r"\\(?:tag|label|[hv]?phantom|q?quad|[hv]space|ref|eqref|pagecolor|(?:text)?color)\*?\{[^{}]*\}", " "),
        (r"\\(?:text|mbox|intertext)\*?\{([^{}]*)\}", _said_in_words),
        (rf"\\[td]?frac{_ARGUMENT}{_ARGUMENT}", r"((\1)/(\2))"),
        (r"\\[td]?frac(\d)(\d)", r"(\1/\2)"),
        (
            r"\^\s*(?:\{\s*)?(?:\\(?:top|intercal)\b|(?:\\(?:mathsf|mathrm|mathbf|text|rm)\s*)?\{?T\}?(?![A-Za-z\d]))(?:\s*\})?",
            "\u1d40",
        ),
        (r"\\(?:begin|end)\{\s*[A-Za-z]*\*?\s*\}(?:\{[^{}]*\})?|\\(?:left|right|[bB]igg?[lr]?|limits)\b", " "),
        (r"\\(?:displaystyle|q?quad|nonumber|notag)\b|\\[,;:!> \[\]()]", " "),
        (r"\\(?:cdot|times|ast|star|cdotp|circ|bullet|otimes|odot)\b\s*", "*"),
        (r"\\(?:math(?:rm|bf|it|cal|sf|tt)|bm|boldsymbol|operatorname|hbox)\b", ""),
        (r"\\(?:(?:wide)?(?:hat|tilde)|(?:ov|und)erline|bar)\b(?!\s*\{?\s*\d)", ""),
        (r"\\(?:coloneqq|gets|leftarrow|triangleq|equiv)\b", "="),
        (r"(_\{[\d, ]+\})(?=[A-Za-z])", r"\1 "),
    )
)
_ACCENTED = pattern(
    r"\\(?:wide)?(?P<accent>hat|tilde|overline|underline|bar)\b\s*(?P<brace>\{?)\s*(?P<letter>[A-Za-z])(?![A-Za-z])"
)
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2217\u22c5\u00b7\u00d7\u2219\u2022\u2297@", "*"),
        **dict.fromkeys("\u2190\u2254", "="),
        **dict.fromkeys("$`", " "),
        **{chr(0x2080 + digit): str(digit) for digit in range(10)},
    }
)
_LETTERS = r"(?<![A-Za-z0-9_])([A-Za-z]+)"
_NAMES = tuple(
    (pattern(text), replacement)
    for text, replacement in (
        (r"\{([A-Za-z]+)\}", r"\1"),  # \mathbf{A}
        (r"\{([-+])\}|\{\}(?=\s*[-+])", r"\1"),  # {}- b
        (r"(?<![\w.{,])(\d+)(?=[A-Za-z]+_)", r"\1 "),  # 2a_{11}
        (r"^\s*\*\*([^*=]+)\*\*([^*=]*)$", r"\1\2"),  # **Products**, **Step 1.** Compute
        (r"(?<![\w)\]])(\*\*?)([A-Za-z]\w*)(?:\1(?=\s*:?=)|(:)\1)", r"\2\3"),  # **M1** =, **M1:** in Markdown
        (r"\*\*(?=\s*[A-Za-z(])", "*"),
        (r"(?<![\d.])\u00bd", "(1/2)"),
        (r"(?<![A-Za-z0-9_])(?:Fraction|Rational)\(\s*(-?\d+)\s*,\s*(\d+)\s*\)", r"(\1/\2)"),
        (r"->", "="),
        (r"\[\[\s*(\d+)\s*,\s*(\d+)\s*\]\]", r"[\1,\2]"),
        (r"^\s*(?:sp\.|sympy\.)?Eq\((\w+),(.*)\)$", r"\1 = \2"),
        (r"(?<![A-Za-z0-9_])([A-Z]) (\d{1,3})(?=\s*[-+*()=A-Z,.;]|\s*$)", r"\1\2"),  # A 11, as PDFs give it
        (r"\(?([A-Za-z])\s?\u1d40\s*\)?_(?:\{\s*)?(\d)\s*,?\s*(\d)(?:\s*\})?", r"\1[\3,\2]"),  # C^T_{12}
        ("\u1d40", "'"),
        (rf"{_LETTERS}\s*_?\s*\{{\s*(\d+)(?:\s*[,;]\s*|\s+)(\d+)\s*\}}", r"\1[\2,\3]"),
        (rf"{_LETTERS}(?:\s*_\s*\{{\s*(\d+)\s*\}}|\^\{{\(\s*(\d+)\s*\)\}})", r"\1_\2\3"),  # M_{1}, M^{(1)}
        (rf"{_LETTERS}(?:\[\s*(\d+)\s*\]\s*\[\s*(\d+)\s*\]|_(\d+)\s*,\s*(\d+))", r"\1[\2\4,\3\5]"),
        (rf"{_LETTERS}\(\s*(\d+)\s*,\s*(\d+)\s*\)", r"\1[\2,\3]"),
        (rf"{_LETTERS}(?:\(\s*(\d+)\s*\)(?=\s*:?=)|\[\s*(\d+)\s*\])", r"\1_\2\3"),
        (r"(?<![A-Za-z0-9_])([A-Za-z]+)_(\d+)(?!\w|,\d)", r"\1\2"),
    )
)
_COUNTED = pattern(r"^(?:\d{1,4}[.):]\s+|[\u2022>]\s*)+")
_NUMBERING = pattern(
    r"^(?:(?:[-*+\u2022>:]|\(?\d{1,4}[.):]|\(?\d{1,3}(?:\.\d{1,3})+[.)]?|\[\d{1,4}\]|(?:[Ee]q|[Ss]tep|[Ll]ine)\.?\s*\(?\d{1,4}\)?[.:)]?)\s+|\d{1,3}:(?=[A-Za-z]))+"
)
_ROW_NAMES = pattern(r"[A-Za-z]\w*(?:\s*,\s*[A-Za-z]\w*)+")
_ROW = pattern(r"[(\[]([^()\[\]]*)[)\]]")
_UNPACKED = pattern(
    r"(?m)^(?P<lead>[ \t]*)(?:(?:const|let|var)[ \t]+)?(?P<names>[(\[A-Za-z][\w,\[\]() \t]{1,200}?)[ \t]*=[ \t]*"
    r"(?P<letter>[A-Za-z])(?:\[(?P<row>\d{1,3})\]|[\[(](?P<all>\d{1,3})[ \t]*,[ \t]*:[\])])?[ \t]*;?[ \t]*$"
)
"""Names that a row of a matrix is unpacked to, as `a11, a12 = A[0]`, or rows in brackets that a matrix is."""

_DOLLAR = pattern(r"[-+*(=]\s*\$[A-Za-z]")
"""A mark of Perl and PHP, which are not read."""

_SYMBOLS = pattern(r"([\w,\s()]+)=\s*(?:\w+\.)?(?:symbols|var|MatrixSymbol)\(\s*(['\"])([\w,\s]+)\2[^()]*\)")
"""Names that stand for themselves, as sympy has them."""

_BULLETS = pattern(r"(?m)^[ \t]*[-*+]\s+[^\n=]*=")
_BREAK = pattern(r"\\\\(?:\[[^\]]*\])?")
_REMARK = pattern(
    r"(?:\[[^\[\]=]*[A-Za-z]{3}[^\[\]=]*\]|\((?=[^()]*[A-Za-z]{4})[^()=]*\)|\s\d+(?:\s(?:half|full))?\s(?:multiplications|products)"
    r"|\s(?:let|where|with))$"
)
_BRACKETS = r"[\[({\])}]|\"[^\"\n]*\""
_SET = r"(?=(?!axis|dim)[A-Za-z]\w*(?:\[\d+,\d+\])?\s*:?=(?!=))"
_AND_THEN = r"(?:,|(?<!\s))\s+and\s+"
_PARTS = {
    False: pattern(rf"[\[{{\]}}]|(?:[,;]\s*|{_AND_THEN}|\.\s+(?:[A-Z][a-z]+,?\s+)?|(?<=\w|\))\s{{2,}}){_SET}|;"),
    True: pattern(rf"{_BRACKETS}|(?:(?<=[\])}}\d'])\s*,\s*){_SET}|;"),
}
"""What parts statements of prose, and of code."""

_SEVERAL = pattern(r"\s*(?P<names>[A-Za-z_]\w*+(?:\s*,\s*[A-Za-z_]\w*+)++)\s*=(?!=)(?P<values>[^=]+)")
_MATRIX_SET = pattern(r"\[((?:[^\[\]=]|\[\d+,\d+\])*)\]\s*:?=\s*\[([^=]*)\]")
_COMMAS, _ROWS = pattern(rf"{_BRACKETS}|,"), pattern(rf"{_BRACKETS}|;")
_NAME = pattern(r"[A-Za-z_]\w*")
"""Several names or a matrix of names that are set at once, what parts their values, and names."""

_EQUALS = {False: pattern(r"=|<-"), True: pattern(r"=|<-|(?<=[A-Za-z\d])\{\{")}
"""What sets a name in prose, and in code, where braces behind a name do, too."""

_RETURNED = pattern(r"\s*return\b")
_AND = pattern(r"[,.;]?\s+and\s+(?=[A-Za-z]\w*\s*=)")
_CLOSERS = {"/*": "*/", "(*": "*)", "<!--": "-->", "%{": "%}", "#{": "#}", "#=": "=#", '"""': '"""', "'''": "'''"}
_STRING = r"\"[^\"\\\n]*+(?:\"|\\.(?:[^\"\\\n]|\\.)*+\"?)|(?<![\w\])}'.])'[^'\n]*'"
_OPENER = pattern(rf"\"\"\"|'''|{_STRING}|/\*|\(\*|<!--|[%#]\{{(?=[ \t]*(?:\n|$))|#=(?!=)|#(?![a-z])[^\n]*|//[^\n]*")
"""What opens a comment or a long string, and the strings and comments of one line in which nothing does."""

_COMMENT = pattern(rf"{_STRING}|#(?!define\b)|//|%|(?:^|\s)!\s|^\s*(?:--|\\\\)\s")
_DIVISOR = pattern(r"\s*+[\w.]++(?:[\s)\]};,]*+$|\s*;\s*[A-Za-z_][\w\[\], ]*[-+*/]?=)")
_DIGIT = pattern(r"\s*\d")
_IN_PARENTHESES = pattern(r"(?m)^[ \t]*\((\d{1,4})\)[ \t]+(?=\S)")
_MANY_BLOCKS = pattern(r"[A-Za-z]\W{0,3}\d.*[A-Za-z]\W{0,3}\d.*[A-Za-z]\W{0,3}\d")
_CALLED = pattern(r"(?m)^[ \t]*[A-Za-z]+\(\d+\)\s*:?=")
_CONTINUED = pattern(r"^\s*&\s+(?=[-+*\w(])|(?:\.\.\.|\\|\s&)$")
"""Marks of MATLAB, Python and Fortran that a statement goes on."""

_AMPERSAND = pattern(r"[ \t]&[ \t]*$")
"""An ampersand at the end of a line, with which a Fortran statement continues on the next one."""

_WORDS = pattern(r"\s*[A-Za-z]{2,}[,:]?\s+[A-Za-z\d]")
_SUBSCRIPT = pattern(r"(?i)<sub>\s*([\d, ]+?)\s*</sub>")
_CELL = r"((?=[^,|=\t;]*?[A-Za-z]_?\{?\d)[^,|=\t;]++)"
_FACTORS_ROW = pattern(
    rf"^\s*+\|?\s*+(\d+|[A-Za-z]\w*(?:\{{\d+\}})?)\s*(?P<by>[,|\t;]){_CELL}(?:(?P=by){_CELL})?(?:(?P=by){_CELL})?\|?\s*$"
)
_END_OF_ROW = pattern(r"\s*\\\\(?:\s*\\hline)?\s*$")
_NO_QUOTES = {ord("`"): None, ord("$"): None}
_MATRIX = pattern(
    r"(?:\\left\s*[\[(.|]\s*)?\\begin\{(?P<kind>(?:[pbvB]?|small)matrix|array)\}(?:\{[lcr|@{}\s]*\})?(?P<rows>[^=]{1,200000}?)"
    r"\\end\{(?P=kind)\}(?:\s*\\right\s*[\]).|])?"
)
_CELL_NAMES = r"(?:\s*[A-Za-z]\w{0,9}[\s,]){1,9}\s*[A-Za-z]\w{0,9}\s*"
_MATRIX_OF_NAMES = pattern(rf"\(({_CELL_NAMES}(?:;{_CELL_NAMES}){{1,9}})\)")
_SPACES = pattern(r"(?:\\(?:[,;:!> ]|q?quad\b|left\b|right\b|[bB]igg?[lr]?\b)|(\\[A-Za-z]+)?\s+)")
_RULES = pattern(r"\s*\{(?=[^\"]*$)[^=:>]*[=:>]")
"""Rules of Mathematica, and dictionaries of Sage."""

_MAPPING = pattern(r"(?<=[{,])\s*([A-Za-z]\w*)\s*:\s*")
_TITLE = r"(?i:products|multiplications|outputs|results?|sums|additions|scheme)"
_RULER = pattern(rf"\s*(?:([-+=*_~#])\1{{2,}}(?:\s*(?:\d+\s+)?{_TITLE}:?\s*\1+)?|\|(?:\s*:?-+:?\s*\|)+)\s*")
_EQUATION_NUMBER = pattern(r"(?:\t|\s\s)\s*\(\d{1,3}\)$")
_SIDE_BY_SIDE = pattern(r"(?<=[A-Za-z]\d\d)(?=[A-Za-z]\d)")
_PLAIN = pattern(
    r"(?a)\s*(?=[(A-Za-z])(?>[-+*()=]\s*|\d+\s*\*\s*|[A-Za-z]{1,2}(?:\d+|\[\d+,\d+\])\s*(?![A-Za-z\d_\[,]))*"
)
"""A line that is in plain spelling already, as almost all lines of large files are."""

_WORD_TIMES = pattern(
    r"(?<=[)\d\]])(?:\s+[xX]\s+|\s*\.(?!\s+(?:[A-Za-z][\w\[\],]*\s*:?=|[A-Za-z]{2,}[\s,]))\s*(?![a-z]{2,}\())(?=[(A-Za-z])"
)
_ECHO = pattern(r"^(\s*(?:\d{1,3}:)?)([^\\_{}]*?)([A-Za-z]+_\{?\d+\}?\s*=.*\\.*)$")
_LINE = pattern(r"([^\n]*)(?:\n|$)")


def statements(text: str, code: bool = False) -> Iterator[Statement]:
    """Every statement of a text, in order; a line that ends with an operator continues in the next one.

    Of `code` names stay as they are written, lines keep their indentation, and what stands in brackets is one
    statement.

    Raises:
        SchemeFormatError: one that is no code has more than MAX_STATEMENT characters.
    """
    number, held, length, equals, open_, whole = 0, [""], 0, 0, 0, False
    listed = numbered(plain_code(text)) if code else ()
    lines = ((at, line.rstrip(), False) for at, line in listed if line.strip())
    for at, line, plain in chain(lines if code else _lines(text), ((0, "", False),)):
        last, first, more = held[-1][-1:], line[:1] or ";", len(_EQUALS[code].findall(line))
        added = first in "+-" and equals and line[1:2] != first
        goes_on = last and (last in "+-*=(,/" or (not code and (first in "*/=)" or added)))
        inside = code and held[0].lstrip()[:1] in ("[", "{") and (len(held) > 1 or line.lstrip()[:1] in ("[", "{", '"'))
        opened = equals or _RETURNED.match(held[0]) is not None
        within = open_ > 0 and (inside or (opened and (code or (equals < 2 and not more))))
        if line and (within or (goes_on and equals + more <= 1)):
            if within and not code and last not in "+-*=(,/[{;" and first not in "+-*/=)]}":
                held[-1] += "," if first == "[" else ";"  # the next row of a matrix
            held.append(line)
            length, equals, open_ = length + len(line), equals + more, open_ + _depth(line, code, held[0])
        else:
            if last:
                joined = "\n".join(held) if code else " ".join(held)
                yield from [(number, joined)] if whole and len(held) == 1 else _parted(number, joined, code)
            number, held, length, equals, whole = at, [line], len(line), more, plain
            open_ = _depth(line, code, line)
        if length > MAX_STATEMENT and not code:
            raise SchemeFormatError(f"a statement of more than {MAX_STATEMENT >> 20} MiB", line=number)


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers, one at a time: a list of short lines takes ten times their memory."""
    return ((number, match[1]) for number, match in enumerate(_LINE.finditer(text), start=1))


def _depth(line: str, code: bool, start: str) -> int:
    """How many more brackets a line of a statement opens than it closes; braces only where a list starts."""
    opened, closed = ("[({", "])}") if code else ("[{", "]}") if re.search(r"=\s*\{", start) else ("[", "]")
    return sum(map(line.count, opened)) - sum(map(line.count, closed))


def cut(text: str, separators: re.Pattern[str]) -> list[str]:
    """The parts of a text between separators that stand in no brackets and no string."""
    parts, start, depth = [], 0, 0
    for match in separators.finditer(text):
        mark = match.group()
        if mark in ("[", "(", "{", "]", ")", "}"):
            depth = max(depth + (1 if mark in "[({" else -1), 0)
        elif mark[0] != '"' and not depth:
            parts.append(text[start : match.start()])
            start = match.end()
    return [*parts, text[start:]]


def plain_code(text: str) -> str:
    """The text without comments, with LaTeX's matrices as rows."""
    text = without_block_comments(text, code=True)
    if ("\\begin{" in text or "\\frac" in text) and text.lstrip()[:1] not in ("{", "["):
        lines = matrices_as_lists(text, inside=True).splitlines()
        plain = (spelled(without_comment(line).replace("\\\\", " ").replace("&", " ")) for line in lines)
        return "\n".join(_AND.sub(";", line) for line in plain)
    return "\n".join(_AMPERSAND.sub("", without_comment(line)) for line in text.splitlines())


def without_block_comments(text: str, code: bool = False) -> str:
    """The text without comments and docstrings that may have several lines; line ends stay.

    Marks in a string or a comment of one line open none. In `code`, long strings elsewhere in a line are emptied.
    """
    # In LaTeX %{, in Python #{ is a comment of one line.
    octave = {"%{": "_{" not in text and "\\begin" not in text, "#{": ";\n" in text}
    last = {one: text.rfind(_CLOSERS[one]) for one in _CLOSERS if one in text and octave.get(one, True)}
    parts: list[str] = []
    position = at = 0
    while last and (match := _OPENER.search(text, at)):
        opener, start, at = match.group(), match.start(), match.end()
        if at > last.get(opener, -1):
            continue
        before = text[max(start - MAX_GAP, 0) : start].rpartition("\n")[2].strip()
        alone = opener[0] not in "\"'%#" or before in ("", "r")
        if alone or opener == _CLOSERS[opener]:
            at = text.index(_CLOSERS[opener], at) + len(_CLOSERS[opener])
            if alone or code:
                parts += [text[position:start], " " if alone else '""', "\n" * text.count("\n", start, at)]
                position = at
    return "".join(parts) + text[position:] if parts else text


def without_comment(line: str) -> str:
    """A line without its comment; `//` before one word or between two divides, and `%` before one is a remainder, but
    not in LaTeX.
    """
    latex = "_{" in line or "\\" in line
    for match in _COMMENT.finditer(line):
        mark, start, end = match.group(), match.start(), match.end()
        before, after = line[max(start - MAX_GAP, 0) : start].rstrip(), line[end : end + 1]
        opens = not before or before[-1] in ";,&{}" or before.endswith("\\\\")
        if mark[0] in "\"'" or (before[-1:] == "\\" and not opens):
            continue
        inside = not opens and line[start - 1].isalnum() and after.isalnum()
        applied = not opens or before.endswith("}}")  # {{1, 0}, {0, 1}} // Transpose of Mathematica
        if mark == "//" and (after == "=" or inside or (applied and _DIVISOR.match(line, end))):
            continue
        if mark == "%" and (
            _DIGIT.match(line, end) if before[-1:] in "{}" else not (opens or latex or _WORDS.match(line, end))
        ):
            continue
        return line[:start].rstrip()
    return line


def matrices_as_lists(text: str, inside: bool = False) -> str:
    """The text with the matrices of LaTeX as rows in brackets; line ends stay, behind the brackets or inside."""
    if "\\begin{" not in text:
        return text

    def rows(match: re.Match[str]) -> str:
        ends = "\n" * match.group().count("\n")
        body = _BREAK.sub(";", match["rows"].strip()).strip().rstrip(";").replace("&", ",")
        tight = _SPACES.sub(lambda space: f"{space[1]} " if space[1] else "", body)
        return f"[{tight}{ends}]" if inside else f"[{tight}]{ends}"

    return _MATRIX.sub(rows, text)


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """The lines that say something, in plain spelling, and whether they were so already and are one statement."""
    latex = "\\\\" in text or "\\begin" in text
    text = _unnumbered(_with_accents(matrices_as_lists(without_block_comments(text))))
    bulleted = len(_BULLETS.findall(text)) > 2
    for number, line in numbered(text):
        if line.lstrip().startswith(("```", "~~~")) or _RULER.fullmatch(line):
            continue
        whole = len(line) > MAX_STATEMENT or _PLAIN.fullmatch(line) is not None
        for part in (line.strip(),) if whole else _parts(line, latex, bulleted):
            yield number, part, whole


def _with_accents(text: str) -> str:
    """A text whose accented letters are other names than plain ones: `\\bar{a}` beside `a` is `abar`."""
    accented = {match["letter"] for match in _ACCENTED.finditer(text)}
    rest = _ACCENTED.sub("", text) if accented else ""
    other = {letter for letter in accented if re.search(rf"(?<![A-Za-z\\]){letter}\s*_", rest)}

    def named(match: re.Match[str]) -> str:
        return f"{match['brace']}{match['letter']}{match['accent']}" if match["letter"] in other else match.group()

    return _ACCENTED.sub(named, text)


def _unnumbered(text: str) -> str:
    """A text without what counts its lines and is no coefficient: (1), (2), ... or a bullet at all products.

    Where names have an index in parentheses on the left of a sign, as `m(1) =`, all such are written as m[1].
    """
    counted = _IN_PARENTHESES.findall(text[:MAX_SPLIT])
    if len(counted) > 2 and counted == list(map(str, range(1, len(counted) + 1))):
        text = _IN_PARENTHESES.sub("", text)
    marks = {line.lstrip()[:2] for line in text[:MAX_SPLIT].splitlines()[:-1] if _MANY_BLOCKS.search(line)}
    if len(marks) == 1 and marks <= {"- ", "* "}:
        text = re.sub(rf"(?m)^[ \t]*{re.escape(min(marks))}", "", text)
    text = re.sub(r"\b([A-Za-z]+)\((\d+)\)", r"\1[\2]", text) if _CALLED.search(text) else text
    return _rows_unpacked(text)


def _rows_unpacked(text: str) -> str:
    """A text with the names that a row or a whole matrix is unpacked to, each set to its block.

    `a11, a12 = A[0]` is `a11, a12 = A[0][0], A[0][1]`. Columns count from where the rows do: 0, or 1.
    """
    base = min((int(row) for match in _UNPACKED.finditer(text) if (row := match["row"] or match["all"])), default=0)

    def blocks(match: re.Match[str]) -> str:
        row, names = match["row"] or match["all"], match["names"]
        rows = [names.strip("[]() ")] if row else _ROW.findall(names)
        rest = "" if row else _ROW.sub("", names).strip("[](), \t")
        lists = [re.split(r"\s*,\s*", part.strip()) for part in rows]
        if base > 1 or rest or len(set(map(len, lists))) != 1 or not all(map(_ROW_NAMES.fullmatch, rows)):
            return match.group()
        at = {name: (int(row or base) + i, base + j) for i, part in enumerate(lists) for j, name in enumerate(part)}
        values = ", ".join(f"{match['letter']}[{i}][{j}]" for i, j in at.values())
        return f"{match['lead']}{', '.join(at)} = {values}"

    return _UNPACKED.sub(blocks, text)


@lru_cache(maxsize=512)
def _parts(line: str, latex: bool, bulleted: bool) -> tuple[str, ...]:
    """The parts of a line in plain spelling. Several formats look at the same lines to tell whether they are theirs."""
    plain = without_comment(line).rstrip()
    if (same := _SYMBOLS.fullmatch(plain)) and re.findall(r"\w+", same[1]) == re.findall(r"\w+", same[3]):
        return ()
    if not latex:
        plain = _CONTINUED.sub("", plain).rstrip()
    if "\\" in plain:
        plain = _ECHO.sub(_without_echo, plain)
    if _RULES.match(plain):
        plain = plain.strip()[1:].rstrip("},; ")
        plain = plain if "=" in plain else _MAPPING.sub(r" \1 = ", "{" + plain)[1:]
    cells = plain if plain.count("&") < 2 else _END_OF_ROW.sub("", plain).replace("&", "|")
    if "=" not in plain and (row := _FACTORS_ROW.match(cells.translate(_NO_QUOTES))):
        name, left, right, third = row.group(1), row.group(3), row.group(4), row.group(5)
        if third:
            plain = f"({left})*({right})*({third})"
        elif right or not name.isdigit():
            plain = f"{'m' * name.isdigit()}{name} = ({left})*({right})" if right else f"{name} = {left}"
    found = []
    for part in _BREAK.split(plain) if latex else (plain,):
        part = part.replace("&", " ") if latex else part
        numbering = _NUMBERING if bulleted or ("=" in part and part.lstrip()[:1] != "-") else _COUNTED
        part = _trimmed(spelled(numbering.sub("", part.lstrip())))
        part = numbering.sub("", part)
        if part:
            goes_on = plain.endswith(";") and ("=" not in part or part.count("[") > part.count("]"))
            found.append(f"{part};" if goes_on else part)
    return tuple(found)


def _without_echo(match: re.Match[str]) -> str:
    """A formula of a web page that stands there twice, as text and as LaTeX: the LaTeX; any other line as it is."""
    numbering, said, latex = match.groups()
    squeezed, once = (re.sub(r"[^\w+]|_", "", spelled(part)) for part in (said, latex))
    return numbering + latex if squeezed and once.startswith(squeezed) else match.group()


def _parted(number: int, text: str, code: bool) -> Iterator[Statement]:
    for one in (text,) if code else _unpacked(text):
        for part in cut(one, _PARTS[code]):
            if shorter := part.rstrip(" \t.,;:") if code else _trimmed(part):
                yield number, shorter


def _unpacked(text: str) -> Sequence[str]:
    """The equations that a statement of several names, or of a matrix, stands for: m1, m2 = a11*b11, a12*b21.

    The statement itself if it is none, or sets a name that it reads: then one after the other means something else.
    """
    match = _SEVERAL.fullmatch(text) or _MATRIX_SET.fullmatch(text)
    if match is None:
        return (text,)
    names = [[name for part in cut(row, _COMMAS) for name in part.split()] for row in cut(match[1], _ROWS)]
    values = [cut(row, _COMMAS) for row in cut(match[2], _ROWS)]
    flat = list(chain.from_iterable(names))
    if list(map(len, values)) != list(map(len, names)) or not set(flat).isdisjoint(_NAME.findall(match[2])):
        return (text,)
    return [f"{name} = {value}" for name, value in zip(flat, chain.from_iterable(values), strict=True)]


def _trimmed(text: str) -> str:
    """A statement without blanks, punctuation and a remark in brackets at its end."""
    text = text.strip().rstrip(".,;: \t")
    if text[-1:] == ")" and "=" in text:
        text = (text[:-20] + _EQUATION_NUMBER.sub("", text[-20:])).rstrip()
    if (text[-1:] in ("]", ")") or text[-1:].islower()) and len(text) < MAX_SPLIT and (remark := _REMARK.search(text)):
        before = text[: remark.start()]
        if remark.group()[0].isspace() or (
            before[-1:].isspace() and not CHANGES.search(remark.group()) and not re.search(r"\b\d", remark.group())
        ):
            text = before.rstrip(".,;: \t")
    return text


def spelled(text: str) -> str:
    """A line with its names and signs in one spelling."""
    if ";" in text and "(" in text:
        text = _MATRIX_OF_NAMES.sub(r"[\1]", text)
    if _WORD_TIMES.search(text):
        text = _WORD_TIMES.sub("*", text)
    if not _MARKUP.search(text):
        return _SIDE_BY_SIDE.sub("*", text)
    latex = "\\" in text or "$" in text or "_{" in text
    if "<" in text:
        text = re.sub(r"</?(?:math|p|br|i|b|em|strong|li)\s*/?>", " ", _SUBSCRIPT.sub(r"_{\1}", text.replace("''", "")))
    if "\\" in text or "^" in text or "_{" in text:
        for command, replacement in _COMMANDS:
            text = command.sub(replacement, text)
    if "$" in text and _DOLLAR.search(text):
        return text
    text = text.translate(_SIGNS).replace("~", " " if latex else "~")
    for name, replacement in _NAMES:
        text = name.sub(replacement, text)
    if latex:
        text = text.replace("{", "(").replace("}", ")")
    return _SIDE_BY_SIDE.sub("*", text)
