"""Tables of numbers: three below each other, one with the blocks or the products as its head, or one coefficient a row.

Every line is a row, a heading, a setting such as `rank: 7`, or a comment; any other line makes it no table.
"""

from __future__ import annotations

import re
from typing import Any

from ...errors import SchemeFormatError
from .arrays import ROLES
from .candidates import shape_of
from .expression import block_of
from .lines import spelled
from .patterns import pattern
from .syntax import number

_CELL = r"\(?[-+]?(?:\d[\d./]*|\.\d+)(?:[-+]\d[\d./]*[ij])?[ij]?\)?"
_ROW = pattern(rf"\s*(?:-\s+)?[\s\[({{|]*{_CELL}(?:[\s,;|&]+{_CELL})*[\])}}|,;\s\\]*")
_NUMBER = pattern(_CELL)
_HEADING = pattern(
    r"[\s#%*=]*(?:-+\s+)?(?:(?:the|matrix|factor|array)\s+)*([A-Za-z]+\d?)\s*"
    r"(?:\(?\d{1,4}\s*[x, ]\s*\d{1,4}\)?)?\s*[:=\[\](){}|*]*\s*"
)
_SETTING = pattern(r"\s*([A-Za-z_]\w*)\s*[:=]\s*([\w.,x<> /-]+?)\s*")
SCALING = pattern(r"(?i)scal|denom|divis|multiplier|norm|transp|sign|factor$")
"""Names of settings that would change the numbers."""

_FORMULA = pattern(r"[A-Za-z]_?\{?\d+\}?\s*(?:[*=)(]|[-+]\s*[A-Za-z(])|\)\s*\*?\s*\(")
_CHANGES = pattern(r"(?i)half|halv|doubl|twice|negat|scal|times|divided|minus|sign")
_LABEL = pattern(r"[A-Za-z#\\]*[_\s]?\{?\d*\}?\.?")
_GF2 = pattern(r"(?i)\b(?:GF\s*\(?2\)?|F_?2|Z_?2|mod(?:ulo)?\s*2|bit\s*masks?)")
_SIZES = pattern(r"<\s*(\d{1,2})\s*,\s*(\d{1,2})\s*,\s*(\d{1,2})\s*>|\b(\d{1,2})x(\d{1,2})x(\d{1,2})\b")
_FACTOR_NAMES = {name: slot for slot, names in enumerate(ROLES) for name in names}
_HEADS = (
    frozenset(("product", "r", "term", "m", "multiplication", "column")),
    frozenset(("factor", "matrix", "side", "operand", "which", "tensor")),
    frozenset(("block", "entry", "element", "index", "place", "name", "variable")),
    frozenset(("row", "i")),
    frozenset(("col", "column", "j")),
    frozenset(("coefficient", "coeff", "coef", "value", "val", "weight")),
)


def check_setting(name: str, value: object) -> None:
    """Refuse a setting that would change the numbers, such as `denominator: 2`.

    Raises:
        SchemeFormatError: it is one, and its value is not 1.
    """
    if (
        SCALING.search(name)
        and not isinstance(value, list | dict)
        and str(value).strip() not in ("1", "", "False", "None")
    ):
        raise SchemeFormatError(f"what {name[:30]}: {str(value)[:20]} does to the numbers is not known")


def _lines(text: str) -> list[tuple[int, str]]:
    """The lines that say something, without comments."""
    lines = ((at, line.partition("#")[0].rstrip()) for at, line in enumerate(text.splitlines(), start=1))
    return [(at, line) for at, line in lines if line.strip() and not set(line.strip()) <= set("-=+|: *")]


def has_tables(text: str) -> bool:
    """Return whether a text has three tables, or one with heads, or bit masks."""
    if _FORMULA.search(re.sub(r"#[^\n]*", "", text)):
        return False
    try:
        rows = sum(1 for line in text.splitlines() if _ROW.fullmatch(line))
        groups = _groups(text) if rows >= 3 else []
        lengths = {len(_NUMBER.findall(line)) for _, lines in groups for _, line in lines}
        if len(groups) == 3 or (len(groups) == len(lengths) == 1) or (rows >= 3 and masks_of(text) is not None):
            return True
        return headed(text) is not None or listed(text) is not None
    except SchemeFormatError:
        return True


def _role(line: str) -> int | None:
    """Return the factor that a heading line names."""
    match = _HEADING.fullmatch(line.strip()) if len(line) < 80 else None
    return None if match is None else _FACTOR_NAMES.get(match.group(1).lower())


def _groups(text: str) -> list[tuple[int | None, list[tuple[int, str]]]]:
    """Lines of numbers that stand together, with the factor that the heading above them names."""
    found: list[tuple[int | None, list[tuple[int, str]]]] = []
    role: int | None = None
    fresh = True
    for at, line in enumerate(text.splitlines(), start=1):
        plain = line.partition("#")[0] if not _role(line) else line
        if _ROW.fullmatch(plain):
            if fresh:
                found.append((role, []))
                fresh = False
            found[-1][1].append((at, plain))
        elif (named := _role(line)) is not None:
            role, fresh = named, True
        elif not plain.strip() or set(plain.strip()) <= set("-=#*"):
            fresh = True
        elif setting := _SETTING.fullmatch(plain):
            check_setting(*setting.groups())
        elif re.search(r"\d|[-+*/^']", plain) or _CHANGES.search(plain):
            return []  # a row that is none: this is no table of numbers
    return found


def table_count(text: str) -> int:
    return len(_groups(text))


def _numbers(at: int, line: str) -> list[Any]:
    try:
        return [number(word) for word in _NUMBER.findall(line)]
    except SchemeFormatError as error:
        raise SchemeFormatError(error.message, line=at) from None


def three_tables(text: str) -> list[Any] | None:
    """Three tables of numbers, each below a heading that names its factor, or in the order U, V, W."""
    groups = _groups(text)
    if len(groups) != 3:
        return None
    roles = [role for role, _ in groups]
    if sorted(role for role in roles if role is not None) == [0, 1, 2]:
        groups = sorted(groups, key=lambda group: group[0] or 0)
    return [[_numbers(at, line) for at, line in lines] for _, lines in groups]


def _cells(line: str) -> list[str]:
    plain = line.strip().strip("|").strip()
    parts = re.split(r"\s*[|;\t&]\s*|\s*,\s*" if re.search(r"[|;\t&,]", plain) else r"\s+", plain)
    return [part.strip().strip("\"'") for part in parts]


def _block(cell: str) -> tuple[str, int, int] | None:
    cell = spelled(cell)
    return block_of(cell) if re.match(r"[a-cA-C]", cell) else None


def headed(text: str) -> list[Any] | None:
    """The factors of tables whose heads are blocks, or products with a block before each row; None for other texts.

    Raises:
        SchemeFormatError: with the line, where a row is not as the head says.
    """
    columns: list[tuple[str, int, int] | None] | None = None
    by_block, row = False, 0
    entries: list[tuple[str, tuple[str, int, int], Any]] = []
    products: dict[str, None] = {}
    for at, line in _lines(text):
        cells = _cells(line)
        blocks = [_block(cell) for cell in cells]
        if len([block for block in blocks if block]) > 1:
            if None in blocks[1:]:
                raise SchemeFormatError("the head of a table names something that is no block", line=at)
            columns, by_block, head, row = blocks, False, cells, 0
        elif (
            len(cells) > 2
            and all(re.fullmatch(r"[A-Za-z]?_?\{?\d+\}?", cell) for cell in cells[1:])
            and not blocks[0]
            and (not re.fullmatch(r"[-+]?\d+", cells[1]))
        ):
            columns, by_block, head, row = [None] * len(cells), True, cells, 0
        elif columns is None:
            if any(_NUMBER.fullmatch(cell) for cell in cells) and len(cells) > 2:
                return None
        else:
            lead = len(cells) - len(columns)
            if lead not in (0, 1) or (by_block and _block(cells[0]) is None):
                if _role(line) is not None:
                    continue
                raise SchemeFormatError("a row that is not as long as the head of its table", line=at)
            if (lead or by_block or columns[0] is None) and not _LABEL.fullmatch(cells[0]):
                raise SchemeFormatError(f"{cells[0][:20]!r} before a row is no label", line=at)
            row += 1
            titled = not lead and by_block  # the head has a title above the labels
            label = cells[0] if lead or titled or columns[0] is None else str(row)
            for cell, block, name in zip(cells[lead or titled :], columns[titled:], head[titled:], strict=True):
                pair = (name, _block(label)) if by_block else (label, block)
                if pair[1] is None:
                    continue
                try:
                    value = number(cell) if cell not in ("", ".") else 0
                except SchemeFormatError:
                    raise SchemeFormatError(f"{cell[:20]!r} in a table is no number", line=at) from None
                products.setdefault(pair[0])
                entries.append((pair[0], pair[1], value))
    if len({block[0] for _, block, _ in entries}) != 3:
        return None
    return _dense(list(products), entries)


def _dense(products: list[str], entries: list[tuple[str, tuple[str, int, int], Any]]) -> list[Any]:
    """The factors (R, rows, cols) of coefficients by product and block.

    Raises:
        SchemeFormatError: one is given twice, or indices are too large.
    """
    base = min(min(row, col) for _, (_, row, col), _ in entries)
    order = {product: r for r, product in enumerate(products)}
    factors = []
    for letter in "abc":
        mine = [(order[product], row, col, value) for product, (own, row, col), value in entries if own == letter]
        if len({one[:3] for one in mine}) != len(mine):
            raise SchemeFormatError(f"a coefficient of {letter.upper()} is given twice")
        rows, cols = (1 - base + max((one[at] for one in mine), default=0) for at in (1, 2))
        if len(products) * rows * cols > 1 << 22:
            raise SchemeFormatError("a table of more blocks than a scheme has")
        dense = [[[0] * cols for _ in range(rows)] for _ in products]
        for r, row, col, value in mine:
            dense[r][row - base][col - base] = value
        factors.append(dense)
    return factors


def listed(text: str) -> list[Any] | None:
    """The factors of a table with one coefficient a row: product, factor, block (or row and column), coefficient.

    Raises:
        SchemeFormatError: with the line, where a row is not as its head says.
    """
    lines = _lines(text)
    if not lines:
        return None
    heads = [cell.lower() for cell in _cells(lines[0][1])]
    kinds = []
    for head in heads:
        fitting = [kind for kind, names in enumerate(_HEADS) if head in names and kind not in kinds]
        kinds.append(fitting[0] if fitting else -1)
    needed = {0, 1, 5} if 1 in kinds else {0, 2, 5}
    if not needed <= set(kinds) or -1 in kinds or not (2 in kinds or {3, 4} <= set(kinds)):
        return None
    entries: list[tuple[str, tuple[str, int, int], Any]] = []
    products: dict[str, None] = {}
    for at, line in lines[1:]:
        plain = re.sub(r"\"(\d+)\s*,\s*(\d+)\"|\((\d+)\s*,\s*(\d+)\)", r"\1\3_\2\4", line)
        cells = _cells(plain)
        row = dict(zip(kinds, cells, strict=False))
        try:
            if len(cells) != len(kinds):
                raise SchemeFormatError("a row of another length")
            entries.append((row[0], _place(row), number(row[5])))
        except SchemeFormatError as error:
            raise SchemeFormatError(f"{error.message}, where a row of the table belongs", line=at) from None
        products.setdefault(row[0])
    return _dense(list(products), entries) if len({block[0] for _, block, _ in entries}) == 3 else None


def _place(row: dict[int, str]) -> tuple[str, int, int]:
    """The letter, row and column of the block that a row names."""
    letter = "abc"[_FACTOR_NAMES[row[1].lower()]] if 1 in row and row[1].lower() in _FACTOR_NAMES else ""
    if 2 not in row and letter and row[3].isdigit() and row[4].isdigit():
        return letter, int(row[3]), int(row[4])
    digits = re.fullmatch(r"([A-Za-z]?)_?(?:(\d)(\d)|(\d+)[_ ](\d+))", row.get(2, ""))
    if digits is None or (1 in row and not letter):
        raise SchemeFormatError(f"{row.get(2, '')[:20]!r} is no block")
    own = "abc"[_FACTOR_NAMES[digits[1].lower()]] if digits[1].lower() in _FACTOR_NAMES else letter
    if not own or (letter and own != letter):
        raise SchemeFormatError(f"{row.get(2, '')[:20]!r} is no block")
    return own, int(digits[2] or digits[4]), int(digits[3] or digits[5])


def masks_of(text: str) -> tuple[list[list[int]], tuple[int, int, int]] | None:
    """Three bit masks a product modulo 2, bit j for entry j, and the sizes m, k, n; None for other texts.

    Raises:
        SchemeFormatError: the sizes can't be told.
    """
    lines = [line.split() for line in re.sub(r"(?m)#.*$", "", text).splitlines() if line.strip()]
    if (
        not _GF2.search(text)
        or len(lines) < 2
        or not all(word.isascii() and word.isdigit() and len(word) < 40 for line in lines for word in line)
    ):
        return None
    count = int(lines.pop(0)[0]) if len(lines[0]) == 1 else len(lines)
    if count != len(lines) or any(len(line) != 3 for line in lines):
        return None
    words = [[int(word) for word in line] for line in lines]
    said = _SIZES.search(text)
    if said is not None:
        m, k, n = (int(size) for size in said.groups() if size is not None)
    else:
        m, k, n = shape_of(*(max(row[slot].bit_length() for row in words) for slot in range(3)))
    return words, (m, k, n)
