"""Text as people write it, split into plain statements: LaTeX, code fences, numbering and comments removed.

What is left of a line are statements in one spelling: names as `a11`, `a[1,10]` or `m3`, products
by `*` or side by side, `=` between a name and its value. What a statement means is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from .patterns import pattern

MAX_SPLIT = 10_000
"""Characters up to which a line is looked at for remarks and for several names on the left of one sign."""

Statement = tuple[int, str]
"""The number of its line, from 1, and its text."""

_MARKUP = pattern(
    r"[\\$&_^{}`~@<\[\u2080-\u2089\u2212\u2013\u2190\u2254\u2217\u22c5\u00b7\u00d7\u2219\u2022\u2295-\u2299]"
    r"|[A-Za-z]\(\s*\d|->|\*\*|[A-Z] \d|Eq\("
)
_COMMANDS = tuple(
    (pattern(text), replacement)
    for text, replacement in (
        (r"\\(?:tag|label|qquad|quad|hspace|vspace|ref|eqref|text|mbox|intertext)\*?\{[^{}]*\}", " "),
        (r"\\(?:[td]?frac)\{([-+]?\d+)\}\{(\d+)\}", r"(\1/\2)"),
        (r"\\(?:[td]?frac)(\d)(\d)", r"(\1/\2)"),
        (r"\\(?:begin|end)\{[^{}]*\}(?:\{[^{}]*\})?", " "),
        (
            r"\\(?:left|right|big|Big|bigg|Bigg|bigl|bigr|Bigl|Bigr|displaystyle|quad|qquad|nonumber|notag|limits)\b",
            " ",
        ),
        (r"\\(?:cdot|times|ast|star|cdotp|circ|bullet|otimes|odot)\b\s*", "*"),
        (r"\\oplus\b", "+"),
        (r"\\ominus\b", "-"),
        (r"\\(?:mathrm|mathbf|mathit|mathcal|mathsf|bm|boldsymbol|operatorname)\b", ""),
        (r"\\(?:hat|tilde|bar|widehat|widetilde|overline|underline)\b", ""),
        (r"\\(?:coloneqq|gets|leftarrow|triangleq|equiv)\b", "="),
        (r"\\[,;:!> ]", " "),
        (r"\\[\[\]()]", " "),
    )
)
_SIGNS = str.maketrans(
    {
        "\u2212": "-",
        "\u2013": "-",
        "\u2217": "*",
        "\u22c5": "*",
        "\u00b7": "*",
        "\u00d7": "*",
        "\u2219": "*",
        "\u2022": "*",
        "\u2295": "+",
        "\u2296": "-",
        "\u2297": "*",
        "\u2299": "*",
        "@": "*",
        "\u2190": "=",
        "\u2254": "=",
        "$": " ",
        "&": " ",
        "~": " ",
        "`": " ",
        **{chr(0x2080 + digit): str(digit) for digit in range(10)},
    }
)
_LETTERS = r"(?<![A-Za-z0-9_])([A-Za-z]+)"
_NAMES = tuple(
    (pattern(text), replacement)
    for text, replacement in (
        (r"\{([A-Za-z]+)\}", r"\1"),  # \mathbf{A}
        (r"\*\*([A-Za-z]\w*)\*\*(?=\s*:?=)", r"\1"),  # **M1** = in Markdown
        (r"\*\*(?=\s*[A-Za-z(])", "*"),
        (r"->", "="),
        (r"\[\[\s*(\d+)\s*,\s*(\d+)\s*\]\]", r"[\1,\2]"),
        (r"^\s*(?:sp\.|sympy\.)?Eq\((\w+),(.*)\)$", r"\1 = \2"),
        (r"(?<![A-Za-z0-9_])([A-Z]) (\d{1,3})(?=\s*[-+*()=A-Z,.;]|\s*$)", r"\1\2"),  # A 11, as PDFs give it
        (rf"{_LETTERS}\s*_\s*\{{\s*(\d+)\s*[,;]?\s+(\d+)\s*\}}", r"\1[\2,\3]"),
        (rf"{_LETTERS}\s*_?\s*\{{\s*(\d+)\s*[,;]\s*(\d+)\s*\}}", r"\1[\2,\3]"),
        (rf"{_LETTERS}\s*_\s*\{{\s*(\d+)\s*\}}", r"\1_\2"),
        (rf"{_LETTERS}\^\{{\(\s*(\d+)\s*\)\}}", r"\1_\2"),  # M^{(1)}
        (rf"{_LETTERS}_\(\s*(\d+)\s*\)", r"\1_\2"),  # a_(11), as Typst has it
        (rf"{_LETTERS}\[\s*(\d+)\s*\]\s*\[\s*(\d+)\s*\]", r"\1[\2,\3]"),
        (rf"{_LETTERS}\(\s*(\d+)\s*,\s*(\d+)\s*\)", r"\1[\2,\3]"),
        (rf"{_LETTERS}\(\s*(\d+)\s*\)(?=\s*:?=)", r"\1_\2"),
        (rf"{_LETTERS}_(\d+)\s*,\s*(\d+)", r"\1[\2,\3]"),
        (rf"{_LETTERS}\[\s*(\d+)\s*\]", r"\1_\2"),
        (r"(?<![A-Za-z0-9_])([A-Za-z]+)_(\d+)(?!\w|,\d)", r"\1\2"),
    )
)
_CALLS = pattern(
    r"(?i)(?<![\w.])(?:(?:np|numpy|torch|tf|jnp|self|this)\.)?"
    r"(?:(?P<plus>add|plus|sum)|(?P<minus>sub|subtract|minus|diff)"
    r"|dot|matmul|mul|multiply|mult|mm|prod|product|times|\w*strassen\w*|\w*winograd\w*)(?:_?mat(?:rix|rices)?)?\s*\("
)
_COUNTED = pattern(r"^(?:\d{1,4}[.)]\s+|[\u2022>]\s*)+")
_NUMBERING = pattern(
    r"^(?:(?:[-*+\u2022>]|\(?\d{1,4}[.)]|\(?\d{1,3}(?:\.\d{1,3})+[.)]?|\[\d{1,4}\]|(?:[Ee]q|[Ss]tep|[Ll]ine)\.?\s*\(?\d{1,4}\)?[.:)]?)\s+)+"
)
_BREAK = pattern(r"\\\\(?:\[[^\]]*\])?")
_REMARK = pattern(r"(?:\[[^\[\]=]*[A-Za-z]{3}[^\[\]=]*\]|\((?=[^()]*[A-Za-z]{4})[^()=]*\))$")
_NEW_STATEMENT = pattern(r"(?:[,;]\s*|(?<=\w|\))\s{2,})(?=[A-Za-z]\w*(?:\[\d+,\d+\])?\s*:?=(?!=))|;")
_SEVERAL = pattern(r"^([A-Za-z]\w*(?:\s*,\s*[A-Za-z]\w*)+)\s*=(?!=)(.*)$")
_COMMENT = pattern(r"(?<!\\)(?:#|//|%|\(\*|/\*|\s!\s).*$")
_SUBSCRIPT = pattern(r"(?i)<sub>\s*([\d, ]+?)\s*</sub>")
_QUOTED = pattern(r"^\s*[\"']?([A-Za-z]\w*)[\"']?\s*[:=]\s*([\"'])([^\"']*)\2,?\s*$")
_ENTITIES = {"times": "*", "minus": "-", "middot": "*", "sdot": "*", "lowast": "*", "nbsp": " "}
_ENTITY = pattern(rf"&({'|'.join(_ENTITIES)});")
_FACTORS_ROW = pattern(
    r"^\s*\|?\s*([A-Za-z]\w*)\s*(?P<by>[,|\t])([^,|=\t]*[A-Za-z]\d[^,|=\t]*)(?:(?P=by)([^,|=\t]*[A-Za-z]\d[^,|=\t]*))?\|?\s*$"
)
_MATRICES = pattern(
    r"\\begin\{[pbvB]?matrix\}(.{1,2000}?)\\end\{[pbvB]?matrix\}\s*&?\s*=\s*\\begin\{[pbvB]?matrix\}(.{1,9000}?)"
    r"\\end\{[pbvB]?matrix\}",
    re.DOTALL,
)
_TABLE_ROW = pattern(r"^\s*\|\s*([A-Za-z]\w*)\s*\|([^|]*[A-Za-z]\d[^|]*)\|")
_REWRITES = tuple(
    (mark, pattern(text), replacement)
    for mark, text, replacement in (
        ("define", r"^\s*#\s*define\s+([A-Za-z]\w*)\s+", r"\1 = "),
        (" :: ", r"^\s*[-+*]\s+([A-Za-z]\w*)\s+::\s+", r"\1 = "),  # a list of Org mode
        ("<t", r"(?:</?t[rdh]\b[^<>]*>\s*)+", "|"),
        ("self.", r"\bself\.(?=[A-Za-z])", ""),
        ("this.", r"\bthis\.(?=[A-Za-z])", ""),
        (":0]", r"\b(wire|reg|logic|signed)\s*\[\d+:0\]", r"\1 "),
        ("{", r"^([^={}\\]*\b[A-Za-z]\w*\d)\{([^={}\\]+)\}\s*;?\s*$", r"\1 = \2"),  # double m1{a11 * b11};
    )
)
"""A substring of a line, and the function that rewrites such a line before its comment is removed."""

_MAPPING = pattern(r"(?<=[{,])\s*([A-Za-z]\w*)\s*:\s*")
_RULER = pattern(r"\s*([-+=*_~#])\1{2,}\s*")
_EQUATION_NUMBER = pattern(r"(?:\t|\s\s)\s*\(\d{1,3}\)$")
_SIDE_BY_SIDE = pattern(r"(?<=[A-Za-z]\d\d)(?=[A-Za-z]\d)")
_PLAIN = pattern(
    r"(?a)\s*(?=[(A-Za-z])(?>[-+*()=]\s*|\d+\s*\*\s*|[A-Za-z]{1,2}(?:\d+|\[\d+,\d+\])\s*(?![A-Za-z\d_\[,]))*"
)
"""A line that is in plain spelling already, as almost all lines of large files are."""

_WORD_TIMES = pattern(r"(?<=[)\d\]])(?:\s+[xX]\s+|\s*\.\s*)(?=[(A-Za-z])")


def statements(text: str) -> Iterator[Statement]:
    """Every statement of a text, in order; a line that ends with an operator continues in the next one."""
    number, held, whole = 0, "", False
    for at, line, plain in _lines(text):
        goes_on = held and (held[-1] in "+-*=(,/" or line[0] in "*/=)" or ("=" in held and line[0] in "+-"))
        if goes_on and held.count("=") + line.count("=") <= 1:
            held = f"{held} {line}"
            continue
        if held:
            yield from [(number, held)] if whole else _parted(number, held)
        number, held, whole = at, line, plain
    if held:
        yield from [(number, held)] if whole else _parted(number, held)


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """The lines that say something, in plain spelling, and whether they were so already and are one statement."""
    latex = "\\\\" in text
    if "matrix}" in text:
        text = _MATRICES.sub(_entry_by_entry, text)
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith(("```", "~~~")) or _RULER.fullmatch(line):
            continue
        if _PLAIN.fullmatch(line) and not line.isspace():
            yield number, line.strip(), True
            continue
        for part in _parts(line, latex):
            yield number, part, False


@lru_cache(maxsize=512)
def _parts(line: str, latex: bool) -> tuple[str, ...]:
    """The parts of a line in plain spelling. Several formats look at the same lines to tell whether they are theirs."""
    for mark, rewritten, replacement in _REWRITES:
        if mark in line:
            line = rewritten.sub(replacement, line)
    plain = _COMMENT.sub("", line.replace("%*%", "*"))  # R multiplies so
    plain = plain.rstrip().removesuffix(" \\")  # Typst ends lines so
    if plain.lstrip()[:1] == "{" and "=" not in plain and '"' not in plain:
        plain = _MAPPING.sub(r" \1 = ", plain)
    if "=" not in plain and (row := _FACTORS_ROW.match(plain)):
        name, left, right = row.group(1), row.group(3), row.group(4)
        plain = f"{name} = ({left})*({right})" if right else f"{name} = {left}"
    if "|" in plain:
        plain = _TABLE_ROW.sub(r"\1 = \2", plain)
    if '"' in plain or "'" in plain:
        plain = _QUOTED.sub(r"\1 = \3", plain)
    if "&" in plain:
        plain = _ENTITY.sub(lambda match: _ENTITIES[match.group(1)], plain)
    found = []
    for part in _BREAK.split(plain) if latex else (plain,):
        numbering = _NUMBERING if "=" in part else _COUNTED
        part = _trimmed(spelled(numbering.sub("", part.lstrip())))
        part = numbering.sub("", part)
        if part:
            found.append(part)
    return tuple(found)


def _entry_by_entry(match: re.Match[str]) -> str:
    """An equation of two LaTeX matrices as equations of their entries; the text itself where sizes differ."""
    sides = [[row.split("&") for row in side.split(r"\\")] for side in match.groups()]
    names, values = ([entry.strip() for row in side for entry in row] for side in sides)
    if len(names) != len(values):
        return match.group()
    entries = r" \\ ".join(f"{name} = {' '.join(value.split())}" for name, value in zip(names, values, strict=True))
    return entries + "\n" * match.group().count("\n")


def _parted(number: int, text: str) -> Iterator[Statement]:
    if len(text) < MAX_SPLIT and (several := _SEVERAL.match(text)):  # a11, a12 = x, y
        names, values = (re.split(r",(?![^\[(]*[\])])", side) for side in several.groups())
        if len(names) == len(values):
            yield from ((number, f"{x.strip()} = {y.strip()}") for x, y in zip(names, values, strict=True))
        return
    for part in _NEW_STATEMENT.split(text):
        part = _trimmed(part)
        if part:
            yield number, part


def _trimmed(text: str) -> str:
    """A statement without blanks, punctuation and a remark in brackets at its end."""
    text = text.strip().rstrip(".,;: \t")
    if text[-1:] == ")" and "=" in text:
        text = (text[:-20] + _EQUATION_NUMBER.sub("", text[-20:])).rstrip()
    if text[-1:] in ("]", ")") and len(text) < MAX_SPLIT and (remark := _REMARK.search(text)):
        text = text[: remark.start()].rstrip(".,;: \t") if text[: remark.start()][-1:].isspace() else text
    return text


def spelled(text: str) -> str:
    """A line with its names and signs in one spelling."""
    if _WORD_TIMES.search(text):
        text = _WORD_TIMES.sub("*", text)
    if not _MARKUP.search(text):
        text = _SIDE_BY_SIDE.sub(" ", text)
        return _uncalled(text) if _CALLS.search(text) else text
    latex = "\\" in text or "$" in text or "_{" in text
    if "<" in text:
        text = re.sub(r"</?\w+\s*/?>", " ", _SUBSCRIPT.sub(r"_{\1}", text))
    if "\\" in text:
        for command, replacement in _COMMANDS:
            text = command.sub(replacement, text)
    text = text.translate(_SIGNS)
    for name, replacement in _NAMES:
        text = name.sub(replacement, text)
    text = text.replace("{", "(").replace("}", ")") if latex else text.replace("{", " ").replace("}", " ")
    text = _SIDE_BY_SIDE.sub(" ", text)
    return _uncalled(text) if _CALLS.search(text) else text


def _uncalled(text: str) -> str:
    """`dot(x, y)` as `((x)*(y))`, `add(x, y)` and `sub(x, y)` as sums."""
    while match := _CALLS.search(text):
        depth, comma, end = 1, -1, -1
        for at in range(match.end(), len(text)):
            if text[at] == "," and depth == 1 and comma < 0:
                comma = at
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[at], 0)
            if not depth:
                end = at
                break
        if comma < 0 or end < 0:
            return text
        left, right = text[match.end() : comma], text[comma + 1 : end]
        sign = "+" if match["plus"] else "-" if match["minus"] else "*"
        text = f"{text[: match.start()]}(({left}){sign}({right})){text[end + 1 :]}"
    return text
