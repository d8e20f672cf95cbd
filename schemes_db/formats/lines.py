"""Text as people write it, taken apart into plain statements: LaTeX, code fences, numbering and comments removed.

What is left of a line are statements in one spelling: names as `a11`, `a[1,10]` or `m3`, products
by `*` or side by side, `=` between a name and its value. What a statement means is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_SPLIT = 10_000
"""Characters up to which a line is looked at for remarks and for several names on the left of one sign."""

Statement = tuple[int, str]
"""The number of its line, from 1, and its text."""

_MARKUP = re.compile(
    r"[\\$&_^{}`~@<\[\u2080-\u2089\u2212\u2013\u2190\u2254\u2217\u22c5\u00b7\u00d7\u2219]|[A-Za-z]\(\s*\d"
)
_COMMANDS = (
    (r"\\(?:tag|label|qquad|quad|hspace|vspace|ref|eqref|text|mbox|intertext)\*?\{[^{}]*\}", " "),
    (r"\\(?:[td]?frac)\{([-+]?\d+)\}\{(\d+)\}", r"(\1/\2)"),
    (r"\\(?:[td]?frac)(\d)(\d)", r"(\1/\2)"),
    (r"\\(?:begin|end)\{[^{}]*\}(?:\{[^{}]*\})?", " "),
    (r"\\(?:left|right|big|Big|bigg|Bigg|bigl|bigr|Bigl|Bigr|displaystyle|quad|qquad|nonumber|notag|limits)\b", " "),
    (r"\\(?:cdot|times|ast|star|cdotp|circ)\b\s*", "*"),
    (r"\\(?:mathrm|mathbf|mathit|mathcal|mathsf|bm|boldsymbol|operatorname)\b", ""),
    (r"\\(?:hat|tilde|bar|widehat|widetilde|overline|underline)\b", ""),
    (r"\\(?:coloneqq|gets|leftarrow|triangleq|equiv)\b", "="),
    (r"\\[,;:!> ]", " "),
    (r"\\[\[\]()]", " "),
)
_COMMANDS_COMPILED = tuple((re.compile(pattern), replacement) for pattern, replacement in _COMMANDS)
_SIGNS = str.maketrans(
    {
        "\u2212": "-",
        "\u2013": "-",
        "\u2217": "*",
        "\u22c5": "*",
        "\u00b7": "*",
        "\u00d7": "*",
        "\u2219": "*",
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
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\{([A-Za-z]+)\}", r"\1"),  # \mathbf{A}
        (rf"{_LETTERS}\s*_\s*\{{\s*(\d+)\s*[,;]?\s+(\d+)\s*\}}", r"\1[\2,\3]"),
        (rf"{_LETTERS}\s*_?\s*\{{\s*(\d+)\s*[,;]\s*(\d+)\s*\}}", r"\1[\2,\3]"),
        (rf"{_LETTERS}\s*_\s*\{{\s*(\d+)\s*\}}", r"\1_\2"),
        (rf"{_LETTERS}\[\s*(\d+)\s*\]\s*\[\s*(\d+)\s*\]", r"\1[\2,\3]"),
        (rf"{_LETTERS}\(\s*(\d+)\s*,\s*(\d+)\s*\)", r"\1[\2,\3]"),
        (rf"{_LETTERS}\(\s*(\d+)\s*\)(?=\s*:?=)", r"\1_\2"),
        (rf"{_LETTERS}_(\d+)\s*,\s*(\d+)", r"\1[\2,\3]"),
        (rf"{_LETTERS}\[\s*(\d+)\s*\]", r"\1_\2"),
        (r"(?<![A-Za-z0-9_])([A-Za-z]+)_(\d+)(?![\w,])", r"\1\2"),
    )
)
_CALLS = re.compile(r"(?<![\w.])(?:(?:np|numpy|torch|tf|jnp)\.)?(?:dot|matmul|mul|multiply|mult|mm)\s*\(")
_COUNTED = re.compile(r"^(?:\d{1,4}[.)]\s+|[\u2022>]\s*)+")
_NUMBERING = re.compile(
    r"^(?:(?:[-*+\u2022>]|\(?\d{1,4}[.)]|\[\d{1,4}\]|(?:[Ee]q|[Ss]tep|[Ll]ine)\.?\s*\(?\d{1,4}\)?[.:)]?)\s+)+"
)
_BREAK = re.compile(r"\\\\(?:\[[^\]]*\])?")
_REMARK = re.compile(r"(?:\[[^\[\]=]*[A-Za-z]{3}[^\[\]=]*\]|\((?=[^()]*[A-Za-z]{4})[^()=]*\))$")
_NEW_STATEMENT = re.compile(r"[,;]\s*(?=[A-Za-z]\w*(?:\[\d+,\d+\])?\s*:?=(?!=))|;")
_SEVERAL = re.compile(r"^([A-Za-z]\w*(?:\s*,\s*[A-Za-z]\w*)+)\s*=(?!=)(.*)$")
_COMMENT = re.compile(r"(?<!\\)(?:#|//|%|\(\*|/\*|\s!\s).*$")
_SUBSCRIPT = re.compile(r"(?i)<sub>\s*([\d, ]+?)\s*</sub>")
_TABLE_ROW = re.compile(r"^\s*\|\s*([A-Za-z]\w*)\s*\|([^|]*[A-Za-z]\d[^|]*)\|")
_SIDE_BY_SIDE = re.compile(r"(?<=[A-Za-z]\d\d)(?=[A-Za-z]\d)")
_PLAIN = re.compile(
    r"(?a)\s*(?=[(A-Za-z])(?>[-+*()=]\s*|\d+\s*\*\s*|[A-Za-z]{1,2}(?:\d+|\[\d+,\d+\])\s*(?![A-Za-z\d_\[,]))*"
)
"""A line that is in plain spelling already, as almost all lines of large files are."""

_WORD_TIMES = re.compile(r"(?<=[)\d\]])(?:\s+[xX]\s+|\s*\.\s*)(?=[(A-Za-z])")


def statements(text: str) -> Iterator[Statement]:
    """Every statement of a text, in order; a line that ends with an operator goes on in the next one."""
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
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith(("```", "~~~")):
            continue
        if _PLAIN.fullmatch(line) and not line.isspace():
            yield number, line.strip(), True
            continue
        plain = _COMMENT.sub("", line)
        if "|" in plain:
            plain = _TABLE_ROW.sub(r"\1 = \2", plain)
        for part in _BREAK.split(plain) if latex else (plain,):
            numbering = _NUMBERING if "=" in part else _COUNTED
            part = _trimmed(spelled(numbering.sub("", part.lstrip())))
            part = numbering.sub("", part)
            if part:
                yield number, part, False


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
        text = re.sub(r"</?\w+>", " ", _SUBSCRIPT.sub(r"_{\1}", text))
    if "\\" in text:
        for pattern, replacement in _COMMANDS_COMPILED:
            text = pattern.sub(replacement, text)
    text = text.translate(_SIGNS)
    for pattern, replacement in _NAMES:
        text = pattern.sub(replacement, text)
    text = text.replace("{", "(").replace("}", ")") if latex else text.replace("{", " ").replace("}", " ")
    text = _SIDE_BY_SIDE.sub(" ", text)
    return _uncalled(text) if _CALLS.search(text) else text


def _uncalled(text: str) -> str:
    """`dot(x, y)` as `((x)*(y))`."""
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
        text = f"{text[: match.start()]}(({left})*({right})){text[end + 1 :]}"
    return text
