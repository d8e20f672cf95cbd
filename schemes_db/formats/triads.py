"""Products as triples of matrices, the third indexed by C transposed: Maple's triad sets and Mathematica's lists.

Maple: `TriadSet([Triad([Matrix(..), Matrix(..), Matrix(..)]), ...])`, as the FMM catalogue has them. Entries are
numbers, or products, quotients and powers of them and of an infinitesimal x. What else the file holds (symbolic
matrices, a check) is passed over.

Mathematica: every product is {A, B, C^T}, a matrix a list of rows in braces; a file may hold the products one after
the other, one list of them, or a list of such lists (many schemes).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...errors import SchemeFormatError
from ..ring import Ring
from ..scheme import MAX_RANK
from ..target import Target
from .arrays import as_array, reading_of_unlabelled
from .dense import TextReader
from .lines import without_block_comments
from .patterns import pattern
from .reading import C_TRANSPOSED, Reading
from .syntax import Meaning, Parser, Value, name_of, plain

_TRIAD = pattern(r"\bTriad\s*\(\s*\[")
_START = pattern(r"\bTriad(?:Set)?\s*\(")
_STATEMENT = pattern(
    r"[\s,]*(?:$|[A-Za-z_]\w*(?::-\w+)*\s*(?:\[[^\]]*\]\s*)?(?:\(|:=)|(?:for|if|end|od|fi|else|restart|quit|done|return)\b)"
)
_BEFORE = pattern(r"(?:^|[:;,\n])\s*(?:(\w+)\s*:=\s*)?$")
_BRACES = pattern(r"\s*(?:[A-Za-z]\w*\s*:?=\s*)?(?:\{\s*){3,5}[-+]?\s*[\d.I]")


class _Triads(Meaning):
    """Calls that make matrices, triads of them and sets of triads are the lists in them."""

    def called(self, name: str, arguments: list[Value], keywords: dict[str, str]) -> Value:
        if name not in ("TriadSet", "Triad", "Matrix", "matrix"):
            return super().called(name, arguments, keywords)
        lists = [argument for argument in arguments if isinstance(argument, list)]
        if len(lists) != 1:
            raise SchemeFormatError(f"{name} must have one list, in brackets")
        sizes, rows = [argument for argument in arguments if not isinstance(argument, list)], lists[0]
        width = len(rows[0]) if rows and isinstance(rows[0], list) else 0
        if name.endswith("atrix") and sizes and sizes != [len(rows), width]:
            raise SchemeFormatError(f"a matrix of {len(rows)} x {width} entries that claims other sizes")
        return rows


def _maple(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read every triad set of a file; triads outside of a set make up one scheme, other statements are passed over.

    Raises:
        SchemeFormatError: with the line; not triads of three matrices.
    """
    plain = re.sub(r"#[^\n]*", "", text)
    groups: list[list[Value]] = []
    loose: list[Value] = []
    position = rest = first = 0
    while match := _START.search(plain, position):
        line = plain.count("\n", 0, match.start()) + 1
        before = _BEFORE.search(plain[max(position - 1, match.start() - 80, 0) : match.start()])
        parser = Parser(plain, _Triads(), match.start())
        triads = parser.top()
        if before is None or not (parser.kind == "end" or parser.at(":", ";", ",")) or not isinstance(triads, list):
            raise SchemeFormatError("expected TriadSet([...]) or Triad([...]) and nothing around it", line=line)
        if (name := before[1]) and len(re.findall(rf"\b{name}\s*(?:\[[^\]]*\]\s*)?:=", plain)) > 1:
            raise SchemeFormatError(f"{name} is set twice", line=line)
        position, rest, first = parser.position, parser.start, first or match.start()
        (groups if "Set" in match.group() else loose).append(triads)
    for statement in re.split(r";|:(?![-=])", f"{plain[:first]}triads();{plain[rest:]}"):
        if not _STATEMENT.match(statement):
            raise SchemeFormatError(f"{statement.strip()[:30]!r} beside the triads is no statement of Maple")
    groups += [loose] if loose else []
    if not groups:
        raise SchemeFormatError("expected TriadSet([Triad([Matrix(..), Matrix(..), Matrix(..)]), ...])")
    return [_reading("maple", group, target, ring) for group in groups]


def _mathematica(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read all schemes; both conventions become candidates where the sizes allow both.

    Raises:
        SchemeFormatError: not such lists.
    """
    nodes = values(without_block_comments(text))
    depths = {_depth(node) for node in nodes}
    if depths not in ({3}, {4}, {5}):
        raise SchemeFormatError("expected products {A, B, C} of matrices in braces, such as {{1,0},{0,1}}")
    schemes = [nodes] if depths == {3} else nodes if depths == {4} else [part for node in nodes for part in node]
    return [_reading("mathematica", triads, target, ring) for triads in schemes if isinstance(triads, list)]


def _depth(node: Value) -> int:
    return 1 + (_depth(node[0]) if len(node) else 0) if isinstance(node, list) else 0


def _reading(format: str, triads: Sequence[Value], target: Target | None, ring: Ring | None) -> Reading:
    """The reading of products {A, B, C^T}, each of three matrices of the same sizes throughout."""
    if not 0 < len(triads) <= MAX_RANK:
        raise SchemeFormatError(f"a scheme has 1 to {MAX_RANK} products, not {len(triads)}")
    three = all(isinstance(triad, list) and len(triad) == 3 for triad in triads)
    arrays = [as_array([plain(triad[slot]) for triad in triads]) if three else None for slot in range(3)]
    found = [array for array in arrays if array is not None and array.ndim == 3]
    if len(found) != 3:
        raise SchemeFormatError("every product must be three matrices of numbers, of no other sizes than before")
    return reading_of_unlabelled(format, found, target, ring, (), (C_TRANSPOSED, ""))


def _sniff_mathematica(text: str) -> bool:
    """Return whether it starts with nested braces around a number."""
    return _BRACES.match(without_block_comments(text[:20_000])) is not None


maple = TextReader("maple", ".mpl", C_TRANSPOSED, lambda text: _TRIAD.search(text) is not None, _maple)
mathematica = TextReader("mathematica", ".m", C_TRANSPOSED, _sniff_mathematica, _mathematica)


def values(text: str) -> list[Value]:
    """Every value on the top level of a text; `name =`, `:=`, commas and semicolons between them are skipped.

    Raises:
        SchemeFormatError: with the line, where something is no value.
    """
    parser = Parser(text)
    found: list[Value] = []
    while parser.kind != "end":
        if parser.accept(",", ";", ":"):
            continue
        value = parser.top()
        if name_of(value) and parser.accept("=", ":="):
            continue
        found.append(value)
    return found
