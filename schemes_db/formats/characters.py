"""One spelling of the characters that editors, word processors and PDFs put in place of ASCII ones."""

from __future__ import annotations

import re
import unicodedata
from html import unescape

_MINUS = "\u2010\u2011\u2012\u2013\u2212\ufe63"
_BLANKS = "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"
_LETTERS = [*range(0x1D400, 0x1D800)]
"""Bold, italic and other mathematical letters and digits."""

_ASCII = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full width
    **{code: unicodedata.normalize("NFKC", chr(code)) for code in _LETTERS},
    **dict.fromkeys(map(ord, _MINUS), "-"),
    **dict.fromkeys(map(ord, _BLANKS), " "),
    **dict.fromkeys(map(ord, _INVISIBLE), ""),
}
_LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")


def in_ascii(text: str) -> str:
    """A text with ASCII signs, blanks, letters and digits, without entities of web pages; lines end with a line feed.

    Raised and circled characters, vulgar fractions and em dashes stay: what they mean depends on where they stand.
    """
    text = unescape(text) if re.search(r"&(?:minus|middot|sdot|times|nbsp);", text) else text
    if not text.isascii():
        text = text.translate(_ASCII)
    return _LINE_END.sub("\n", text)
