"""Regular expressions that are compiled on first use: most readers are imported, but not needed, for a given file."""

from __future__ import annotations

import re
from typing import Any, cast

from ...errors import SchemeFormatError


class _Lazy:
    def __init__(self, text: str, flags: int) -> None:
        self._source = text, flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(*self._source), name)
        # As an attribute of this object the method is found without another call of this one.
        self.__dict__[name] = method
        return method


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """The regular expression of a text: its methods, but none of its other attributes."""
    return cast("re.Pattern[str]", _Lazy(text, flags))


MAX_SENTENCE = 10_000
"""Characters of the longest line that is looked at as a sentence."""

OPERATOR = pattern(r"[-=+*/@^<>\[\]{}|~!&%$?\\\u2190-\u21ff]|\w\(|^#")
"""What a line of prose does not have."""

CHANGES = pattern(
    r"(?i)\b(?:negat\w*|swap\w*|exchang\w*|scal(?:e|es|ed|ing)|hal(?:f|ve)\w*|doubl\w*|twice|divid\w*"
    r"|replac\w*|omit\w*|transpos\w*|invert\w*|subtract\w*|multipl(?:y|ied)|times|minus|sign"
    r"|becomes?|delet\w*|remov\w*|revers\w*|neg|interchang\w*|complement(?:ed)?|numerators?|inverses?|upside|eighths|quarters"
    r"|conj(?:ugat\w*)?|wrong|typos?|(?:add|plus|needs|gets|by|increment|increase|decrement|drop|ignore|skip|without) "
    r"[a-z]_?\d+)\b|\b(?:set|reset|change)\b.{1,80}\bto\b"
)
"""Words that say that something is done to numbers."""

_CHANGES_ALL = pattern(
    r"(?i).*\b(?:swap|(?:inter|ex)change) [a-z]_?\d* and [a-z]_?\d*\b"
    r"|.*\b(?:c|results?|outputs?)\s+(?:is|are)\s+(?:then )?(?:negated|halved|doubled|scaled|reversed|inverted)\b"
    r"|[\s(]*(?:negated|halved|doubled|scaled|reversed|inverted)[\s).]*$"
    r"|.*\b(?:transpose|negate|halve|double|swap|reverse|invert) (?:the )?(?:final )?(?:results?|outputs?|c)\b"
    r"|[\s(,]*(?:(?:scaled|divided?|multipl(?:y|ied)) (?:by|with)|times|factor(?: of)?|[x\u00d7])[\s:-]*[\d./]+[\s).]*$"
    r"|(?=.*\b(?:all|each|every(?:thing)?|both|results?|outputs?|entries|coefficients?|blocks?|products?|factors?)\b)"
    r".*\b(?:negat(?:e|ed)|swap(?:ped)?|exchanged?|halved?|doubled?|reversed?|inverted|scaled?|rescaled?|taken twice"
    r"|(?:times|by|with) (?:two|three|2|3|-1|minus one)|counts? (?:twice|double)|(?:is|are) subtracted"
    r"|(?:results?|outputs?) (?:must|has|have|is|are)\b.*\btransposed|then transpose)\b"
    r"|.*\b[abc]_?[{(\[]?[i-l],? ?[i-l]\b.*(?:[\s(]-\s*[abc]|\bminus\b|\bnegati\w+|\btwice\b|\bhalf\b)"
)
"""A sentence that says that all results, or all numbers, are changed."""

SCALING = pattern(
    r"(?i)scal|denom|divis|multiplier|norm|transp|sign(?!ature)|factor$|coeff|weight|lambda|sigma|offset|shift|bias|perm"
    r"|negat|conj|power|quant|expon|amplitude|(?:zero|fixed)_?point|frac_?bits"
    r"|(?:^|_)(?:den|coefs?|gain|units?|times|mult|multiply|exp|pow|radix|resolution|lsb|edits?|patch|errat\w+|inverse"
    r"|invert(?:ed)?|reversed?|swap(?:ped)?|flipped|transforms?|apply|op|masked|drop(?:ped)?|skip(?:ped)?|excluded?"
    r"|(?:row|column)_order)(?:$|_)"
)
"""Names of settings that would change the numbers."""

_BITS = pattern(r"\b0[xXbB][\da-fA-F]+\b")
_FACTOR = pattern(r"(?i)\bfactors?:?\s+(?:of\s+)?[\d(]|\bunits of\b")
_ADDED = pattern(r"(?i)offset|shift|bias|zero_?point|log")
_COUNTS = pattern(r"(?i)(?:is_?)?(?:active|enabled|included|used)")
_REMARKS = pattern(r"(?i)\b(?:(?:divided?|multipl(?:y|ied)|scaled) by|hal(?:ves|ved)|doubled|negated|rescaled)\b")
"""What a remark in a table says of the numbers beside it."""

SHOWN = pattern(r"\s*(?:print|assert|disp|display|s?printf|fprintf|console|std::cout|cout|println|puts)\b")
"""Statements that show values and change none."""

HEAD = pattern(
    r"\s*(?:(?:def|function)\b|(?:(?:static|inline|const|extern|public|private|protected|void|int|float|double|auto|fn|fun|func"
    r"|pub|sub|subroutine|procedure|proc|template|__\w+__)\b(?:\s*<[^=]*>)?[\s*&]+)+\w+\s*[(<][^=]*$)"
)
"""The heads of functions."""

ANYTHING = pattern(
    r"\s*(?:exec\b|<<|Get\[|(?:clear|clearvars|unassign)\b(?!\s*,)(?![^;]*[a-z]{3,}\s+[a-z]{2,})"
    r"|(?:eval|evalin|assignin|load|source|run|execfile|include|read)\s*(?:[('\"`]|[\w./\\]+\.\w{1,4}\s*[;:]?\s*$))"
)
"""Statements that may set any name, or forget it."""

DECORATOR = pattern(
    r"\s*[@*](?!(?:\w+\.)*(?:n?jit\w*|\w*vectorize|\w*cached?|memoi[sz]e|(?:static|class)method|property|no_grad|inference_mode"
    r"|function|script|compile|fixture|register\w*|profile|time[dr]?|overload|override|\w*typed|typechecked|beartype"
    r"|dataclass)\b)[A-Za-z_][\w.]*(?:\(.*\))?\s*"
)
"""A decorator of Python after which a function may return something else; `@` may be spelled `*`."""


def changes_all(text: str) -> bool:
    """Return whether a sentence says that all numbers, or all results, are changed."""
    return len(text) < MAX_SENTENCE and _CHANGES_ALL.match(text) is not None


def changes_something(text: str) -> bool:
    """Return whether a statement may do more than say something."""
    return OPERATOR.search(text) is not None or CHANGES.search(text) is not None


def says_change(text: str) -> bool:
    """Return whether a line is numbers and signs that belong to no value, or says that numbers are changed."""
    letters, others = re.search(r"[A-Za-z]", _BITS.sub("0", text)), re.search(r"[\d\u00bd\[\]]", text)
    if (others and not letters) or changes_all(text):
        return True
    words = not re.search(r"[(=]", text)
    return words and any(one.search(text) for one in (CHANGES, SCALING, _FACTOR))


def check_setting(name: str, value: object) -> None:
    """Refuse a setting that would change the numbers, such as `denominator: 2`.

    Raises:
        SchemeFormatError: it is one, and its value is not 1 (0 where it is added).
    """
    signs = "sign" in name.lower()  # a 1 in a list of signs may stand for minus
    numbers = value if isinstance(value, list) and not signs else [value]
    neutral = {str(one).strip().removesuffix(".0") for one in numbers} <= {
        "0" if _ADDED.search(name) else "1",
        "",
        "False",
        "None",
    }
    texts = isinstance(value, list) and bool(value) and isinstance(value[0], str) and "=" in value[0]
    said = isinstance(value, str) and (changes_all(value) or _REMARKS.search(value))
    left_out = _COUNTS.fullmatch(name) and str(value) in ("False", "0")
    if said or left_out or (SCALING.search(name) and not (neutral or texts)):
        raise SchemeFormatError(f"what {name[:30]}: {str(value)[:20]} does to the numbers is not known")
