"""The statements of a text of equations: those that set a name, and those that must be prose, matrices or cuts.

A line that names a block or a product must be understood, unless it is prose without an operator.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass, field

from ...errors import SchemeFormatError
from .lines import Statement, cut
from .naming import NAME, WORD, family, letters_of
from .patterns import ANYTHING, DECORATOR, HEAD, SHOWN, changes_all, changes_something, check_setting, pattern
from .reading import on_line
from .syntax import Value

_ASSIGNED = pattern(
    rf"^(?P<words>(?:[A-Za-z]+[ ,:]\s*)*?)(?P<name>{NAME})\s*(?::\s*(?:[A-Za-z.]{{3,}}|[fi]\d\d)(?=\s*=))?\s*"
    r"(?P<sign>:=|\+=|-=|=(?!=)|<-|:(?!.*=))\s*(?P<right>.*)$",
    re.DOTALL,
)
_REVERSED = pattern(rf"^(.*[)\d\]])\s*=\s*({NAME})$")
_MATRIX = pattern(
    r"^(?:return\b|\(?[A-Za-z]\w*(?P<turned>')\)?\s*:?=)\s*(?:(?:new\s+[a-z]\w*)?(?:\[[\d,]*\])+\w*\s*(?=\{))?(?P<right>[\[({A-Za-z].*)$",
    re.DOTALL,
)
"""A matrix that is returned, and one that is transposed as it is set."""

_CELLS = r"\[(?:[^\[\]=]|\[\d+,\d+\])+\]"
_SHOWN_MATRIX = pattern(rf"(?=.*;){_CELLS}|Matrix\(\[\[.*\]\]\)|\{{\{{[^=]*\}}\}}")
_PRODUCT = pattern(rf"(?P<left>{_CELLS})\s*[*.]?\s*(?P<right>{_CELLS})\s*(?:=\s*(?P<out>{_CELLS}))?")
"""Matrices that are multiplied, and what their product is called."""

GROUP = pattern(r"[\[(]([^\[\]()=]*;[^\[\]()=]*)[\])]")
_A_TIMES_B = pattern(r"(?i)c\s*=\s*a\s*[*@.]?\s*b\s*=\s*(?=\[)")
_FOREIGN = frozenset(("assign", "wire", "reg", "my", "logic"))
"""Words before a name in languages that are not read."""

_CONDITIONS = frozenset(("if", "elif", "unless", "when", "while", "not", "wrong", "neg", "minus", "conj"))
"""Words before a name that is not set then, or not to what stands behind the sign."""

_DECLARED = pattern(
    r"(?:(?:static|const|unsigned|long)\s+)*(?:int|float|double|long|short|auto|real|matrix|t|scalar)(?:\[\])*(?:(?:\s*,\s*\w+(?:[(\[][^()=\[\]]*[)\]])?)+\s*::|[\s:&*]+)\s*"
    r"\w+(?:[\[(][\d,\s]*[\])])*(?:\s*,\s*\**\w+(?:[\[(][\d,\s]*[\])])*)*",
    re.IGNORECASE,
)
"""A declaration without a value, such as `double m1, a[2][2]`."""

_PROGRAM = pattern(
    r"\s*(?:(?:for|while|elif|try|with|raise|yield|switch)\b.*[:({;=\])]|[\w.]+\(.*\)\s*;?$"
    r"|(?:\w+\s+)?[A-Za-z_][\w.]*(?:\[.*\])?\s*[-+*/]?=\s*+(?!len\(|size\(|length\(|np\.zeros|zeros\().*\w[\[(])"
)
"""What is no part of a function of products: loops, calls, and values from calls."""

_PURE = pattern(
    r"einsum|len|shape|sum|max|min|abs|allclose|array_equal|zeros|dot|matmul|outer|kron|tensordot|range|print|str|dict|list"
    r"|tuple|array|asarray|size|reshape|norm|ones|eye|mod|permute|isequal|matrix_rank|ravel|numel|float|int|round|sqrt|all"
    r"|any|zip|enumerate|n?nz|count_nonzero|copy|save[z\w]*|dumps?|open|write|format|assert|disp|display|[sf]?printf|println|puts|log"
    r"|check\w*|verify\w*|test\w*|tolist|mean|if|and|or|not|in|map|expand|simplify|add|op|Trace|Transpose"
)
"""Functions that do not change their arguments."""

_KEYWORD = pattern(r"\s*(?:import|from|def|class|del|global|nonlocal|for|while|match|with|except)\b")
_LOOKS = pattern(
    r"\s*(?:(?:check\w*|verify\w*|test\w*|show\w*|raise|return(?!\s*\(?[^('\"]*(?:[-+*/@%^]|\bfor\b)))\b"
    r"|(?!.*\)[\s'.]*[-+*/]?=(?!=))(?!(?:\w+\.)*(?:add|dot|matmul|outer|kron|mod|abs|round|sqrt|copy)\()[\w.]+\((?s:.*)\)\s*;?\s*$"
    r"|(?P<new>[A-Za-z_]\w*)\s*[-+*/]?=(?!=)\s*(?:(?:np\.|numpy\.)?(?:einsum\((?=[^,]*,[^'\"]*['\"])|(?:len|sum|max|min|n?nz|count_nonzero|zeros|range|str|size"
    r"|numel)\()|\w+\.(?:shape|ndim|size|copy)\b))"
)
"""Checks, calls without a place for a result, and names that are set to what is no view of an array."""

_SETS = pattern(r"\bout\s*=|:=|\+\+|--|[()][^()]*[-+*/%]=")
"""What sets a name within a statement."""

_METHOD = pattern(r"\b(\w+)\.(?!(?:shape|ndim|size|dtype|nbytes|T)\b)[A-Za-z_]\w*+(?!\s*\()")
"""A method that is handed on, as in `map(u.append, v)`."""

_CALLED = pattern(r"\b(?:map|filter)\(\s*(?:\w+\.)*(\w+)|\b(\w++)\(|\bkey\s*=\s*(?:\w+\.)*(\w+)")
"""Functions that are called, here or by another one."""

_ITEM = r"(?:[^(),]|\((?:[^()]|\([^()]*\))*\))*+"
_OUT = pattern(
    rf"\.(?:(?:abs|sqrt|round|sum|max|min|any|all|mean)\({_ITEM}|(?:add|dot|mod|matmul|outer)\({_ITEM},{_ITEM})"
    rf"((?:,{_ITEM})+)"
)
"""The arguments of functions of numpy among which that may be which the result is written to."""

_PARTED_NAME = pattern(r"\b([A-Za-z]) (\d)")
_SCALED_NAME = pattern(r"(?<![\w-])\d[\d./]*\s+([A-Za-z]\w*\d)\b")
"""A name with a blank before its index, and one with a number before it."""

_RANGE = pattern(r"\b([A-Za-z]+)_?\d+\s*(?:-|\.\.\.?|\u2026)\s*\1?_?\d+\b")
_WHOLE = pattern(
    r"(?:return\b|(?P<several>[(\[]\s*)?(?P<letter>[a-z])(?P<part>\([^()]*[:\[][^()]*\))?(?(several)\s*,[a-z\s,]*[)\]])\s*"
    r"(?P<sign>[-+*/@]?=(?!=)|:=|<-))(?P<right>.*)",
    re.IGNORECASE,
)
_CALL = pattern(r"(?i)(?!(?:\w+\.)*(?:assert|plot|show|imshow|time|strassen|\w*mul))[\w.]+\([^=]*\)\s*;?")
_IN_PLACE = pattern(
    r"(?i)(?<![\w.])([a-z])(?:\.t\b|\[[^\]=]{0,200}\]|\([^()=]{0,200}\))*\s*(?:[-+*/@%.]+=(?!=)|\.(?:fill|sort|put|resize)\()"
    r"|(?<![\w.])([a-z])[\[(](?=[^\])=]{0,200}(?::|\.\.))[^\])=]{0,200}+[\])]\s*=(?!=)"
    r"|\bout\s*=\s*([a-z])\b|(?:\w!|\bcall\s+\w+)\([^()]*?\b([a-z])\b"
    # c[i] = -c[i] of a loop, and c = -c in one
    r"|(?<![\w.])([a-z])(?:_\w|[\[({](?!\d))[^=]{0,200}?(?::?=(?!=)|<-)[^=]{0,200}?(?<![\w.])\5(?:_|(?![\w.]))"
    r"|(?<=:)\s*([a-z])\s*(?::?=(?!=)|<-)[-+*/.\d\s]*(?<![\w.])\6(?![\w.])"
)
"""Parts of a matrix, or all of it, that a statement changes where they lie."""
_OTHER_RESULT = pattern(
    r"(?i)(?:(?:return|yield|print|outputs?|results?)\b:?\s*|[a-z]\w*\s*(?::?=(?!=)|<-)\s*)(?:(?:-\s*+(?:[\d./]++\s*+\*?\s*+)?|[\d./]++\s*+\*?\s*+)c|(?:[a-z]\w*\.)?transpose\(\s*c\s*\)"
    r"|c\s*(?:'|\.t\b|\^\s*t\b|[*/]\s*[-\d.]+))[\s;]*"
)
"""A multiple or the transpose of C under another name, or returned."""

_SETTING = pattern(r"([A-Za-z_]{2,})[\s:]+([-+]|[-+\d./, ]*\d)")
"""A setting beside equations, such as `scale 2` or `weights: 1, 2, 1`."""

_MULTIPLE = pattern(r"-\s*\w+|[-\d./]+\s*(?:[A-Za-z]\w?|\*\s*\w+)|[A-Za-z]\w*\s*(?:[*/^'].*|\u1d40)")
_RESULT = pattern(r"return|(?i:outputs?|results?)\b")
_SENTENCE = pattern(r"\b[A-Za-z]{3,}[\s,]+[A-Za-z]\w*\s*$")
_SAID = pattern(r"[\[({\])}]|(?<![<>:=])=(?!=)")
_GARBAGE = pattern(r"(?=.*\d)(?:[-+*/^]|(?=.*[*/^]))[-+*/^()\[\]{}.\d\s]*")


@dataclass(eq=False)
class Equation:
    """One statement `name = text`; `sign` is not 0 where it adds to a value, as in `c11 += m1`.

    The name is empty where a matrix is returned.
    """

    line: int
    name: str
    texts: list[str]
    """What the name is said to be, once or more: c11 = a11 b11 + a12 b21 = m1 + m2."""

    sign: int = 0
    third: bool = False
    """Whether it has no name, and is a sum of products with a third factor."""

    cyclic: bool = False
    """Whether such products stand for their three rotations."""

    again: bool = False
    """Whether its name has a value already."""

    value: Value = None
    fault: SchemeFormatError | None = None
    uses: set[str] = field(default_factory=set)
    """The names that its value is computed from, without most that have an index."""


def matrices_in(line: int, text: str) -> list[Statement]:
    """A statement as those that it stands for: `[a b; c d] * [e f; g h] = [r s; t u]` says what A, B and C are."""
    if match := _PRODUCT.fullmatch(text):
        parts = zip(("A =", "B =", "return"), match.groups(), strict=True)
        return [(line, f"{said} {part}") for said, part in parts if part]
    # A matrix that stands alone is returned, as the last line of a function of Julia or Maple is.
    shown = "return " if _SHOWN_MATRIX.fullmatch(text) else ""
    return [(line, shown + _A_TIMES_B.sub("C = ", text))]


def split_equation(line: int, text: str) -> Equation | None:
    """The equation that a statement is, or None.

    Raises:
        SchemeFormatError: a statement of a language that is not read, or a name set to two unlike things.
    """
    if match := _MATRIX.match(text):
        return Equation(line, "", [f"({match['right']})'" if match["turned"] else match["right"]])
    match = _ASSIGNED.match(text)
    foreign = {text} & {"begin", "where"} or (match and _FOREIGN.intersection(match["words"].split()))
    if foreign:
        raise SchemeFormatError(f"{min(foreign)!r} belongs to a language that is not read", line=line)
    if match is None:
        reversed_ = _REVERSED.match(text)
        return Equation(line, reversed_[2], [reversed_[1]]) if reversed_ else None
    name, right = match["name"], match["right"]
    if letters_of(name) and _CONDITIONS.intersection(re.findall(r"[a-z]+", match["words"].lower())):
        raise SchemeFormatError(f"{name} is set under a condition, or is said not to be that", line=line)
    first, *others = cut(right, _SAID) if "=" in right else (right,)
    if not first.strip() or (right.count("(") != right.count(")") and not re.search(r"\d", right)):
        return None  # prose such as: let A = (a b; c d)
    if (letters_of(name) and not all(map(WORD.search, others))) or (others and _SENTENCE.search(first)):
        # m1 = x = y says twice what m1 is, m1 = x = 3 nothing
        raise SchemeFormatError("expected one equation a line, such as m1 = (a11 + a22)(b11 + b22)", line=line)
    return Equation(line, name, [first.strip(), *others], {"+=": 1, "-=": -1}.get(match["sign"], 0))


def only_looks(text: str, data: Set[str]) -> bool:
    """Return whether a statement that is not understood changes none of the names `data`: it is prose, a check, shows
    them, or sets a new name to what is computed from them.
    """
    if not changes_something(text):
        return not _KEYWORD.match(text) and data.isdisjoint(_SCALED_NAME.findall(text))
    looks = _LOOKS.match(text)
    called = {name for found in _CALLED.findall(text) for name in found if name}
    pure = all(map(_PURE.fullmatch, called - data)) and not _SETS.search(text)
    pure = pure and data.isdisjoint(_METHOD.findall(text) + WORD.findall(" ".join(_OUT.findall(text))))
    return pure and bool(SHOWN.match(text) or (looks and looks["new"] not in data))


def is_caseless(equations: list[Equation]) -> bool:
    """Return whether no two names differ in case alone; a Roman I is a name, i a number."""
    names = {each.name for each in equations}
    capital = {name.lower() for name in names if name.isalpha() and name != name.lower()}
    clash = any(not capital.isdisjoint(re.findall(r"\w+", each.texts[0])) for each in equations if capital)
    return len({name.lower() for name in names}) == len(names) and not clash and "I" not in names


def account_for(line: int, text: str, equation: Equation | None, families: Set[str], first: int) -> bool:
    """Account for a statement that gives no name a value, beside blocks and products of these letters.

    The first equation that counts stands on the line `first`. Return whether the statement looks like a program and
    has no block in it.

    Raises:
        SchemeFormatError: it does something to a block or a product, and what is not known.
    """
    if HEAD.match(text) or _DECLARED.fullmatch(text):
        return False
    if _GARBAGE.fullmatch(text) or changes_all(text):
        raise SchemeFormatError(f"{text[:40]!r} belongs to no equation", line=line)
    if setting := _SETTING.fullmatch(text):
        with on_line(line):
            check_setting(*setting.groups())
    if line > first and ANYTHING.match(text):
        raise SchemeFormatError(f"{text[:40]!r} may set any name", line=line)
    if line < first and DECORATOR.fullmatch(text):
        raise SchemeFormatError(f"what {text[:40]!r} does to a function is not known", line=line)
    returns = _RESULT.match(text) is not None
    if returns and "," in text:
        places = [family(name)[1] for name in WORD.findall(text)[1:]]
        if all(len(place) == 2 for place in places) and places != sorted(places):
            raise SchemeFormatError("outputs are returned in another order than that of their places", line=line)
    unknown = f"{text[:40]!r} is no equation; write one a line, such as m1 = (a11 + a22)(b11 + b22)"
    fault = (equation and equation.fault) or SchemeFormatError(unknown, line=line)
    if changes_a_matrix(text, families) or (equation and equation.again):
        raise fault
    name = equation.name if equation else ""
    new = name.isalnum() and not letters_of(name) and name.lower() not in families
    shut = _PARTED_NAME.sub(r"\1\2", text) if "=" in text else text
    data = {word for word in WORD.findall(shut) if letters_of(word) in families}
    understood = equation and equation.fault is None and len(equation.texts) == 1
    if not data or (new and understood):  # a name that nothing uses
        return not new and _PROGRAM.match(text) is not None
    shown = _RANGE.sub("", text) if len(re.findall(r"[A-Za-z]{3,}", text)) > 1 else text
    returned = returns and changes_something(shown)  # outputs in an order that is not known
    if returned or not only_looks(shown, data):
        raise fault
    return False


def scales_a_column(text: str) -> bool:
    """Return whether the head of a table has a column of multiples, as `| product | 2A | B/2 |` has."""
    cells = [cell.strip() for cell in re.split(r"[|,;\t]", text.strip("| "))]
    is_row = len(cells) > 1 and ("|" in text or all(cell and " " not in cell for cell in cells))
    return is_row and any(map(_MULTIPLE.fullmatch, cells))


def changes_a_matrix(text: str, families: Set[str]) -> bool:
    """Return whether a statement makes another matrix of A, B or C as a whole: A = 2*A, return C.T, D = -C."""
    if "c" in families and _OTHER_RESULT.fullmatch(text):
        return True
    whole = families & set("abcxyz") & set(re.findall(r"(?<![\w.])[a-z](?![\w(])", text.lower()))
    named = {letter.lower() for letters in _IN_PLACE.findall(text) for letter in letters if letter}
    if named & families and not {"a", "b"} <= {*re.findall(r"\b[a-z]\b", text.partition("=")[2].lower())}:
        return True
    match = _WHOLE.match(text)
    if match is None:
        return bool(whole and _CALL.fullmatch(text)) and not only_looks(text.lower(), whole)
    letter, sign, right = (match["letter"] or "").lower(), match["sign"] or "", match["right"].lower()
    bare = families & set(re.findall(rf"(?<![\w.])(?:[a-z](?![\w(])|{letter or 0}\b)", right))
    if not letter:
        return bool(re.search(r"[-+*/'^.@\[]", right) and bare & {"c", "z"})
    product = re.sub(r"[\s*@().;,]", "", right)  # c = b a is another product
    other = letter == "c" and re.fullmatch(r"[-+abo]+", product) and product != "ab"
    changed = sign[0] in "-+*/@" or letter in bare or len(bare) == 1 or match["several"] or match["part"] or other
    return letter in families and bool(changed)
